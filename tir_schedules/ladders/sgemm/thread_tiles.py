"""Tiles of threads, for `thread_tile_1d`, `thread_tile_2d`, `vectorized` and `transposed`."""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.sgemm.steps import COLUMNS_ON_X, launch_rows_by_columns
from tir_schedules.model.launch import Launch
from tir_schedules.tir.schedule import Block, Loop, Schedule, bind
from tir_schedules.workloads.gemm import Gemm


@dataclass(frozen=True)
class ThreadTiling:
    """Block tile bm x bn, bk of its tiles along K; thread tile tm x tn."""

    bm: int = 128
    bn: int = 128
    bk: int = 32
    tm: int = 4
    tn: int = 4

    @property
    def threads_y(self) -> int:
        """Threads of a block along the rows of C."""
        return self.bm // self.tm

    @property
    def threads_x(self) -> int:
        """Threads of a block along the columns of C."""
        return self.bn // self.tn

    @property
    def both(self) -> list[tuple[str, int]]:
        """Thread axes and their extents, slowest first."""
        return [("threadIdx.y", self.threads_y), ("threadIdx.x", self.threads_x)]


def launch(gemm: Gemm, tiling: ThreadTiling) -> Launch:
    """A block for each tile of C, blockIdx.x along the rows; threads in two dimensions."""
    return launch_rows_by_columns(gemm, tiling.bm, tiling.bn, (tiling.threads_x, tiling.threads_y))


@dataclass(frozen=True)
class Loops:
    """Of a tiled GEMM. thread: the innermost that is bound. fmas: those of a thread's FMA within k_inner."""

    thread: Loop
    k_tile: Loop
    k_inner: Loop
    fmas: tuple[Loop, Loop]


def split_up(sch: Schedule, block: Block, tiling: ThreadTiling) -> Loops:
    """Tiles of blocks and threads on blockIdx and threadIdx, threadIdx.x along the columns."""
    i, j, k = sch.get_loops(block)
    block_i, thread_i, inner_i = sch.split(i, [None, tiling.threads_y, tiling.tm])
    block_j, thread_j, inner_j = sch.split(j, [None, tiling.threads_x, tiling.tn])
    k_tile, k_inner = sch.split(k, [None, tiling.bk])
    sch.reorder(block_i, block_j, thread_i, thread_j, k_tile, k_inner, inner_i, inner_j)
    bind(sch, (block_i, block_j, thread_i, thread_j), COLUMNS_ON_X)
    return Loops(thread_j, k_tile, k_inner, (inner_i, inner_j))
