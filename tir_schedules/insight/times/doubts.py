"""Why a prediction is less certain, or must not be relied on."""

from __future__ import annotations

from typing import Callable, Iterator

from tir_schedules.insight.metrics.formats import number, percent
from tir_schedules.model.launch import Dim3
from tir_schedules.timing.listing import Instruction
from tir_schedules.timing.prediction import LaunchTime, Prediction

LOST, HALF = 0.98, 0.5
"""Agreement of PTX and SASS below which it is said, and from which down it tells too little."""

ATOMICS, SWAPS = ("ATOM", "ATOMG", "ATOMS"), {"CAS", "CAST"}
"""Opcodes that return what was there, and modifiers of those that store only if it is what was expected."""

CLOCKS = ("SR_CLOCK", "SR_GLOBALTIMER")
"""What names of the registers begin with that hold the time."""


def doubts_of(prediction: Prediction) -> Iterator[str]:
    """A sentence for each reason."""
    launches = prediction.launches
    if any(issues(launch, swaps) for launch in launches):
        yield "each compare-and-swap is taken to succeed at once: how often it is repeated is not known"
    if any(issues(launch, depends_on_time) for launch in launches):
        yield "it reads a clock or sleeps: how long it waits for a time is not predicted"
    if any(issues(launch, leaves) for launch in launches):
        yield "it calls functions of the driver, such as printf or malloc: what these take is not predicted"
    agreement = min(one.agreement for one in launches)
    if agreement < LOST:
        then = "the prediction is less certain" if agreement > HALF else "do not rely on the prediction"
        yield (
            f"{percent(1 - agreement)} of its accesses, barriers and products could not be followed"
            f" through the SASS: {then}"
        )
    if any(one.waited is None for one in launches):
        yield (
            "blocks may wait for words that others store: how long is not known, because there are too many"
            " instructions or blocks to execute all of them; name a smaller shape or grid"
        )
    yield from (unevenness(launch) for launch in launches if launch.uneven)


def issues(launch: LaunchTime, is_one: Callable[[Instruction], bool]) -> bool:
    """Whether its warps issue an instruction of some kind."""
    return any(times and is_one(one) for one, times in zip(launch.code, launch.issued.tolist()))


def swaps(one: Instruction) -> bool:
    """Whether it is an atomic that a warp may have to repeat, as ptxas has it for halves and a kernel for a
    lock."""
    return one.name in ATOMICS and bool(SWAPS & {*one.modifiers})


def depends_on_time(one: Instruction) -> bool:
    return one.name == "NANOSLEEP" or any(operand.startswith(CLOCKS) for operand in one.operands)


def leaves(one: Instruction) -> bool:
    """Whether it calls a function that is not in the cubin."""
    return one.name == "CALL" and one.target is None


def unevenness(launch: LaunchTime) -> str:
    """What blocks do where one that does less or more stands for them."""
    works, simulated = launch.works.values(), launch.works[launch.place]
    if launch.work == simulated:
        taken = f"takes all for block {block_name(launch.place)}, which executes {number(simulated)}"
    else:
        taken = f"takes {number(round(launch.work))} for each"
    return (
        f"blocks differ: {len(works)} that were looked at execute {number(min(works))} to"
        f" {number(max(works))} instructions, and the prediction {taken}"
    )


def block_name(place: Dim3) -> str:
    return ",".join(map(str, place))
