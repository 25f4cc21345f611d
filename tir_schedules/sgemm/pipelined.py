"""Double buffering through registers, one barrier per tile.

There are two tiles of A and of B in shared memory, and two sets of fragments in registers. A turn of the loop over tiles reads the
next tile from global memory into registers, multiplies the present one, stores the registers into the other place of shared memory,
and passes one barrier: the reads have the whole multiplication to arrive. Within it, fragments of the next k are read while
those of this one are multiplied, the first ones of the next tile with the last products of this.

Two loops are pipelined, one in the other. TVM's ManifestSharedMemoryLocalStage splits each copy at the registers, and
InjectSoftwarePipeline orders the parts. Look for the reads of global memory at the head of the loop, the stores to shared memory
behind the products, and a single `__syncthreads()`: see passes/one_barrier.py. Rows of the tile of A are padded, so that the
four stores of a float4, which go to four rows, meet no bank twice. The thread tile grows to 8x16, the largest that registers hold: 6 reads
of shared memory serve 128 products, where 4 served 64. A thread's products go down one column of C after the other, the
order of 24 that measured best on an H200.
"""
from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.pipelining import pipeline
from tir_schedules.rung import Rung
from tir_schedules.sgemm import lane_quads, vectorized
from tir_schedules.sgemm.warp_tiles import WARP_SIZE, finish, launch, split_up
from tir_schedules.workloads.gemm import Gemm

ORDER = ("sub_j", "inner_j", "sub_i", "inner_i")


@dataclass(frozen=True)
class Config(lane_quads.Config):
    """A lane has 8x16 elements of C. skew: floats that pad the rows of the transposed tile of A."""

    wm: int = 64
    wniter: int = 4
    skew: int = 4


def schedule(sch, gemm: Gemm, config: Config) -> None:
    parts = split_up(sch, config, quads=True, order=ORDER)
    vectorized.share_vectors(sch, gemm, parts.copies, parts.k_tile, config.threads)
    sch.storage_align(parts.copies[0], 0, axis=-2, factor=WARP_SIZE, offset=config.skew)
    for copy in parts.copies:
        sch.annotate(copy, "tirx.manifest_shared_memory_local_stage", True)
        sch.annotate(copy, "double_buffer_scope", 0)
    sch.annotate(parts.k_inner, "pragma_unroll", config.bk)
    finish(sch, gemm, parts)

    read_a, read_b, products = 0, 0, 1
    pipeline(sch, parts.k_inner, stage=[read_a, read_b, products], order=[0, 1, 2])
    # In the loop over tiles this makes three statements of one: first fragments, products of all k but the last, those of the last.
    load_a, store_a, load_b, store_b, first, products, last = 0, 0, 0, 0, 0, 1, 1
    pipeline(sch, parts.k_tile, [load_a, store_a, load_b, store_b, first, products, last], order=[0, 3, 1, 4, 5, 2, 6])


RUNG = Rung(
    family="sgemm",
    name="pipelined",
    summary="the next tile comes through registers while one is multiplied; one barrier per tile, fragments double buffered",
    article="beyond 000",
    config=Config(),
    configs={"32x64": Config(wm=32, wniter=2)},
    shapes=vectorized.RUNG.shapes,
    schedule=schedule,
    launch=launch,
    passes=("one_barrier",),
)

if __name__ == "__main__":
    from tir_schedules.cli import script

    script(RUNG)
