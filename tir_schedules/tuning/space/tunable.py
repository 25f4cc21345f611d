"""The rungs that can be tuned, and their spaces."""

from __future__ import annotations

from tir_schedules.errors import BadInput
from tir_schedules.ladders.registry import FAMILIES
from tir_schedules.tuning.space.hgemm import MMA_MULTISTAGE
from tir_schedules.tuning.space.points import Space
from tir_schedules.tuning.space.reduce import VECTORIZED
from tir_schedules.tuning.space.sgemm import MULTISTAGE, PIPELINED

ALL: tuple[Space, ...] = (PIPELINED, MULTISTAGE, MMA_MULTISTAGE, VECTORIZED)
SPACES = {space.rung.id: space for space in ALL}
TUNABLE = tuple(SPACES)
"""Ids of the rungs that have a space."""
DEFAULTS = {
    family: tuple(name for name in TUNABLE if SPACES[name].rung.family == family) for family in FAMILIES
}
"""Family -> the rungs that are tuned when the family is asked for."""


def space_of(rung_id: str) -> Space:
    """The space of a rung, named without a variant. BadInput for one that has none."""
    if rung_id not in SPACES:
        raise BadInput(f"{rung_id} cannot be tuned; {', '.join(TUNABLE)} can")
    return SPACES[rung_id]
