"""C goes through shared memory: stmatrix, and boxes that the copy engine writes.

A thread holds two neighbours of every 8 columns of C. Written from registers, a quad of lanes writes 16 bytes
of a row, half a sector of L2, with an address for each. Here `stmatrix` puts 16x16 elements of a warp where
they belong, in rows of 128 bytes under the swizzle, without bank conflicts; C is in its own format by then.
One thread of the warpgroup then has the copy engine write a box of 64 rows, in whole lines, and while it does
the warpgroup puts the next box into shared memory.

No thread waits until a box is written. Only what is to be overwritten must have been read: there are places
for a few boxes, which take turns, and the thread that starts a store waits for the reads of the place that is
next. It also waits for them before the block ends, because another block may take its shared memory.

The copy engine reads shared memory past the caches of threads: a fence stands between, and a barrier of the
warpgroup alone (named barrier 1, 2, ...), for others are in other tiles or K tiles.

Places for a whole tile of 128x256 take 64 KiB and leave room for three stages. Where each SM has one tile, as
at 2048, nothing hides the wait for its first K tiles, and a fourth stage for half the places is 3 % faster
("128x256_4_stages"); with tiles before and behind it is 0.5 % slower. "64x128" and "64x64" are for small
matrices: one warpgroup multiplies, so that each SM has a tile, and eight stages hold half of 1024 terms.
"256x256" is for sums in float16. "192x192", by three warpgroups, is for matrices that it gives nearly all SMs
a tile of: 2048x2112x2048 has 121, and takes 27.3 us on an H200, where 144 tiles of 128x256 for 132 SMs took
44 and the next best tile 32.9. Which one a gemm takes is estimated in `tile_choice`.

Programs are no more than take the tiles in as many rounds: of 512 tiles 128 take four each, as 132 would in
four rounds, the last of them for 116. What the others would draw is left to these, and power is what limits
them. On an H200 3072 has 614 TFLOPS by 96 programs and 562 by 132, 4096 784 and 778, 8192 804 and 794 (fp32
sums, C in fp16).

Measured on an H200 at 4096 nt float16: 814 TFLOPS, 1.13 times the 720 of `persistent`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import hopper, persistent, specialization, tile_choice
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(specialization.Stored):
    """As Persistent."""

    stages: int = 3


def prim_func(gemm: HalfGemm, config: Config, name: str) -> PrimFunc:
    return hopper.tiled_gemm(gemm, config, name, boxes=True, stored=True)


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    tiles = specialization.specialize_warps(sch, gemm, config)
    specialization.walk_tiles(sch, gemm, config, tiles)
    specialization.store_boxes(sch, gemm, config, tiles)
    hopper.multiply(sch, gemm, config, tiles, "given")


CONFIGS = {
    "128x256": Config(),
    "128x256_4_stages": Config(stages=4, boxes=2, group=4),
    "256x256": Config(bm=256, boxes=2),
    "192x192": Config(bm=192, bn=192, consumers=3, stages=4, boxes=1),
    "128x192": Config(bn=192, stages=4, boxes=3),
    "128x128": Config(bn=128, stages=6, boxes=2),
    "64x128": Config(bm=64, bn=128, consumers=1, stages=8, boxes=2, group=2),
    "128x64": Config(bn=64, stages=8, boxes=1),
    "64x64": Config(bm=64, bn=64, consumers=1, stages=8, boxes=2),
}

RUNG = persistent.RUNG.followed_by(
    "tma_store",
    "C through shared memory by stmatrix, written as boxes by the copy engine under the next tile",
    schedule,
    configs=CONFIGS,
    choose=tile_choice.chooser(CONFIGS, persistent.launch),
    shapes=hopper.SHAPES_STORED,
    prim_func=prim_func,
)

if __name__ == "__main__":
    run_as_script(RUNG)
