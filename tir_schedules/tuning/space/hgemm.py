"""The space of hgemm/mma_multistage."""

from __future__ import annotations

from tir_schedules.ladders.hgemm import mma_multistage, steps
from tir_schedules.model.gpus import WARP
from tir_schedules.tuning.space.constraints import (
    BLOCK_AND_WARP,
    ENOUGH_STAGES,
    WARP_TILES,
    registers_fit,
    shared_fits,
)
from tir_schedules.tuning.space.points import Constraint, Space
from tir_schedules.workloads.half_gemm import VECTOR, HalfGemm

Config = mma_multistage.Config


def accumulator_fits(config: Config, gemm: HalfGemm, arch: str) -> bool:
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
            shared_fits(mma_multistage.shared_bytes),
            ("bm", "bn", "bk", "stages"),
        ),
    ),
)
