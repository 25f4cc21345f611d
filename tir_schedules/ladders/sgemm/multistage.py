"""Several tiles under way by cp.async; the block tile chosen by shape.

`cp.async` copies from global to shared memory without a register in between and without the thread waiting.
Shared memory has several stages: one tile is multiplied while the next ones arrive. No tile is in registers,
which leaves room for block tiles of 128x256. In larger tiles each element that is read from global memory
serves more FMA. B is copied in pieces of 16 bytes. A is transposed on the way, so it is copied in single
floats, because cp.async cannot reorder the bytes of a piece. There is one wait and one barrier per tile, and
fragments are double buffered as in `pipelined`. Look for `cp.async`, `wait_group`, and the unrolled stages.

The order of a thread's FMA decides how often an instruction reuses an operand of the one before, and how
often its registers share a bank. With the order of `serpentine` this rung is slower, because nvcc then reads
four times as many fragments right before the FMA that need them. So each configuration has an order of its
own, the fastest of all 24. Unrolled stages save address arithmetic, but the code is four times as long. They
pay if blocks follow each other on an SM, but not if all blocks run at once (a single wave).

The orders were timed on an H200. The slowest takes 9 to 15 % longer, and that of `serpentine` 8 %.

A large tile does not help if there are fewer tiles than SMs. So if no configuration is named, the shape
decides: the rung takes the largest tile of CONFIGS for which C is large enough.

If N is even, but not a multiple of 4, B is copied 8 bytes at a time. On an H100 this took 2 to 10 % less time
than copies of 4.

Measured on an H200 at 4096: 51.7 TFLOPS, 0.96 times the 53.9 of `serpentine`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from tir_schedules.ladders.sgemm import serpentine, warp_tiles
from tir_schedules.ladders.sgemm.edges import part_last_tile, wrap_edges
from tir_schedules.ladders.sgemm.steps import VECTOR, share_rows
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Schedule, pipeline
from tir_schedules.workloads.gemm import Gemm

SHARED = "shared.dyn"
ORDERS = {
    "rows_first": ("inner_i", "sub_i", "inner_j", "sub_j"),
    "columns_first": ("inner_j", "inner_i", "sub_i", "sub_j"),
}
WAVE = 120
"""Block tiles that keep a large GPU busy: about as many as it has SMs, 108 on an A100, 132 on an H200."""


@dataclass(frozen=True)
class Config(warp_tiles.WarpTiling):
    """stages: tiles of A and of B in shared memory. padding: floats after each row of the tile of A.

    rows_first: 1 when a thread's FMA go through rows before columns, and the loop over tiles stays a loop; 0
    when they go through columns before rows, and the loop is unrolled by the number of stages.
    """

    bm: int = 128
    bn: int = 256
    wm: int = 64
    wn: int = 64
    wmiter: int = 2
    wniter: int = 4
    stages: int = 4
    padding: int = 4
    rows_first: int = 0


def copy_width(row_length: int) -> int:
    """Floats of an asynchronous copy, 16, 8 or 4 bytes, which all rows are multiples of."""
    return gcd(row_length, VECTOR)


def launch(gemm: Gemm, config: Config) -> Launch:
    floats = config.stages * config.bk * (config.bm + config.padding + config.bn)
    return warp_tiles.launch(gemm, config, 4 * floats)


def schedule(sch: Schedule, gemm: Gemm, config: Config) -> None:
    overlapped(sch, gemm, config)


def overlapped(
    sch: Schedule,
    gemm: Gemm,
    config: Config,
    staged: warp_tiles.Staged | None = None,
    in_rows: bool = False,
    pitch: int = 0,
) -> warp_tiles.Parts:
    """The whole schedule; returns its blocks and loops. staged: see `split_up`. in_rows, pitch: see
    `finish`."""
    order = ORDERS["rows_first" if config.rows_first else "columns_first"]
    parts = warp_tiles.split_up(sch, config, SHARED, order=order, staged=staged)
    copy_a, copy_b = parts.copies
    threads = [("threadIdx.x", config.threads)]
    share_rows(sch, copy_a, parts.k_tile, threads, 1)
    width = copy_width(gemm.n)
    share_rows(sch, copy_b, parts.k_tile, threads, width)
    wrap_edges(sch, gemm, parts.copies, (config.bm, config.bn), width)
    warp_tiles.pad_rows(sch, config, parts, config.padding)
    warp_tiles.finish(sch, gemm, parts, config, in_rows, pitch)

    warp_tiles.double_buffer_fragments(sch, parts, config)
    sch.keep_buffers_apart()
    sch.unroll_drain()
    copies, first, compute = 0, config.stages - 2, config.stages - 1
    stage = [copies, copies, first, compute, compute]
    pipeline(sch, parts.k_tile, stage, order=[0, 1, 3, 2, 4], asynchronous=[0])
    sch.async_copies()
    sch.async_copies_before_barriers()
    sch.move_copies_behind_compute()
    part_last_tile(sch, gemm, parts.k_tile, config.bk)
    if not config.rows_first:
        sch.unroll_stages(parts.k_tile, config.stages)
    return parts


CONFIGS = {
    "128x256": Config(),
    "128x256_rows_first": Config(wmiter=4, wniter=2, stages=3, rows_first=1),
    "64x128": Config(bm=64, bn=128, bk=16, wm=32, wn=32, wmiter=1, wniter=2),
    "32x64": Config(bm=32, bn=64, bk=16, wm=32, wn=16, wmiter=1, wniter=1, stages=6, rows_first=1),
    "32x32": Config(bm=32, bn=32, bk=16, wm=16, wn=16, wmiter=1, wniter=1, tm=2, stages=5),
}
ENOUGH = {"128x256": 3 * WAVE, "128x256_rows_first": WAVE, "64x128": WAVE, "32x64": WAVE, "32x32": 0}
"""Block tiles for which a configuration is taken."""


def choose(gemm: Gemm) -> str:
    """The first configuration for which C is as large as ENOUGH block tiles."""
    return next(
        name for name, config in CONFIGS.items() if gemm.m * gemm.n >= ENOUGH[name] * config.bm * config.bn
    )


RUNG = serpentine.RUNG.followed_by(
    "multistage",
    "cp.async: several tiles under way, 128x256 per block; smaller tiles for small matrices, chosen by shape",
    schedule,
    configs=CONFIGS,
    choose=choose,
    shapes="any; 16-byte copies of B and writes of C where N % 4 == 0, else one element at a time, of B two"
    " where N % 2 == 0",
    launch=launch,
    min_arch=80,
)

if __name__ == "__main__":
    run_as_script(RUNG)
