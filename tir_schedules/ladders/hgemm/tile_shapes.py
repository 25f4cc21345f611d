"""Tiles of free extents, as many as fill the SMs, with A and B swapped where that fits better.

SMs take tiles in rounds, and in the last round some SMs have no tile. This is called wave quantization. A
matrix seldom has as many tiles of 128x256, 128x192 or 128x128 as whole rounds take. 1536 x 1536 has 96 tiles
of 128x192 for 132 SMs. It has 11 x 12 = 132 tiles of 144x128, one for each SM, and each of these is a quarter
smaller.

A product of wgmma has 64 rows, but its number of columns is any multiple of 8 up to 256. So one side of a
tile is free. Either side can be the free one, because C^T = B^T A^T: with A and B swapped (`swap`) the rows
of wgmma are columns of C. The sums are then those of C's transpose. stmatrix transposes them, 8 x 8 at a
time, on their way to shared memory, so that C is written by rows as before. Rows of a tile are then a
multiple of 8, so three tiles of 88 take a C of 258 rows. Columns of a tile that is not swapped are a
multiple of 16, because 8 columns of C are half a sector.

Two warpgroups divide a tile along the rows of wgmma, or along its columns (`part_columns`). A tile of 192x192
has three times 64 rows, which two warpgroups cannot divide evenly. Along the columns each warpgroup takes 96,
and a thread keeps 144 sums. If three warpgroups divided the rows, each thread would have only 128 registers
in all.

Columns that two warpgroups divide may be up to 512. 3241 rows are 11 tiles of 304, which with 48 tiles of 128
columns fill four rounds of 132 SMs. TMA copies at most 256 rows of a matrix at once, so 304 rows of a K tile
come in two boxes of 152. A thread has registers for the sums of 128 x 352 by two warpgroups.

Two blocks of a cluster share the columns of B (`cluster_m`) or the rows of A (`cluster_n`) that both need:
each copies half of them for both, see `cluster`. That pays if rows of A and B are not multiples of 32 bytes,
as at 3000 x 3000. Then a row of a K tile begins within a sector, and takes more sectors of L2 than its bytes
fill. Four blocks share more: four in a line one side, or two rows of two blocks both sides. In the latter a
block has nothing from the one across the diagonal, so only blocks of its row and its column tell it that
they are done with a stage.

A B that is stored KxN comes in boxes of 64 columns. If blocks cannot share these evenly, each copies some k
of every box. On an H200 2984x136x640 took 5.4 us by 88x64, 4.5 in pairs, and 4.2 in clusters of four.

Tiles are taken in stripes of some rows of tiles. If L2 holds A and B, stripes are low. Else SMs should read
few different rows and columns at a time, because an H200 lowers its clock for what comes from memory. See
`tile_choice.height_of_stripes`.

In the emitted CUDA look for the number of columns in the name of wgmma, and for stmatrix with `.trans`.

Measured on an H200 at 4096 nt float16: 827 TFLOPS, 1.05 times the 789 of `cluster`.
"""

from __future__ import annotations

from functools import lru_cache

from tir_schedules.ladders.hgemm import cluster, hopper, specialization, tile_choice
from tir_schedules.ladders.hgemm.tile_shape import Config
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.half_gemm import HalfGemm


def refuses(gemm: HalfGemm, config: Config) -> str:
    return specialization.reason_against_specialization(gemm, config)


def launch(gemm: HalfGemm, config: Config) -> Launch:
    hopper.check(refuses(gemm, config))
    return specialization.launch_programs(gemm, config)


def prim_func(gemm: HalfGemm, config: Config, name: str) -> PrimFunc:
    return hopper.tiled_gemm(gemm, config, name, boxes=True, stored=True)


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    tiles = specialization.specialize_warps(sch, gemm, config)
    specialization.walk_tiles(sch, gemm, config, tiles)
    specialization.store_boxes(sch, gemm, config, tiles)
    hopper.multiply(sch, gemm, config, tiles, "given")
    sch.overlap_launches()


CONFIGS = {
    "128x256": Config(),
    "144x128": Config(bm=144, bn=128, stages=6, swap=1, boxes=1),
    "192x192": Config(bm=192, bn=192, part_columns=1, cluster_n=2, boxes=3),
    "256x160": Config(bm=256, bn=160, cluster_n=2),
    "16x128": Config(bm=16, bn=128, stages=8, swap=1, boxes=1),
}


@lru_cache(maxsize=1024)
def ranked(gemm: HalfGemm) -> list[Config]:
    """The forms that are estimated to be the fastest of their kinds, the fastest first."""
    forms = () if refuses(gemm, CONFIGS["128x256"]) else tile_choice.settled(gemm, Config)
    return tile_choice.ranked(gemm, forms)


def choose(gemm: HalfGemm) -> str | Config:
    """The form that is estimated to be the fastest. Where a gemm can have no form it is the first
    configuration, whose refusal says why."""
    return next(iter(ranked(gemm)), "128x256")


RUNG = cluster.RUNG.followed_by(
    "tile_shapes",
    "tiles of any multiple of 8 rows or 16 columns, A and B swapped where that fills the SMs better",
    schedule,
    configs=CONFIGS,
    choose=choose,
    ranked=ranked,
    launch=launch,
    refuses=refuses,
    prim_func=prim_func,
)

if __name__ == "__main__":
    run_as_script(RUNG)
