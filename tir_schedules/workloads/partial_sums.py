"""What blocks leave that share a matrix product along K: a matrix each, to be added up."""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tir_schedules.model.workload import Arguments, OneLaunch
from tir_schedules.workloads import C_TYPES, array_of, element_type, padded
from tir_schedules.workloads.drawing import EXACT, Draws
from tir_schedules.workloads.rounding import largest_exact

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

    from tir_schedules.model.launch import Dim3
    from tir_schedules.model.workload import Workload


@dataclass(frozen=True)
class PartialSums(OneLaunch):
    """C (m x n) = S[0] + ... + S[parts - 1], added in float32. Rows of S are filled up to multiples of 16
    bytes. C has another format where `result` says so, to which sums are rounded at the end.

    The second launch of a Gemm or a HalfGemm, which has its arguments and its truth.
    """

    m: int
    n: int
    parts: int
    result: str = "float32"

    inputs = ("S",)
    outputs = ("C",)

    def __str__(self) -> str:
        return f"{self.parts} partial sums of {self.m}x{self.n}"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.m, self.n, self.parts

    @property
    def pitch(self) -> int:
        """Elements of a row of S."""
        return padded(self.n, 4)

    @property
    def parameters(self) -> dict[str, str]:
        """What a kernel may take, and its C type."""
        result = f"{C_TYPES[self.result]}*"
        return {"S": "const float*", "C": result, "M": "int", "N": "int", "PARTS": "int"}

    @property
    def macros(self) -> dict[str, str]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """OUT is the type of C, by default float."""
        return {} if self.result == "float32" else {"OUT": C_TYPES[self.result]}

    @property
    def flops(self) -> int:
        """Additions."""
        return (self.parts - 1) * self.m * self.n

    @property
    def bytes(self) -> int:
        """Compulsory global traffic in bytes: every sum read once, C written once."""
        return (4 * self.parts + element_type(self.result).itemsize) * self.m * self.n

    def array_shapes(self, grid: Dim3) -> dict[str, tuple[int, ...]]:
        """Shapes of S and C."""
        return {"S": (self.parts, self.m, self.pitch), "C": (self.m, self.n)}

    def draws(self, seed: int = 0) -> list[tuple[str, int]]:
        """Kinds and seeds of the inputs that a kernel is verified with."""
        return [(EXACT, seed)]

    def arguments(self, seed: int = 0, xp: Any = np, kind: str = EXACT) -> Arguments:
        """Integers whose partial sums are all exact as S, also where its rows are filled up, C filled with
        NaN, and the extents."""
        largest = largest_exact(self.parts, self.result)
        return {
            "S": Draws(seed, xp).integers(largest, (self.parts, self.m, self.pitch), "float32"),
            "C": xp.full((self.m, self.n), np.nan, element_type(self.result)),
            "M": self.m,
            "N": self.n,
            "PARTS": self.parts,
        }

    def truth(self, arguments: Arguments) -> dict[str, np.ndarray]:
        """C in float64."""
        return {"C": array_of(arguments, "S").sum(axis=0, dtype=np.float64)[:, : self.n]}

    def tolerance(self, arguments: Arguments, kind: str = EXACT) -> dict[str, Any]:
        """None: the inputs are exact."""
        return {"C": 0.0}

    def prim_func(self, name: str) -> PrimFunc:
        """The algorithm as a TensorIR PrimFunc with one block "C", entry point `name`."""
        from tvm.script import tirx as T

        M, N, parts, result = self.m, self.n, self.parts, self.result

        @T.prim_func(s_tir=True)
        def sums(S: T.Buffer((parts, M, self.pitch), "float32"), C: T.Buffer((M, N), result)):
            T.func_attr({"global_symbol": name, "tirx.noalias": True})
            found = T.sblock_alloc_buffer((M, N), "float32")
            for i, j, part in T.grid(M, N, parts):
                with T.sblock("C"):
                    vi, vj, vpart = T.axis.remap("SSR", [i, j, part])
                    with T.init():
                        found[vi, vj] = T.float32(0)
                    found[vi, vj] = found[vi, vj] + S[vpart, vi, vj]
            for i, j in T.grid(M, N):
                with T.sblock("rounded"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = T.Cast(result, found[vi, vj])

        return sums


if TYPE_CHECKING:  # holds it to the protocol
    CHECKED: type[Workload] = PartialSums
