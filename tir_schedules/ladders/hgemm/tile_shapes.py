"""Tiles of free extents: as many as fill the SMs, with A and B swapped where that fits better.

SMs take tiles in rounds, and in the last round some have none: see wave quantization. Of tiles of 128x256,
128x192 or 128x128 a matrix seldom has as many as whole rounds take. 1536 x 1536 has 96 of 128x192 for 132
SMs. Of 144x128 it has 11 x 12 = 132, one for each SM, and a block has a quarter less to multiply.

wgmma has 64 rows, but any multiple of 8 up to 256 for its columns. So one side of a tile is free, here in
steps of 16, as stmatrix stores them. Which side is free can be chosen, too: C^T = B^T A^T, and with A and B
swapped the rows of wgmma are columns of C. Its sums are transposed on their way to shared memory, which
stmatrix does 8 x 8 at a time, so that C is written by rows as before. With few rows of C, 16 are enough for a
tile that has 128 of its columns.

Two warpgroups that multiply part a tile along the rows of wgmma, or along its columns (`part_columns`): 192
rows are 3 x 64, and each takes 96 columns of them. A thread then keeps 144 sums, where three warpgroups would
leave it 128 registers in all.

A pair of blocks, a cluster, shares the rows or the columns that both need: each copies half of them for both,
see `cluster`. That counts where rows of A and B are no multiples of 32 bytes, and K tiles cost more sectors
of L2 than they have bytes: of 3000 x 3000.

In the emitted CUDA look for the columns in the name of wgmma, and for stmatrix with `.trans`.
"""

from __future__ import annotations

from tir_schedules.ladders.hgemm import cluster, hopper, specialization, tile_costs
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


def choose(gemm: HalfGemm) -> str | Config:
    """The form that is estimated to be the fastest; the first configuration, which is refused, where a gemm
    can have no form."""
    return "128x256" if refuses(gemm, CONFIGS["128x256"]) else tile_costs.fastest(gemm) or "128x256"


RUNG = cluster.RUNG.followed_by(
    "tile_shapes",
    "tiles of any multiple of 16 rows or columns, A and B swapped where that fills the SMs better",
    schedule,
    configs=CONFIGS,
    choose=choose,
    launch=launch,
    refuses=refuses,
    prim_func=prim_func,
)

if __name__ == "__main__":
    run_as_script(RUNG)
