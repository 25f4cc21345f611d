"""The problems of commands: the workloads that rungs are run on, and the shapes that are taken if none is
named."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from operator import index
from typing import Any, Iterable, Mapping, Sequence

from tir_schedules.errors import BadInput
from tir_schedules.ladders.known import OfLadders, ladder_of, package_rungs, workload_class
from tir_schedules.model.ladder import Ladder
from tir_schedules.model.rung import Rung, StandIn
from tir_schedules.model.workload import Workload

Shapes = Mapping[str, tuple[tuple[int, ...], ...]]
"""Ladder -> shapes."""


@dataclass(frozen=True)
class Problem:
    """ladder: its name, such as "sgemm". shape: its extents, such as (M, N, K).

    dtype, layout, accumulate, output, products: of a ladder that has this kind, see Ladder.kinds. An empty
    shape and None leave it open: a command about one workload takes what comes first, one about several takes
    all there are. BadInput for a ladder that does not exist, and for what it has not.
    """

    ladder: str
    shape: tuple[int, ...] = ()
    dtype: str | None = None
    layout: str | None = None
    accumulate: str | None = None
    output: str | None = None
    products: str | None = None

    def __post_init__(self) -> None:
        ladder = ladder_of(self.ladder)
        try:
            shape = tuple(map(index, self.shape))  # lists and integers of numpy, too
        except TypeError:
            shape = None
        extents = ladder.extents
        if shape is None or len(shape) not in (0, len(extents)):
            names = f"{', '.join(extents)}{',' if len(extents) == 1 else ''}"
            raise BadInput(f"the shape of {self.ladder} is ({names}), all integers, not {self.shape!r}")
        object.__setattr__(self, "shape", shape)
        for name in ("dtype", "layout", "accumulate", "output", "products"):
            if getattr(self, name) is not None and name not in ladder.kinds:
                raise BadInput(f"{self.ladder} has no {name}")

    def at(self, shapes: Iterable[tuple[int, ...]]) -> list[Problem]:
        """This problem; where its shape is open, one problem for each of the shapes."""
        return [self] if self.shape else [replace(self, shape=shape) for shape in shapes]

    def includes(self, workload: Workload) -> bool:
        """Whether a workload of the ladder is what is asked for, as far as that is said."""
        kinds = ((getattr(self, name), getattr(workload, name)) for name in ladder_of(self.ladder).kinds)
        return self.shape in ((), workload.shape) and all(asked in (None, had) for asked, had in kinds)


Job = tuple[Rung, Workload]
"""A rung and what it is run on."""

Problems = Mapping[str, Sequence[Problem]]
"""Ladder -> what its rungs are asked for."""

KINDS = OfLadders(lambda ladder: ladder.kinds)
"""Ladder -> the fields of a Problem that it has besides its shape."""


def shapes_for(purpose: str) -> Shapes:
    """Ladder -> the shapes that it has for a purpose."""
    return OfLadders(partial(Ladder.shapes_for, purpose=purpose))


EMIT_SHAPES = shapes_for("emit")
SMALL_SHAPES = shapes_for("small")
RUN_SHAPES = shapes_for("run")
BENCH_SHAPES = shapes_for("bench")
TIME_SHAPES = shapes_for("time")
TRACE_SHAPES = shapes_for("trace")
"""Whole tiles, and so small that the states of a half-finished schedule, which do the same work many times,
are soon executed."""


def square_shapes(ladder: str, sizes: Iterable[int]) -> tuple[tuple[int, ...], ...]:
    """M = N = K = S for each size, or N = S for sums."""
    return tuple((size,) * len(ladder_of(ladder).extents) for size in sizes)


def workloads_of(rung: Rung, problem: Problem) -> list[Workload]:
    """The workloads of a problem with a shape: one for each kind that it leaves open and the rung has.

    For a kind that the rung does not have, these are the values that are asked for, with its own values of
    other kinds, or all of them where no workload has its own; the rung says that it does not take them.
    BadInput for a problem of another ladder, without a shape, or of a shape or kind that cannot be.
    """
    if problem.ladder != rung.family or not problem.shape:
        raise BadInput(f"{rung.id} takes a problem of {rung.family} with a shape, not {problem}")
    had = offered(rung, problem)
    if had:
        return had
    ladder = ladder_of(rung.family)
    asked = {name: [getattr(problem, name)] for name in ladder.kinds if getattr(problem, name) is not None}
    with suppress(BadInput):
        return possible(problem, ladder.kinds_of(rung) | asked)
    return possible(problem, {name: kind.values for name, kind in ladder.kinds.items()} | asked)


def offered(rung: Rung, problem: Problem) -> list[Workload]:
    """The same of kinds that the rung has; empty where it has no kind that is asked for."""
    try:
        found = possible(problem, ladder_of(rung.family).kinds_of(rung))
    except BadInput:
        return []
    return [workload for workload in found if problem.includes(workload)]


def takes(rung: Rung, workload: Workload) -> bool:
    """Whether a rung has a launch for a workload; one that declares none may take any of its kinds."""
    try:
        check_job(rung, workload)
        return rung.launch is None or bool(rung.fitted(workload).declared(workload))
    except BadInput:
        return False


def possible(problem: Problem, kinds: Mapping[str, Sequence[str]]) -> list[Workload]:
    """Workloads of a problem's shape, of all combinations of kinds that can be. BadInput where none can."""
    found: dict[Workload, None] = {}
    refused = []
    for values in product(*kinds.values()):
        try:
            found[workload_class(problem.ladder)(*problem.shape, **dict(zip(kinds, values)))] = None
        except BadInput as error:
            refused.append(error)
    if not found:
        raise refused[0]
    return list(found)


