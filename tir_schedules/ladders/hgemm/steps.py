"""Schedule steps of the HGEMM ladder: tiles, copies to shared memory, fragments, tensor cores.

A block of a kernel has 32 lanes on threadIdx.x and its warps on threadIdx.y. All shared memory is dynamic,
for pipelines need more than the 48 KiB of static shared memory.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from typing import Any

from tir_schedules.errors import BadInput
from tir_schedules.model.launch import Launch, ceil_div
from tir_schedules.workloads import ACCUMULATORS
from tir_schedules.workloads.half_gemm import VECTOR, HalfGemm

SHARED = "shared.dyn"
FRAGMENT = 16  # edge of the tiles that a warp multiplies at once
WARP = 32
HALF = 2  # bytes
ELEMENT = {"float16": 2, "float32": 4}  # bytes
MOST_SUMS = 128  # registers; the others are for fragments and addresses
PASS_CONFIG = {"tirx.disable_storage_rewrite": True}
"""Options of TVM's lowering. Its storage rewriting would give C the place of A alone, not that of A and B."""


@dataclass(frozen=True)
class Tile:
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
        """Formats of the sums for which a warp tile has room in the 255 registers of a thread."""
        return tuple(
            name for name in ACCUMULATORS if self.wm * self.wn * ELEMENT[name] // (4 * WARP) <= MOST_SUMS
        )


@dataclass(frozen=True)
class Parts:
    """Blocks and loops of a tiled product.

    product: the block that multiplies fragments, around the block `fragment` of single products; copies:
    those of A and B to shared memory; result: that of C from shared to global memory, None when warps write C
    themselves.
    block, warp, k_tile, k_step: loops over blocks (the innermost), warps, tiles along K, fragments along K.
    """

    product: Any
    fragment: Any
    copies: tuple[Any, ...]
    result: Any
    block: Any
    warp: Any
    k_tile: Any
    k_step: Any


def launch_columns_by_rows(gemm: HalfGemm, tile: Tile, shared: int) -> Launch:
    """A block for each tile of C, blockIdx.x along the columns. shared: bytes of dynamic shared memory."""
    check_registers(gemm, tile)
    return Launch((ceil_div(gemm.n, tile.bn), ceil_div(gemm.m, tile.bm), 1), (WARP, tile.warps, 1), shared)


