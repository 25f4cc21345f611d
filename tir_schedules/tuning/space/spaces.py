"""The spaces of the tunable rungs, and the constraints they share.

Each constraint was found by building points without it: TVM refuses them, emits a launch other than the
declared one, or the CPU machine finds races, writes out of bounds or wrong results. Of registers they refuse
what is far too much; ptxas has the last word.

Twins have stricter rules, which their static assertions tell: threads must share copies evenly, rows of
hgemm/mma_multistage are 32 or 64.
"""

from __future__ import annotations

from typing import Any, Callable

from tir_schedules.errors import BadInput
from tir_schedules.ladders.hgemm import mma_multistage, steps
from tir_schedules.ladders.hgemm.wmma_staged_epilogue import shared_bytes
from tir_schedules.ladders.reduce import vectorized
from tir_schedules.ladders.registry import FAMILIES
from tir_schedules.ladders.sgemm import multistage, pipelined
from tir_schedules.model.gpus import MAX_THREADS, REGISTERS, WARP, find_sm
from tir_schedules.model.launch import ceil_div
from tir_schedules.tuning.space.space import Constraint, Space
from tir_schedules.workloads.half_gemm import VECTOR

STATIC_SHARED = 48 << 10  # bytes, the most a block has without asking for more
MOST_REGISTERS = 255  # of a thread
PRODUCTS_WRITTEN_OUT = (
    4096  # of a thread, 64 KiB of code; twice as many leave the instruction cache and take nvcc a minute
)

BLOCK_AND_WARP = ("bm", "bn", "wm", "wn")
LANES = ("wm", "wn", "wmiter", "wniter", "tm", "tn")


def whole_warps(config: Any, workload: Any, arch: str) -> bool:
    return config.bm % config.wm == 0 and config.bn % config.wn == 0


def block_fits(config: Any, workload: Any, arch: str) -> bool:
    return threads(config) <= MAX_THREADS


def threads(config: Any) -> int:
    """Threads of a block, in either family."""
    return config.bm * config.bn * WARP // (config.wm * config.wn)


def shared_fits(bytes_of: Callable[[Any, Any], int]) -> Callable[[Any, Any, str], bool]:
    """Whether an architecture has the dynamic shared memory that bytes_of(workload, config) says."""
    return lambda config, workload, arch: bytes_of(workload, config) <= find_sm(arch).shared_limit


def enough_stages(config: Any, workload: Any, arch: str) -> bool:
    return config.stages >= 3


