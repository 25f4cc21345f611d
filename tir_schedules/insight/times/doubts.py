"""Why a prediction is less certain, or must not be relied on."""

from __future__ import annotations

from typing import Iterator

from tir_schedules.insight.metrics.formats import number, percent
from tir_schedules.model.launch import Dim3
from tir_schedules.timing.prediction import LaunchTime, Prediction

LOST, HALF = 0.98, 0.5
"""Agreement of PTX and SASS below which it is said, and from which down it tells too little."""

ATOMICS, SWAPS = ("ATOM", "ATOMG", "ATOMS"), {"CAS", "CAST"}
"""Opcodes that return what was there, and modifiers of those that store only if it is what was expected."""


def doubts_of(prediction: Prediction) -> Iterator[str]:
    """A sentence for each reason."""
    launches = prediction.launches
    if any(map(swaps, launches)):
        yield "each compare-and-swap is taken to succeed at once: how often it is repeated is not known"
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


def swaps(launch: LaunchTime) -> bool:
    """Whether its warps issue an atomic that they may have to repeat, as ptxas has it for halves and a kernel
    for a lock."""
    issued = zip(launch.code, launch.issued.tolist())
    return any(times and one.name in ATOMICS and SWAPS & {*one.modifiers} for one, times in issued)


def unevenness(launch: LaunchTime) -> str:
    """What blocks do where one that does less or more stands for them."""
    counts = ", ".join(f"{block_name(place)} {number(work)}" for place, work in launch.works.items())
    return (
        f"blocks differ, in instructions: {counts}; the prediction takes all for block"
        f" {block_name(launch.place)}"
    )


def block_name(place: Dim3) -> str:
    return ",".join(map(str, place))
