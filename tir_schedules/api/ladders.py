# pyright: strict
"""Ladders, rungs and workloads by their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterator, Mapping, cast

from tir_schedules.api.options import Shape
from tir_schedules.api.problems import check_options, options_of, problem_of
from tir_schedules.api.results import Result
from tir_schedules.console import print_left_out, print_table
from tir_schedules.errors import BadInput, shown
from tir_schedules.files import Json
from tir_schedules.ladders.fastest import fastest_rung
from tir_schedules.ladders.known import is_ladder, ladder_names, rungs_beside
from tir_schedules.ladders.problems import SMALL_SHAPES, workload_of
from tir_schedules.ladders.registry import find_one, ladder
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload

if TYPE_CHECKING:
    from typing_extensions import Unpack

COLUMNS = ("rung", "what it adds", "article", "shapes", "configurations")
PROSE = {"what it adds": 28, "article": 10, "shapes": 30, "configurations": 20}
SPARE = ("configurations", "shapes", "article")
SHOWN_BY = "--wide or --json"


@dataclass(frozen=True, repr=False)
class Ladders(Result, Mapping[str, "tuple[Rung, ...]"]):
    """Ladders by their names, each with its rungs in the order they build on each other."""

    rungs: Mapping[str, tuple[Rung, ...]]

    def __getitem__(self, name: str) -> tuple[Rung, ...]:
        return self.rungs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rungs)

    def __len__(self) -> int:
        return len(self.rungs)

    def __repr__(self) -> str:
        return f"Ladders({', '.join(f'{name}: {len(rungs)} rungs' for name, rungs in self.rungs.items())})"

    def show(self, wide: bool = False) -> None:
        """Print it as the command does. wide: every column, however long the lines get."""
        left_out: list[str] = []
        for name, rungs in self.rungs.items():
            one = fastest_rung(name)
            every = [*rungs, *([one] if one else [])]
            rows = [(r.id, r.summary, r.article, r.shapes, " ".join(r.configs)) for r in every]
            left_out += print_table(COLUMNS, rows, prose=PROSE, spare=SPARE, keys=0, wide=wide)
        print_left_out(left_out, SHOWN_BY)

    def to_json(self) -> list[Json]:
        return [describe(rung) for rungs in self.rungs.values() for rung in rungs]


def describe(rung: Rung) -> Json:
    """A rung as JSON has it."""
    configs = {"": rung.config, **rung.configs}
    return {
        "id": rung.id,
        "summary": rung.summary,
        "article": rung.article,
        "shapes": rung.shapes,
        "min_arch": rung.arch or f"sm_{rung.min_arch}",
        "configs": {name: vars(config) for name, config in configs.items()},
        "flawed": rung.flawed,
    }


def ladders(*names: str) -> Ladders:
    """All ladders, or those that are named, each with its rungs. This does not import TVM.

    Raises BadInput if a ladder does not exist.
    """
    return Ladders({name: (*ladder(name), *rungs_beside(name)) for name in names or ladder_names()})


def rung(name: str) -> Rung:
    """One rung: "sgemm/naive"; "sgemm/warp_tiling:128x128" for another configuration; "sgemm/naive:ts=16"
    with a field of the configuration; "./my_rung.py" from a file.

    Raises BadInput, with the nearest name, if there is no rung of that name.
    """
    if not isinstance(cast(Any, name), str):
        raise BadInput(f"rung takes a name such as 'sgemm/naive', not {shown(repr(name))}")
    return find_one(name, "rung")


def workload(subject: str | Rung, **shape: Unpack[Shape]) -> Workload:
    """The workload of a ladder or a rung, such as `workload("sgemm", mnk=(512, 512, 256))`; by default a
    small shape. It has the inputs, the exact result, the tolerance and the PrimFunc.

    Raises BadInput if a shape or kind is not possible.
    """
    if isinstance(subject, str) and is_ladder(subject):
        subject = ladder(subject)[0]
    one = subject if isinstance(subject, Rung) else rung(subject)
    options = options_of(shape, "workload", arch=None)
    check_options([one], options)
    return workload_of(one, problem_of(one.family, options), SMALL_SHAPES)
