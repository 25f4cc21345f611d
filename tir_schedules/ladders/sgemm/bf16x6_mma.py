"""Six products of bfloat16 parts by `mma`, from sm_80 on; elements are split in registers, K over blocks.

`bf16x6` splits A and B in a separate launch, which writes 1.5 times the bytes that it reads. The tiles of
`bf16x6` have 64 rows or more. Both cost most if matrices are small or thin. Here `cp.async` copies tiles of A
and B as float32, and several copies are under way. Each warp splits the elements that it reads into three
parts of bfloat16:

    shared memory          registers of a lane
    x, y (float32)  -->    first, second, third (each two bfloat16)  -->  six mma.m16n8k16

A part is the rest that the parts before have left, rounded. Two neighbours along K take 13 instructions.
Their parts are then used for each column of the warp's tile (parts of A), or for each row (parts of B). The
first part is kept finite, as in `split_parts`: it is the largest finite bfloat16 if rounding would make it
infinite.

**Fragments.** Each lane reads the float32 that mma wants in its registers. From the tile of A a lane reads
two neighbours along K, 8 bytes. From the tile of B it reads up to four neighbours of a row, 16 bytes. These
are columns of four mma, because it does not matter which columns of B an mma multiplies. Rows of A are padded
by 8 floats and rows of B by 4, so these reads have no bank conflicts. For 16 of K a warp with a tile of 32x32
reads its 4 KiB in 32 wavefronts, and issues 48 mma. A lane's sums are eight neighbours of a row of C. Counted
at 128x128x128 by tiles of 64x64, warps read 4,096 wavefronts. wgmma of `bf16x6` reads 6,144, because it reads
elements that are already split: 6 bytes and not 4.

If B is stored N x K (layout nt), its tile has rows along K, is padded like that of A, and is read like it, in
as many wavefronts. Then a lane's sums are two neighbours of a row of C, because with more of them its reads
would have bank conflicts. Four lanes store 32 bytes of a row, a sector.

**Sums.** Tensor cores add up the products of one K tile, beginning from 0. These sums are then added in
float32, see `promoted`. Within 16 of K the products of small parts come first. If K is 64 or less, K tiles
are only 16 deep, because sums of 32 terms of very different sizes would be less accurate than by FMA.

**Parts of K.** If C has few tiles, several blocks share each tile along K. A second launch adds up their sums
in a fixed order, as in `split_k`. The model of `shapes.py` chooses the fastest tile and number of parts, by
RATES that were measured for this rung.

**C with odd rows.** A store of a warp touches eight rows, four lanes each. If rows are not multiples of 32
bytes, these are parts of sectors. So C goes through shared memory, in the place of the stages, and a warp
writes 32 neighbours of a row. Warps multiply by an intrinsic, and TVM does not see what that reads. So the
schedule asks for the barrier before. On an H200 1820x12417x64 took 120 us by tiles of 64x64 of
`bf16x6_fused`, and takes 61.

One barrier per K tile is enough, because the copies of a later tile come after the wait and its barrier, see
the pass `copies_after_wait`. Infinities, NaN and very small elements are treated as in `bf16x6`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd
from typing import Callable, ClassVar, Mapping, Sequence

from tir_schedules.ladders import split_k_sum
from tir_schedules.ladders.hgemm import hopper
from tir_schedules.ladders.sgemm import NN_NT, shapes, split_k
from tir_schedules.ladders.sgemm.edges import part_last_tile, wrap_edges
from tir_schedules.ladders.sgemm.shapes import Rate
from tir_schedules.ladders.sgemm.steps import share_rows, vector_width
from tir_schedules.ladders.sgemm.warp_tiles import copy_in_rows
from tir_schedules.model.launch import Launch, ceil_div, check_parts
from tir_schedules.model.rung import Around, Rung, run_as_script
from tir_schedules.tir.schedule import Block, Loop, PrimFunc, Schedule, pipeline, unroll
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.split_gemm import LONGEST

ALONG_K, ALONG_N = (16, 8), (8, 4)
"""Rows of tiles in shared memory, along K and along N: their length in floats is a multiple of the first
number, plus the second."""

STEP = 16
"""Of K, what an mma multiplies."""

SECTOR = 8
"""Floats of a sector of memory."""

MOST_SUMS = 2048
"""Elements of a warp's tile: 64 sums of a lane, twice."""

