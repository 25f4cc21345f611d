"""A ladder: an algorithm, and the rungs that take it from the obvious kernel to a fast one."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Protocol, Sequence

from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload


class Estimate(Protocol):
    """Of a rung in one configuration on one workload. Its text is a sentence with the figures that the time
    follows from, such as "128 tiles, 1 for an SM: 52.9 us"."""

    @property
    def microseconds(self) -> float: ...


Estimator = Callable[[Any, Rung], "Estimate | None"]
"""Of a workload and a rung, which is in its configuration for that; None where it has no figures of that."""


Shape = tuple[int, ...]

TFLOPS, BANDWIDTH = "TFLOPS", "GB/s"

SIZE_OPTIONS = {1: "n", 3: "mnk"}
"""Extents of a shape -> the option that says them; any other number of extents is said by `shape`."""


@dataclass(frozen=True)
class Kind:
    """What workloads of a ladder can differ in besides their shape.

    values: the first is the default. help: of its option. default: in the help, where a rung decides.
    option: that says it, without its dashes, where that has another name. left: a further value, which leaves
    it to NAME/fastest, and is an option, too. left_help: what that chooses from.
    """

    values: tuple[str, ...]
    help: str
    default: str = ""
    option: str = ""
    left: str = ""
    left_help: str = ""


@dataclass(frozen=True)
class Ladder:
    """name: also that of its folder. rungs: names of its modules, in the order they build on each other.
    beside: names of rungs for shapes that the others are not for; only who names one runs it.

    workload: the class of its workloads, or a function whose `makes` has several, or "module:class" of one
    that is imported when it is needed.
    extents: names of the extents of a shape, such as ("M", "N", "K"). sizes: what these are, for `--help`.
    shape: taken where none is named. shapes: the same for one purpose: "emit", "run", "bench" (all of these),
    "small" (the CPU machine counts it in seconds), "trace", "time" (as large as is timed), "largest" (it
    takes up to a minute).
    kinds: "dtype", "layout", "accumulate", "output" or "products", of its workloads -> what there is of it.
    offered: what of it a rung has. in_turn: what drawn shapes have of it, one after the other; empty for
    all there is.
    vendor: "cuBLAS", "CUB", or "" where no library does the same. unit: of its rates, TFLOPS or BANDWIDTH.
    models: names of rungs -> what says how long they take, in the configuration that they take by themselves,
    or that a name such as "mma_multistage:128x128" says. NAME/fastest stands for the fastest of them; of
    equals it is the first. Or "module:MODELS" of one that is imported when it is needed.
    limit: of a GPU, as `bench` measures it, that its rates may be held against.
    package: the package that its modules are in.
    """

    name: str
    rungs: tuple[str, ...]
    workload: Any
    extents: tuple[str, ...]
    shape: Shape
    sizes: str = ""
    shapes: Mapping[str, tuple[Shape, ...]] = field(default_factory=dict, repr=False)
    kinds: Mapping[str, Kind] = field(default_factory=dict, repr=False)
    offered: Callable[[Rung], Mapping[str, Sequence[str]]] | None = field(default=None, repr=False)
    in_turn: Sequence[Mapping[str, str]] = field(default=(), repr=False)
    vendor: str = ""
    unit: str = TFLOPS
    limit: str = ""
    models: Mapping[str, Estimator] | str = field(default_factory=dict, repr=False)
    package: str = ""
    beside: tuple[str, ...] = ()

    @property
    def estimators(self) -> Mapping[str, Estimator]:
        """Its models, imported."""
        if not isinstance(self.models, str):
            return self.models
        module, name = self.models.split(":")
        return getattr(importlib.import_module(module), name)

    @property
    def workload_class(self) -> Callable[..., Workload]:
        """Such as Gemm."""
        if not isinstance(self.workload, str):
            return self.workload
        module, name = self.workload.split(":")
        return getattr(importlib.import_module(module), name)

    @property
    def option(self) -> str:
        """Name of the option for its shape, without its dashes."""
        return SIZE_OPTIONS.get(len(self.extents), "shape")

    @property
    def kind_options(self) -> dict[str, str]:
        """Its kinds -> the options that say them."""
        return {name: kind.option or name for name, kind in self.kinds.items()}

    @property
    def axis(self) -> str:
        """What a plot over sizes writes below them."""
        return "elements" if len(self.extents) == 1 else ", ".join(self.extents)

    def shapes_for(self, purpose: str) -> tuple[Shape, ...]:
        return self.shapes.get(purpose) or (self.shape,)

    def kinds_of(self, rung: Rung) -> dict[str, Sequence[str]]:
        """What a rung has of each kind, its default first."""
        offered = self.offered(rung) if self.offered else {}
        return {name: offered.get(name) or kind.values for name, kind in self.kinds.items()}

    def rate(self, workload: Workload, micros: float) -> tuple[float, str]:
        """The rate of a workload that takes so many microseconds, and its unit."""
        if self.unit == BANDWIDTH:
            return workload.bytes / micros / 1e3, self.unit
        return workload.flops / micros / 1e6, self.unit
