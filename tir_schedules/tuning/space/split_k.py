"""The space of sgemm/split_k: tiles, what copies them, and parts of K."""

from __future__ import annotations

from dataclasses import replace

from tir_schedules.ladders.sgemm import multistage, shapes, split_k
from tir_schedules.tuning.space.constraints import (
    BLOCK_AND_WARP,
    ENOUGH_STAGES,
    WARP_TILES,
    shared_fits,
)
from tir_schedules.tuning.space.points import Constraint, Space
from tir_schedules.tuning.space.sgemm import (
    LANE_REGISTERS,
    LANES,
    PADDED,
    QUADS,
    copies_fit,
    double_buffer_fits,
    lanes_copy,
    loop_fits,
    multistage_bytes,
)
from tir_schedules.workloads import MOST_ELEMENTS
from tir_schedules.workloads.gemm import Gemm

Config = split_k.Config

TILED_ALONG_K = ("bm", "bn", "asynchronous", "bk", "splits")
"""What parts of K depend on."""

UNUSED = {name: getattr(multistage.Config(), name) for name in ("stages", "rows_first")}
"""Values of the fields that say nothing where tiles come through registers."""


def shared_bytes(gemm: Gemm, config: Config) -> int:
    return multistage_bytes(gemm, config) if config.asynchronous else 0


def buffer_fits(config: Config, gemm: Gemm, arch: str) -> bool:
    return config.asynchronous == 1 or double_buffer_fits(config, gemm, arch)


def registers_copy(config: Config, gemm: Gemm, arch: str) -> bool:
    return config.asynchronous == 1 or copies_fit(config, gemm, arch)


def lanes_copy_asynchronously(config: Config, gemm: Gemm, arch: str) -> bool:
    return config.asynchronous == 0 or lanes_copy(config, gemm, arch)


def loop_is_short(config: Config, gemm: Gemm, arch: str) -> bool:
    return config.asynchronous == 0 or loop_fits(config, gemm, arch)


def stages_are_used(config: Config, gemm: Gemm, arch: str) -> bool:
    return config.asynchronous == 1 or all(getattr(config, name) == value for name, value in UNUSED.items())


def elements_count(config: Config, gemm: Gemm, arch: str) -> bool:
    """Whether 32 bits index the partial sums. Those of a `splits` of 0 they always index."""
    return not config.splits or split_k.parts_of(gemm, config) * gemm.m * gemm.n < MOST_ELEMENTS


def parts_are_new(config: Config, gemm: Gemm, arch: str) -> bool:
    """Whether K has so many parts, and `splits` of 0 does not stand for them."""
    parts = split_k.parts_of(gemm, config)
    return config.splits == 0 or shapes.splits(gemm, config) != config.splits == parts


SPLIT_K: Space[Config, Gemm] = Space(
    split_k.RUNG,
    {
        "asynchronous": (1, 0),
        "bm": (16, 32, 64, 128),
        "bn": (16, 32, 64, 128, 256),
        "bk": (8, 16),
        "splits": (0, 1, 2, 4, 8, 16),
        "wm": (8, 16, 32, 64),
        "wn": (8, 16, 32, 64, 128),
        "wmiter": (1, 2, 4),
        "wniter": (1, 2, 4),
        "tm": (2, 4),
        "tn": (4, 8),
        "stages": (3, 4, 5, 6),
        "rows_first": (0, 1),
    },
    (
        *WARP_TILES,
        ENOUGH_STAGES,
        QUADS,
        replace(PADDED, reads=()),
        LANE_REGISTERS,
        Constraint(
            "accumulators, fragments and copies of a thread do not fit into registers",
            registers_copy,
            (*BLOCK_AND_WARP, *LANES, "asynchronous", "bk"),
        ),
        Constraint(
            "two tiles of A and of B do not fit into 48 KiB of static shared memory",
            buffer_fits,
            ("bm", "bn", "asynchronous", "bk"),
        ),
        Constraint(
            "a block has more threads than a tile of A has elements: TVM loses its region",
            lanes_copy_asynchronously,
            (*BLOCK_AND_WARP, "asynchronous", "bk"),
        ),
        Constraint(
            "the multistage buffer does not fit into shared memory",
            shared_fits(shared_bytes),
            ("bm", "bn", "bk", "asynchronous", "stages"),
        ),
        Constraint(
            "the unrolled loop does not fit into the instruction cache",
            loop_is_short,
            (*LANES, "asynchronous", "bk", "stages", "rows_first"),
        ),
        Constraint(
            "there are 2^31 partial sums or more",
            elements_count,
            TILED_ALONG_K,
        ),
        Constraint(
            "stages and rows_first say nothing where tiles come through registers",
            stages_are_used,
            ("asynchronous", "stages", "rows_first"),
            again=True,
        ),
        Constraint(
            "K has another number of parts, whole tiles each, or as many with splits of 0",
            parts_are_new,
            TILED_ALONG_K,
            again=True,
        ),
    ),
)
