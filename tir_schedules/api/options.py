# pyright: strict
"""Options that several functions have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence, TypedDict

from tir_schedules.errors import BadInput, nearest

if TYPE_CHECKING:
    import numpy as np

    from tir_schedules.model.workload import Workload

Extent = int | Sequence[int]
Arguments = Mapping[str, Any] | Sequence[Any]
Scheduler = Callable[[Any], object]
"""Calls primitives on a Schedule of TVM's."""


class Shape(TypedDict, total=False):
    """What a rung is run on. mnk: (M, N, K), or several of them for functions that take several. n: a length,
    or several. shape: the extents of a ladder from elsewhere. dtype, layout, accumulate, products, result:
    kinds, such as "bfloat16", "nn", "float32"; products="emulated" of sgemm/fastest leaves these to it.
    workload: in place of all these, one that `workload` made."""

    mnk: Sequence[Any] | None
    n: int | Sequence[int] | None
    shape: Sequence[Any] | None
    dtype: str | None
    layout: str | None
    accumulate: str | None
    products: str | None
    result: str | None
    workload: Workload | None


class Asking(TypedDict, total=False):
    """What is asked of a kernel, see `check`."""

    kernel: str
    grid: Extent | None
    block: Extent | None
    shared: int
    launches: Sequence[str]
    arguments: Arguments
    outputs: Sequence[str]
    sizes: Mapping[str, int | float] | None
    expect: Mapping[str, str | np.ndarray] | None
    tolerance: float | None
    usual: tuple[str, Sequence[int]] | None
    defines: Sequence[str] | Mapping[str, Any]
    flags: Sequence[str]
    includes: Sequence[str | Path]
    seed: int
    finite: bool
    schedule: Scheduler | None


class AskingAll(Shape, Asking):
    """Of a rung, or of a kernel of one's own."""


class Running(AskingAll, total=False):
    """The same, and how it is run, see `run`."""

    arch: str
    machine: str
    orders: int
    configs: bool
    tuned: str | None
    source: str | Path | None
    time: bool


def check_names(given: Mapping[str, Any], taken: type[Any], verb: str) -> None:
    """Raises BadInput if an option is not one of those taken, Shape or Asking."""
    for name in given:
        if name in taken.__annotations__:
            continue
        if name in Shape.__annotations__:
            raise BadInput(f"{name} is for rungs: a kernel of your own takes sizes= and arguments=")
        if name in Asking.__annotations__:
            raise BadInput(
                f"{name} is for a kernel of your own: a rung has a launch and arguments, leave it out"
            )
        known = (*Shape.__annotations__, *Asking.__annotations__)
        raise BadInput(f"{verb} takes no {name!r}{nearest(name, known)}")