def registers_fit(config: Any, needed: int) -> bool:
    return needed <= min(MOST_REGISTERS, REGISTERS // threads(config))


TILES_OF_WARPS = (
    Constraint("warp tiles must divide the block tile", whole_warps, BLOCK_AND_WARP),
    Constraint(f"a block has at most {MAX_THREADS} threads", block_fits, BLOCK_AND_WARP),
)

RING = Constraint(
    "stages must be 3 or more: of two tiles the next would go where one is still read",
    enough_stages,
    ("stages",),
)


def lanes_cover(tile: Any, gemm: Any, arch: str) -> bool:
    """Whether 32 lanes, in pairs of rows, cover a sub-tile. TVM takes no level of one lane."""
    rows, rows_left = divmod(tile.wm, tile.wmiter * tile.tm)
    columns, columns_left = divmod(tile.wn, tile.wniter * tile.tn)
    return not rows_left and not columns_left and rows * columns == WARP and rows % 2 == 0 and columns > 1


def sums(tile: Any) -> int:
    """Elements of C of a lane."""
    return tile.wmiter * tile.wniter * tile.tm * tile.tn


def lane_registers(tile: Any) -> int:
    """Registers of a lane for its sums and for two sets of fragments."""
    return sums(tile) + 2 * (tile.wmiter * tile.tm + tile.wniter * tile.tn)


def lane_fits(tile: Any, gemm: Any, arch: str) -> bool:
    return registers_fit(tile, lane_registers(tile))


def copies_fit(tile: Any, gemm: Any, arch: str) -> bool:
    copied = ceil_div((tile.bm + tile.bn) * tile.bk, threads(tile))
    return registers_fit(tile, lane_registers(tile) + copied)


def pair_fits(config: Any, gemm: Any, arch: str) -> bool:
    return 4 * 2 * config.bk * (config.bm + config.skew + config.bn) <= STATIC_SHARED


def turns_fit(config: Any, gemm: Any, arch: str) -> bool:
    return sums(config) * config.bk * (1 if config.rows_first else config.stages) <= PRODUCTS_WRITTEN_OUT


def lanes_copy(config: Any, gemm: Any, arch: str) -> bool:
    return threads(config) <= config.bm * config.bk


def ring_bytes(gemm: Any, config: Any) -> int:
    return multistage.launch(gemm, config).dynamic_shared


QUADS = Constraint(
    "32 lanes in pairs of rows and 2 columns or more, tm x tn each, must cover wm/wmiter x wn/wniter",
    lanes_cover,
    LANES,
)
LANE_REGISTERS = Constraint(
    "sums and fragments of a thread do not fit into registers", lane_fits, (*BLOCK_AND_WARP, *LANES)
)

SGEMM_TILES = {
    "bm": (32, 64, 128, 192, 256),
    "bn": (32, 64, 128, 192, 256),
    "wm": (16, 32, 64, 128),
    "wn": (16, 32, 64, 128),
    "wmiter": (1, 2, 4),
    "wniter": (1, 2, 4),
    "tm": (2, 4, 8),
    "tn": (4, 8),
    "bk": (8, 16, 32),
    "skew": (0, 4),
}

PIPELINED = Space(
    pipelined.RUNG,
    SGEMM_TILES,
    (
        *TILES_OF_WARPS,
        QUADS,
        LANE_REGISTERS,
        Constraint(
            "sums, fragments and copies of a thread do not fit into registers",
            copies_fit,
            (*BLOCK_AND_WARP, *LANES, "bk"),
        ),
        Constraint(
            "two tiles of A and of B do not fit into 48 KiB of static shared memory",
            pair_fits,
            ("bm", "bn", "bk", "skew"),
        ),
    ),
)

MULTISTAGE = Space(
    multistage.RUNG,
    SGEMM_TILES | {"stages": (2, 3, 4, 5, 6), "rows_first": (0, 1)},
    (
        *TILES_OF_WARPS,
        RING,
        QUADS,
        LANE_REGISTERS,
        Constraint(
            "a block has more threads than a tile of A has elements: TVM loses its region",
            lanes_copy,
            (*BLOCK_AND_WARP, "bk"),
        ),
        Constraint(
            "the ring of tiles does not fit into shared memory",
            shared_fits(ring_bytes),
            ("bm", "bn", "bk", "skew", "stages"),
        ),
        Constraint(
            "too many products are written out for the instruction cache",
            turns_fit,
            (*LANES, "bk", "stages", "rows_first"),
        ),
    ),
)


def sums_fit(config: Any, gemm: Any, arch: str) -> bool:
    return gemm.accumulate in config.accumulators


def fragments_fit(config: Any, gemm: Any, arch: str) -> bool:
    """Whether a thread has registers for its sums and for two sets of fragments of 16 x 16 halves, of which
    it has 4 registers each."""
    sums_ = config.wm * config.wn * steps.ELEMENT[gemm.accumulate] // (4 * WARP)
    return registers_fit(config, sums_ + 2 * 4 * (config.wm + config.wn) // steps.FRAGMENT)


def whole_fragments(config: Any, gemm: Any, arch: str) -> bool:
    return config.wm % 32 == 0 and config.wn % 32 == 0


def permutable(config: Any, gemm: Any, arch: str) -> bool:
    return config.bk % 32 == 0


def rows_shared(config: Any, gemm: Any, arch: str) -> bool:
    """Whether the pieces of 16 bytes in a row, of A, B or C, divide the lanes of a warp or the other way
    round."""
    pieces = (config.bk // VECTOR, config.bn // VECTOR, config.bn * steps.ELEMENT[gemm.accumulate] // 16)
    return all(WARP % count == 0 or count % WARP == 0 for count in pieces)


MMA_MULTISTAGE = Space(
    mma_multistage.RUNG,
    {
        "bm": (32, 64, 96, 128, 192, 256),
        "bn": (32, 64, 128, 192, 256),
        "wm": (16, 32, 64, 96, 128),
        "wn": (16, 32, 64, 128),
        "bk": (16, 32, 64, 128),
        "stages": (2, 3, 4, 5, 6),
        "stripe": (1, 2, 4, 8, 16, 32),
    },
    (
        *TILES_OF_WARPS,
        Constraint(
            "a warp tile must be a multiple of 32 both ways, as TVM lays out the sums of mma",
            whole_fragments,
            ("wm", "wn"),
        ),
        Constraint("rows of a tile must be permutable: bk must be a multiple of 32", permutable, ("bk",)),
        Constraint(
            "lanes must share rows evenly: bk and bn must be powers of two", rows_shared, ("bn", "bk")
        ),
        RING,
        Constraint("the sums of a warp tile do not fit into registers", sums_fit, ("wm", "wn")),
        Constraint("sums and fragments of a thread do not fit into registers", fragments_fit, BLOCK_AND_WARP),
        Constraint(
            "the ring of tiles does not fit into shared memory",
            shared_fits(shared_bytes),
            ("bm", "bn", "bk", "stages"),
        ),
    ),
)

NO_LIMIT = vectorized.Config.most_blocks
GRID = ("block", "unroll", "most_blocks")


def one_of_a_kind(config: Any, reduction: Any, arch: str) -> bool:
    """Whether the grid is limited, or by the value that stands for all which do not limit it: with these the
    kernels are the same."""
    return config.most_blocks == NO_LIMIT or vectorized.blocks_needed(reduction, config) > config.most_blocks


VECTORIZED = Space(
    vectorized.RUNG,
    {
        "block": (128, 256, 512, 1024),
        "unroll": (1, 2, 4, 8, 16),
        "most_blocks": (
            128,
            256,
            512,
            1024,
            vectorized.RESIDENT.most_blocks,
            *(1 << power for power in range(11, 17)),
            NO_LIMIT,
        ),
    },
    (
        Constraint(
            f"the grid is not limited by most_blocks, of which {NO_LIMIT} stands for no limit",
            one_of_a_kind,
            GRID,
        ),
    ),
)
"""No constraint is about registers: however many loads are unrolled, ptxas keeps some eight under way, for
which every block has room."""

SPACES = {space.rung.id: space for space in (PIPELINED, MULTISTAGE, MMA_MULTISTAGE, VECTORIZED)}
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