FEWEST = 3
"""Stages. With two TVM would put A and B of a part of one K tile in the same place."""

SHORT = 64
"""K up to which tiles are STEP deep."""

RATES = {
    "64x64": Rate(199, 0.34, 24, Rate(163, 0.45, 15, parts=24)),
    "128x64": Rate(174, 0, 19, Rate(156, 0.06, 17, parts=18)),
    "64x128": Rate(179, 0, 32, Rate(152, 0.09, 5, parts=15)),
    "64x32": Rate(189, 1.23, 38, Rate(131, 1.31, 33, parts=32)),
    "32x64": Rate(181, 0.9, 22, Rate(147, 1.68, 16, parts=12)),
    "32x32": Rate(149, 0.83, 24, Rate(116, 0.9, 20, parts=21)),
    "64x16": Rate(117, 1.23, 16, Rate(89, 1.82, 11, parts=6)),
    "16x64": Rate(116, 2.21, 7, Rate(95, 1.93, 6, parts=9)),
}
"""Fitted to 171 measurements on an H200 of 30 shapes, with an error of 6 to 12 % (root mean square); those
of odd rows to 232, with an error of 11 to 20 %."""


@dataclass(frozen=True)
class Config:
    """Block tile bm x bn, bk of its tiles along K, after which sums are promoted; a warp computes wm x wn.
    stages: tiles of A and B in shared memory. splits: parts of K, where K has so many tiles; 0 for as many as
    the shape asks for. copies_parts: whether tiles are of parts that a launch before has made, not of
    floats."""

    bm: int = 64
    bn: int = 64
    bk: int = 32
    wm: int = 32
    wn: int = 32
    stages: int = 4
    splits: int = 0

    layouts: ClassVar[tuple[str, ...]] = NN_NT
    products: ClassVar[str] = "bf16x6"
    copies_parts: ClassVar[bool] = False

    @property
    def rates(self) -> Mapping[str, Rate]:
        """By tile, of this rung: see `shapes.RATES`."""
        return RATES

    @property
    def asynchronous(self) -> int:
        """1: tiles are copied by cp.async, and C is not written through shared memory."""
        return 1

    @property
    def warps(self) -> int:
        """Of a block."""
        return self.bm // self.wm * (self.bn // self.wn)

    @property
    def a_row(self) -> int:
        """Floats of a row of a tile of A in shared memory."""
        return self.bk + ALONG_K[1]

    def b_row(self, transposed: bool) -> int:
        """The same of B. transposed: whether it is stored as N x K."""
        return self.a_row if transposed else self.bn + ALONG_N[1]

    def near(self, transposed: bool) -> int:
        """Sums of a lane that are neighbours in a row of C."""
        return 2 if transposed else 8 if self.wn % 32 == 0 else 4 if self.wn % 16 == 0 else 2

    def c_row(self, transposed: bool) -> int:
        """The same of C, if it goes through shared memory. Lanes that store to several rows meet in no
        bank."""
        return self.bn + (8 if self.near(transposed) == 2 else 4)

    def ring_bytes(self, transposed: bool) -> tuple[int, int]:
        """Bytes of all stages of A, and of B."""
        rows_of_b = self.bn if transposed else self.bk
        elements = self.bm * self.a_row, rows_of_b * self.b_row(transposed)
        return 4 * self.stages * elements[0], 4 * self.stages * elements[1]


def refuses(gemm: Gemm, config: Config) -> str:
    """Why a configuration cannot be, or empty."""
    if config.bk % STEP or not 0 < config.bk <= LONGEST:
        return f"bk is {config.bk}: a multiple of {STEP}, {LONGEST} at most"
    if config.wm % 16 or config.wn % 8 or min(config.wm, config.wn) < 8:
        return f"a warp's tile is {config.wm}x{config.wn}: multiples of 16 rows and 8 columns"
    if config.wm * config.wn > MOST_SUMS:
        sums = f"two sums of {config.wm}x{config.wn}"
        return f"{sums} do not fit into a warp's registers: wm * wn is at most {MOST_SUMS}"
    if config.bm % config.wm or config.bn % config.wn or not 0 < config.warps <= 32:
        return f"{config.bm}x{config.bn} must be 1 to 32 tiles of {config.wm}x{config.wn}"
    if config.stages < FEWEST:
        return f"stages is {config.stages}: use {FEWEST} or more, because a tile is copied before one is free"
    pieces = config.bm * config.bk // 4, config.bk * config.bn // 4
    if any(count % (32 * config.warps) for count in pieces):
        return (
            f"{32 * config.warps} threads do not share tiles of {pieces[0]} and {pieces[1]} float4 evenly:"
            " use another bk, bm or bn"
        )
    return hopper.reason_against_shared(shared_bytes(gemm, config))


