"""The spaces of sgemm/pipelined, sgemm/serpentine, sgemm/stream_k and sgemm/multistage; and of sgemm/split_k:
tiles, what copies them, and parts of K."""

from __future__ import annotations

from dataclasses import replace

from tir_schedules.ladders.sgemm import (
    multistage,
    pipelined,
    serpentine,
    shapes,
    split_k,
    stream_k,
    warp_tiling,
)
from tir_schedules.ladders.sgemm.steps import VECTOR
from tir_schedules.ladders.sgemm.warp_tiles import UNCOVERED, UNCOVERED_QUADS, WarpTiling
from tir_schedules.ladders.sgemm.warp_tiling import WARP_SIZE
from tir_schedules.ladders.waves import MOST_PROGRAMS, MOST_WORTH
from tir_schedules.model.gpus import STATIC_SHARED
from tir_schedules.model.launch import ceil_div
from tir_schedules.tuning.space.constraints import (
    BLOCK_AND_WARP,
    ENOUGH_STAGES,
    WARP_TILES,
    registers_fit,
    shared_fits,
    threads,
)
from tir_schedules.tuning.space.points import Constraint, Space
from tir_schedules.workloads import MOST_ELEMENTS
from tir_schedules.workloads.gemm import Gemm

MOST_UNROLLED = 4096
"""Multiply-adds of a thread in an unrolled loop, 64 KiB of code. Twice as many leave the instruction cache,
and nvcc takes a minute."""

LANES = ("wm", "wn", "wmiter", "wniter", "tm", "tn")

Config = pipelined.Config | multistage.Config


def lanes_cover(config: warp_tiling.Config, gemm: Gemm, arch: str) -> bool:
    return config.covered()


def quads_cover(config: WarpTiling, gemm: Gemm, arch: str) -> bool:
    return config.covered_by_quads()


def padding_fits(config: Config, gemm: Gemm, arch: str) -> bool:
    return config.padding < WARP_SIZE and config.padding % VECTOR == 0


def lane_registers(config: Config) -> int:
    """Registers of a lane for its accumulators and for two sets of fragments."""
    return config.lane_sums + 2 * (config.wmiter * config.tm + config.wniter * config.tn)


def lane_fits(config: Config, gemm: Gemm, arch: str) -> bool:
    return registers_fit(config, lane_registers(config))


def copies_fit(config: Config, gemm: Gemm, arch: str) -> bool:
    copied = ceil_div((config.bm + config.bn) * config.bk, threads(config))
    return registers_fit(config, lane_registers(config) + copied)


def double_buffer_fits(config: Config, gemm: Gemm, arch: str) -> bool:
    return pipelined.tiles_bytes(config, config.padding) <= STATIC_SHARED


def somebody_shares(config: stream_k.Config, gemm: Gemm, arch: str) -> bool:
    return 0 < config.programs <= MOST_PROGRAMS and 0 < config.worth <= MOST_WORTH


def loop_fits(config: multistage.Config, gemm: Gemm, arch: str) -> bool:
    unrolled = 1 if config.rows_first else config.stages
    return config.lane_sums * config.bk * unrolled <= MOST_UNROLLED


def lanes_copy(config: multistage.Config, gemm: Gemm, arch: str) -> bool:
    return threads(config) <= config.bm * config.bk


def multistage_bytes(gemm: Gemm, config: multistage.Config) -> int:
    return multistage.launch(gemm, config).dynamic_shared


COVERED = Constraint(UNCOVERED, lanes_cover, LANES)
QUADS = Constraint(UNCOVERED_QUADS, quads_cover, LANES)
PADDED = Constraint(
    f"rows of a tile of A are padded by less than {WARP_SIZE} floats, a multiple of {VECTOR}",
    padding_fits,
    ("padding",),
)
LANE_REGISTERS = Constraint(
    "accumulators and fragments of a thread do not fit into registers", lane_fits, (*BLOCK_AND_WARP, *LANES)
)

TILES = {
    "bm": (32, 64, 128, 192, 256),
    "bn": (32, 64, 128, 192, 256),
    "wm": (16, 32, 64, 128),
    "wn": (16, 32, 64, 128),
    "wmiter": (1, 2, 4),
    "wniter": (1, 2, 4),
    "tm": (2, 4, 8),
    "tn": (4, 8),
    "bk": (8, 16, 32),
    "padding": (0, 4),
}

