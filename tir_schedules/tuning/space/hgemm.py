"""The spaces of the HGEMM rungs: of hgemm/mma_multistage, and of those with wgmma, from hgemm/wgmma to
hgemm/tile_shapes.

What a rung with wgmma refuses is not in its space: the last constraint asks the rung itself, those before it
leave out most of that early.
"""

from __future__ import annotations

from typing import Any

from tir_schedules.ladders.hgemm import (
    cluster,
    hopper,
    mma_multistage,
    mma_xor_swizzle,
    persistent,
    steps,
    tile_shapes,
    tma,
    tma_store,
    warp_specialized,
    wgmma,
    wgmma_async,
)
from tir_schedules.model.gpus import WARP
from tir_schedules.model.rung import Rung
from tir_schedules.tuning.space.constraints import (
    BLOCK_AND_WARP,
    ENOUGH_STAGES,
    WARP_TILES,
    registers_fit,
    shared_fits,
)
from tir_schedules.tuning.space.points import Constraint, Space, Value
from tir_schedules.workloads.half_gemm import VECTOR, HalfGemm

Config = mma_multistage.Config


def accumulator_fits(config: Config | hopper.Tiling, gemm: HalfGemm, arch: str) -> bool:
    return gemm.accumulate in config.accumulators


def fragments_fit(config: Config, gemm: HalfGemm, arch: str) -> bool:
    """Whether a thread has registers for its accumulators and for two sets of fragments.

    Of a fragment of 16 x 16 halves it has 4 registers.
    """
    accumulators = config.wm * config.wn * steps.ELEMENT[gemm.accumulate] // (4 * WARP)
    return registers_fit(config, accumulators + 2 * 4 * (config.wm + config.wn) // steps.FRAGMENT)


def whole_fragments(config: Config, gemm: HalfGemm, arch: str) -> bool:
    return config.wm % 32 == 0 and config.wn % 32 == 0


def swizzles(config: Config, gemm: HalfGemm, arch: str) -> bool:
    return config.bk % 32 == 0


def lanes_share_rows(config: Config, gemm: HalfGemm, arch: str) -> bool:
    """Whether a warp copies whole rows, or an even share of one, in pieces of 16 bytes: of A, B and C."""
    pieces = (config.bk // VECTOR, config.bn // VECTOR, config.bn * steps.ELEMENT[gemm.accumulate] // 16)
    return all(WARP % count == 0 or count % WARP == 0 for count in pieces)


MMA_MULTISTAGE: Space[Config, HalfGemm] = Space(
    mma_multistage.RUNG,
    {
        "bm": (32, 64, 96, 128, 192, 256),
        "bn": (32, 64, 128, 192, 256),
        "wm": (16, 32, 64, 96, 128),
        "wn": (16, 32, 64, 128),
        "bk": (16, 32, 64, 128),
        "stages": (2, 3, 4, 5, 6),
        "threadblock_swizzle": (1, 2, 4, 8, 16, 32),
        "copies_first": (0, 1),
    },
    (
        *WARP_TILES,
        Constraint(
            "a warp tile must be a multiple of 32 both ways, as TVM lays out the accumulator of mma",
            whole_fragments,
            ("wm", "wn"),
        ),
        Constraint("bk must be a multiple of 32 for the XOR swizzle of a tile's rows", swizzles, ("bk",)),
        Constraint(
            "lanes must share rows evenly: bk and bn must be powers of two", lanes_share_rows, ("bn", "bk")
        ),
        ENOUGH_STAGES,
        Constraint(
            "the accumulator of a warp tile does not fit into registers", accumulator_fits, ("wm", "wn")
        ),
        Constraint(
            "accumulators and fragments of a thread do not fit into registers", fragments_fit, BLOCK_AND_WARP
        ),
        Constraint(
            "the multistage buffer does not fit into shared memory",
            shared_fits(mma_xor_swizzle.shared_bytes),
            ("bm", "bn", "bk", "stages"),
        ),
    ),
)


TILE = ("bm", "bn", "consumers")

Fields = dict[str, tuple[Value, ...]]


def whole_rows(config: hopper.Tiling, gemm: HalfGemm, arch: str) -> bool:
    return config.bm % (hopper.ROWS * config.consumers) == 0


def ring_fits(config: hopper.Ring, gemm: HalfGemm, arch: str) -> bool:
    return config.ring_bytes <= hopper.shared_room()


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
SIDE = (16, 64, 88, 96, 128, 144, 160, 192, 256)
FREE_TILES: Fields = {
    "bm": SIDE, "bn": SIDE, "consumers": (1, 2, 3), "swap": (0, 1), "part_columns": (0, 1),
    "cluster_m": (1, 2, 4), "cluster_n": (1, 2, 4), "stages": (3, 4, 6, 8), "boxes": (1, 2, 3),
}  # fmt: skip

WHOLE_ROWS = Constraint(f"bm must be a multiple of {hopper.ROWS} for each of the consumers", whole_rows, TILE)
SUMS = Constraint("the sums of a warpgroup do not fit into its registers", accumulator_fits, TILE)
FITTING_STAGES = Constraint("the stages do not fit into shared memory", ring_fits, (*TILE, "stages"))


def space(rung: Rung, fields: Fields, *more: Constraint) -> Space[Any, HalfGemm]:
    """The space of a rung with these fields. more: constraints besides those of tiles."""
    fields = TILES | fields
    return Space(rung, fields, (WHOLE_ROWS, SUMS, *more, taken(rung, fields)))


def taken(rung: Rung, fields: Fields) -> Constraint:
    """What a rung asks of its fields besides."""
    reason = "the rung refuses it: fewest stages, shared memory, boxes, clusters"
    return Constraint(reason, accepts(rung), tuple(fields))


WGMMA = space(wgmma.RUNG, {})
WGMMA_ASYNC = space(wgmma_async.RUNG, STAGES, FITTING_STAGES)
TMA = space(tma.RUNG, STAGES, FITTING_STAGES)
WARP_SPECIALIZED = space(warp_specialized.RUNG, STAGES, FITTING_STAGES)
PERSISTENT = space(persistent.RUNG, STAGES | GROUPS, FITTING_STAGES)
TMA_STORE = space(tma_store.RUNG, STAGES | GROUPS | BOXES, FITTING_STAGES)
CLUSTERED = space(cluster.RUNG, STAGES | GROUPS | BOXES | CLUSTER, FITTING_STAGES)
TILE_SHAPES = Space(tile_shapes.RUNG, FREE_TILES, (FITTING_STAGES, taken(tile_shapes.RUNG, FREE_TILES)))

HOPPER = (WGMMA, WGMMA_ASYNC, TMA, WARP_SPECIALIZED, PERSISTENT, TMA_STORE, CLUSTERED, TILE_SHAPES)