def launch_stripes(gemm: HalfGemm, tile: Tile, stripe: int, shared: int) -> Launch:
    """A block for each tile of C in stripes of columns: blockIdx.x along the columns of a stripe, blockIdx.z
    along the stripes."""
    check_registers(gemm, tile)
    columns, width = ceil_div(gemm.n, tile.bn), stripe_width(gemm, tile, stripe)
    return Launch((width, ceil_div(gemm.m, tile.bm), columns // width), (WARP, tile.warps, 1), shared)


def stripe_width(gemm: HalfGemm, tile: Tile, stripe: int) -> int:
    """Columns of blocks in a stripe, a divisor of `stripe` that divides their number, so that no stripe has
    blocks with nothing to do."""
    return math.gcd(ceil_div(gemm.n, tile.bn), stripe)


def shared_bytes(
    gemm: HalfGemm, tile: Tile, skew: int = 0, stages: int = 1, staged: bool = False, result_skew: int = 0
) -> int:
    """Bytes of shared memory: a ring of `stages` tiles of A and B, whose place C takes when they are used up,
    if it is `staged` or block tiles reach beyond it.

    skew, result_skew: elements that pad the rows of A and B, and of C.
    """
    rows_of_b, row_of_b = (tile.bn, tile.bk) if gemm.transposed else (tile.bk, tile.bn)
    ring = stages * HALF * (tile.bm * (tile.bk + skew) + rows_of_b * (row_of_b + skew))
    result = tile.bm * (tile.bn + result_skew) * ELEMENT[gemm.accumulate]
    return max(ring, result) if staged or reaches_beyond(gemm, tile) else ring


def check_registers(gemm: HalfGemm, tile: Tile) -> None:
    """BadInput when a warp's sums do not fit into registers."""
    if gemm.accumulate not in tile.accumulators:
        fitting = " or ".join(tile.accumulators)
        raise BadInput(
            f"warp tiles of {tile.wm}x{tile.wn} do not fit into registers as {gemm.accumulate}; use"
            f" --accumulate {fitting}"
        )


def is_whole(gemm: HalfGemm, tile: Tile) -> bool:
    """Whether block tiles divide the matrices, so that nothing needs a guard."""
    return not reaches_beyond(gemm, tile) and gemm.k % tile.bk == 0


def reaches_beyond(gemm: HalfGemm, tile: Tile) -> bool:
    """Whether block tiles reach beyond C, which then goes through shared memory. A ragged K is none of C's
    business."""
    return gemm.m % tile.bm != 0 or gemm.n % tile.bn != 0


def split_up(
    sch: Any, gemm: HalfGemm, tile: Tile, shared: bool = True, staged: bool = False, stripe: int = 0
) -> Parts:
    """Tiles of blocks, warps and fragments, bound to blockIdx and threadIdx.y, and the copies, not yet
    placed.

    Where the block tile does not divide the shape, pad_einsum makes the problem as large as whole tiles: the
    copies of A and B fill with zeros, which add nothing, and the copy of C leaves out what lies beyond. So
    all guards are in the copies; and a C beyond which tiles reach is staged: written by warps to shared
    memory and copied from there by all threads together.

    shared: whether A and B are copied to shared memory. staged: whether C is in any case. stripe: most
    columns of blocks in a stripe of the grid, which is then on blockIdx.z; 0 for a plain grid.
    """
    fragment = sch.get_sblock("C")
    sch.pad_einsum(fragment, [tile.bm, tile.bn, tile.bk])
    padded = {sch.get(producer).name_hint: producer for producer in sch.get_producers(fragment)}
    copies = []
    for operand, name in enumerate(("A_pad", "B_pad")):
        if name in padded:
            sch.set_scope(padded[name], 0, SHARED)
        if shared:
            copies.append(padded.get(name) or sch.cache_read(fragment, operand, SHARED))
    result = None
    if reaches_beyond(gemm, tile):
        sch.set_scope(fragment, 0, SHARED)
        (result,) = sch.get_consumers(fragment)
    elif staged:
        result = sch.cache_write(fragment, 0, SHARED)

    i, j, k = sch.get_loops(fragment)
    block_i, warp_i, i, inner_i = sch.split(i, [None, tile.bm // tile.wm, tile.wm // FRAGMENT, FRAGMENT])
    block_j, warp_j, j, inner_j = sch.split(j, [None, tile.bn // tile.wn, tile.wn // FRAGMENT, FRAGMENT])
    k_tile, k_step, inner_k = sch.split(k, [None, tile.bk // FRAGMENT, FRAGMENT])
    sch.reorder(block_i, block_j, warp_i, warp_j, k_tile, k_step, i, j, inner_i, inner_j, inner_k)
    product = sch.blockize(inner_i)
    if stripe:
        stripe_j, block_j = sch.split(block_j, [None, stripe_width(gemm, tile, stripe)])
        sch.reorder(stripe_j, block_i, block_j)
        sch.bind(stripe_j, "blockIdx.z")
    sch.bind(block_i, "blockIdx.y")
    sch.bind(block_j, "blockIdx.x")
    warp = sch.fuse(warp_i, warp_j)
    sch.bind(warp, "threadIdx.y")
    return Parts(product, fragment, tuple(copies), result, block_j, warp, k_tile, k_step)


def share_copies(sch: Any, gemm: HalfGemm, tile: Tile, parts: Parts) -> None:
    """All threads copy the tiles of A and B at the head of each turn of the loop over K, 16 bytes at a time
    where rows allow."""
    for copy, columns in zip(parts.copies, (tile.bk, tile.bk if gemm.transposed else tile.bn)):
        sch.compute_at(copy, parts.k_tile)
        by_all_threads(sch, copy, tile, columns, VECTOR if gemm.aligned else 1)


def copy_result(sch: Any, gemm: HalfGemm, tile: Tile, parts: Parts) -> None:
    """All threads copy C from shared to global memory at the end of the block's work, 16 bytes at a time
    where rows allow."""
    row, column = sch.get_loops(parts.result)[-2:]  # as long as the tile, or as C where it is smaller
    rows, row = sch.split(row, [None, tile.bm])
    columns, column = sch.split(column, [None, tile.bn])
    sch.reorder(rows, columns, row, column)
    by_all_threads(sch, parts.result, tile, tile.bn, 16 // ELEMENT[gemm.accumulate] if gemm.aligned else 1)


def by_all_threads(sch: Any, copy: Any, tile: Tile, columns: int, width: int) -> None:
    """The two innermost loops of a copy, over rows and `columns`: every warp has rows of its own, its lanes
    neighbouring pieces of `width` elements of one row or of several neighbouring ones."""
    across = min(WARP, columns // width)  # lanes along a row
    row, column = sch.get_loops(copy)[-2:]
    warp, row, lane_row = sch.split(row, [tile.warps, None, WARP // across])
    column, lane_column, *vector = sch.split(column, [None, across, *([width] if width > 1 else [])])
    sch.reorder(warp, row, column, lane_row, lane_column, *vector)
    sch.bind(warp, "threadIdx.y")
    sch.bind(sch.fuse(lane_row, lane_column), "threadIdx.x")
    for loop in vector:
        sch.vectorize(loop)


def use_tensor_cores(
    sch: Any,
    gemm: HalfGemm,
    parts: Parts,
    cores: str,
    source: str = SHARED,
    skew: int = 0,
    permuted: bool = False,
) -> None:
    """Fragments in registers, read from memory of scope `source`, and the intrinsics that fill, load,
    multiply and store them.

    cores: the module of `tir_schedules.tir.intrinsics` that has them, "wmma" or "mma". skew: elements that
    pad the rows of a staged C.
    permuted: whether the tiles of A and B lie permuted in shared memory.
    """
    cores = importlib.import_module(f"tir_schedules.tir.intrinsics.{cores}")
    transposed, wide = gemm.transposed, gemm.accumulate
    loads = []
    for operand, name in enumerate("ab"):
        loads.append(sch.cache_read(parts.product, operand, cores.scope(name, transposed)))
        sch.compute_at(loads[-1], parts.k_step)
    store = sch.cache_write(parts.product, 0, cores.scope("c", transposed))
    sch.reverse_compute_at(store, parts.warp)
    if parts.result:
        sch.reverse_compute_at(parts.result, parts.block, preserve_unit_loops=True)
    zero = sch.decompose_reduction(parts.product, parts.k_tile)

    for load, name in zip(loads, "ab"):
        block = by_fragments(sch, load, cores.load(name, source, name == "b" and transposed))
        if permuted:
            sch.annotate(block, "permuted_layout", 1)
    store = by_fragments(sch, store, cores.store(wide, SHARED if parts.result else "global"))
    if skew:
        sch.storage_align(store, 0, axis=-2, factor=32, offset=skew)
    unroll(sch, sch.get_loops(zero)[-2:])
    sch.tensorize(sch.get_loops(sch.get_child_blocks(zero)[0])[-2], cores.fill(wide))
    unroll(sch, sch.get_loops(parts.product)[-2:])
    sch.tensorize(sch.get_loops(parts.fragment)[-3], cores.mma(wide, transposed))


def by_fragments(sch: Any, copy: Any, intrinsic: str) -> Any:
    """A copy to or from fragments, one intrinsic per fragment. Returns the block that takes its place, around
    the intrinsic."""
    name = sch.get(copy).name_hint
    row, column = sch.get_loops(copy)[-2:]
    row, inner_row = sch.split(row, [None, FRAGMENT])
    column, inner_column = sch.split(column, [None, FRAGMENT])
    sch.reorder(row, column, inner_row, inner_column)
    unroll(sch, (row, column))
    sch.tensorize(inner_row, intrinsic)
    return sch.get_sblock(f"{name}_o")


def unroll(sch: Any, loops: Any) -> None:
    for loop in loops:
        sch.unroll(loop)


def merge_copies(sch: Any, parts: Parts) -> None:
    """The copies of A and B as one statement: TVM's pipelining would count a commit group for each, but emit
    one."""
    sch.merge(*(sch.add_unit_loop(own_loops(sch, parts, copy)[0]) for copy in parts.copies))


def keep_rolled(sch: Any, parts: Parts, copy: Any) -> None:
    """Loops over what a thread copies are not unrolled: `#pragma unroll 1`."""
    from tvm.tirx import ForKind

    for loop in own_loops(sch, parts, copy):
        if sch.get(loop).kind == ForKind.SERIAL and sch.get(loop).extent > 1:
            sch.annotate(loop, "disable_unroll", True)


def own_loops(sch: Any, parts: Parts, copy: Any) -> list[Any]:
    """The loops of a copy within the loop over tiles."""
    return sch.get_loops(copy)[len(sch.get_loops(parts.product)) - 3 :]
