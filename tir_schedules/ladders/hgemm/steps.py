"""Schedule steps of the HGEMM ladder: tiles, copies to shared memory, fragments, tensor cores, pipelines.

A block of a kernel has 32 lanes on threadIdx.x and its warps on threadIdx.y. All shared memory is dynamic,
because pipelines need more than the 48 KiB that static shared memory can have.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Sequence

from tir_schedules.errors import BadInput
from tir_schedules.ladders.known import package_rungs
from tir_schedules.ladders.problems import Problem, offered
from tir_schedules.model.launch import Launch, ceil_div
from tir_schedules.tir.schedule import Block, Loop, Schedule, name_of, pipeline, stage_operands, unroll
from tir_schedules.workloads import ACCUMULATORS
from tir_schedules.workloads.half_gemm import VECTOR, HalfGemm

SHARED = "shared.dyn"
FRAGMENT = 16  # edge of the tiles that a warp multiplies at once
WARP = 32
HALF = 2  # bytes
ELEMENT = {"float16": 2, "float32": 4}  # bytes
ACCUMULATOR_REGISTERS = 128  # at most; the others are for fragments and addresses
RUNGS_TAKE = {
    False: "wmma and mma rungs take A and B in float16 and leave C in the format of the sums",
    True: "wmma and mma rungs take A and B in float16",
}
SHAPES = (
    "any; 16-byte copies where K % 8 == 0 and N % 8 == 0, else one element at a time; C through shared"
    " memory unless tiles divide it"
)
SHAPES_ASYNC = f"{SHAPES}; copies of single elements are not asynchronous"
SHAPES_STAGED = (
    "any; 16-byte accesses where K % 8 == 0 and N % 8 == 0, else one element at a time, and copies that"
    " are not asynchronous"
)


@dataclass(frozen=True)
class Tiling:
    """Block tile bm x bn, bk of its tiles along K; a warp computes wm x wn of it."""

    bm: int = 256
    bn: int = 128
    bk: int = 32
    wm: int = 64
    wn: int = 64

    rounds = False  # whether C may be in another format than the sums

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return (self.bm // self.wm) * (self.bn // self.wn)

    @property
    def accumulators(self) -> tuple[str, ...]:
        """Formats of the accumulators for which a warp tile has room in the 255 registers of a thread."""
        elements = self.wm * self.wn // WARP
        return tuple(name for name in ACCUMULATORS if elements * ELEMENT[name] // 4 <= ACCUMULATOR_REGISTERS)


@dataclass(frozen=True)
class Padded(Tiling):
    """padding: halves after each row of the tiles of A and B; a multiple of 8 for 16-byte accesses."""

    padding: int = 8


@dataclass(frozen=True)
class Pipelined(Padded):
    """stages: tiles of A and of B in shared memory at a time, from `wmma_pipelined` on at least 3."""

    stages: int = 3


@dataclass(frozen=True)
class Staged(Pipelined):
    """result_padding: elements after each row of C in shared memory."""

    result_padding: int = 8


@dataclass(frozen=True)
class Tiles:
    """Blocks and loops of a tiled GEMM.

    copies: of A and B to shared memory; empty where fragments come from global memory. result: the copy of C
    from shared memory, None where warps write C to global memory themselves. compute: the block that
    multiplies fragments, around the block `fragment` that multiplies elements. block_i, block_j, warp,
    k_tile, k_step: loops over rows and columns of blocks, warps, tiles along K, fragments along K.
    """

    copies: tuple[Block, ...]
    result: Block | None
    compute: Block
    fragment: Block
    block_i: Loop
    block_j: Loop
    warp: Loop
    k_tile: Loop
    k_step: Loop


@dataclass(frozen=True)
class Fragments:
    """Blocks of the fragments in registers, and the module with the intrinsics that are to take their place.

    zero: what clears the accumulators. loads: of A and of B. store: of C.
    """

    intrinsics: ModuleType
    zero: Block
    loads: tuple[Block, Block]
    store: Block


def launch_columns_by_rows(gemm: HalfGemm, tiling: Tiling, shared: int) -> Launch:
    """A block for each tile of C, blockIdx.x along the columns. shared: bytes of dynamic shared memory."""
    check_kind(gemm, tiling)
    grid = ceil_div(gemm.n, tiling.bn), ceil_div(gemm.m, tiling.bm), 1
    return Launch(grid, (WARP, tiling.warps, 1), shared)


def launch_pipelined(gemm: HalfGemm, config: Pipelined) -> Launch:
    """The same, with room for its stages."""
    return launch_columns_by_rows(gemm, config, shared_bytes(gemm, config, config.padding, config.stages))


def launch_swizzled(gemm: HalfGemm, tiling: Tiling, width: int, shared: int) -> Launch:
    """A block for each tile of C, under a threadblock swizzle: blockIdx.x along the `width` columns of blocks
    that the grid walks together, blockIdx.z along the groups of so many columns."""
    check_kind(gemm, tiling)
    grid = width, ceil_div(gemm.m, tiling.bm), ceil_div(ceil_div(gemm.n, tiling.bn), width)
    return Launch(grid, (WARP, tiling.warps, 1), shared)


def swizzle_width(gemm: HalfGemm, tiling: Tiling, most: int) -> int:
    """Columns of blocks in a group of a threadblock swizzle: a divisor of `most` that divides the number of
    all columns, so that no group has blocks with nothing to do."""
    return math.gcd(ceil_div(gemm.n, tiling.bn), most)


def shared_bytes(
    gemm: HalfGemm,
    tiling: Tiling,
    padding: int = 0,
    stages: int = 1,
    staged: bool = False,
    result_padding: int = 0,
) -> int:
    """Bytes of shared memory: `stages` tiles of A and B. When they are used up, sums take their place, if C
    is `staged`, in another format or reached beyond by block tiles.

    padding, result_padding: elements that pad the rows of A and B, and of C.
    """
    rows_of_b, row_of_b = (tiling.bn, tiling.bk) if gemm.transposed else (tiling.bk, tiling.bn)
    operands = stages * HALF * (tiling.bm * (tiling.bk + padding) + rows_of_b * (row_of_b + padding))
    result = tiling.bm * (tiling.bn + result_padding) * ELEMENT[gemm.accumulate]
    staged = staged or gemm.rounds or reaches_beyond(gemm, tiling)
    return max(operands, result) if staged else operands


def staged_bytes(gemm: HalfGemm, config: Staged) -> int:
    """The same where C is staged, whatever its shape."""
    return shared_bytes(gemm, config, config.padding, config.stages, True, config.result_padding)


def check_kind(gemm: HalfGemm, tiling: Tiling) -> None:
    """BadInput for formats that the rungs before Hopper's instructions do not take, with those that do, and
    when a warp's accumulators do not fit into registers."""
    if gemm.dtype != "float16" or (gemm.rounds and not tiling.rounds):
        asked = Problem("hgemm", gemm.shape, gemm.dtype, gemm.layout, gemm.accumulate, gemm.output)
        others = [rung.base_id for rung in package_rungs("hgemm") if offered(rung, asked)]
        raise BadInput(
            f"{RUNGS_TAKE[tiling.rounds]}; {gemm.dtype} to {gemm.result} by sums in {gemm.accumulate} is for"
            f" {', '.join(others) or 'other rungs'}"
        )
    if gemm.accumulate not in tiling.accumulators:
        fitting = " or ".join(tiling.accumulators)
        raise BadInput(
            f"warp tiles of {tiling.wm}x{tiling.wn} do not fit into registers as {gemm.accumulate}; use"
            f" --accumulate {fitting}"
        )


