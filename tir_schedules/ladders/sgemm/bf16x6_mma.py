"""Six products of bfloat16 parts by mma, fragments split in registers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd
from typing import ClassVar

from tir_schedules.ladders import split_k_sum
from tir_schedules.ladders.sgemm import split_k
from tir_schedules.ladders.sgemm.edges import part_last_tile, wrap_edges
from tir_schedules.ladders.sgemm.steps import share_rows, vector_width
from tir_schedules.model.launch import Launch, ceil_div, check_parts
from tir_schedules.model.rung import Around, Rung, run_as_script
from tir_schedules.tir.schedule import Block, PrimFunc, Schedule, pipeline, unroll
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.split_gemm import SplitGemm

A_PADDING, B_PADDING = 8, 4
"""Floats after rows of the tiles of A and B."""


@dataclass(frozen=True)
class Config:
    """Block tile bm x bn, bk of its tiles along K, after which sums are promoted; a warp computes wm x wn.
    stages: tiles of A and B in shared memory. splits: parts of K, where K has so many tiles; 0 for as many as
    the shape asks for."""

    bm: int = 64
    bn: int = 64
    bk: int = 32
    wm: int = 32
    wn: int = 32
    stages: int = 3
    splits: int = 0

    products: ClassVar[str] = "bf16x6"
    asynchronous: ClassVar[int] = 1

    @property
    def warps(self) -> int:
        """Of a block."""
        return self.bm // self.wm * (self.bn // self.wn)

    @property
    def a_row(self) -> int:
        """Floats of a row of a tile of A in shared memory."""
        return self.bk + A_PADDING

    @property
    def near(self) -> int:
        """Sums of a lane that are neighbours in a row of C."""
        return 8 if self.wn % 32 == 0 else 4 if self.wn % 16 == 0 else 2

    @property
    def b_row(self) -> int:
        return self.bn + B_PADDING


def launch(gemm: Gemm, config: Config) -> Launch:
    parts = split_k.parts_of(gemm, config)
    check_parts(f"sgemm/bf16x6_mma for {gemm}", parts, gemm.m, split_k.pitch_of(gemm, parts))
    floats = config.stages * (config.bm * config.a_row + config.bk * config.b_row)
    grid = ceil_div(gemm.n, config.bn), ceil_div(gemm.m, config.bm), parts
    return Launch(grid, (32, config.warps, 1), 4 * floats, parts=parts)


def schedule(sch: Schedule, gemm: Gemm, config: Config) -> None:
    from tir_schedules.tir.intrinsics import split_fragments

    copies = sch.get_sblock("A_pad"), sch.get_sblock("B_pad")
    sums, result = sch.get_sblock("C"), sch.get_sblock("C_pad")
    for copy in copies:
        sch.set_scope(copy, 0, split_fragments.SHARED)
    sch.set_scope(sums, 0, split_fragments.SUMS)

    sch.set_warp_size(32)
    part, i, j, k = sch.get_loops(sums)
    block_i, warp_i, i = sch.split(i, [None, config.bm // config.wm, config.wm])
    block_j, warp_j, j = sch.split(j, [None, config.bn // config.wn, config.wn])
    k_tile, k = sch.split(k, [None, config.bk])
    sch.reorder(part, block_i, block_j, warp_i, warp_j, k_tile, i, j, k)
    warp = sch.fuse(warp_i, warp_j)
    for loop, axis in ((part, "z"), (block_i, "y"), (block_j, "x")):
        sch.bind(loop, f"blockIdx.{axis}")
    sch.bind(warp, "threadIdx.y")

    threads = [("threadIdx.y", config.warps), ("threadIdx.x", 32)]
    for copy, row in zip(copies, (gemm.k, gemm.n)):
        share_rows(sch, copy, k_tile, threads, vector_width(row))
    wrap_edges(sch, gemm, copies, (config.bm, config.bn))
    for copy, (factor, padding) in zip(copies, ((16, A_PADDING), (8, B_PADDING))):
        sch.storage_align(copy, 0, axis=-2, factor=factor, offset=padding)

    sch.reverse_compute_at(result, warp, preserve_unit_loops=True)
    sch.transform_layout(
        sums, ("write", 0), split_fragments.sums_map(config.wm, config.wn), assume_injective_transform=True
    )
    hold(sch, result, config, store_width(gemm, config))
    zero = sch.decompose_reduction(sums, k_tile)
    hold(sch, zero, config, gcd(config.near, 4))
    sch.tensorize(
        sch.get_loops(sums)[-3],
        split_fragments.multiply(config.wm, config.wn, config.bk, config.a_row, config.b_row),
    )
    sch.unroll_drain()
    pipeline(sch, k_tile, stage=[0, 0, config.stages - 1], order=[0, 1, 2], asynchronous=[0])
    sch.async_copies()
    sch.async_copies_before_barriers()
    sch.move_copies_behind_waits()
    part_last_tile(sch, gemm, k_tile, config.bk)
    sch.overlap_launches()


def hold(sch: Schedule, block: Block, config: Config, width: int) -> None:
    """The two innermost loops of a block, over a warp's rows and columns: each lane takes what it has of the
    sums, `width` neighbours at a time."""
    (row, column), near = sch.get_loops(block)[-2:], config.near
    eight, lane_row = sch.split(row, [config.wm // 8, 8])
    group, lane_column, vector, pair = sch.split(
        column, [config.wn // (4 * near), 4, near // width, width]
    )
    sch.reorder(lane_row, lane_column, eight, group, vector, pair)
    sch.bind(sch.fuse(lane_row, lane_column), "threadIdx.x")
    unroll(sch, (eight, group, vector))
    if width > 1:
        sch.vectorize(pair)


def prim_func(gemm: Gemm, config: Config, name: str) -> PrimFunc:
    """As of `split_k`; a C smaller than a tile has guards in place of shorter loops, because each warp writes
    a whole tile."""
    smaller = gemm.m < config.bm or gemm.n < config.bn
    return split_k.partial_products_of(gemm, config, name, store_width(gemm, config) if smaller else 0)


def store_width(gemm: Gemm, config: Config) -> int:
    """Neighbours of C that a lane writes at once."""
    return gcd(config.near, vector_width(split_k.pitch_of(gemm, split_k.parts_of(gemm, config))))


CONFIGS = {
    "64x64": Config(splits=1),
}

RUNG = Rung(
    family="sgemm",
    name="bf16x6_mma",
    summary="six products of bfloat16 parts by mma, fragments split in registers, K split over blocks",
    config=CONFIGS["64x64"],
    configs=CONFIGS,
    schedule=schedule,
    launch=launch,
    prim_func=prim_func,
    around=Around(then=split_k_sum.rung("sgemm")),
    min_arch=80,
)

if __name__ == "__main__":
    run_as_script(RUNG)
