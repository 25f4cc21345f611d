"""Rows that start at any address, copied without a launch before the products.

TMA takes only rows of a multiple of 16 bytes, so `repacked` first copies other rows to a
workspace. That reads and writes a matrix once more. If few rows of A are multiplied by all of B, the products
read B once, and the copy takes longer than the products. Here cp.async reads B from its own place.

A copy has 16 bytes, or 8 if rows are multiples of 8 bytes; of rows of a B that is stored K x N it may have 4.
Copies of other rows begin on the multiple of 16 bytes before the row, with the last elements of the row
before, and the row lies up to seven elements further in shared memory:

    matrix, rows of 9      a a a a a a a a a b b b b b b b b b c c c c c c c c c
    copies of row 1                       |a b b b b b b b|b b c c c c c c|
    row 1 in shared memory                 - b b b b b b b b b

Fragments of such rows are read one or two elements at a time, those of others by ldmatrix. A copy takes the
bytes that are inside the matrix and fills the rest with zeros, so there are no other guards. Several K tiles
are under way for every length of rows.

The products are by mma, because wgmma cannot read rows that start at any address. So this rung is for
matrices with few rows or columns, whose rate memory limits. It is also for small matrices, because it needs
no launch before the products. Tiles fit C: 4583x4x7585 takes tiles of 128x16, and 69x252x205665 tiles of
80x128. Warps may share a tile along K (`warps_k`): they take turns at the steps of a K tile. Blocks along z
have parts of K, which a second launch adds up, as in `split_k`.

The kernel is written in TVMScript and calls the device functions of the twin (the kernel by hand in
`cuda_reference`), because no primitive makes a layout in which rows lie some elements further.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx. What it makes of statements
# of a script is not what Python makes of them.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false, reportAttributeAccessIssue=false
# pyright: reportGeneralTypeIssues=false, reportUnusedExpression=false

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Iterator

from tir_schedules.ladders import split_k_sum
from tir_schedules.ladders.hgemm import hopper, tile_choice
from tir_schedules.ladders.hgemm.tile_costs import adding_up
from tir_schedules.ladders.waves import EARLIER, SMS, Waves
from tir_schedules.model.gpus import WARP, occupancy
from tir_schedules.model.launch import Launch, ceil_div, check_parts
from tir_schedules.model.rung import Around, Rung, run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads import ACCUMULATORS, OPERANDS, RESULTS
from tir_schedules.workloads.half_gemm import HalfGemm

STEP = 16
"""Extent of an mma along each axis, with two of them along the columns."""

PADDING = 8
"""Elements behind a row of a K tile: eight rows that ldmatrix reads at once lie in different banks."""

BLOCKS, LEAST = 2 * 132, 4
"""Blocks to have where K is long enough, two for each SM of an H100 or H200; K tiles of a part at least."""

ROOM = 227 << 10
"""Bytes of shared memory of a block."""


@dataclass(frozen=True)
class Config:
    """Block tile bm x bn, bk of a K tile, so many stages of these. warps_m, warps_n, warps_k: warps along the
    rows and the columns of the tile, and along K. splits: parts of K; 0 for as many as the shape asks for."""

    bm: int = 64
    bn: int = 64
    bk: int = 64
    stages: int = 4
    warps_m: int = 1
    warps_n: int = 4
    warps_k: int = 1
    splits: int = 0

    @property
    def accumulators(self) -> tuple[str, ...]:
        """Formats of the sums."""
        return ACCUMULATORS

    @property
    def warps(self) -> int:
        return self.warps_m * self.warps_n * self.warps_k

    @property
    def rows(self) -> int:
        """Rows of a warp's tile."""
        return self.bm // self.warps_m

    @property
    def columns(self) -> int:
        """Columns of it."""
        return self.bn // self.warps_n


def strides_of(gemm: HalfGemm, config: Config) -> tuple[int, int]:
    """Elements from row to row of a K tile of A, and of B."""
    return config.bk + PADDING, (config.bk if gemm.transposed else config.bn) + PADDING


def stage_of(gemm: HalfGemm, config: Config) -> tuple[int, int]:
    """Elements of a K tile of A, and of B."""
    of_a, of_b = strides_of(gemm, config)
    return config.bm * of_a, (config.bn if gemm.transposed else config.bk) * of_b