def launch(gemm: Gemm, config: Config) -> Launch:
    hopper.check(refuses(gemm, config))
    parts = split_k.parts_of(gemm, config)
    check_parts(f"sgemm/{config.products}_mma for {gemm}", parts, gemm.m, split_k.pitch_of(gemm, parts))
    grid = ceil_div(gemm.n, config.bn), ceil_div(gemm.m, config.bm), parts
    return Launch(grid, (32, config.warps, 1), shared_bytes(gemm, config), parts=parts)


def shared_bytes(gemm: Gemm, config: Config) -> int:
    """Bytes of dynamic shared memory. If a tile of C goes there, TVM puts it in the place of the stages: of
    the larger of the two where these are of floats, too, and else of both."""
    rings = config.ring_bytes(gemm.transposed)
    tile = 4 * config.bm * config.c_row(gemm.transposed) if writes_in_rows(gemm, config) else 0
    return max(sum(rings), tile + (0 if config.copies_parts else min(rings)))


def schedule(sch: Schedule, gemm: Gemm, config: Config, together: int = 0) -> None:
    """together: warps that multiply by one wgmma; 0 where each multiplies by mma."""
    from tir_schedules.tir.intrinsics import split_fragments

    near, b_row = config.near(gemm.transposed), config.b_row(gemm.transposed)
    widths = [vector_width(row) for _, row in gemm.stored.values()]
    padding = [ALONG_K, ALONG_K if gemm.transposed else ALONG_N]
    product = split_fragments.multiply(
        config.wm, config.wn, config.bk, config.a_row, b_row, near, gemm.transposed, together
    )
    k_tile = multiply_tiles(sch, gemm, config, widths, padding, product)
    part_last_tile(sch, gemm, k_tile, config.bk)


