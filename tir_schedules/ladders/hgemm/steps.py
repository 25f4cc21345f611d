"""Schedule steps of the HGEMM ladder: tiles, copies to shared memory, fragments, tensor cores, pipelines.

A block of a kernel has 32 lanes on threadIdx.x and its warps on threadIdx.y. All shared memory is dynamic,
for pipelines need more than the 48 KiB of static shared memory.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass

from tir_schedules.errors import BadInput
from tir_schedules.model.launch import Launch, ceil_div
from tir_schedules.tir.passes import UNROLL_STAGES
from tir_schedules.tir.schedule import Block, Loop, Schedule, name_of, pipeline, stage_operands, unroll
from tir_schedules.workloads import ACCUMULATORS
from tir_schedules.workloads.half_gemm import VECTOR, HalfGemm

SHARED = "shared.dyn"
FRAGMENT = 16  # edge of the tiles that a warp multiplies at once
WARP = 32
HALF = 2  # bytes
ELEMENT = {"float16": 2, "float32": 4}  # bytes
ACCUMULATOR_REGISTERS = 128  # at most; the others are for fragments and addresses
PASS_CONFIG = {"tirx.disable_storage_rewrite": True}
"""Options of TVM's lowering. Its storage rewriting would give C the place of A alone, not that of A and B."""


@dataclass(frozen=True)
class Tiling:
    """Block tile bm x bn, bk of its tiles along K; a warp computes wm x wn of it."""

    bm: int = 256
    bn: int = 128
    bk: int = 32
    wm: int = 64
    wn: int = 64

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
class Parts:
    """Blocks and loops of a tiled GEMM.

    compute: the block that multiplies fragments, around the block `fragment` that multiplies elements.
    copies: of A and B to shared memory. result: of C from shared to global memory, None when warps write C
    themselves.
    block, warp, k_tile, k_step: loops over blocks (the innermost), warps, tiles along K, fragments along K.
    """

    compute: Block
    fragment: Block
    copies: tuple[Block, ...]
    result: Block | None
    block: Loop
    warp: Loop
    k_tile: Loop
    k_step: Loop


def launch_columns_by_rows(gemm: HalfGemm, tiling: Tiling, shared: int) -> Launch:
    """A block for each tile of C, blockIdx.x along the columns. shared: bytes of dynamic shared memory."""
    check_registers(gemm, tiling)
    grid = ceil_div(gemm.n, tiling.bn), ceil_div(gemm.m, tiling.bm), 1
    return Launch(grid, (WARP, tiling.warps, 1), shared)


