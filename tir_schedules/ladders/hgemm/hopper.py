"""Schedule steps of the HGEMM rungs with Hopper's own instructions: wgmma, TMA, warp specialization.

A block has 128 threads on threadIdx.x, a warpgroup, and its warpgroups on threadIdx.y. It has K tiles of both
operands in shared memory, 64 deep. The algorithm is written for whole tiles, see `tiled_gemm`: copies fill
elements beyond A and B with zeros, and elements beyond C are not stored.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

from tir_schedules.errors import BadInput
from tir_schedules.model.gpus import find_sm
from tir_schedules.model.launch import (
    Launch,
    TensorMap,
    ceil_div,
    described_array,
    pitch_of,
    promotion_of,
)
from tir_schedules.tir.schedule import Block, Loop, PrimFunc, Schedule, pipeline, unroll
from tir_schedules.workloads import ACCUMULATORS
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import VECTOR, HalfGemm

ARCH = "sm_90a"
WARPGROUP = 128
DEPTH = 64  # of a K tile: rows of 128 bytes, what the swizzle takes
ROWS, COLUMNS = 64, 64  # of a product, and of a box
STEP, SWAPPED_STEP = 16, 8
"""What a side of a tile is a multiple of, where it is free. wgmma's columns have steps of 8. If A and B are
not swapped, these are columns of C, and 8 of them would be 16 bytes, half a sector."""

MOST_ROWS, MOST_COLUMNS = 256, 256  # of a box, and of a product
ROW_BYTES = 128  # of a box in shared memory
SIZES = {"float16": 2, "bfloat16": 2, "float32": 4}  # bytes
SUM_REGISTERS = {1: 128, 2: 128, 3: 96}
"""Warpgroups that multiply -> registers of a thread for sums, at most. Three, and one that copies, are
launched with 128 registers for each thread, and ptxas compiles nothing that needs more."""

MORE_SUM_REGISTERS = {1: 176, 2: 176, 3: 96}
"""The same of rungs from hgemm/tile_shapes on."""

ODD_SUM_REGISTERS = {"float32": 128, "float16": 96}
"""The same, by the format of sums, where A and B are swapped and threads copy boxes of C. With 144 and with
104 ptxas spilled."""

MOST_STAGES = 16
BARRIERS = 1024
"""Bytes of static shared memory: two barriers for each stage, and what aligns the stages behind them."""

SHARED = "shared.dyn"
WAVE = 132
"""Blocks that an H100 or H200 executes at a time: one for each SM."""

CLUSTERS = {1: WAVE, 2: WAVE // 2, 4: 30}
"""Blocks of a cluster -> clusters that it executes at a time. The SMs of a GPC are 16 or 18. Clusters of four
leave two of 18 idle."""

SHAPES = "any; 16-byte copies where rows of A and B are multiples of 8, else one element at a time"
SHAPES_OF_BOXES = "any with rows of A and B of a multiple of 8; others are for hgemm/repacked"
SHAPES_STORED = "any with rows of A, B and C of a multiple of 16 bytes; others are for hgemm/repacked"


@dataclass(frozen=True)
class Tiling:
    """Block tile bm x bn, bk of a K tile, always 64. consumers: warpgroups that multiply, each
    bm / consumers rows, a multiple of 64; bn is a multiple of 64, 256 at most."""

    bm: int = 128
    bn: int = 256
    bk: int = 64
    consumers: int = 2

    free = False  # whether a side of the tile is any multiple of STEP, see hgemm/tile_shapes
    swap = 0  # 1: A and B change places
    part_columns = 0  # 1: warpgroups part the tile along wgmma's columns, else along its rows
    cluster_m = cluster_n = 1  # blocks of a cluster along rows and columns of C

    @property
    def tall(self) -> int:
        """Extent of the block tile along the rows of wgmma: rows of C, or columns if A and B are swapped."""
        return self.bn if self.swap else self.bm

    @property
    def wide(self) -> int:
        """The same along its columns."""
        return self.bm if self.swap else self.bn

    @property
    def stacked(self) -> int:
        """Blocks of a cluster along the rows of wgmma; they share its columns."""
        return self.cluster_n if self.swap else self.cluster_m

    @property
    def beside(self) -> int:
        """Blocks of a cluster along the columns of wgmma; they share its rows."""
        return self.cluster_m if self.swap else self.cluster_n

    @property
    def blocks(self) -> int:
        """Blocks of a cluster."""
        return self.cluster_m * self.cluster_n

    @property
    def rows(self) -> int:
        """Rows of wgmma that a warpgroup multiplies. None at all is refused later."""
        return self.tall // (1 if self.part_columns else max(1, self.consumers))

    @property
    def columns(self) -> int:
        """Columns of wgmma that a warpgroup multiplies."""
        return self.wide // (max(1, self.consumers) if self.part_columns else 1)

    @property
    def most_registers(self) -> int:
        """Most registers of a thread for sums. Other numbers of warpgroups are refused later."""
        most = MORE_SUM_REGISTERS if self.free else SUM_REGISTERS
        return most.get(self.consumers, WARPGROUP)

    @property
    def accumulators(self) -> tuple[str, ...]:
        """Formats of the sums for which a warpgroup has registers."""
        return tuple(name for name in ACCUMULATORS if self.registers(name) <= self.most_registers)

    def registers(self, accumulate: str) -> int:
        """Registers of a thread for sums."""
        return self.rows * self.columns * SIZES[accumulate] // (4 * WARPGROUP)

    @property
    def stage_bytes(self) -> int:
        """Bytes of a K tile of A and one of B."""
        return (self.bm + self.bn) * DEPTH * 2

    @property
    def name(self) -> str:
        return f"{self.bm}x{self.bn}"


@dataclass(frozen=True)
class Ring(Tiling):
    """As Tiling. stages: of the pipeline; each holds a K tile of A and of B."""

    stages: int = 4

    @property
    def ring_bytes(self) -> int:
        """Bytes of all stages."""
        return self.stages * self.stage_bytes


@dataclass(frozen=True)
class Tiles:
    """Blocks and loops of a tiled GEMM.

    products: the block that multiplies. copies: of A and of B to shared memory; of B and of A where these are
    swapped. result: writes C. block_i, block_j, warpgroup, k_tile: loops over rows and columns of tiles, as
    wgmma has them, warpgroups, K tiles.
    """

    products: Block
    copies: tuple[Block, Block]
    result: Block
    block_i: Loop
    block_j: Loop
    warpgroup: Loop
    k_tile: Loop


def reason_against_tile(gemm: HalfGemm, tiling: Tiling) -> str:
    """Why a tile cannot be, or empty."""
    if tiling.bk != DEPTH:
        return f"bk is {DEPTH}: rows of 128 bytes, as the swizzle has them"
    if tiling.consumers not in SUM_REGISTERS or tiling.rows % ROWS or not tiling.rows:
        side = "bn" if tiling.swap else "bm"
        each = ", and there are" if tiling.part_columns else " for each of"
        return f"{side} must be a multiple of {ROWS}{each} 1 to {max(SUM_REGISTERS)} consumers"
    if tiling.free:
        return reason_against_free_tile(gemm, tiling)
    if tiling.bn % COLUMNS or not 0 < tiling.bn <= 256 or tiling.bm > 256:
        return f"bn must be a multiple of {COLUMNS}, and bm and bn at most 256"
    return reason_against_sums(gemm, tiling)


def reason_against_free_tile(gemm: HalfGemm, tiling: Tiling) -> str:
    """The same of a tile with a free side, whose other side is a multiple of ROWS."""
    if {tiling.swap, tiling.part_columns} - {0, 1}:
        return f"swap is {tiling.swap} and part_columns {tiling.part_columns}: each is 0 or 1"
    tall, wide = ("bn", "bm") if tiling.swap else ("bm", "bn")
    each = " for each consumer" if tiling.part_columns else ""
    if not 0 < tiling.tall <= MOST_ROWS or not 0 < tiling.columns <= MOST_COLUMNS:
        return f"{tall} must be from 1 to {MOST_ROWS}, and {wide} from 1 to {MOST_COLUMNS}{each}"
    if tiling.blocks not in CLUSTERS or min(tiling.cluster_m, tiling.cluster_n) < 1:
        return (
            f"cluster_m is {tiling.cluster_m} and cluster_n {tiling.cluster_n}:"
            " a cluster has 1, 2 or 4 blocks"
        )
    in_rows = along_k(gemm, tiling)[1]
    step = SWAPPED_STEP if tiling.swap else STEP
    step, why = (step, "") if in_rows else (COLUMNS, " where B is stored KxN")
    if tiling.wide % (step * (tiling.consumers if tiling.part_columns else 1)):
        return f"{wide} must be a multiple of {step}{each}{why}"
    for name, extent, blocks, rows in (
        ("bn", tiling.bn, tiling.cluster_m, gemm.transposed),
        ("bm", tiling.bm, tiling.cluster_n, True),
    ):
        boxes = blocks * ceil_div(extent, blocks * MOST_ROWS)
        if rows and boxes > 1 and extent % (boxes * 8):
            if blocks == 1:
                return f"{name} is {extent}: each of {boxes} boxes copies a multiple of 8"
            return f"{name} is {extent}: the blocks of a cluster copy parts of 8 each"
    if tiling.swap and gemm.result == "float32" and getattr(tiling, "boxes", 0):
        return "swap is 1: stmatrix transposes elements of 16 bits, and C is float32; use swap=0"
    return reason_against_sums(gemm, tiling)


def reason_against_sums(gemm: HalfGemm, tiling: Tiling) -> str:
    """Why the sums of a tile do not fit into registers, or empty."""
    if gemm.accumulate not in tiling.accumulators:
        fitting = " or ".join(tiling.accumulators)
        instead = f"; use --accumulate {fitting}" if fitting else ""
        sums = f"sums of {tiling.rows}x{tiling.columns}"
        return f"{sums} do not fit into a warpgroup's registers as {gemm.accumulate}{instead}"
    most = ODD_SUM_REGISTERS[gemm.accumulate]
    by_threads = tiling.swap and getattr(tiling, "boxes", 0) and not gemm.c_aligned
    if by_threads and tiling.registers(gemm.accumulate) > most:
        return (
            f"sums take {tiling.registers(gemm.accumulate)} registers of a thread. With swap=1 and rows of C"
            f" that are not multiples of 16 bytes threads copy C and have {most} for sums: use a smaller tile"
        )
    return ""


def reason_against(gemm: HalfGemm, tiling: Tiling, shared: int) -> str:
    """Why a tiling cannot be, or empty. shared: bytes of dynamic shared memory."""
    return reason_against_tile(gemm, tiling) or reason_against_shared(shared)


def shared_room() -> int:
    """Bytes of dynamic shared memory that a block can have beside its mbarriers."""
    return find_sm(ARCH).shared_limit - BARRIERS


def reason_against_shared(shared: int) -> str:
    """Why a block cannot have so many bytes of dynamic shared memory, or empty."""
    limit = shared_room()
    if shared <= limit:
        return ""
    why = f"it takes {shared} bytes of shared memory, and {ARCH} has {limit} for it"
    return f"{why}: use fewer stages or a smaller tile"


def reason_against_ring(gemm: HalfGemm, config: Ring, fewest: int, more: int = 0) -> str:
    """The same of a pipeline of at least so many stages. more: bytes of shared memory besides."""
    if not fewest <= config.stages <= MOST_STAGES:
        return f"stages is {config.stages}: the ring has {fewest} to {MOST_STAGES} stages"
    return reason_against_order(config) or reason_against(gemm, config, config.ring_bytes + more)


def reason_against_order(config: Ring) -> str:
    """Why blocks cannot go over tiles as a configuration says, or empty."""
    for name, what in (("programs", "blocks of the grid"), ("group", "rows of tiles in a stripe")):
        if getattr(config, name, 1) < 1:
            return f"{name} is {getattr(config, name)}: {what}, 1 or more"
    return ""


def reason_against_boxes(gemm: HalfGemm) -> str:
    """Why TMA cannot read A or B, or empty."""
    for name, (_, row) in gemm.misaligned.items():
        return (
            f"rows of {name} are {2 * row} bytes, and TMA takes rows of a multiple of 16: use hgemm/repacked"
        )
    return ""


def reason_against_stored_boxes(gemm: HalfGemm) -> str:
    """Why TMA cannot write C, or empty."""
    if gemm.c_aligned:
        return ""
    row = gemm.n * SIZES[gemm.result]
    return f"rows of C are {row} bytes, and TMA takes rows of a multiple of 16: use hgemm/repacked"


def grid_and_stages(gemm: HalfGemm, config: Ring, maps: tuple[TensorMap, ...] = ()) -> Launch:
    """The launch of a block for each tile of C that all its warpgroups multiply, with a ring of stages."""
    return Launch(grid_of(gemm, config), (WARPGROUP, config.consumers, 1), config.ring_bytes, maps=maps)


def check(reason: str) -> None:
    """BadInput with a reason, if there is one."""
    if reason:
        raise BadInput(reason)


def grid_of(gemm: HalfGemm, tiling: Tiling) -> tuple[int, int, int]:
    """A block for each tile of C, blockIdx.x along the columns."""
    return ceil_div(gemm.n, tiling.bn), ceil_div(gemm.m, tiling.bm), 1


def maps_of(gemm: HalfGemm, tiling: Tiling) -> tuple[TensorMap, ...]:
    """The tensor maps of A and B. Of what blocks of a cluster share each copies a part."""
    a_box = rows_of_box(tiling.bm, tiling.cluster_n, True), DEPTH
    b_rows = rows_of_box(tiling.bn, tiling.cluster_m, gemm.transposed)
    b_box = b_rows, DEPTH if gemm.transposed else COLUMNS
    b_shape = (gemm.n, gemm.k) if gemm.transposed else (gemm.k, gemm.n)
    return (
        map_of("A", gemm.dtype, (gemm.m, gemm.k), a_box),
        map_of("B", gemm.dtype, b_shape, b_box, gemm.transposed),
    )


def rows_of_box(extent: int, blocks: int, in_rows: bool) -> int:
    """Rows of a box of an operand that has so many rows or columns of C in a K tile, which blocks of a
    cluster share. in_rows: whether its rows go along k. Then a block copies its rows in as few boxes as can
    have as many each. Else a box has 64 columns of all k, or, if the blocks cannot share these boxes evenly,
    of some k, and each block copies that part of every box."""
    if in_rows:
        rows = extent // blocks
        return rows // ceil_div(rows, MOST_ROWS)
    return DEPTH // blocks if extent % (blocks * COLUMNS) else DEPTH


def along_k(gemm: HalfGemm, tiling: Tiling) -> tuple[bool, bool]:
    """Whether rows of the two operands of wgmma go along k: of the one with its rows, and of that with its
    columns. A's do."""
    return (gemm.transposed, True) if tiling.swap else (True, gemm.transposed)


