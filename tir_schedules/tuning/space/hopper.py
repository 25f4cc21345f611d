"""The spaces of the HGEMM rungs with wgmma, from hgemm/wgmma to hgemm/cluster.

What a rung refuses is not in its space: the last constraint asks the rung itself, those before it leave out
most of that early.
"""

from __future__ import annotations

from typing import Any

from tir_schedules.ladders.hgemm import (
    cluster,
    hopper,
    persistent,
    tma,
    tma_store,
    warp_specialized,
    wgmma,
    wgmma_async,
)
from tir_schedules.model.gpus import find_sm
from tir_schedules.model.rung import Rung
from tir_schedules.tuning.space.points import Constraint, Space, Value
from tir_schedules.workloads.half_gemm import HalfGemm

TILE = ("bm", "bn", "consumers")

Config = hopper.Tiling
Fields = dict[str, tuple[Value, ...]]


def whole_rows(config: Config, gemm: HalfGemm, arch: str) -> bool:
    return config.bm % (hopper.ROWS * config.consumers) == 0


def sums_fit(config: Config, gemm: HalfGemm, arch: str) -> bool:
    return gemm.accumulate in config.accumulators


def ring_fits(config: hopper.Ring, gemm: HalfGemm, arch: str) -> bool:
    return config.ring_bytes <= find_sm(hopper.ARCH).shared_limit - hopper.BARRIERS


def accepts(rung: Rung) -> Any:
    """Whether a rung takes a configuration."""
    assert rung.refuses
    refuses = rung.refuses
    return lambda config, gemm, arch: not refuses(gemm, config)


TILES: Fields = {"bm": (64, 128, 192, 256), "bn": (64, 128, 192, 256), "consumers": (1, 2, 3)}
STAGES: Fields = {"stages": (2, 3, 4, 5, 6, 7, 8)}
GROUPS: Fields = {"group": (1, 2, 4, 8, 16, 32)}
BOXES: Fields = {"boxes": (1, 2, 3, 4, 8)}
CLUSTER: Fields = {"cluster": (1, 2, 4)}

WHOLE_ROWS = Constraint(f"bm must be a multiple of {hopper.ROWS} for each of the consumers", whole_rows, TILE)
SUMS = Constraint("the sums of a warpgroup do not fit into its registers", sums_fit, TILE)
FITTING_STAGES = Constraint("the stages do not fit into shared memory", ring_fits, (*TILE, "stages"))


def space(rung: Rung, fields: Fields, *more: Constraint) -> Space[Any, HalfGemm]:
    """The space of a rung with these fields. more: constraints besides those of tiles."""
    fields = TILES | fields
    reason = "the rung refuses it: fewest stages, shared memory, boxes, clusters"
    return Space(rung, fields, (WHOLE_ROWS, SUMS, *more, Constraint(reason, accepts(rung), tuple(fields))))


WGMMA = space(wgmma.RUNG, {})
WGMMA_ASYNC = space(wgmma_async.RUNG, STAGES, FITTING_STAGES)
TMA = space(tma.RUNG, STAGES, FITTING_STAGES)
WARP_SPECIALIZED = space(warp_specialized.RUNG, STAGES, FITTING_STAGES)
PERSISTENT = space(persistent.RUNG, STAGES | GROUPS, FITTING_STAGES)
TMA_STORE = space(tma_store.RUNG, STAGES | GROUPS | BOXES, FITTING_STAGES)
CLUSTERED = space(cluster.RUNG, STAGES | GROUPS | BOXES | CLUSTER, FITTING_STAGES)

HOPPER = (WGMMA, WGMMA_ASYNC, TMA, WARP_SPECIALIZED, PERSISTENT, TMA_STORE, CLUSTERED)
