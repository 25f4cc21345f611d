"""Any shape: rows that TMA does not take are copied to rows that it takes, before the products.

In a tensor map the distance from one row to the next must be a multiple of 16 bytes, so it cannot describe
rows of an odd number of elements. A GEMM that copies single elements loses most of its rate, because each K
tile is copied again for every tile of C, two bytes at a time.

A copy reads A and B once, but the GEMM reads each element many times. So a launch before this one copies A, B
or both, if their rows need it, to a workspace whose rows start at a line of L2: see `repack`. Multiples of 16
bytes would be enough for the tensor map. But a row of a box has 128 bytes. If it starts within a sector of 32
bytes, it takes five sectors in place of four. The share of the copies falls with the size, because they grow
with its square and the products with its cube. The tensor map has the true extents, so padding is not read.

At 4096x4096x4065 copies and products take 262 to 308 us on an H200 with rows of 8144 bytes, and 215 us with
rows of 8192 bytes. For matrices of 4095 the copies move 134 MB in 40 us, and the products take 170 us. In
all, these take 228 us: 602 TFLOPS. `wgmma_async`, which copies elements, has 101, and cuBLAS 135.

TMA cannot write rows of C either if they are not multiples of 16 bytes. Then the threads of a warpgroup copy
each box of C from shared memory to its place. A warp writes neighbours of a row. The length of rows decides
whether each lane writes 2, 4 or 8 bytes. If C is written from registers, it takes longer, because the lanes
of a warp have elements of eight rows. Configurations "..._registers", with `boxes` 0, write C from registers.
This is also the only way for a C in float32 whose sums are transposed (`swap`).

On an H100 10142 x 9735 x 64 took 547 us from registers, and 164 through boxes.

If all rows are multiples of 16 bytes there is one launch, the kernel of `tile_shapes`. Rows that start within
sectors may still be copied, by configurations "..._lines", whose `line` is 32. Then tiles of 128x256 are
faster. But pairs of blocks, in which each block copies half of the rows for both, are estimated to be faster
still. So by default no rows are copied.

With these copies tiles of 128x256 take 214 us at 4096x4096x4072 in place of 270.

Tiles are those of `tile_shapes`: with a free side, swapped, and in pairs. If A and B are swapped and C is
written from registers, a thread has single elements of a row, and eight lanes have neighbours.

Measured on an H200 at 4096 nt float16: 828 TFLOPS, 1.00 times the 827 of `tile_shapes`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Iterator, TypeVar

from tir_schedules.ladders.hgemm import (
    hopper,
    repack,
    specialization,
    tile_choice,
    tile_shape,
    tile_shapes,
    tma_store,
)
from tir_schedules.model.launch import Launch, ceil_div
from tir_schedules.model.rung import Around, Preparation, configs_as, run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads import MOST_ELEMENTS, in_lines
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(tile_shape.Config):
    """As of `tile_shapes`. boxes: 0 if C is written from registers. line: 16, 32, 64 or 128 bytes; rows of
    A and B that are not a multiple of it are copied."""

    line: int = 16


LINES = (16, 32, 64, 128)

C = TypeVar("C", bound=Config)


def refuses(gemm: HalfGemm, config: Config) -> str:
    if config.line not in LINES:
        return f"line is {config.line}; it is one of {', '.join(map(str, LINES))}"
    reason = hopper.reason_against_tile(gemm, config) or reason_against_copies(gemm, config)
    if reason or not config.boxes:
        return reason or hopper.reason_against_ring(gemm, config, 2)
    return specialization.reason_against_places(gemm, config)


def reason_against_copies(gemm: HalfGemm, config: Config) -> str:
    """Why A, B or C cannot be copied, or empty: rows of few elements become whole lines."""
    for name, (rows, columns) in repack.copied(gemm, config.line).items():
        elements = ceil_div(rows, repack.ROWS) * repack.ROWS * in_lines(columns, gemm.vector)
        if elements >= MOST_ELEMENTS:
            return f"a copy of {name} has {elements} elements, and must have fewer than 2**31"
    return ""


def before(gemm: HalfGemm, config: Config) -> list[Preparation]:
    return repack.repackings_of(gemm, config.line)


def launch(gemm: HalfGemm, config: Config) -> Launch:
    hopper.check(refuses(gemm, config))
    return repack.maps_of_copies(specialization.launch_programs(gemm, config), gemm, config.line)


def prim_func(gemm: HalfGemm, config: Config, name: str) -> PrimFunc:
    made = hopper.tiled_gemm(gemm, config, name, boxes=True, stored=config.boxes > 0)
    return repack.set_pitches(made, gemm, config.line)


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    tiles = specialization.specialize_warps(sch, gemm, config)
    specialization.walk_tiles(sch, gemm, config, tiles)
    if config.boxes:
        specialization.store_boxes(sch, gemm, config, tiles)
    else:
        hopper.store_from_registers(sch, gemm, config, tiles)
    hopper.multiply(sch, gemm, config, tiles, "given")
    sch.overlap_launches()


THROUGH_BOXES = configs_as(Config, tma_store.CONFIGS)
THROUGH_BOXES |= {
    f"{name}_lines": replace(config, line=32)
    for name, config in THROUGH_BOXES.items()
    if config.bn > 128  # a copy pays for large matrices
}
CONFIGS = THROUGH_BOXES | {
    f"{name}_registers": replace(config, boxes=0) for name, config in THROUGH_BOXES.items()
}


def candidates(gemm: HalfGemm, kind: type[C], registers: bool) -> Iterator[C]:
    """Each form that a gemm can have: its C written as boxes and, with `registers` or if threads copy the
    boxes, also from registers."""
    registers = registers or not gemm.c_aligned
    for boxes in (1, 0) if registers else (1,):
        for config in tile_choice.settled(gemm, kind, boxes=boxes):
            if not refuses(gemm, config):
                yield config


@lru_cache(maxsize=1024)
def ranked(gemm: HalfGemm) -> list[Config]:
    """The forms that are estimated to be the fastest of their kinds, the fastest first."""
    return tile_choice.ranked(gemm, candidates(gemm, Config, False), before)


def choose(gemm: HalfGemm) -> str | Config:
    """The form that is estimated to be the fastest; the first where all are refused."""
    return next(iter(ranked(gemm)), "128x256")


RUNG = tile_shapes.RUNG.followed_by(
    "repacked",
    "rows that TMA does not take are copied to rows of a multiple of 16 bytes before",
    schedule,
    configs=CONFIGS,
    choose=choose,
    ranked=ranked,
    shapes="any; A and B are copied before if their rows are not a multiple of 16 bytes",
    launch=launch,
    refuses=refuses,
    prim_func=prim_func,
    around=Around(before),
)

if __name__ == "__main__":
    run_as_script(RUNG)