def map_of(
    name: str, dtype: str, shape: tuple[int, int], box: tuple[int, int], along_k: bool = True
) -> TensorMap:
    """The tensor map of a matrix with boxes, under the swizzle of as many bytes as their rows have. along_k:
    as `promotion_of` has it."""
    pitch = pitch_of(row := shape[1] * SIZES[dtype])
    of = described_array(name, row, pitch)
    promotion = promotion_of(pitch, along_k)
    return TensorMap(f"{name}_map", of, dtype, shape, (pitch,), box, box[1] * SIZES[dtype], promotion)


def cast(value: Any, dtype: str, of: str) -> Any:
    """A value of one format in another."""
    from tvm.tirx import Cast

    return Cast(dtype, value) if dtype != of else value


def product_of(gemm: HalfGemm, tiling: Tiling, A: Any, B: Any, i: Any, j: Any, k: Any) -> Any:
    """The product of a row of A and a column of B, or of a column and a row if they are swapped, in the
    format of sums."""
    row, column = (j, i) if tiling.swap else (i, j)
    factors = A[row, k], B[column, k] if gemm.transposed else B[k, column]
    first, second = (cast(each, gemm.accumulate, gemm.dtype) for each in factors)
    return second * first if tiling.swap else first * second


def tiled_gemm(
    gemm: HalfGemm, tiling: Tiling, name: str, boxes: bool = False, stored: bool = False
) -> PrimFunc:
    """The algorithm over whole tiles: blocks A_tiles and B_tiles, zero beyond the matrices, C_sums and C.
    boxes: A and B are as large as whole tiles themselves, as TMA shows them. stored: so is
    C. Where A and B are swapped the sums are those of C's transpose."""
    from tvm.script import tirx as T
    from tvm.tirx import FloatImm

    from tir_schedules.model.annotations import CLUSTER, EXTENTS

    whole = (gemm.m, tiling.bm * tiling.cluster_m), (gemm.n, tiling.bn * tiling.cluster_n), (gemm.k, DEPTH)
    M, N, K = (ceil_div(*each) * each[1] for each in whole)
    a_true = (gemm.m, gemm.k)
    b_true, b_whole = ((gemm.n, gemm.k), (N, K)) if gemm.transposed else ((gemm.k, gemm.n), (K, N))
    a_shape, b_shape = ((M, K), b_whole) if boxes else (a_true, b_true)
    c_shape = (M, N) if stored else (gemm.m, gemm.n)
    # TVM would have every warpgroup read the sums of 64 rows, all there are, as if they were its own.
    extent, tall = (gemm.n, N) if tiling.swap else (gemm.m, M)
    guarded = not stored and extent == ROWS < tall
    c_loops = c_shape if not guarded else (gemm.m, N) if tiling.swap else (M, gemm.n)
    narrow, wide, result = gemm.dtype, gemm.accumulate, gemm.result
    zero, nothing = FloatImm(wide, 0.0), FloatImm(narrow, 0.0)

    def inside(buffer: Any, i: Any, j: Any, whole: tuple[int, int]) -> Any:
        bounds = [index < have for index, have, all_ in zip((i, j), buffer.shape, whole) if int(have) < all_]
        condition = T.And(*bounds) if len(bounds) > 1 else bounds[0] if bounds else None
        return buffer[i, j] if condition is None else T.if_then_else(condition, buffer[i, j], nothing)

    def product(A: Any, B: Any, i: Any, j: Any, k: Any) -> Any:
        return product_of(gemm, tiling, A, B, i, j, k)

    def sum_of(sums: Any, i: Any, j: Any) -> Any:
        return cast(sums[j, i] if tiling.swap else sums[i, j], result, wide)

    def within(i: Any, j: Any) -> Any:
        return (j if tiling.swap else i) < extent

    sums_shape = (N, M) if tiling.swap else (M, N)

    @T.prim_func(s_tir=True)
    def algorithm(A: T.Buffer(a_shape, narrow), B: T.Buffer(b_shape, narrow), C: T.Buffer(c_shape, result)):
        T.func_attr({"tirx.noalias": True})
        A_tiles = T.sblock_alloc_buffer((M, K), narrow)
        B_tiles = T.sblock_alloc_buffer(b_whole, narrow)
        C_sums = T.sblock_alloc_buffer(sums_shape, wide)
        for i, j in T.grid(M, K):
            with T.sblock("A_tiles"):
                vi, vj = T.axis.remap("SS", [i, j])
                A_tiles[vi, vj] = inside(A, vi, vj, (M, K))
        for i, j in T.grid(*b_whole):
            with T.sblock("B_tiles"):
                vi, vj = T.axis.remap("SS", [i, j])
                B_tiles[vi, vj] = inside(B, vi, vj, b_whole)
        for i, j, k in T.grid(*sums_shape, K):
            with T.sblock("C_sums"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C_sums[vi, vj] = zero
                C_sums[vi, vj] += product(A_tiles, B_tiles, vi, vj, vk)
        for i, j in T.grid(*c_loops):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                if guarded:
                    if T.tvm_thread_invariant(within(vi, vj)):
                        C[vi, vj] = sum_of(C_sums, vi, vj)
                else:
                    C[vi, vj] = sum_of(C_sums, vi, vj)

    extents = {"A": a_true, "B": b_true, "C": (gemm.m, gemm.n)}
    made: Any = algorithm
    return made.with_attr({"global_symbol": name, EXTENTS: extents, CLUSTER: tiling.blocks})


def split_into_tiles(sch: Schedule, tiling: Tiling) -> Tiles:
    """Tiles of blocks and of warpgroups, these on threadIdx.y; operands in shared memory; sums in registers
    that warpgroups share."""
    from tir_schedules.tir.intrinsics.wgmma import SUMS

    products, result = sch.get_sblock("C_sums"), sch.get_sblock("C")
    copies = sch.get_sblock("A_tiles"), sch.get_sblock("B_tiles")
    if tiling.swap:
        copies = copies[1], copies[0]
    for copy in copies:
        sch.set_scope(copy, 0, SHARED)
    sch.set_scope(products, 0, SUMS)
    sch.set_warp_size(WARPGROUP)
    *_, i, j, k = sch.get_loops(products)  # perhaps within a loop over parts of K
    if tiling.part_columns:
        block_i, i = sch.split(i, [None, tiling.tall])
        block_j, warpgroup, j = sch.split(j, [None, tiling.consumers, tiling.columns])
    else:
        block_i, warpgroup, i = sch.split(i, [None, tiling.consumers, tiling.rows])
        block_j, j = sch.split(j, [None, tiling.wide])
    k_tile, k = sch.split(k, [None, DEPTH])
    sch.reorder(block_i, block_j, warpgroup, k_tile, i, j, k)
    sch.bind(block_i, "blockIdx.y")
    sch.bind(block_j, "blockIdx.x")
    sch.bind(warpgroup, "threadIdx.y")
    return Tiles(products, copies, result, block_i, block_j, warpgroup, k_tile)


def lay_out_operands(sch: Schedule, gemm: HalfGemm, tiling: Tiling, tiles: Tiles, ring: bool = False) -> None:
    """Operands in shared memory as wgmma reads them. ring: with the number of the K tile in front."""
    from tir_schedules.tir.intrinsics.wgmma import operand_map

    for copy, in_rows in zip(tiles.copies, along_k(gemm, tiling)):
        sch.transform_layout(copy, ("write", 0), operand_map(in_rows, ring))


def copy_by_threads(sch: Schedule, gemm: HalfGemm, tiling: Tiling, tiles: Tiles) -> None:
    """All threads copy the K tiles at the head of each iteration of the loop over K, 16 bytes at a time where
    rows allow, under the swizzle of 128 bytes."""
    width = VECTOR if gemm.aligned else 1
    across = COLUMNS // width  # threads along a row of 128 bytes
    for copy in tiles.copies:
        sch.compute_at(copy, tiles.k_tile)
        row, column = sch.get_loops(copy)[-2:]
        column, lane_column, *vector = sch.split(column, [None, across, *([width] if width > 1 else [])])
        row, warpgroup, lane_row = sch.split(row, [None, tiling.consumers, WARPGROUP // across])
        sch.reorder(column, row, warpgroup, lane_row, lane_column, *vector)
        sch.bind(warpgroup, "threadIdx.y")
        sch.bind(sch.fuse(lane_row, lane_column), "threadIdx.x")
        for loop in vector:
            sch.vectorize(loop)
        sch.annotate(copy, "permuted_layout", "g2s")


def copy_boxes(sch: Schedule, gemm: HalfGemm, tiling: Tiling, tiles: Tiles, leader: bool = False) -> None:
    """TMA copies the K tiles in boxes at the head of each iteration of the loop over K.

    leader: the first thread of a block has all of it copied, and announces the bytes. What blocks of a
    cluster share they copy together, box by box, for all of them.
    """
    from tir_schedules.tir.intrinsics.boxes import load

    for copy, in_rows, tall, blocks, apart in zip(
        tiles.copies,
        along_k(gemm, tiling),
        (tiling.tall, tiling.wide),
        (tiling.beside, tiling.stacked),
        (tiling.stacked, 1),
    ):
        sch.compute_at(copy, tiles.k_tile)
        row, column = sch.get_loops(copy)[-2:]
        rows = rows_of_box(tall, blocks, in_rows)
        box_row, row = sch.split(row, [None, rows])
        box_column, column = sch.split(column, [None, COLUMNS])
        sch.reorder(box_row, box_column, row, column)
        unroll(sch, (box_row, box_column))
        announced = tiling.stage_bytes if leader and copy is tiles.copies[0] else 0
        cluster = blocks, COLUMNS, True, apart, tiling.blocks
        sch.tensorize(row, load(rows, gemm.dtype, in_rows, leader, announced, *cluster))
    sch.encode_tensor_maps()


def multiply(sch: Schedule, gemm: HalfGemm, tiling: Tiling, tiles: Tiles, operands: str) -> None:
    """Sums cleared before the first K tile, and a warpgroup's products of each. operands: how they come, see
    tir/intrinsics/wgmma.py."""
    from tir_schedules.tir.intrinsics import wgmma

    zero = sch.decompose_reduction(tiles.products, tiles.k_tile)
    bind_sums_to_threads(sch, zero, tiling, 2)
    intrinsic = wgmma.multiply(
        tiling.rows // ROWS, tiling.columns, gemm.dtype, gemm.accumulate, along_k(gemm, tiling), operands
    )
    sch.tensorize(sch.get_loops(tiles.products)[-3], intrinsic)


def pipeline_products(
    sch: Schedule, tiles: Tiles, stages: int, asynchronous: Sequence[int] = (), started: bool = False
) -> None:
    """Copies `stages` - 2 K tiles ahead, and the wait for a K tile's products an iteration behind. started:
    behind those of this iteration, else before them."""
    copies, products, done = 0, stages - 2, stages - 1
    # Statements: copies of A and B; operands are there; products; products are done.
    order = [1, 2, 0, 3, 4] if started else [1, 2, 0, 4, 3]
    pipeline(sch, tiles.k_tile, [copies, copies, products, products, done], order, asynchronous)


def store_from_registers(sch: Schedule, gemm: Gemm, tiling: Tiling, tiles: Tiles) -> None:
    """Every thread writes its sums to C, two neighbours at a time where rows allow.

    Of two columns of wgmma one lane of four has both, of the first eight. Where that is asked in a loop, nvcc
    has the lane's number as index in place of the loop's, and keeps all sums in local memory, where it stores
    them before they are waited for. So the loop is written out.
    """
    from tir_schedules.tir.intrinsics.wgmma import sums_map

    sch.reverse_compute_at(tiles.result, tiles.warpgroup, preserve_unit_loops=True)
    sch.transform_layout(
        tiles.products, ("write", 0), sums_map(tiling.columns), assume_injective_transform=True
    )
    eight = bind_sums_to_threads(sch, tiles.result, tiling, 2 if gemm.n % 2 == 0 else 1, tiling.swap > 0)
    if (gemm.m if tiling.swap else gemm.n) <= 2:
        sch.annotate(eight, "pragma_unroll_explicit", 1)


def bind_sums_to_threads(
    sch: Schedule, block: Block, tiling: Tiling, width: int, transposed: bool = False
) -> Loop:
    """The two innermost loops of a block, over a warpgroup's rows and columns: each thread takes what it
    holds of the sums, `width` neighbours at a time. transposed: the loops are over columns and rows, and a
    thread's neighbours stand in different rows. Returns the loop over eight columns each."""
    row, column = sch.get_loops(block)[-2:]
    if transposed:
        (row, column), width = (column, row), 1
    part, warp, half, lane_row = sch.split(row, [tiling.rows // ROWS, 4, 2, 8])
    eight, lane_column, pair = sch.split(column, [tiling.columns // 8, 4, 2])
    sch.reorder(warp, lane_row, lane_column, part, eight, half, pair)
    sch.bind(sch.fuse(warp, lane_row, lane_column), "threadIdx.x")
    unroll(sch, (part, eight, half))
    (sch.vectorize if width > 1 else sch.unroll)(pair)
    return eight