def multiply_tiles(
    sch: Schedule,
    gemm: Gemm,
    config: Config,
    widths: Sequence[int],
    padding: Sequence[tuple[int, int]],
    product: str,
) -> Loop:
    """Blocks, warps and the pipeline of copies; returns the loop over K tiles. widths: elements of A and of B
    that are copied at once. padding: of their rows in shared memory, as ALONG_K. product: the intrinsic
    of what a warp multiplies of a K tile."""
    from tir_schedules.tir.intrinsics import split_fragments

    copies = sch.get_sblock("A_pad"), sch.get_sblock("B_pad")
    sums, result = sch.get_sblock("C"), sch.get_sblock("C_pad")
    for copy in copies:
        sch.set_scope(copy, 0, split_fragments.SHARED)
    sch.set_scope(sums, 0, split_fragments.SUMS)

    part, i, j, *along_k = sch.get_loops(sums)
    block_i, warp_i, i = sch.split(i, [None, config.bm // config.wm, config.wm])
    block_j, warp_j, j = sch.split(j, [None, config.bn // config.wn, config.wn])
    k_tile, k = along_k if along_k[1:] else sch.split(along_k[0], [None, config.bk])
    sch.reorder(part, block_i, block_j, warp_i, warp_j, k_tile, i, j, k)
    warp = sch.fuse(warp_i, warp_j)
    for loop, axis in ((part, "z"), (block_i, "y"), (block_j, "x")):
        sch.bind(loop, f"blockIdx.{axis}")
    sch.bind(warp, "threadIdx.y")

    threads = [("threadIdx.y", config.warps), ("threadIdx.x", 32)]
    for copy, width in zip(copies, widths):
        share_rows(sch, copy, k_tile, threads, width)
    wrap_edges(sch, gemm, copies, (config.bm, config.bn))
    for copy, (factor, more) in zip(copies, padding):
        sch.storage_align(copy, 0, axis=-2, factor=factor, offset=more)

    near, width = config.near(gemm.transposed), store_width(gemm, config)
    write_back, in_rows = result, writes_in_rows(gemm, config)
    if in_rows:
        result, width = sch.cache_read(write_back, 0, split_fragments.SHARED), gcd(near, 4)
    sch.reverse_compute_at(result, warp, preserve_unit_loops=True)
    if in_rows:
        more = config.c_row(gemm.transposed) - config.bn
        sch.storage_align(result, 0, axis=-2, factor=2 * more, offset=more)
        copy_in_rows(sch, write_back, block_j, (config.bm, config.bn), threads)
    sums_map = split_fragments.sums_map(config.wm, config.wn, near)
    sch.transform_layout(sums, ("write", 0), sums_map, assume_injective_transform=True)
    lane = hold(sch, result, config, near, width)
    if in_rows:
        sch.synchronize_before(lane)
    zero = sch.decompose_reduction(sums, k_tile)
    hold(sch, zero, config, near, gcd(near, 4))
    sch.tensorize(sch.get_loops(sums)[-3], product)
    sch.unroll_drain()
    pipeline(sch, k_tile, stage=[0, 0, config.stages - 1], order=[0, 1, 2], asynchronous=[0])
    sch.async_copies()
    sch.move_copies_behind_waits()
    sch.overlap_launches()
    return k_tile


def hold(sch: Schedule, block: Block, config: Config, near: int, width: int) -> Loop:
    """The two innermost loops of a block, over a warp's rows and columns: each lane takes what it has of the
    sums, `near` neighbours of a row, `width` at a time. Returns the loop over lanes."""
    row, column = sch.get_loops(block)[-2:]
    eight, lane_row = sch.split(row, [config.wm // 8, 8])
    group, lane_column, vector, pair = sch.split(column, [config.wn // (4 * near), 4, near // width, width])
    sch.reorder(lane_row, lane_column, eight, group, vector, pair)
    lane = sch.fuse(lane_row, lane_column)
    sch.bind(lane, "threadIdx.x")
    unroll(sch, (eight, group, vector))
    if width > 1:
        sch.vectorize(pair)
    return lane


def prim_func(gemm: Gemm, config: Config, name: str) -> PrimFunc:
    """As of `split_k`."""
    return split_k.partial_products_of(gemm, config, name, guarded(gemm, config))


def guarded(gemm: Gemm, config: Config) -> int:
    """A C smaller than a tile has guards in place of shorter loops, because each warp writes a whole tile: so
    many neighbours that stand or fall together. 0 where it is not."""
    return store_width(gemm, config) if gemm.m < config.bm or gemm.n < config.bn else 0


def writes_in_rows(gemm: Gemm, config: Config) -> bool:
    """Whether C goes through shared memory: where its rows are not multiples of a sector. Its tile takes
    the place of the stages, which are not needed any more. Parts of C are written directly."""
    return gemm.n % SECTOR != 0 and split_k.parts_of(gemm, config) == 1


def store_width(gemm: Gemm, config: Config) -> int:
    """Neighbours of C that a lane writes at once."""
    width = vector_width(split_k.pitch_of(gemm, split_k.parts_of(gemm, config)))
    return gcd(config.near(gemm.transposed), width)


CONFIGS = {
    "64x64": Config(),
    "128x64": Config(bm=128, stages=3),
    "64x128": Config(bn=128, stages=3),
    "64x32": Config(bn=32),
    "32x64": Config(bm=32),
    "32x32": Config(bm=32, bn=32, wm=16, wn=16),
    "16x64": Config(bm=16, wm=16, stages=5),
    "64x16": Config(bn=16, wn=16, stages=5),
}


def chooser(configs: Mapping[str, Config]) -> Callable[[Gemm], Config]:
    """The `choose` of a rung: the configuration that the model of shapes.py says is fastest."""

    def choose(gemm: Gemm) -> Config:
        config = configs[shapes.fastest(gemm, configs)]
        return replace(config, bk=STEP) if gemm.k <= SHORT else config

    return choose


RUNG = Rung(
    family="sgemm",
    name="bf16x6_mma",
    summary="parts are made in registers and multiplied by mma, from sm_80 on; K split over blocks",
    config=CONFIGS["64x64"],
    configs=CONFIGS,
    choose=chooser(CONFIGS),
    schedule=schedule,
    launch=launch,
    refuses=refuses,
    prim_func=prim_func,
    around=Around(then=split_k_sum.rung("sgemm")),
    shapes="any; 16-byte copies where rows are multiples of 4, else one element at a time",
    min_arch=80,
)

if __name__ == "__main__":
    run_as_script(RUNG)
