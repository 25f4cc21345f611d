"""The rungs that can be tuned, and their spaces."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable

from tir_schedules.compiler.lower import fitted, refusals
from tir_schedules.errors import BadInput
from tir_schedules.ladders.known import ladder_of
from tir_schedules.ladders.own import RUNGS
from tir_schedules.ladders.registry import FAMILIES
from tir_schedules.model.rung import Rung
from tir_schedules.tuning.space.constraints import THREAD_TILES, WARP_TILES
from tir_schedules.tuning.space.hgemm import CLUSTERED, HOPPER, MMA_MULTISTAGE, TMA_STORE
from tir_schedules.tuning.space.points import VARIANT, Constraint, Space
from tir_schedules.tuning.space.reduce import VECTORIZED
from tir_schedules.tuning.space.sgemm import (
    COVERED,
    MULTISTAGE,
    PIPELINED,
    QUADS,
    SERPENTINE,
    SPLIT_K,
    STREAM_K,
)

ALL: tuple[Space, ...] = (
    PIPELINED, SERPENTINE, MULTISTAGE, SPLIT_K, STREAM_K, MMA_MULTISTAGE, *HOPPER, VECTORIZED
)  # fmt: skip
BEST: tuple[Space, ...] = (PIPELINED, MULTISTAGE, MMA_MULTISTAGE, TMA_STORE, CLUSTERED, VECTORIZED)
OWN: dict[str, Space] = {}
"""The spaces of rungs from elsewhere that this process has loaded."""

LANES_OF = {"sgemm/warp_tiling": (COVERED,), "sgemm/lane_quads": (QUADS,)}
"""Rungs without a space -> what must hold for their lanes."""

SPACES = {space.rung.id: space for space in ALL}
TUNABLE = tuple(SPACES)
"""Ids of the rungs that have a space."""
DEFAULTS = {
    family: tuple(space.rung.id for space in BEST if space.rung.family == family) for family in FAMILIES
}
"""Family -> the rungs that are tuned when the family is asked for."""


def space_of(rung_id: str) -> Space[Any, Any]:
    """The space of a rung, named without a variant. BadInput for one that has none."""
    if rung_id in RUNGS:
        return own_space(RUNGS[rung_id])
    if rung_id not in SPACES:
        raise BadInput(f"{rung_id} cannot be tuned; {', '.join(TUNABLE)} can")
    return SPACES[rung_id]


def check_fields(rung: Rung, arch: str) -> None:
    """BadInput where a configuration that a command line made breaks what holds for the rung's space, or for
    all rungs with tiles like its own. A rung for one architecture says itself what it refuses, and is asked
    when it is built."""
    config, ladder = rung.config, ladder_of(rung.family)
    constraints: tuple[Constraint, ...] = ()
    if rung.refuses and rung.arch:
        return
    if rung.base_id in SPACES:
        constraints = SPACES[rung.base_id].constraints
    elif hasattr(config, "wm") and hasattr(config, "bm"):
        constraints = (*WARP_TILES, *LANES_OF.get(rung.base_id, ()))
    elif hasattr(config, "tm") and hasattr(config, "tn"):
        constraints = THREAD_TILES
    workload: Any = ladder.workload_class(*ladder.shapes_for("small")[0])
    with refusals(rung, workload):
        broken = [c for c in constraints if not c.again and not c.holds(config, workload, arch)]
    if broken:
        raise BadInput(f"{rung.id} cannot be built: {broken[0].reason}")


def own_space(rung: Rung) -> Space:
    """The space of a rung from elsewhere: the values that it names, as far as it does not refuse them."""
    if not rung.values:
        example = 'Rung(..., values={"bm": (32, 64)})'
        raise BadInput(f"{rung.id} cannot be tuned: it names no values of fields to try, such as {example}")
    known = OWN.get(rung.id)
    if known is None or known.rung is not rung:
        OWN[rung.id] = known = Space(rung, rung.values, (Constraint("the rung refuses it", accepts(rung)),))
    return known


def accepts(rung: Rung) -> Callable[[Any, Any, str], bool]:
    """Whether a rung takes a configuration for a workload."""

    def holds(config: Any, workload: Any, arch: str) -> bool:
        try:
            fitted(replace(rung, config=config, variant=VARIANT), workload)
        except BadInput:
            return False
        return True

    return holds
