"""From problems to the workloads that rungs are run on, and the shapes that commands take by default."""

from __future__ import annotations

from itertools import product
from typing import Iterable, Mapping, Sequence

from tir_schedules.errors import BadInput
from tir_schedules.model.problem import EXTENTS, Problem, Shapes
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload
from tir_schedules.workloads import LAYOUTS, workload_class

Job = tuple[Rung, Workload]
"""A rung and what it is run on."""

Problems = Mapping[str, Sequence[Problem]]
"""Ladder -> what its rungs are asked for."""

EMIT_SHAPES: Shapes = {
    "sgemm": ((1024, 1024, 1024),),
    "hgemm": ((1024, 1024, 1024),),
    "reduce": ((1 << 25,),),
}

# Whole tiles, small enough for the CPU machine to count in seconds, large enough for several blocks.
SMALL_SHAPES: Shapes = {"sgemm": ((256, 256, 256),), "hgemm": ((512, 512, 256),), "reduce": ((1 << 16,),)}

# Every tile whole; ragged with rows that 16-byte accesses can take; ragged with rows that they cannot. The
# HGEMM ladder, which is long and runs in four kinds, has whole tiles alone. Sums: whole blocks in every
# launch; ragged, and divisible by 4 or not.
RUN_SHAPES: Shapes = {
    "sgemm": ((256, 256, 256), (132, 100, 36), (129, 127, 65)),
    "hgemm": ((256, 256, 128),),
    "reduce": ((1 << 18,), (70004,), (4099,)),
}

# Square matrices, and lengths: from what fits into caches to what does not.
BENCH_SIZES = {
    "sgemm": (256, 512, 1024, 2048, 4096, 8192),
    "hgemm": (1024, 2048, 4096, 8192),
    "reduce": (1 << 20, 1 << 25, 1 << 28),
}


def of_sizes(ladder: str, sizes: Iterable[int]) -> tuple[tuple[int, ...], ...]:
    """M = N = K = S for each size, or N = S for sums."""
    return tuple((size,) * len(EXTENTS[ladder]) for size in sizes)


BENCH_SHAPES: Shapes = {ladder: of_sizes(ladder, sizes) for ladder, sizes in BENCH_SIZES.items()}


def workloads_of(rung: Rung, problem: Problem) -> list[Workload]:
    """The workloads of a problem with a shape: one for each kind that it leaves open and the rung has.

    BadInput for a problem of another ladder, without a shape, or of a shape or kind that cannot be.
    """
    if problem.ladder != rung.family or not problem.shape:
        raise BadInput(f"{rung.id} takes a problem of {rung.family} with a shape, not {problem}")
    asked = {name: getattr(problem, name) for name in kinds_of(rung)}
    kinds = (values if asked[name] is None else [asked[name]] for name, values in kinds_of(rung).items())
    return [workload_class(rung.family)(*problem.shape, *kind) for kind in product(*kinds)]


def check_job(rung: Rung, workload: Workload) -> None:
    """BadInput for a workload of another ladder than the rung's."""
    wanted = workload_class(rung.family)
    if type(workload) is not wanted:
        raise BadInput(f"{rung.id} takes a {wanted.__name__}, not {workload!r}")


def kinds_of(rung: Rung) -> dict[str, Sequence[str]]:
    """What a rung has of each kind of its ladder, its default first."""
    if rung.family == "reduce":
        return {"dtype": rung.dtypes}
    return {"layout": LAYOUTS, "accumulate": rung.config.accumulators} if rung.family == "hgemm" else {}


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