PIPELINED: Space[pipelined.Config, Gemm] = Space(
    pipelined.RUNG,
    TILES,
    (
        *WARP_TILES,
        QUADS,
        PADDED,
        LANE_REGISTERS,
        Constraint(
            "accumulators, fragments and copies of a thread do not fit into registers",
            copies_fit,
            (*BLOCK_AND_WARP, *LANES, "bk"),
        ),
        Constraint(
            "two tiles of A and of B do not fit into 48 KiB of static shared memory",
            double_buffer_fits,
            ("bm", "bn", "bk", "padding"),
        ),
    ),
)

SERPENTINE: Space[pipelined.Config, Gemm] = replace(PIPELINED, rung=serpentine.RUNG)
STREAM_K: Space[pipelined.Config, Gemm] = replace(
    PIPELINED,
    rung=stream_k.RUNG,
    constraints=(
        *PIPELINED.constraints,
        Constraint(
            f"programs must be 1 to {MOST_PROGRAMS}, and worth, K pairs that sharing saves, 1 to"
            f" {MOST_WORTH}",
            somebody_shares,
            (),
        ),
    ),
)

MULTISTAGE: Space[multistage.Config, Gemm] = Space(
    multistage.RUNG,
    TILES | {"stages": (2, 3, 4, 5, 6), "rows_first": (0, 1)},
    (
        *WARP_TILES,
        ENOUGH_STAGES,
        QUADS,
        PADDED,
        LANE_REGISTERS,
        Constraint(
            "a block has more threads than a tile of A has elements: TVM loses its region",
            lanes_copy,
            (*BLOCK_AND_WARP, "bk"),
        ),
        Constraint(
            "the multistage buffer does not fit into shared memory",
            shared_fits(multistage_bytes),
            ("bm", "bn", "bk", "padding", "stages"),
        ),
        Constraint(
            "the unrolled loop does not fit into the instruction cache",
            loop_fits,
            (*LANES, "bk", "stages", "rows_first"),
        ),
    ),
)


TILED_ALONG_K = ("bm", "bn", "asynchronous", "bk", "splits")
"""What parts of K depend on."""

UNUSED = {name: getattr(multistage.Config(), name) for name in ("stages", "rows_first")}
"""Values of the fields that say nothing where tiles come through registers."""


def shared_bytes(gemm: Gemm, config: split_k.Config) -> int:
    return multistage_bytes(gemm, config) if config.asynchronous else 0


def buffer_fits(config: split_k.Config, gemm: Gemm, arch: str) -> bool:
    return config.asynchronous == 1 or double_buffer_fits(config, gemm, arch)


def registers_copy(config: split_k.Config, gemm: Gemm, arch: str) -> bool:
    return config.asynchronous == 1 or copies_fit(config, gemm, arch)


def lanes_copy_asynchronously(config: split_k.Config, gemm: Gemm, arch: str) -> bool:
    return config.asynchronous == 0 or lanes_copy(config, gemm, arch)


def lanes_share(config: split_k.Config, gemm: Gemm, arch: str) -> bool:
    return config.asynchronous == 0 or config.bm * config.bk % threads(config) == 0


def loop_is_short(config: split_k.Config, gemm: Gemm, arch: str) -> bool:
    return config.asynchronous == 0 or loop_fits(config, gemm, arch)


def stages_are_used(config: split_k.Config, gemm: Gemm, arch: str) -> bool:
    return config.asynchronous == 1 or all(getattr(config, name) == value for name, value in UNUSED.items())


def elements_count(config: split_k.Config, gemm: Gemm, arch: str) -> bool:
    """Whether 32 bits index the partial sums. Those of a `splits` of 0 they always index."""
    return not config.splits or split_k.parts_of(gemm, config) * gemm.m * gemm.n < MOST_ELEMENTS


def parts_are_new(config: split_k.Config, gemm: Gemm, arch: str) -> bool:
    """Whether K has so many parts, and `splits` of 0 does not stand for them."""
    parts = split_k.parts_of(gemm, config)
    return config.splits == 0 or shapes.splits(gemm, config) != config.splits == parts


SPLIT_K: Space[split_k.Config, Gemm] = Space(
    split_k.RUNG,
    {
        "asynchronous": (1, 0),
        "bm": (16, 24, 32, 40, 48, 56, 64, 80, 96, 128, 256),
        "bn": (16, 32, 64, 96, 128, 256),
        "bk": (8, 16),
        "splits": (0, 1, 2, 4, 8, 16),
        "wm": (8, 16, 24, 32, 40, 48, 56, 64),
        "wn": (8, 16, 32, 48, 64, 128),
        "wmiter": (1, 2, 3, 4),
        "wniter": (1, 2, 3, 4),
        "tm": (2, 4, 6, 8, 10, 14),
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
            "threads of a block do not share the elements of a tile of A evenly",
            lanes_share,
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
