"""Padding against bank conflicts.

storage_align lengthens each row of the tiles in shared memory by 8 halves (elements of 2 bytes), to 80 bytes.
Now the 8 rows that a fragment reads at once start in 8 different groups of 4 banks, and its loads have no
conflicts. Stores are the price: without padding 8 lanes store 128 bytes, two rows of 64 bytes, in one
wavefront. With padding the two rows share banks, so they take two wavefronts. Each value is stored once and
loaded several times, so padding pays: see "Why does padding resolve bank conflicts?" (article 004), the
section with padding and its table of banks. "Optimizing Half-Precision GEMM with Tensor Cores" (article 001)
pads by the same 8, and calls it SKEW_PADDING. Look for the row length 40 in `load_matrix_sync`.

Configuration "32x64" is for a small C, if rows of A and B are not multiples of 16 bytes and K is at most 128.
Its tiles are so deep that one iteration takes all of K, with one wait for all reads. A warp has one fragment
of C. Rungs that copy these rows in a launch before take longer.

An H200 computes 513x63x87 in 3.2 us. The rungs that copy rows in a launch before take 5.6.

Measured on an H200 at 4096 nt float16: 306 TFLOPS, 1.80 times the 170 of `wmma_shared`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import steps, wmma_shared
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads import RESULTS
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(steps.Padded):
    """Fields: those of steps.Padded."""

    rounds = True


def launch(gemm: HalfGemm, config: Config) -> Launch:
    shared = steps.shared_bytes(gemm, config, config.padding)
    return steps.launch_columns_by_rows(gemm, config, shared)


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    tiles = steps.split_into_tiles(sch, config)
    steps.bind_blocks(sch, tiles)
    steps.multiply_tiles(sch, gemm, config, tiles)
    sch.unroll(tiles.k_step)
    steps.pad_rows(sch, tiles.copies, config.padding)


RUNG = wmma_shared.RUNG.followed_by(
    "wmma_padded",
    "rows in shared memory padded by 8 halves: no more bank conflicts of loads, some of stores",
    schedule,
    article="004; 001",
    config=Config(),
    configs={"article_004": Config(bm=128, bn=256), "32x64": Config(bm=32, bn=64, bk=128, wm=16, wn=16)},
    launch=launch,
    outputs=RESULTS[:2],
)

if __name__ == "__main__":
    run_as_script(RUNG)
