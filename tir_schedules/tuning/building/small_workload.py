"""What a candidate is verified on: a small workload that takes the same paths as the whole one."""

from __future__ import annotations

from dataclasses import replace
from math import gcd
from typing import cast

from tir_schedules.insight.metrics.predict import reduce_workload
from tir_schedules.ladders.hgemm import specialization
from tir_schedules.ladders.problems import SMALL_SHAPES
from tir_schedules.ladders.reduce import vectorized
from tir_schedules.ladders.reduce.vectorized import VECTOR, width
from tir_schedules.ladders.sgemm import split_k
from tir_schedules.model.launch import ceil_div
from tir_schedules.model.rung import Rung, Tiled
from tir_schedules.model.workload import Workload
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction


def small(rung: Rung, workload: Workload) -> tuple[Rung, Workload]:
    """A rung and its workload made small: of a GEMM only the workload, of a reduction the grid as well, and
    of a GEMM whose blocks compute tile after tile."""
    if rung.file:  # nothing is known of its tiles
        return rung, reduce_workload(workload, SMALL_SHAPES[rung.family][0])
    if isinstance(workload, Reduction):
        smaller, part = small_reduction(rung, workload)
        return smaller, cast(Workload, part)  # a reduce rung brings its own prim_func
    if isinstance(rung.config, specialization.Persistent):
        rung = few_programs(rung, cast(HalfGemm, workload))
    if isinstance(rung.config, split_k.Config):
        return few_parts(rung, cast(Gemm, workload))
    return rung, small_gemm(cast(Gemm, workload), rung.config)


def small_gemm(gemm: Gemm, config: Tiled) -> Gemm:
    """A GEMM on which a kernel takes the same paths, and little time on the CPU machine. A configuration may
    have `stages`, a `threadblock_swizzle` and a cluster as well.

    Along K there are enough tiles to use each stage of the buffer twice; they are a multiple of the stages
    where they were. There are two rows of block tiles, or of clusters of them, and columns of these as
    `few_columns` says. The last tile of each is as full as it was.
    """
    rows, columns = ceil_div(gemm.m, config.bm), ceil_div(gemm.n, config.bn)
    tall, wide = 2 * getattr(config, "cluster_m", 1), getattr(config, "cluster_n", 1)
    deep, stages = ceil_div(gemm.k, config.bk), getattr(config, "stages", 2)
    stripe = getattr(config, "threadblock_swizzle", 1)
    return replace(
        gemm,
        m=part(gemm.m, config.bm, min(rows, tall)),
        n=part(gemm.n, config.bn, min(columns, wide * few_columns(columns, stripe))),
        k=part(gemm.k, config.bk, min(deep, stages + 1 + (deep - 1) % stages)),
    )


def few_parts(rung: Rung, gemm: Gemm) -> tuple[Rung, Gemm]:
    """sgemm/split_k with two parts of K where it had more: the first as `small_gemm` makes a whole K, the
    last one tile shorter where it was shorter, and its last tile as full as it was."""
    config, each = rung.config, split_k.part_of_k(gemm, rung.config)
    parts = split_k.parts_of(gemm, config)
    reduced = small_gemm(replace(gemm, k=min(each, gemm.k)), config)
    if parts == 1:
        return replace(rung, config=replace(config, splits=1)), reduced
    last, first = ceil_div(gemm.k - (parts - 1) * each, config.bk), reduced.k // config.bk
    tiles = 2 * first - (last * config.bk < each)
    deep = part(gemm.k, config.bk, tiles)
    return replace(rung, config=replace(config, splits=2)), replace(reduced, k=deep)


def few_programs(rung: Rung, gemm: HalfGemm) -> Rung:
    """A rung with so few blocks that they compute tile after tile of a small GEMM where they did of the
    whole one."""
    config = rung.config
    tiles = config.blocks * specialization.tiles_of(gemm, config)
    if specialization.programs_of(gemm, config) == tiles:
        return rung
    return replace(rung, config=replace(config, programs=2 * config.blocks))


def small_reduction(rung: Rung, reduction: Reduction) -> tuple[Rung, Reduction]:
    """reduce/vectorized with so few blocks that at most half a million elements show all that a block does.

    These stay as they were: the width of loads in the first launch, and in the next, which comes from the
    number of blocks; whether there is a further launch; whether the loop is done more than once; how full its
    last turn is and, in that, the last block with something to do.
    """
    config, wide = rung.config, width(reduction)
    chunk, grid = config.block * wide, vectorized.launch(reduction, config).grid[0]
    turns, in_last_turn = ceil_div(reduction.n, grid * chunk), (reduction.n - 1) % (grid * chunk) + 1
    busy = ceil_div(in_last_turn, chunk)
    blocks = min(grid, 4 if grid % VECTOR == 0 else 3)
    loops = VECTOR // wide  # single elements take more turns for as many blocks
    whole_turns = min(turns, loops * config.unroll + (turns - 1) % config.unroll + 1) - 1
    rest = part(in_last_turn, chunk, blocks if busy == grid else min(busy, blocks - 1))
    return replace(rung, config=replace(config, most_blocks=blocks)), replace(
        reduction, n=whole_turns * blocks * chunk + rest
    )


def few_columns(columns: int, swizzle: int) -> int:
    """Columns of blocks after which a threadblock swizzle still does what it did.

    That takes three groups of columns, or one where there is one, two columns wide where they are wider.
    swizzle: most columns of a group, a power of two; 1 for a plain grid. See hgemm.steps.swizzle_width.
    """
    width = gcd(columns, swizzle)
    return min(columns, min(width, 2) * (1 if columns == width else 3))


def part(extent: int, tile: int, count: int) -> int:
    """The extent of `count` tiles, the last as full as it is in the whole extent."""
    return (count - 1) * tile + (extent - 1) % tile + 1
