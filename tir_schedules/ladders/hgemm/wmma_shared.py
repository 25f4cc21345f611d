"""Block tiles in shared memory.

Eight warps compute 256x128 of C together, 64x64 each, in 16 fragments. At the head of each iteration of the
loop over K all threads copy a tile of A and one of B to shared memory, 16 bytes at a time. From there each
warp loads 4 + 4 fragments for 16 mma. So each fragment serves four mma, and an element that is read from
global memory serves the whole block. Look for `load_matrix_sync` with the row length of the tile, 32. Because
rows have 64 bytes, every second row begins in the same bank. So a fragment takes 4 times the wavefronts
(turns of all banks) that it needs: see "Why does padding resolve bank conflicts?" (article 004), the section
without padding. That article counts 8 loads for a warp's 64x64x32, but 4 + 4 fragments are needed twice,
which is 16 loads. The tile is that of "Optimizing Half-Precision GEMM with Tensor Cores" (article 001),
"Block Tile" and "Warp Tile".

On a ragged shape C also goes through shared memory, because `store_matrix_sync` cannot leave out elements
beyond the matrix.

Measured on an H200 at 4096 nt float16: 170 TFLOPS, 5.73 times the 29.7 of `wmma_naive`.
"""

from __future__ import annotations

from tir_schedules.ladders.hgemm import steps, wmma_naive
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.half_gemm import HalfGemm

Config = steps.Tiling


def launch(gemm: HalfGemm, config: Config) -> Launch:
    shared = steps.shared_bytes(gemm, config)
    return steps.launch_columns_by_rows(gemm, config, shared)


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    tiles = steps.split_into_tiles(sch, config)
    steps.bind_blocks(sch, tiles)
    steps.multiply_tiles(sch, gemm, config, tiles)
    sch.unroll(tiles.k_step)


RUNG = wmma_naive.RUNG.followed_by(
    "wmma_shared",
    "256x128 tiles in shared memory, a warp multiplies 64x64 of it from fragments in registers",
    schedule,
    article="001; 004, without padding",
    config=Config(),
    configs={"article_004": Config(bm=128, bn=256)},
    shapes=steps.SHAPES,
    launch=launch,
)

if __name__ == "__main__":
    run_as_script(RUNG)