def is_whole(gemm: HalfGemm, tiling: Tiling) -> bool:
    """Whether block tiles divide the matrices, so that nothing needs a guard."""
    return not reaches_beyond(gemm, tiling) and gemm.k % tiling.bk == 0


def reaches_beyond(gemm: HalfGemm, tiling: Tiling) -> bool:
    """Whether block tiles reach beyond C, which then goes through shared memory, whatever K is."""
    return gemm.m % tiling.bm != 0 or gemm.n % tiling.bn != 0


def stage_ragged_result(sch: Schedule) -> Block | None:
    """A C beyond which tiles reach, or whose sums are in another format, written to shared memory: the block
    that copies it from there, leaving out what lies beyond. None for another C, which warps write to global
    memory themselves."""
    block = sch.get_sblock("C")
    copies = sch.get_consumers(block)  # one where C was padded, or is rounded
    if not copies:
        return None
    sch.set_scope(block, 0, SHARED)
    rounding = sch.get_consumers(copies[0])
    if rounding:
        sch.compute_inline(copies[0])
    return [*copies, *rounding][-1]


def stage_result(sch: Schedule) -> Block:
    """C written to shared memory, whether tiles divide it or not: the block that copies it from there."""
    return stage_ragged_result(sch) or sch.cache_write(sch.get_sblock("C"), 0, SHARED)


