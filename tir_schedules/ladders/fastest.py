"""What NAME/fastest stands for: the rung of a ladder that its models say is fastest for a workload.

A ladder teaches in steps, and none of its rungs is the fastest everywhere: large tiles leave SMs without
work where C is small, and a rung that TMA feeds needs a GPU that has one. A user who only wants a kernel
names the ladder and the shape: `tir-schedules emit sgemm/fastest --mnk 1000,64,5000`.

A model takes a fraction of a second to ask, a search minutes and a GPU. It knows what was measured on an H200
or an H100, whose SMs are the same; what a search has found is taken by --tuned.

Candidates are between a model and a search: the first few kernels by estimate are timed on a GPU. Another one
than the first is often faster, because estimates are off by some percent. cuBLASLt also returns several.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from tir_schedules.errors import BadInput
from tir_schedules.ladders.known import ladder_of, rungs_beside
from tir_schedules.ladders.own import ladder_rungs
from tir_schedules.ladders.problems import Problem, offered
from tir_schedules.ladders.settings import varied
from tir_schedules.ladders.waves import Waves
from tir_schedules.model.gpus import known_sm
from tir_schedules.model.ladder import Estimate
from tir_schedules.model.launch import check_grid
from tir_schedules.model.rung import Rung, StandIn

NAME = "fastest"

MOST_CANDIDATES = 32
"""Candidates that can be asked for: as many as `bench` asks cuBLASLt for."""

OF_KERNELS = ("bm", "bn", "bk", "tm", "loads", "vectors", "swap", "part_columns", "cluster_m", "cluster_n")
"""Fields of configurations in which two kernels with the same launches may differ."""


@dataclass(frozen=True)
class Choice:
    """A rung in the configuration that it takes for a workload, and how long a model says it takes. workload:
    what is asked for; where that leaves products open, with those of the rung."""

    rung: Rung
    estimate: Estimate
    workload: Any

    def __str__(self) -> str:
        return f"{self.rung.id}, estimated for an H100 or H200: {self.estimate}"


def fastest_rung(family: str) -> Rung | None:
    """The rung that a ladder's NAME/fastest is until a workload and an architecture are known; None for a
    ladder without models. It has the kinds of the first of the candidates."""
    ladder = ladder_of(family)
    if not ladder.estimators:
        return None
    first, *_ = candidates(family)
    return StandIn(
        family, NAME, f"the rung of {family} that is estimated to be the fastest for a shape",
        config=first.config, dtypes=first.dtypes, outputs=first.outputs, min_arch=0,
        meant=partial(fastest, family), first=partial(first_few, family),
    )  # fmt: skip


def candidates(family: str) -> list[Rung]:
    """Those that the ladder has models of, some of them in a named configuration."""
    rungs = {rung.name: rung for rung in (*ladder_rungs(family), *rungs_beside(family))}
    names = (name.partition(":") for name in ladder_of(family).estimators)
    return [varied(rungs[name], variant) for name, _, variant in names]


@lru_cache(maxsize=256, typed=True)  # Unasked equals the text that it is
def fastest(family: str, workload: Any, arch: str) -> tuple[Rung, Any]:
    """The rung that is estimated to be the fastest for a workload, in its configuration for that; its `why`
    says so. And the workload, with the rung's products where it leaves them open, see `EmulatedGemm`.

    arch: "sm_80", which may be Unasked: then rungs that have an architecture of their own are among them.
    BadInput where no rung takes the workload on the architecture, with the reason of the last that has its
    kinds: the earliest of these in the ladder, which takes most architectures.
    """
    best, *others = sorted(choices(family, workload, arch), key=lambda choice: choice.estimate.microseconds)
    after = f"; next is {others[0].rung.id}: {others[0].estimate.microseconds:.1f} us" if others else ""
    asked = f"{family}/{NAME} on {workload}"
    if best.workload != workload:
        asked += f", by products of {best.workload.products},"
    return replace(best.rung, why=f"{asked} is {best}{after}"), best.workload


def choices(family: str, workload: Any, arch: str) -> list[Choice]:
    """Each candidate in the configuration that it takes. BadInput as `fastest`."""
    found: list[Choice] = []
    reason = ""
    for rung in candidates(family):
        try:
            found.append(able(rung, workload, arch))
        except BadInput as error:
            reason = str(error) if suited_of(rung, workload) or not reason else reason
    if not found:
        raise BadInput(f"{family}/{NAME} has no rung for {workload}: {reason}")
    return found


@lru_cache(maxsize=1024, typed=True)
def first_few(family: str, workload: Any, arch: str, count: int) -> tuple[tuple[Rung, Any], ...]:
    """The first `count` rungs of `ranked` with their workloads, or all if there are fewer. The `why` of each
    has its number. Arguments and errors are those of `fastest`."""
    first = ranked(family, workload, arch)[:count]
    found: list[tuple[Rung, Any]] = []
    for number, choice in enumerate(first, 1):
        place = f"{family}/{NAME} on {workload}: candidate {number} of {len(first)}"
        why = f"{place} is {choice.rung.id}, estimated at {choice.estimate.microseconds:.1f} us"
        found.append((replace(choice.rung, why=why), choice.workload))
    return tuple(found)


def ranked(family: str, workload: Any, arch: str) -> list[Choice]:
    """First what `fastest` chooses, then the other candidates, sorted by estimate. Each rung is there in each
    configuration that is worth timing. Of several with one `kernel_of` the first is kept. BadInput as
    `fastest`."""
    chosen = able(*fastest(family, workload, arch), arch)
    found = {kernel_of(chosen): chosen}
    for candidate in candidates(family):
        if not (suited := suited_of(candidate, workload)):
            continue
        for rung in candidate.worth_timing(suited[0]):
            try:
                choice = able(rung, workload, arch)
            except BadInput:
                continue
            found.setdefault(kernel_of(choice), choice)
    return [chosen, *sorted([*found.values()][1:], key=lambda choice: choice.estimate.microseconds)]


def kernel_of(choice: Choice) -> Any:
    """A key that is equal for two names of one kernel: its launches, its tile and its estimate. Rungs that
    are built in different ways can have the same key, too."""
    rung, workload = choice.rung, choice.workload
    launch = rung.declared(workload)
    before, after = rung.others(workload)
    fields = tuple(getattr(rung.config, name, None) for name in OF_KERNELS)
    around = tuple((each.rung.id, each.workload) for each in (*before, *after))
    extents = launch.grid, launch.block, launch.cluster, launch.dynamic_shared
    return (*extents, fields, around, choice.estimate.microseconds)


def estimated(rung: Rung, workload: Any) -> Choice:
    """A rung in its configuration for a workload, with its model's estimate. BadInput where it does not take
    the workload, or its ladder has no model of it."""
    if not (suited := suited_of(rung, workload)):
        raise BadInput(f"{rung.base_id} is not for {workload}")
    workload = suited[0]
    models = ladder_of(rung.family).estimators
    model = models.get(f"{rung.name}:{rung.variant}") or models.get(rung.name)
    rung = rung.fitted(workload)
    refusal = rung.refuses(workload, rung.config) if rung.refuses else ""
    if refusal:
        raise BadInput(f"{rung.id} cannot be built for {workload}: {refusal}")
    estimate = model(workload, rung) if model else None
    if estimate is None:
        raise BadInput(f"there is no model of {rung.id}")
    check_grid(f"{rung.id} for {workload}", rung.declared(workload).grid)
    return Choice(rung, estimate, workload)


def suited_of(rung: Rung, workload: Any) -> list[Any]:
    """The workload, where a rung has its formats and its layout; of one that leaves some open, those that it
    may become and the rung has."""
    had = offered(rung, Problem(rung.family, workload.shape))
    return [each for each in getattr(workload, "meant", (workload,)) if each in had]


def able(rung: Rung, workload: Any, arch: str) -> Choice:
    """The same on an architecture. BadInput also where the rung does not run there."""
    rung.check_arch(arch)
    choice = estimated(rung, workload)
    check_shared(choice.rung, choice.workload, arch)
    return choice


def check_shared(rung: Rung, workload: Any, arch: str) -> None:
    """BadInput for a rung whose blocks want more shared memory than the architecture has."""
    own = rung.arch_for(arch)
    sm, bytes = known_sm(own), rung.declared(workload).dynamic_shared
    if sm and bytes > sm.shared_limit:
        raise BadInput(
            f"{rung.id} needs {bytes} bytes of shared memory, and a block on {own} has {sm.shared_limit}"
        )


def reason_for(rung: Rung, workload: Any) -> str:
    """Why a rung without a named configuration takes the one that it takes, or why it is slower on a workload
    than on others; empty where there is nothing to say of that, or no model of it."""
    if rung.why:
        return rung.why
    if rung.variant or rung.file:
        return ""
    try:
        choice = estimated(rung, workload)
    except BadInput:
        return ""
    slow = isinstance(choice.estimate, Waves) and choice.estimate.slow
    return f"{rung.id} on {workload} is {choice}" if rung.choose or slow else ""
