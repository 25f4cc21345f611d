"""Double buffering through registers, one barrier per tile.

There are two tiles of A and of B in shared memory (two stages), one more tile of each in registers, and two
sets of fragments. An iteration of the loop over tiles multiplies one tile, stores the next from registers
into the other stage of shared memory, reads the one after it from global memory into these registers, and
passes one barrier. These reads can arrive during the whole next multiplication. Within a multiplication, the
fragments of the next k are read while those of this k are multiplied. The first fragments of the next tile
are read with the last FMA of this tile.

Two loops are pipelined, one inside the other. TVM's ManifestSharedMemoryLocalStage splits each copy in two:
global memory to registers, and registers to shared memory. InjectSoftwarePipeline orders these parts, and
passes/barrier_elimination.py leaves a single `__syncthreads()`. The place of the reads of global memory
matters. If they stand at the head of the loop, nvcc moves them down among the FMA to save registers. Here
they stand before the barrier. They cannot cross it, so they start early. On an H200 that is worth 3 %.

A float4 of A is stored to four rows, by four stores. Rows of the tile of A are padded, so that these stores
have no bank conflicts. The thread tile grows to 8x16, the largest that registers hold. Now 6 reads of shared
memory serve 128 FMA; before, 4 reads served 64. The FMA of a thread go down one column of its tile after the
other. No model that we tried predicts which order is the fastest, so 24 were timed. This was the fastest on
an H200.

Measured on an H200 at 4096: 52.8 TFLOPS, 1.23 times the 43.0 of `lane_quads`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.sgemm import lane_quads
from tir_schedules.ladders.sgemm.edges import part_last_tile, shift_edges, wrap_edges
from tir_schedules.ladders.sgemm.steps import share_vectors
from tir_schedules.ladders.sgemm.warp_tiles import (
    Parts,
    Staged,
    WarpTiling,
    double_buffer_fragments,
    finish,
    pad_rows,
    split_up,
)
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Schedule, pipeline
from tir_schedules.workloads.gemm import Gemm

ORDER = ("sub_j", "inner_j", "inner_i", "sub_i")


@dataclass(frozen=True)
class Config(lane_quads.Config):
    """A lane has 8x16 elements of C. padding: floats that pad the rows of the transposed tile of A."""

    wm: int = 64
    wniter: int = 4
    padding: int = 4


def tiles_bytes(config: WarpTiling, padding: int) -> int:
    """Bytes of shared memory for two tiles of A, whose rows are so many floats longer, and two of B."""
    return 2 * 4 * config.bk * (config.bm + padding + config.bn)


def schedule(sch: Schedule, gemm: Gemm, config: Config) -> None:
    double_buffered(sch, gemm, config, config.padding)


def double_buffered(
    sch: Schedule,
    gemm: Gemm,
    config: WarpTiling,
    padding: int,
    staged: Staged | None = None,
    in_rows: bool = False,
    k_multiple: int = 0,
) -> Parts:
    """The whole schedule; returns the blocks and loops of the multiplication. padding: as of Config. staged,
    k_multiple: see `split_up`. in_rows: C goes through shared memory, see `write_in_rows`."""
    parts = split_up(sch, config, order=ORDER, staged=staged, k_multiple=k_multiple)
    share_vectors(sch, gemm, parts.copies, parts.k_tile, [("threadIdx.x", config.threads)])
    wrap_edges(sch, gemm, parts.copies, (config.bm, config.bn))
    pad_rows(sch, config, parts, padding)
    for copy in parts.copies:
        sch.annotate(copy, "tirx.manifest_shared_memory_local_stage", True)
        sch.annotate(copy, "double_buffer_scope", 0)
    finish(sch, gemm, parts, config, in_rows)
    if gemm.misaligned:
        result = parts.write_back if in_rows else parts.result
        shift_edges(sch, gemm, parts.copies, result, (config.bm, config.bn))

    double_buffer_fragments(sch, parts, config)
    read_a, store_a, read_b, store_b, first, compute, last = 0, 1, 0, 1, 1, 2, 2
    stage = [read_a, store_a, read_b, store_b, first, compute, last]
    pipeline(sch, parts.k_tile, stage, order=[3, 1, 4, 2, 5, 0, 6])
    sch.eliminate_barriers()
    if not k_multiple:
        part_last_tile(sch, gemm, parts.k_tile, config.bk)
    return parts


RUNG = lane_quads.RUNG.followed_by(
    "pipelined",
    "the next tile comes through registers while one is multiplied; one barrier per tile, fragments"
    " double buffered",
    schedule,
    config=Config(),
    configs={"32x64": Config(wm=32, wniter=2)},
)

if __name__ == "__main__":
    run_as_script(RUNG)