def check_job(rung: Rung, workload: Workload) -> None:
    """BadInput for a workload of another ladder than the rung's."""
    wanted: Any = workload_class(rung.family)
    if type(workload) not in getattr(wanted, "makes", (wanted,)):
        raise BadInput(f"{rung.id} takes a {wanted.__name__}, not {workload!r}")
    ladder = ladder_of(rung.family)
    had = ladder.kinds_of(rung)
    if "products" not in had or isinstance(rung, StandIn):
        return
    asked, layout = getattr(workload, "products", ""), getattr(workload, "layout", "")
    if asked not in had["products"]:
        left = ladder.kinds["products"].left
        hint = f": --{left} is for {rung.family}/fastest" if asked == left else f", not {asked}"
        raise BadInput(f"{rung.id} multiplies {had['products'][0]}{hint}")
    if layout not in had.get("layout", (layout,)):
        takers = [one.id for one in package_rungs(rung.family) if layout in ladder.kinds_of(one)["layout"]]
        raise BadInput(f"{rung.id} takes layout {had['layout'][0]}; {layout} is for {', '.join(takers)}")


def workload_of(rung: Rung, problem: Problem, shapes: Shapes = SMALL_SHAPES) -> Workload:
    """The one workload of a problem: of the ladder's first shape where it names none, of the kind that the
    rung has first."""
    return workloads_of(rung, problem.at(shapes[rung.family])[0])[0]


def jobs_of(rungs: Iterable[Rung], problems: Problems, shapes: Shapes) -> list[Job]:
    """Rungs with every workload of the problems asked of their ladders. shapes: where none is named."""
    return [
        (rung, workload)
        for rung in rungs
        for problem in problems[rung.family]
        for sized in problem.at(shapes.get(rung.family, ()))
        for workload in workloads_of(rung, sized)
    ]


def sample_kinds(jobs: Sequence[Job]) -> list[Job]:
    """As few of a ladder's jobs as give each rung, on each shape, every value of each kind, in other
    combinations than the rung before. The last rung of each architecture, which builds on the others, has
    all."""
    last = {rung.arch: rung.id for rung, _ in jobs}
    groups: dict[tuple[str, tuple[int, ...]], list[Job]] = {}
    for rung, workload in jobs:
        groups.setdefault((rung.id, workload.shape), []).append((rung, workload))
    chosen: list[Job] = []
    for place, group in enumerate(groups.values()):
        rung = group[0][0]
        chosen += group if rung.id == last[rung.arch] else every_value(group, place)
    return chosen


def every_value(jobs: Sequence[Job], first: int) -> list[Job]:
    """As few jobs of a rung as have every value of each kind. first: the number of the job to begin with,
    counted round."""
    kinds = ladder_of(jobs[0][0].family).kinds
    values = [{(name, getattr(workload, name)) for name in kinds} for _, workload in jobs]
    order = [(first + step) % len(jobs) for step in range(len(jobs))]
    left, chosen = set().union(*values), set()
    while left:
        place = max(order, key=lambda place: len(values[place] & left))
        chosen.add(place)
        left -= values[place]
    return [job for place, job in enumerate(jobs) if place in chosen] or list(jobs)