def shared_bytes(gemm: HalfGemm, config: Config) -> int:
    """Bytes of the stages, or of the sums that warps along K leave."""
    return max(
        2 * config.stages * sum(stage_of(gemm, config)), 4 * (config.warps_k - 1) * config.bm * config.bn
    )


def piece_of(columns: int, across: bool = False) -> int:
    """Elements that rows are a multiple of: 8, 4 or 1, or 2 where they lie across K, because ldmatrix reads
    fragments of these."""
    return next(piece for piece in ((8, 4, 2, 1) if across else (8, 4, 1)) if columns % piece == 0)


def pieces_of(gemm: HalfGemm) -> tuple[int, int]:
    """Those of rows of A, and of B as it is stored."""
    return piece_of(gemm.k), piece_of(gemm.stored["B"][1], not gemm.transposed)


def parts_of(gemm: HalfGemm, config: Config) -> int:
    """Parts of K; each has some of it."""
    return ceil_div(ceil_div(gemm.k, config.bk), k_tiles_of(gemm, config))


def k_tiles_of(gemm: HalfGemm, config: Config) -> int:
    """K tiles of a part of K. If the shape decides, there are at most as many parts as leave BLOCKS blocks,
    and each has at least LEAST K tiles."""
    k_tiles = ceil_div(gemm.k, config.bk)
    tiles = ceil_div(gemm.m, config.bm) * ceil_div(gemm.n, config.bn)
    return ceil_div(k_tiles, config.splits or max(1, min(BLOCKS // tiles, k_tiles // LEAST)))


def refuses(gemm: HalfGemm, config: Config) -> str:
    for name, of in (("bm", "warps_m"), ("bn", "warps_n"), ("bk", "warps_k")):
        extent, warps = getattr(config, name), getattr(config, of)
        if extent <= 0 or warps <= 0 or extent % (STEP * warps):
            return f"{name} is {extent}: a multiple of {STEP} for each of {of}={warps}, 1 or more"
    if config.warps > 32:
        return f"there are {config.warps} warps: a block has up to 32"
    if config.rows * config.columns > 128 * WARP:
        return (
            f"a warp's tile is {config.rows}x{config.columns}: up to {128 * WARP} sums fit into its registers"
        )
    if not 2 <= config.stages <= 16:
        return f"stages is {config.stages}: 2 to 16"
    if shared_bytes(gemm, config) > ROOM:
        return f"stages take {shared_bytes(gemm, config)} bytes of shared memory, and a block has {ROOM}"
    return ""


def launch(gemm: HalfGemm, config: Config) -> Launch:
    hopper.check(refuses(gemm, config))
    parts = parts_of(gemm, config)
    check_parts(f"hgemm/unaligned for {gemm}", parts, gemm.m, gemm.part_pitch)
    grid = ceil_div(gemm.n, config.bn), ceil_div(gemm.m, config.bm), parts
    return Launch(grid, (WARP, config.warps, 1), shared_bytes(gemm, config), parts=parts)


def prim_func(gemm: HalfGemm, config: Config, name: str) -> PrimFunc:
    """Blocks "zero", "begin", "multiply", "fold" where warps share a tile along K, and "write"."""
    from tvm.script import tirx as T
    from tvm.tirx import FloatImm

    from tir_schedules.tir.intrinsics.device import call

    M, N, K = gemm.shape
    operands, wide, nt = gemm.dtype, gemm.accumulate, gemm.transposed
    (columns, rows, parts), threads = launch(gemm, config).grid, WARP * config.warps
    bm, bn, bk, stages, count = config.bm, config.bn, config.bk, config.stages, k_tiles_of(gemm, config)
    b_rows, b_columns = gemm.stored["B"]
    a_piece, b_piece = pieces_of(gemm)
    (a_stride, b_stride), (a_tile, b_tile) = strides_of(gemm, config), stage_of(gemm, config)
    stage, across = a_tile + b_tile, config.warps_m * config.warps_n
    sums_of_lane = config.rows * config.columns // WARP
    pitch = gemm.part_pitch if parts > 1 else N
    c_shape, result = ((parts * M, pitch), "float32") if parts > 1 else ((M, N), gemm.result)
    pairs = str(pitch % 2 == 0).lower()
    zero = FloatImm(wide, 0.0)
    of_a = f"start_rows<{bm}, {bk}, {a_stride}, {a_piece}, {threads}>"
    of_b = f"start_rows<{bn if nt else bk}, {bk if nt else bn}, {b_stride}, {b_piece}, {threads}>"
    truths = [str(each).lower() for each in (a_piece == 1, b_piece == 1, nt)]
    products = (
        f"add_tiles<{config.rows}, {config.columns}, {bk}, {config.warps_k}, {a_stride}, {truths[0]},"
        f" {b_stride}, {truths[1]}, {truths[2]}>"
    )
    elements = shared_bytes(gemm, config) // 2

    @T.macro
    def start(A, B, tiles, slot, by, bx, k):
        T.evaluate(call(of_a, T.address_of(tiles[slot * stage]), T.address_of(A[0, 0]), by * bm, k, M, K))
        T.evaluate(
            call(
                of_b, T.address_of(tiles[slot * stage + a_tile]), T.address_of(B[0, 0]),
                bx * bn if nt else k, k if nt else bx * bn, b_rows, b_columns,
            )
        )  # fmt: skip

    @T.prim_func(s_tir=True)
    def unaligned(
        A: T.Buffer((M, K), operands),
        B: T.Buffer((b_rows, b_columns), operands),
        C: T.Buffer(c_shape, result),
    ):
        T.func_attr({"global_symbol": name, "tirx.noalias": True})
        for part in T.thread_binding(parts, thread="blockIdx.z"):
            for by in T.thread_binding(rows, thread="blockIdx.y"):
                for bx in T.thread_binding(columns, thread="blockIdx.x"):
                    for ty in T.thread_binding(config.warps, thread="threadIdx.y"):
                        for _ in T.thread_binding(WARP, thread="threadIdx.x"):
                            sums = T.alloc_buffer((sums_of_lane,), wide, scope="local")
                            tiles = T.alloc_buffer((elements,), operands, scope="shared.dyn")
                            row = T.meta_var(ty % across // config.warps_n * config.rows)
                            column = T.meta_var(ty % config.warps_n * config.columns)
                            for s in T.unroll(sums_of_lane):
                                with T.sblock("zero"):
                                    sums[s] = zero
                            for tile in T.unroll(stages - 1):
                                with T.sblock("begin"):
                                    T.reads(A[0:M, 0:K], B[0:b_rows, 0:b_columns])
                                    T.writes(tiles[0:elements])
                                    if tile < count:
                                        start(A, B, tiles, tile, by, bx, (part * count + tile) * bk)
                                    T.evaluate(call("end_row_copies"))
                            for tile in T.serial(count):
                                with T.sblock("multiply"):
                                    T.reads(A[0:M, 0:K], B[0:b_rows, 0:b_columns], tiles[0:elements])
                                    T.writes(tiles[0:elements], sums[0:sums_of_lane])
                                    T.evaluate(call(f"wait_for_rows<{stages - 2}>"))
                                    T.evaluate(call("__syncthreads"))
                                    if tile + stages - 1 < count:
                                        start(
                                            A, B, tiles, (tile + stages - 1) % stages, by, bx,
                                            (part * count + tile + stages - 1) * bk,
                                        )  # fmt: skip
                                    T.evaluate(call("end_row_copies"))
                                    T.evaluate(
                                        call(
                                            products, T.address_of(sums[0]),
                                            tiles.data, tile % stages * stage,
                                            tile % stages * stage + a_tile, row, column, ty // across,
                                            K, b_columns,
                                        )
                                    )  # fmt: skip
                            if config.warps_k > 1:
                                with T.sblock("fold"):
                                    T.reads(sums[0:sums_of_lane])
                                    T.writes(tiles[0:elements], sums[0:sums_of_lane])
                                    T.evaluate(
                                        call(
                                            f"fold_warps<{sums_of_lane}, {config.warps_k}, {across}>",
                                            T.address_of(sums[0]), T.address_of(tiles[0]), ty % across,
                                            ty // across,
                                        )
                                    )  # fmt: skip
                            with T.sblock("write"):
                                T.reads(sums[0:sums_of_lane])
                                T.writes(C[0 : c_shape[0], 0 : c_shape[1]])
                                if ty < across:
                                    T.evaluate(
                                        call(
                                            f"write_sums<{config.rows}, {config.columns}, {pairs}>",
                                            T.address_of(C[part * M, 0]),
                                            T.address_of(sums[0]), by * bm + row, bx * bn + column, M,
                                            pitch, pitch,
                                        )
                                    )  # fmt: skip

    return unaligned


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    """Nothing is left to be said but that the launch after this one may begin."""
    sch.overlap_launches()


ONCE, SPREAD, CLOCK = 1.75, 0.96, 1980
"""Microseconds of a launch with the first copies and the last stores, and those more if all SMs have a block,
because all wait for memory at once; cycles in a microsecond.

This and the other constants of the estimate are fitted to 318 launches of 81 shapes on an H200. A launch
counts less the longer it takes beside the fastest of its shape. Estimates are off by 12 % (root mean square),
and those of shapes that were left out of the fit by 13 %."""

COPIED, WHOLE = 4.8, 7.9
"""Cycles of an SM for a copy by a warp, of 4 or 8 bytes for each lane; and of 16 bytes."""

MULTIPLIED, MMA, HIDDEN = 1480, 12.9, 1.28
"""Multiply-adds of an SM in a cycle; and cycles of a warp from one mma to its next. HIDDEN: w warps of an SM
reach w / (w + HIDDEN) of these rates, because they hide each other's waits. 49x96x201044 took 36.3 us with
four warps for a tile of 64x64, and 29.1 with eight."""

FRAGMENTS = 0.0042
"""Cycles of an SM for a byte that a warp reads of a K tile in shared memory, with ldmatrix. With tiles of
64x128 57x4930x12714 took 61 us with two warps along its rows and two along K, and 72 with four and two, which
read B twice as often."""

FOLD = 835
"""Cycles of adding up the sums of a tile of 64x64 that one warp more along K leaves."""

LATE = 2090
"""Cycles until copies have arrived. The stages that are under way share them."""

BY_ELEMENTS = 11
"""Cycles of an SM for a fragment of 16 x 16 that a warp reads element by element; half of them where it reads
two at once."""

WRITTEN, SHARED, ODD_ROWS = 0.078, 0.29, 0.76
"""Cycles for each element of C; and those more, times the share of SMs that store, in any case and where rows
are odd. Then L2 gets parts of sectors, and reads the rest from memory. With tiles of 16x64 41x2255x41 took
3.4 us on an H200, on 108 SMs, and 59x29x27 2.4, on four."""

READ, BOTH = 4.2e6, 2.02
"""Bytes that memory delivers in a microsecond, and the exponent of the mean of reading and the rest. Where K
is a few K tiles neither hides much of the other: blocks read all of them before they multiply the first."""


def copies_of(rows: int, columns: int, piece: int) -> int:
    """Copies of a lane for a tile."""
    return rows * (columns // 8 + 1 if piece == 1 else columns // piece)


def read_by_elements(gemm: HalfGemm, config: Config) -> float:
    """Fragments of a K tile that warps read by elements; those of two elements at once count half."""
    a_piece, b_piece = pieces_of(gemm)
    along = 1 if gemm.k % 2 else 0.5
    of_a = config.bm * config.warps_n * along if a_piece == 1 else 0
    of_b = config.bn * config.warps_m * (along if gemm.transposed else 1) if b_piece == 1 else 0
    return (of_a + of_b) * config.bk / STEP**2


def bytes_of_fragments(config: Config) -> int:
    """What warps read of a K tile in shared memory: rows of A once for each warp along the columns, and
    columns of B once for each along the rows."""
    return 2 * config.bk * (config.bm * config.warps_n + config.bn * config.warps_m)


def microseconds(gemm: HalfGemm, config: Config) -> float:
    """Microseconds of a configuration. Blocks that share an SM hide each other's waits; what they copy and
    multiply adds up, because the same warps do both."""
    parts, k_tiles = parts_of(gemm, config), k_tiles_of(gemm, config)
    blocks = ceil_div(gemm.m, config.bm) * ceil_div(gemm.n, config.bn) * parts
    fitting = occupancy("sm_90", (WARP * config.warps,), WARP, shared_bytes(gemm, config)).blocks
    beside = min(fitting, ceil_div(blocks, SMS))
    pieces = pieces_of(gemm)
    b_tile = (config.bn, config.bk) if gemm.transposed else (config.bk, config.bn)
    copies = [copies_of(*tile, piece) / WARP for tile, piece in zip([(config.bm, config.bk), b_tile], pieces)]
    copying = sum(each * (WHOLE if piece in (8, 1) else COPIED) for each, piece in zip(copies, pieces))
    products = config.bm * config.bn * config.bk
    waiting = beside + HIDDEN / config.warps
    each = max(products / MULTIPLIED * waiting, products / (STEP**3 // 2 * config.warps) * MMA)
    each += (copying + FRAGMENTS * bytes_of_fragments(config)) * waiting
    first = min(k_tiles, config.stages - 1)
    cycles = first * each + (k_tiles - first) * max(each, LATE / (config.stages - 1))
    cycles += k_tiles * beside * BY_ELEMENTS * read_by_elements(gemm, config)
    share = min(1.0, blocks / SMS)
    odd = ODD_ROWS if parts == 1 and gemm.n % 2 else 0
    cycles += beside * (WRITTEN + (SHARED + odd) * share) * config.bm * config.bn
    cycles += beside * FOLD * (config.warps_k - 1) * config.bm * config.bn / 64**2
    busy = ceil_div(blocks, SMS * beside) * cycles / CLOCK, gemm.bytes / READ
    once = ONCE - (EARLIER if blocks <= SMS else 0)
    return once + SPREAD * share + sum(each**BOTH for each in busy) ** (1 / BOTH) + adding_up(gemm, parts)


def estimate(gemm: HalfGemm, rung: Rung) -> Waves:
    """The estimate for the rung."""
    columns, rows, parts = rung.declared(gemm).grid
    blocks = columns * rows * parts
    return Waves(blocks, ceil_div(blocks, SMS), microseconds(gemm, rung.config))


CONFIGS = {
    "64x128": Config(bn=128, bk=32, stages=6),
    "64x64": Config(),
    "64x64x2": Config(warps_k=2),
    "32x64": Config(bm=32),
    "16x64": Config(bm=16),
    "16x128": Config(bm=16, bn=128),
    "32x32": Config(bm=32, bn=32, bk=128, stages=2, warps_n=2, warps_k=4),
    "16x32": Config(bm=16, bn=32, bk=128, stages=2, warps_n=2, warps_k=4),
}


def sides_of(extent: int) -> list[int]:
    """Extents of tiles along a side of C: powers of two, and the side itself if one tile has all of it."""
    least = ceil_div(extent, STEP) * STEP
    return sorted({each for each in (*SIDES, least) if each <= min(least, SIDES[-1])})


def forms(gemm: HalfGemm) -> Iterator[Config]:
    """Configurations whose tiles are no larger than C, with the most stages of each that one of ROOMS
    holds."""
    for bm, bn, bk in product(sides_of(gemm.m), sides_of(gemm.n), (32, 64, 128)):
        for warps_m, warps_n, warps_k in WARPS:
            tile = Config(bm, bn, bk, 2, warps_m, warps_n, warps_k)
            if refuses(gemm, tile):
                continue
            stage = 2 * sum(stage_of(gemm, tile))
            for stages in sorted({min(MOST_STAGES, room // stage) for room in ROOMS}):
                if stages >= 2 and not refuses(gemm, form := replace(tile, stages=stages)):
                    yield form


@lru_cache(maxsize=1024)
def ranked(gemm: HalfGemm) -> list[Config]:
    """The fastest form of each tile by estimate, the fastest first; of equals that with the most stages."""

    def time(form: Config) -> tuple[float, int]:
        return round(microseconds(gemm, form), 2), -form.stages

    return tile_choice.first_of_kinds(forms(gemm), time, lambda form: (form.bm, form.bn))


def choose(gemm: HalfGemm) -> Config:
    """The configuration that is estimated to be the fastest."""
    return ranked(gemm)[0]


SIDES, MOST_STAGES = (16, 32, 64, 128), 6
WARPS = [each for each in product((1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 4)) if math.prod(each) in (4, 8)]
"""Warps along rows, columns and K of a tile."""

ROOMS = 99 << 10, ROOM // 4 - 1024, ROOM // 6 - 1024
"""Bytes of shared memory for the stages of a tile. The first leaves room for two blocks of an SM, and a block
has so much on every GPU since sm_80; the others leave room for four and six."""


RUNG = Rung(
    family="hgemm",
    name="unaligned",
    summary="rows that start anywhere, copied as they lie: no launch before the products",
    article="beyond 001 and 004",
    config=CONFIGS["64x128"],
    configs=CONFIGS,
    choose=choose,
    ranked=ranked,
    schedule=schedule,
    launch=launch,
    refuses=refuses,
    prim_func=prim_func,
    min_arch=80,
    dtypes=OPERANDS,
    outputs=RESULTS,
    around=Around(then=split_k_sum.rung("hgemm")),
)

if __name__ == "__main__":
    run_as_script(RUNG)
