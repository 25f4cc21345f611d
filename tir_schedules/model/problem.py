"""What a command is about: the algorithm of a ladder on one shape, of one kind."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import index
from typing import Iterable

from tir_schedules.errors import BadInput
from tir_schedules.model.workload import Workload

KINDS = {"sgemm": (), "reduce": ("dtype",), "hgemm": ("layout", "accumulate")}
"""Ladder -> the fields of a Problem that it has besides its shape."""

EXTENTS = {"sgemm": ("M", "N", "K"), "reduce": ("N",), "hgemm": ("M", "N", "K")}
"""Ladder -> the extents of its shape."""

Shapes = dict[str, tuple[tuple[int, ...], ...]]
"""Ladder -> shapes."""


@dataclass(frozen=True)
class Problem:
    """ladder: "sgemm", "reduce" or "hgemm". shape: (M, N, K), or (N,) of a reduction.

    dtype: of reduce, "int32" or "float32". layout: of hgemm, "nt" or "nn". accumulate: of hgemm, "float16" or
    "float32". An empty shape and None leave it open: a command about one workload takes what comes first,
    one about several takes all there are. BadInput for a ladder that does not exist, and for what it has not.
    """

    ladder: str
    shape: tuple[int, ...] = ()
    dtype: str | None = None
    layout: str | None = None
    accumulate: str | None = None

    def __post_init__(self) -> None:
        if self.ladder not in tuple(KINDS):
            raise BadInput(f"there is no ladder {self.ladder!r}; there is {', '.join(KINDS)}")
        try:
            shape = tuple(map(index, self.shape))  # lists and integers of numpy, too
        except TypeError:
            shape = None
        extents = EXTENTS[self.ladder]
        if shape is None or len(shape) not in (0, len(extents)):
            names = f"{', '.join(extents)}{',' if len(extents) == 1 else ''}"
            raise BadInput(f"the shape of {self.ladder} is ({names}), all integers, not {self.shape!r}")
        object.__setattr__(self, "shape", shape)
        for name in ("dtype", "layout", "accumulate"):
            if getattr(self, name) is not None and name not in KINDS[self.ladder]:
                raise BadInput(f"{self.ladder} has no {name}")

    def at(self, shapes: Iterable[tuple[int, ...]]) -> list[Problem]:
        """This problem; where its shape is open, one problem for each of the shapes."""
        return [self] if self.shape else [replace(self, shape=shape) for shape in shapes]

    def includes(self, workload: Workload) -> bool:
        """Whether a workload of the ladder is what is asked for, as far as that is said."""
        kinds = ((getattr(self, name), getattr(workload, name)) for name in KINDS[self.ladder])
        return self.shape in ((), workload.shape) and all(asked in (None, had) for asked, had in kinds)