def split_into_tiles(sch: Schedule, tiling: Tiling, copied: bool = True, staged: bool = False) -> Tiles:
    """Tiles of blocks, of warps, bound to threadIdx.y, and of fragments; A, B and C in blocks of their own.

    Ragged shapes are padded to whole tiles. copied: False for whole tiles whose fragments are loaded from
    global memory. staged: C goes through shared memory; else it does so only where tiles reach beyond it.
    """
    fragment, tile = sch.get_sblock("C"), (tiling.bm, tiling.bn, tiling.bk)
    copies = stage_operands(sch, fragment, tile, SHARED, copied)
    result = stage_result(sch) if staged else stage_ragged_result(sch)
    i, j, k = sch.get_loops(fragment)
    warps_i, warps_j = tiling.bm // tiling.wm, tiling.bn // tiling.wn
    block_i, warp_i, i, inner_i = sch.split(i, [None, warps_i, tiling.wm // FRAGMENT, FRAGMENT])
    block_j, warp_j, j, inner_j = sch.split(j, [None, warps_j, tiling.wn // FRAGMENT, FRAGMENT])
    k_tile, k_step, inner_k = sch.split(k, [None, tiling.bk // FRAGMENT, FRAGMENT])
    sch.reorder(block_i, block_j, warp_i, warp_j, k_tile, k_step, i, j, inner_i, inner_j, inner_k)
    compute = sch.blockize(inner_i)
    warp = sch.fuse(warp_i, warp_j)
    sch.bind(warp, "threadIdx.y")
    return Tiles(copies, result, compute, fragment, block_i, block_j, warp, k_tile, k_step)


def bind_blocks(sch: Schedule, tiles: Tiles) -> None:
    """blockIdx.x along the columns of C, blockIdx.y along the rows."""
    sch.bind(tiles.block_i, "blockIdx.y")
    sch.bind(tiles.block_j, "blockIdx.x")


def swizzle_blocks(sch: Schedule, tiles: Tiles, width: int) -> Tiles:
    """The same under a threadblock swizzle: blockIdx.z along groups of `width` columns of blocks, a divisor
    of all, blockIdx.x along those of a group. Returns the tiles with that for block_j."""
    sch.serpentine_grid()
    group, block_j = sch.split(tiles.block_j, [None, width])
    sch.reorder(group, tiles.block_i, block_j)
    sch.bind(group, "blockIdx.z")
    tiles = replace(tiles, block_j=block_j)
    bind_blocks(sch, tiles)
    return tiles


def multiply_tiles(
    sch: Schedule, gemm: HalfGemm, tiling: Tiling, tiles: Tiles, intrinsics: str = "wmma"
) -> tuple[tuple[Block, Block], Block]:
    """Tiles whose blocks are bound: copies to shared memory, fragments in registers, and tensor cores.

    intrinsics: "wmma" or "mma". Returns the blocks that load fragments of A and of B, and the one that stores
    those of C.
    """
    share_copies(sch, gemm, tiling, tiles)
    fragments = hold_fragments(sch, gemm, tiles, intrinsics)
    share_result(sch, gemm, tiling, tiles)
    loads = load_fragments(sch, gemm, fragments, SHARED if tiles.copies else "global")
    multiply_fragments(sch, gemm, tiles, fragments)
    store = store_fragments(sch, gemm, fragments, SHARED if tiles.result else "global")
    sch.keep_buffers_apart()
    return loads, store


def share_copies(sch: Schedule, gemm: HalfGemm, tiling: Tiling, tiles: Tiles) -> None:
    """All threads copy the tiles of A and B at the head of each iteration of the loop over K, 16 bytes at a
    time where rows allow."""
    for copy, columns in zip(tiles.copies, (tiling.bk, tiling.bk if gemm.transposed else tiling.bn)):
        sch.compute_at(copy, tiles.k_tile)
        copy_cooperatively(sch, copy, tiling, columns, VECTOR if gemm.aligned else 1)


def share_result(sch: Schedule, gemm: HalfGemm, tiling: Tiling, tiles: Tiles) -> None:
    """All threads copy C from shared to global memory at the end of the block's work, if it is there, 16
    bytes of sums at a time where rows allow."""
    result = tiles.result
    if result is None:
        return
    sch.reverse_compute_at(result, tiles.block_j, preserve_unit_loops=True)
    row, column = sch.get_loops(result)[-2:]  # as long as the tile, or as C where it is smaller
    rows, row = sch.split(row, [None, tiling.bm])
    columns, column = sch.split(column, [None, tiling.bn])
    sch.reorder(rows, columns, row, column)
    copy_cooperatively(sch, result, tiling, tiling.bn, 16 // ELEMENT[gemm.accumulate] if gemm.aligned else 1)


def copy_cooperatively(sch: Schedule, copy: Block, tiling: Tiling, columns: int, width: int) -> None:
    """The two innermost loops of a copy, over rows and `columns`: every warp has rows of its own, its lanes
    neighbouring pieces of `width` elements of one row or of several neighbouring ones."""
    across = min(WARP, columns // width)  # lanes along a row
    row, column = sch.get_loops(copy)[-2:]
    warp, row, lane_row = sch.split(row, [tiling.warps, None, WARP // across])
    column, lane_column, *vector = sch.split(column, [None, across, *([width] if width > 1 else [])])
    sch.reorder(warp, row, column, lane_row, lane_column, *vector)
    sch.bind(warp, "threadIdx.y")
    sch.bind(sch.fuse(lane_row, lane_column), "threadIdx.x")
    for loop in vector:
        sch.vectorize(loop)


def hold_fragments(sch: Schedule, gemm: HalfGemm, tiles: Tiles, cores: str) -> Fragments:
    """Fragments in registers: of A and B for a k step, of C, zero before the first tile, for all of K.

    cores: the module of `tir_schedules.tir.intrinsics` whose instructions are used, "wmma" or "mma".
    """
    intrinsics = importlib.import_module(f"tir_schedules.tir.intrinsics.{cores}")
    load_a, load_b = (
        sch.cache_read(tiles.compute, operand, intrinsics.scope(name, gemm.transposed))
        for operand, name in enumerate("ab")
    )
    for load in (load_a, load_b):
        sch.compute_at(load, tiles.k_step)
    store = sch.cache_write(tiles.compute, 0, intrinsics.scope("c", gemm.transposed))
    sch.reverse_compute_at(store, tiles.warp)
    zero = sch.decompose_reduction(tiles.compute, tiles.k_tile)
    return Fragments(intrinsics, zero, (load_a, load_b), store)


def load_fragments(sch: Schedule, gemm: HalfGemm, fragments: Fragments, source: str) -> tuple[Block, Block]:
    """Fragments of A and of B loaded by intrinsics from memory of scope `source`. Returns the blocks around
    these."""
    load, (a, b) = fragments.intrinsics.load, fragments.loads
    return (
        tensorize_fragments(sch, a, load("a", source, False)),
        tensorize_fragments(sch, b, load("b", source, gemm.transposed)),
    )


def multiply_fragments(sch: Schedule, gemm: HalfGemm, tiles: Tiles, fragments: Fragments) -> None:
    """Fragments cleared and multiplied by intrinsics."""
    zero, compute = fragments.zero, tiles.compute
    unroll(sch, sch.get_loops(zero)[-2:])
    fill, mma = fragments.intrinsics.fill(gemm.accumulate), fragments.intrinsics.mma
    sch.tensorize(sch.get_loops(sch.get_child_blocks(zero)[0])[-2], fill)
    unroll(sch, sch.get_loops(compute)[-2:])
    sch.tensorize(sch.get_loops(tiles.fragment)[-3], mma(gemm.accumulate, gemm.transposed))


def store_fragments(sch: Schedule, gemm: HalfGemm, fragments: Fragments, target: str) -> Block:
    """Fragments of C stored by intrinsics to memory of scope `target`. Returns the block around these."""
    return tensorize_fragments(sch, fragments.store, fragments.intrinsics.store(gemm.accumulate, target))


def tensorize_fragments(sch: Schedule, copy: Block, intrinsic: str) -> Block:
    """A copy to or from fragments, one intrinsic per fragment. Returns the block that takes its place, around
    the intrinsic."""
    name = name_of(sch, copy)
    row, column = sch.get_loops(copy)[-2:]
    row, inner_row = sch.split(row, [None, FRAGMENT])
    column, inner_column = sch.split(column, [None, FRAGMENT])
    sch.reorder(row, column, inner_row, inner_column)
    unroll(sch, (row, column))
    sch.tensorize(inner_row, intrinsic)
    return sch.get_sblock(f"{name}_o")


def pad_rows(sch: Schedule, blocks: Sequence[Block], padding: int) -> None:
    """Rows of tiles in shared memory that blocks write `padding` elements longer than a multiple of 32."""
    for block in blocks if padding else ():
        sch.storage_align(block, 0, axis=-2, factor=32, offset=padding)


def pipeline_fragments(sch: Schedule, tiles: Tiles, stages: int) -> None:
    """Fragments double buffered in registers, within a pipeline of `stages` tiles in shared memory."""
    sch.unroll_drain()
    load_a, load_b, compute = 0, 0, 1
    pipeline(sch, tiles.k_step, stage=[load_a, load_b, compute], order=[0, 1, 2])
    # In the loop over tiles this makes three statements of one: the first loads, the mma of all k steps but
    # the last, those of the last.
    copy_a, copy_b, loads, compute, last = 0, 0, stages - 2, stages - 1, stages - 1
    stage = [copy_a, copy_b, loads, compute, last]
    pipeline(sch, tiles.k_tile, stage, order=[0, 1, 3, 2, 4], asynchronous=[0])
    sch.async_copies()
    sch.async_copies_before_barriers()
    sch.move_copies_behind_compute()
    sch.sink_waits()


def own_loops(sch: Schedule, tiles: Tiles, copy: Block) -> list[Loop]:
    """The loops of a copy within the loop over tiles."""
    return sch.get_loops(copy)[len(sch.get_loops(tiles.compute)) - 3 :]