def launch_swizzled(gemm: HalfGemm, tiling: Tiling, most: int, shared: int) -> Launch:
    """A block for each tile of C, under a threadblock swizzle: blockIdx.x along the `swizzle_width` columns
    of blocks that the grid walks together, blockIdx.z along the groups of so many columns."""
    check_registers(gemm, tiling)
    columns, width = ceil_div(gemm.n, tiling.bn), swizzle_width(gemm, tiling, most)
    return Launch((width, ceil_div(gemm.m, tiling.bm), columns // width), (WARP, tiling.warps, 1), shared)


def swizzle_width(gemm: HalfGemm, tiling: Tiling, most: int) -> int:
    """Columns of blocks in a group of a threadblock swizzle.

    A divisor of `most` that divides the number of all columns: no group has blocks with nothing to do.
    """
    return math.gcd(ceil_div(gemm.n, tiling.bn), most)


def shared_bytes(
    gemm: HalfGemm,
    tiling: Tiling,
    padding: int = 0,
    stages: int = 1,
    staged: bool = False,
    result_padding: int = 0,
) -> int:
    """Bytes of shared memory: `stages` tiles of A and B. When they are used up, C takes their place, if it is
    `staged` or block tiles reach beyond it.

    padding, result_padding: elements that pad the rows of A and B, and of C.
    """
    rows_of_b, row_of_b = (tiling.bn, tiling.bk) if gemm.transposed else (tiling.bk, tiling.bn)
    operands = stages * HALF * (tiling.bm * (tiling.bk + padding) + rows_of_b * (row_of_b + padding))
    result = tiling.bm * (tiling.bn + result_padding) * ELEMENT[gemm.accumulate]
    return max(operands, result) if staged or reaches_beyond(gemm, tiling) else operands


def check_registers(gemm: HalfGemm, tiling: Tiling) -> None:
    """BadInput when a warp's accumulators do not fit into registers."""
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


def split_up(
    sch: Schedule,
    gemm: HalfGemm,
    tiling: Tiling,
    shared: bool = True,
    staged: bool = False,
    swizzle: int = 0,
) -> Parts:
    """Tiles of blocks, warps and fragments, bound to blockIdx and threadIdx.y; copies, not yet placed.

    Ragged shapes are padded, see `stage_operands`. A C beyond which tiles reach is staged: written by warps
    to shared memory and copied from there by all threads together.

    shared: whether A and B are copied to shared memory. staged: whether C is in any case. swizzle: most
    columns of blocks in a group of a threadblock swizzle, whose groups are on blockIdx.z; 0 for a plain grid.
    """
    fragment = sch.get_sblock("C")
    copies = stage_operands(sch, fragment, (tiling.bm, tiling.bn, tiling.bk), SHARED, copied=shared)
    result = None
    if reaches_beyond(gemm, tiling):
        sch.set_scope(fragment, 0, SHARED)
        (result,) = sch.get_consumers(fragment)
    elif staged:
        result = sch.cache_write(fragment, 0, SHARED)

    i, j, k = sch.get_loops(fragment)
    warps_i, warps_j = tiling.bm // tiling.wm, tiling.bn // tiling.wn
    block_i, warp_i, i, inner_i = sch.split(i, [None, warps_i, tiling.wm // FRAGMENT, FRAGMENT])
    block_j, warp_j, j, inner_j = sch.split(j, [None, warps_j, tiling.wn // FRAGMENT, FRAGMENT])
    k_tile, k_step, inner_k = sch.split(k, [None, tiling.bk // FRAGMENT, FRAGMENT])
    sch.reorder(block_i, block_j, warp_i, warp_j, k_tile, k_step, i, j, inner_i, inner_j, inner_k)
    compute = sch.blockize(inner_i)
    if swizzle:
        group_j, block_j = sch.split(block_j, [None, swizzle_width(gemm, tiling, swizzle)])
        sch.reorder(group_j, block_i, block_j)
        sch.bind(group_j, "blockIdx.z")
    sch.bind(block_i, "blockIdx.y")
    sch.bind(block_j, "blockIdx.x")
    warp = sch.fuse(warp_i, warp_j)
    sch.bind(warp, "threadIdx.y")
    return Parts(compute, fragment, copies, result, block_j, warp, k_tile, k_step)


def share_copies(sch: Schedule, gemm: HalfGemm, tiling: Tiling, parts: Parts) -> None:
    """All threads copy the tiles of A and B at the head of each turn of the loop over K, 16 bytes at a time
    where rows allow."""
    for copy, columns in zip(parts.copies, (tiling.bk, tiling.bk if gemm.transposed else tiling.bn)):
        sch.compute_at(copy, parts.k_tile)
        by_all_threads(sch, copy, tiling, columns, VECTOR if gemm.aligned else 1)


def copy_result(sch: Schedule, gemm: HalfGemm, tiling: Tiling, parts: Parts) -> None:
    """All threads copy C from shared to global memory at the end of the block's work, if it is there, 16
    bytes at a time where rows allow."""
    if parts.result is None:
        return
    row, column = sch.get_loops(parts.result)[-2:]  # as long as the tile, or as C where it is smaller
    rows, row = sch.split(row, [None, tiling.bm])
    columns, column = sch.split(column, [None, tiling.bn])
    sch.reorder(rows, columns, row, column)
    width = 16 // ELEMENT[gemm.accumulate] if gemm.aligned else 1
    by_all_threads(sch, parts.result, tiling, tiling.bn, width)


def by_all_threads(sch: Schedule, copy: Block, tiling: Tiling, columns: int, width: int) -> None:
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


def use_tensor_cores(
    sch: Schedule,
    gemm: HalfGemm,
    parts: Parts,
    cores: str,
    source: str = SHARED,
    padding: int = 0,
    xor_swizzle: bool = False,
) -> None:
    """Fragments in registers, read from memory of scope `source`, and the intrinsics that fill, load,
    multiply and store them.

    cores: the module of `tir_schedules.tir.intrinsics` that has them, "wmma" or "mma". padding: elements that
    pad the rows of a staged C. xor_swizzle: whether loads find the tiles of A and B under an XOR swizzle.
    """
    intrinsics = importlib.import_module(f"tir_schedules.tir.intrinsics.{cores}")
    transposed, wide = gemm.transposed, gemm.accumulate
    loads = []
    for operand, name in enumerate("ab"):
        loads.append(sch.cache_read(parts.compute, operand, intrinsics.scope(name, transposed)))
        sch.compute_at(loads[-1], parts.k_step)
    store = sch.cache_write(parts.compute, 0, intrinsics.scope("c", transposed))
    sch.reverse_compute_at(store, parts.warp)
    if parts.result:
        sch.reverse_compute_at(parts.result, parts.block, preserve_unit_loops=True)
    zero = sch.decompose_reduction(parts.compute, parts.k_tile)

    for load, name in zip(loads, "ab"):
        block = by_fragments(sch, load, intrinsics.load(name, source, name == "b" and transposed))
        if xor_swizzle:
            sch.annotate(block, "permuted_layout", 1)
    store = by_fragments(sch, store, intrinsics.store(wide, SHARED if parts.result else "global"))
    if padding:
        sch.storage_align(store, 0, axis=-2, factor=32, offset=padding)
    unroll(sch, sch.get_loops(zero)[-2:])
    sch.tensorize(sch.get_loops(sch.get_child_blocks(zero)[0])[-2], intrinsics.fill(wide))
    unroll(sch, sch.get_loops(parts.compute)[-2:])
    sch.tensorize(sch.get_loops(parts.fragment)[-3], intrinsics.mma(wide, transposed))


def by_fragments(sch: Schedule, copy: Block, intrinsic: str) -> Block:
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


def pad_rows(sch: Schedule, parts: Parts, padding: int) -> None:
    """Rows of both tiles in shared memory `padding` halves longer than a multiple of 64 bytes."""
    for copy in parts.copies if padding else ():
        sch.storage_align(copy, 0, axis=-2, factor=32, offset=padding)


def xor_swizzle(sch: Schedule, parts: Parts) -> None:
    """The copies of A and B write their tiles under an XOR swizzle, which TVM calls a permuted layout."""
    for copy in parts.copies:
        sch.annotate(copy, "permuted_layout", 1)


def pipeline_fragments(sch: Schedule, parts: Parts, stages: int) -> None:
    """Fragments double buffered in registers, within a pipeline of `stages` tiles in shared memory."""
    load_a, load_b, compute = 0, 0, 1
    pipeline(sch, parts.k_step, stage=[load_a, load_b, compute], order=[0, 1, 2])
    # In the loop over tiles this makes three statements of one: the first loads, the mma of all k steps but
    # the last, those of the last.
    copy_a, copy_b, loads, compute, last = 0, 0, stages - 2, stages - 1, stages - 1
    stage = [copy_a, copy_b, loads, compute, last]
    pipeline(sch, parts.k_tile, stage, order=[0, 1, 3, 2, 4], asynchronous=[0])
    sch.annotate(parts.k_tile, UNROLL_STAGES, stages)


def merge_copies(sch: Schedule, parts: Parts) -> None:
    """The copies of A and B as one statement: TVM's pipelining would count a commit group for each, but emit
    one."""
    sch.merge(*(sch.add_unit_loop(own_loops(sch, parts, copy)[0]) for copy in parts.copies))


def keep_rolled(sch: Schedule, parts: Parts, copy: Block) -> None:
    """Loops over what a thread copies are not unrolled: `#pragma unroll 1`."""
    from tvm.tirx import For, ForKind, IntImm

    for loop in own_loops(sch, parts, copy):
        found = sch.get(loop)
        assert isinstance(found, For) and isinstance(found.extent, IntImm)
        if found.kind == ForKind.SERIAL and found.extent.value > 1:
            sch.annotate(loop, "disable_unroll", True)


def own_loops(sch: Schedule, parts: Parts, copy: Block) -> list[Loop]:
    """The loops of a copy within the loop over tiles."""
    return sch.get_loops(copy)[len(sch.get_loops(parts.compute)) - 3 :]
