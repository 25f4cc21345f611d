"""C goes through shared memory: stmatrix, and boxes that TMA writes.

A thread holds two neighbours of every 8 columns of C. If C is written from registers, a quad of lanes writes
16 bytes of a row, half a sector of L2, with an address for each thread. Here `stmatrix` stores 16x16 elements
of a warp to shared memory, in rows of 128 bytes under the swizzle, without bank conflicts. These elements
already have the final format of C. Then one thread of the warpgroup starts a copy by TMA (the Tensor Memory
Accelerator), which writes a box of C, a part of 64 rows, in whole lines. Meanwhile the warpgroup puts the
next box into shared memory.

No thread waits until a box is written. But TMA must have read a place in shared memory before the place is
overwritten. There are places for a few boxes, which take turns. The thread that starts a store waits until
TMA has read the place that is filled next. It also waits before the block ends, because another block may get
the shared memory of this one.

TMA reads shared memory by the async proxy, which is another way than that of ordinary stores. So a fence is
needed after the stores. Then comes a barrier of only this warpgroup (named barrier 1, 2, ...), because other
warpgroups may be working on other tiles or K tiles.

Places for a whole tile of 128x256 take 64 KiB and leave room for three stages. If each SM has one tile, as at
2048, there is no other tile to hide the wait for the first K tiles. Then "128x256_4_stages" is faster: it has
a fourth stage, and half the places. With several tiles for each SM it is slower.

"64x128" and "64x64" are for small matrices. Only one warpgroup multiplies, so tiles are small enough that
each SM has one. Eight stages hold half of a K of 1024. "256x256" is for sums in float16. "192x192", by three
warpgroups, is for matrices whose tiles fill nearly all SMs once: 2048x2112x2048 has 121 of these tiles for
132 SMs. `tile_choice` estimates which configuration is the fastest.

On an H200 the fourth stage gains 3 % at 2048. With several tiles for each SM it costs 0.5 %. 2048x2112x2048
takes 27.3 us by "192x192". With 144 tiles of 128x256 it took 44 us, and with the next best tile 32.9.

A persistent block is called a program. The kernel starts as few programs as can finish in the smallest number
of rounds. For 512 tiles 128 programs take four each. 132 programs would also need four rounds, with 116 tiles
in the last. Idle SMs leave power to busy ones, and power limits the rate.

On an H200 96 programs have 614 TFLOPS at 3072, and 132 programs have 562. At 4096 the two rates are 784 and
778, at 8192 they are 804 and 794 (fp32 sums, C in fp16).

Measured on an H200 at 4096 nt float16: 823 TFLOPS, 1.13 times the 728 of `persistent`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import hopper, persistent, specialization, tile_choice
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(specialization.Stored):
    """Fields: those of specialization.Stored."""

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
    "C through shared memory by stmatrix, written as boxes by TMA while the next tile is multiplied",
    schedule,
    configs=CONFIGS,
    choose=tile_choice.chooser(CONFIGS, persistent.launch),
    shapes=hopper.SHAPES_STORED,
    prim_func=prim_func,
)

if __name__ == "__main__":
    run_as_script(RUNG)
