"""The interface of workloads: an algorithm on one shape, with its inputs, exact outputs and tolerance."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Mapping, Protocol, Sequence

if TYPE_CHECKING:
    import numpy as np
    from tvm.tirx import PrimFunc

    from tir_schedules.model.launch import Dim3

Arguments = dict[str, Any]
"""What a kernel is given, by name: arrays of numpy, or of CuPy where they are on a GPU, and integers."""


class Workload(Protocol):
    """A frozen dataclass whose fields are the shape and the kind, such as Gemm(m, n, k).

    inputs, outputs: names of the arrays. workspaces: names of arrays that a launch leaves for the next. The
    constructor raises BadInput for a shape that is not possible.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def inputs(self) -> Sequence[str]: ...

    @property
    def outputs(self) -> Sequence[str]: ...

    @property
    def workspaces(self) -> Sequence[str]: ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents, such as (M, N, K), or (N,) of a reduction."""
        ...

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters that a kernel may have, each with its C type."""
        ...

    @property
    def macros(self) -> Mapping[str, str | int]:
        """Macros that a twin is compiled with, if the workload is not the default."""
        ...

    @property
    def flops(self) -> int:
        """Floating-point operations, or additions of integers."""
        ...

    @property
    def bytes(self) -> int:
        """Compulsory global traffic in bytes: every input read once, every output written once."""
        ...

    def array_shapes(self, grid: Dim3) -> Mapping[str, tuple[int, ...]]:
        """The arrays that a launch of `grid` blocks takes, by name."""
        ...

    def draws(self, seed: int = 0) -> list[tuple[str, int]]:
        """Kinds and seeds of the inputs that a kernel is verified with."""
        ...

    def arguments(self, seed: int = 0, xp: Any = ..., kind: str = ...) -> Arguments:
        """Arguments that a kernel may ask for, by name. xp: the array module that draws, numpy or cupy."""
        ...

    def prepared(self, arguments: Arguments, grid: Dim3) -> Arguments:
        """Arguments of the next launch, which has `grid` blocks."""
        ...

    def rest(self, grid: Dim3) -> Workload | None:
        """The workload of the next launch, after a launch of `grid` blocks; None if nothing is left."""
        ...

    def truth(self, arguments: Arguments) -> dict[str, np.ndarray]:
        """The exact outputs, by name, as float64 or int32."""
        ...

    def tolerance(self, arguments: Arguments, kind: str = ...) -> dict[str, Any]:
        """The largest |error| of each element that rounding can explain, as arrays or numbers, by output."""
        ...

    def prim_func(self, name: str) -> PrimFunc:
        """The algorithm as a TensorIR PrimFunc with the entry point `name`."""
        ...


class OneLaunch:
    """Base of workloads that one launch computes, for ladders from outside this package.

    The fields of its dataclass are the extents, in their order. It still has to define inputs, outputs,
    parameters, flops, bytes, arguments, truth, tolerance and prim_func.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    macros: Mapping[str, str | int] = {}
    workspaces: Sequence[str] = ()

    def __str__(self) -> str:
        return "x".join(map(str, self.shape))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))

    def array_shapes(self, grid: Dim3) -> Mapping[str, tuple[int, ...]]:
        """Shapes of the arguments, which are drawn to find out."""
        given = self.arguments().items()
        return {name: value.shape for name, value in given if not isinstance(value, int)}

    def arguments(self) -> Arguments:
        raise NotImplementedError

    def draws(self, seed: int = 0) -> list[tuple[str, int]]:
        return [("real", seed)]

    def prepared(self, arguments: Arguments, grid: Dim3) -> Arguments:
        """Arguments of a launch: those of the workload."""
        return arguments

    def rest(self, grid: Dim3) -> None:
        """What is left to do after a launch: nothing."""


def sizes_of(workload: Workload) -> dict[str, int]:
    """The extents that a kernel takes as integers, by the names of its parameters."""
    names = [name for name, kind in workload.parameters.items() if kind == "int"]
    return dict(zip(names, workload.shape, strict=True))


def parameters_of(workload: Workload, grid: Dim3) -> Mapping[str, str]:
    """The parameters of a launch of `grid` blocks, each with its C type. Outputs in parts have the type of
    the S that the next launch adds up."""
    rest = workload.rest(grid) if grid[2] > 1 else None
    parts = rest.parameters.get("S") if rest else None
    if parts is None:
        return workload.parameters
    return {**workload.parameters, **dict.fromkeys(workload.outputs, parts.removeprefix("const "))}
