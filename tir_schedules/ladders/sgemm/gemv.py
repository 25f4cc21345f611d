"""C is one column or one row, or a few: a matrix times vectors, bound by the memory that the matrix is read
from.

Tiles do not help here: 63 of the 64 columns of a tile would be padding, and only the vectors are read more
than once. So what counts is how the matrix is read: once, in whole sectors, with many loads under way. There
are two kernels, by how the matrix lies in memory:

    N = 1: elements of C are rows of A times B          M = 1: C is a sum of rows of B, times elements of A

    lanes             0 1 2 3 0 1 2 3 ...               lanes        0 1 2 3   neighbours in a row
    rows of a thread  ###############   -> C[i]         threadIdx.y  #######   0   each has sums of the
                      ###############   -> C[i + 1]                  #######   1   columns that it loads
                                                                     #######   0
                                                                     C[j] ..

If M = 1 and B is stored N x K (layout nt), elements of C are rows of B times A, as on the left.

If C has a few columns or rows, a thread has sums for each of these vectors, and the matrix is still read
once. If the vectors are columns of a row-major B, their elements of one k are adjacent in memory. So for its
consecutive k a thread reads the elements of all vectors together, 16 bytes at a time.

A group of lanes shares some rows of A, and an element of B is loaded once for all of these rows. Each thread
has its sums in registers. Lanes pass their sums to each other by shuffles, and warps by shared memory, as in
`reduce/shuffle`. Loads have 16 bytes if all rows start on multiples of 16 bytes. Otherwise they have 8, 4 or
2 bytes, and more of them are under way.

There must also be enough blocks: see `plan_of`. If C is too small, blocks along y take parts of K. The last
block adds up the sums of the others, always beginning with the first part. That is one launch, as in
`reduce/single_pass`, and the kernel calls the same device functions. The sums are in variables of the module,
so launches of one kernel must not overlap.

The TensorIR already describes the whole kernel, because a plain matrix product says nothing about sums of
threads, shuffles and parts. Schedule primitives only decide about vectors and unrolling. This rung takes only
shapes with few columns or rows, so it stands beside the ladder. For 3072x1x3072 the CPU machine, which
executes the kernel without a GPU, counts 16 sectors per load. The loads read the matrix once, 37.7 MB, and
the vector once for every four rows, 9.4 MB, mostly from L1.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx. What it makes of statements
# of a script is not what Python makes of them.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false, reportAttributeAccessIssue=false
# pyright: reportGeneralTypeIssues=false, reportUnusedExpression=false

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Iterator, Mapping

from tir_schedules.errors import BadInput
from tir_schedules.ladders.sgemm import NN_NT
from tir_schedules.ladders.waves import SMS
from tir_schedules.model.gpus import STATIC_SHARED, WARP
from tir_schedules.model.launch import Launch, ceil_div
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule, unroll
from tir_schedules.workloads import element_type
from tir_schedules.workloads.gemm import Gemm

FULL_MASK = 0xFFFFFFFF
MOST_VECTORS = 16
BLOCKS = 2 * SMS
"""Blocks to have where the matrix is large enough: two for each SM of an H100 or H200."""

UNDER_WAY = 32 << 10
"""Bytes of loads that an SM has under way if memory is fully used: 4.3 TB/s times 800 ns, over 132 SMs."""

SM_THREADS = 2048
"""Threads of an SM at a time."""

PLACES = 1 << 18
"""The most sums that parts of K leave, of all tiles."""

MOST_SUMS, MOST_LEFT = 256, 4096
"""The most sums of a block that reads columns, unless BYTES need more. Each of its warps leaves its own in
shared memory. And the most sums that the warps of a block by rows leave."""

BYTES = 64
"""Bytes of a row that neighbouring threads read at least, if they read columns: two sectors, the least that
DRAM delivers."""


@dataclass(frozen=True)
class Config:
    """block: threads of a block. tm: rows of the matrix, that a group of threads has at once; by columns it
    says nothing. loads: 16-byte loads of the matrix that a thread has under way. vectors: most columns of C,
    or most rows, that are computed while the matrix is read once."""

    block: int = 256
    tm: int = 4
    loads: int = 8
    vectors: int = 1

    layouts: ClassVar[tuple[str, ...]] = NN_NT


@dataclass(frozen=True)
class Plan:
    """How a product is spread.

    by_rows: whether an element of C is a row of the matrix times a vector. vectors: their number. width:
    elements of a load. lanes: threads that share a row. values: rows or columns of the matrix that a thread
    has. ahead: loads under way for each row of a thread, or for its columns. tiles, parts: blocks along C and
    along K. iterations: of the loop over K.
    """

    by_rows: bool
    vectors: int
    block: int
    width: int
    lanes: int
    values: int
    ahead: int
    tiles: int
    parts: int
    iterations: int

    @property
    def lines(self) -> int:
        """Rows or columns of the matrix that a block has."""
        return self.values * (self.block // self.lanes if self.by_rows else self.lanes)

    @property
    def sums(self) -> int:
        """Of a block."""
        return self.lines * self.vectors

    @property
    def step(self) -> int:
        """Extent along K of an iteration of a block."""
        return self.ahead * (self.lanes * self.width if self.by_rows else self.block // self.lanes)

    @property
    def folded(self) -> tuple[int, int]:
        """The distances of the first shuffle and of the last; the first is smaller where there is none."""
        return (min(self.lanes, WARP) // 2, 1) if self.by_rows else (WARP // 2, self.lanes)

    @property
    def groups(self) -> int:
        """Warps whose sums belong together."""
        return max(1, self.lanes // WARP) if self.by_rows else self.block // WARP


def of_columns(gemm: Gemm) -> bool:
    """Whether A is the matrix, and columns of B are the vectors; else B is, and rows of A are."""
    return gemm.n <= gemm.m


def by_rows(gemm: Gemm) -> bool:
    """Whether each element of C is a row of the stored matrix times a vector."""
    return of_columns(gemm) or gemm.transposed


def width_of(gemm: Gemm) -> int:
    """Elements of the widest load that all rows of the matrix are multiples of."""
    return piece_of(gemm.k if by_rows(gemm) else gemm.n, gemm.vector)


def piece_of(extent: int, most: int) -> int:
    """Elements of the widest load, at most so many, that an extent is a multiple of: a power of two."""
    return math.gcd(extent, most)


def power_of_two(least: int) -> int:
    """The smallest power of two that is at least so large."""
    return 1 << (least - 1).bit_length()


def plan_of(gemm: Gemm, config: Config) -> Plan:
    """By rows as few threads to a row as leave BLOCKS blocks, because a thread that has more of a row
    shuffles less. If no number of threads leaves so many, there are parts of K, and a warp's lanes have their
    sums. By columns tiles and parts of K for which the busiest SM reads least."""
    if by_rows(gemm):
        return plan_of_rows(gemm, config)
    size = element_type(gemm.dtype).itemsize
    return min(plans_of_columns(gemm, config), key=lambda plan: reading(plan, size))


def planned(gemm: Gemm, config: Config, lanes: int, most_parts: int = 1) -> Plan:
    """With so many lanes, and at most so many parts of K, all of as many iterations."""
    rows, width, block = by_rows(gemm), width_of(gemm), config.block
    lines, vectors = max(gemm.m, gemm.n), min(gemm.m, gemm.n)
    narrow, values = gemm.vector // width, config.tm if rows else width
    ahead = max(1, config.loads // (values * ceil_div(vectors, 2) if rows else vectors))
    ahead = min(ahead * narrow, max(8, config.loads))
    tiles = ceil_div(lines, (block // lanes if rows else lanes) * values)
    plan = Plan(rows, vectors, block, width, lanes, values, ahead, tiles, parts=1, iterations=0)
    iterations = ceil_div(gemm.k, plan.step * most_parts)
    return replace(plan, parts=ceil_div(gemm.k, plan.step * iterations), iterations=iterations)


def plan_of_rows(gemm: Gemm, config: Config) -> Plan:
    alone, block = planned(gemm, config, config.block), config.block
    most = min(block, power_of_two(ceil_div(gemm.k, alone.width * alone.ahead)))
    left = max(MOST_LEFT, 8 * block)
    lanes = max(min(WARP, most), power_of_two(ceil_div(block * alone.values * alone.vectors, left)))
    while lanes < most and planned(gemm, config, lanes).tiles < BLOCKS:
        lanes *= 2
    found = planned(gemm, config, lanes)
    parted = lanes == block and found.sums <= WARP and found.sums == power_of_two(found.sums)
    return planned(gemm, config, lanes, max(1, BLOCKS // found.tiles)) if parted else found


def plans_of_columns(gemm: Gemm, config: Config) -> Iterator[Plan]:
    """With each number of lanes that read pieces of rows of BYTES or more, and each number of parts of K
    whose blocks all run at once. A block has a thread or more for each of its sums, and their number is a
    power of two, because threads add up what parts have left."""
    lines, width, vectors = max(gemm.m, gemm.n), width_of(gemm), min(gemm.m, gemm.n)
    enough = BYTES // (width * element_type(gemm.dtype).itemsize)
    most = min(WARP, power_of_two(ceil_div(lines, width)), max(enough, MOST_SUMS // (width * vectors)))
    lanes = min(most, enough)
    while lanes <= most:
        alone = planned(gemm, config, lanes)
        yield alone
        if alone.sums <= config.block and alone.sums == power_of_two(alone.sums):
            at_once = min(SMS * SM_THREADS // config.block, PLACES // alone.sums) // alone.tiles
            for parts in range(2, min(at_once, alone.iterations) + 1):
                yield planned(gemm, config, lanes, parts)
        lanes *= 2


def reading(plan: Plan, size: int) -> tuple[float, int, int]:
    """Bytes that the busiest SM reads, and more where those under way are too few. If they are equal, a plan
    with longer pieces of rows comes first, then one of fewer parts. size: bytes of an element."""
    blocks = ceil_div(plan.tiles * plan.parts, SMS)
    under_way = blocks * plan.block * plan.ahead * plan.width * size
    return plan.iterations * max(under_way, UNDER_WAY), -plan.lanes, plan.parts


def refuses(gemm: Gemm, config: Config) -> str:
    return reason_against(gemm, config, "sgemm/bf16x6" if gemm.transposed else "sgemm/split_k")


def reason_against(gemm: Gemm, config: Config, others: str) -> str:
    """Why a configuration cannot be, or empty. others: the rung for other shapes."""
    if min(gemm.m, gemm.n) > config.vectors:
        takes = f"{config.vectors} rows or columns at most" if config.vectors > 1 else "one row or one column"
        return f"C is {gemm.m}x{gemm.n}, and this rung takes {takes}: use {others}"
    if config.block not in (128, 256, 512, 1024):
        return f"block is {config.block}: it can be 128, 256, 512 or 1024"
    if config.tm not in (1, 2, 4, 8):
        return f"tm is {config.tm}: it can be 1, 2, 4 or 8"
    if config.loads not in (1, 2, 4, 8, 16):
        return f"loads is {config.loads}: it can be 1, 2, 4, 8 or 16"
    if not 1 <= config.vectors <= MOST_VECTORS:
        return f"vectors is {config.vectors}: it can be 1 to {MOST_VECTORS}"
    if 4 * config.block * max(8, config.vectors) > STATIC_SHARED:
        return f"sums of {config.block} threads and {config.vectors} vectors exceed 48 KiB"
    return ""


def launch(gemm: Gemm, config: Config) -> Launch:
    reason = refuses(gemm, config)
    if reason:
        raise BadInput(reason)
    plan = plan_of(gemm, config)
    return Launch((plan.tiles, plan.parts, 1), (plan.lanes, plan.block // plan.lanes, 1))


def prim_func(gemm: Gemm, config: Config, name: str) -> PrimFunc:
    """Blocks "zero", "vector", "matrix" and "add" in a loop over iterations, "fold", "leave", "total"; and
    where there are parts of K "hand_on", "rest", "fold_rest", "leave_rest" and "total_rest"."""
    from tvm.script import tirx as T
    from tvm.tirx import FloatImm

    from tir_schedules.tir.intrinsics.device import call

    plan = plan_of(gemm, config)
    M, N, K = gemm.shape
    operands, wide, result = gemm.dtype, getattr(gemm, "accumulate", "float32"), gemm.result
    a_shape, b_shape, of_a = gemm.stored["A"], gemm.stored["B"], of_columns(gemm)
    V, U, W, lanes, rows, count = plan.values, plan.ahead, plan.width, plan.lanes, plan.by_rows, plan.vectors
    tiles, parts, iterations, S = plan.tiles, plan.parts, plan.iterations, plan.sums
    block, warps, groups, lines = plan.block, plan.block // WARP, plan.groups, max(M, N)
    across = block // lanes
    first, last = plan.folded
    folds = (first // last).bit_length()
    # Threads that share a row, one of which has its sums; or threads that have the sums of columns.
    leaders = min(lanes, WARP)
    shared_groups = max(groups, warps if parts > 1 else 1)
    loads, rounds = (V, U, W) if rows else (1, U, W), ceil_div(S, block)
    in_rows_of_b = of_a and not gemm.transposed
    near = W if rows else 1  # neighbours along K that a thread has of each vector
    # So many are read at once; where columns of B are the vectors, elements of one k follow each other.
    piece = piece_of(W * count, gemm.vector) if in_rows_of_b else near
    pieces = near * count // piece
    mine = V * count  # sums of a thread
    rest_folds = (WARP // 2 // S).bit_length() if S < WARP else 0
    together = max(S, WARP)  # threads that have all sums, each one of them or a part of one
    zero = FloatImm(wide, 0.0)
    among = block // S if S < block else 1  # threads that share a sum of what parts left

    def cast(value: Any, to: str) -> Any:
        return value if str(value.ty.dtype) == to else T.Cast(to, value)

    def of_vector(A: Any, B: Any, k: Any, n: Any, w: Any) -> Any:
        """What a thread reads of the vectors from k on, at (n, w): elements of vector n, or where columns of
        B are the vectors, those of piece n of rows of B."""
        if not in_rows_of_b:
            return (B if of_a else A)[n, k + w]
        place = k * count + n * piece + w
        return B[place // count, place % count]

    def of_piece(n: Any, w: Any) -> Any:
        """Where a thread has the element w of vector n."""
        return w * count + n if in_rows_of_b else n * near + w

    def at(part: Any, iteration: Any, u: Any, ty: Any, tx: Any, w: Any) -> Any:
        """k of a load."""
        load = (part * iterations + iteration) * U + u
        return (load * lanes + tx) * W + w if rows else load * across + ty

    def line(tile: Any, ty: Any, tx: Any, v: Any) -> Any:
        """The row or column of the matrix that a thread has."""
        return (tile * across + ty) * V + v if rows else (tile * lanes + tx) * W + v

    def of_matrix(A: Any, B: Any, line: Any, k: Any, w: Any) -> Any:
        """What a thread reads of the matrix: w elements behind (line, k)."""
        matrix, k = A if of_a else B, T.min(k, K - near)
        if rows:
            return matrix[T.min(line, lines - 1), k + w]
        return matrix[k, T.min(line, lines - W) + w]

    def of_thread(v: Any, n: Any) -> Any:
        """Which sum of a thread is that of its row or column v, and of vector n."""
        return v * count + n if rows else n * V + v

    def of_block(ty: Any, tx: Any, s: Any) -> Any:
        """The same of a block: those of columns stand in rows of C."""
        return ty * mine + s if rows else s // V * plan.lines + tx * V + s % V

    def line_of(tile: Any, c: Any) -> Any:
        """The row or column of the matrix whose sum c of a block is."""
        return tile * plan.lines + (c // count if rows else c % plan.lines)

    def of_c(tile: Any, c: Any) -> tuple[Any, Any]:
        line, n = line_of(tile, c), c % count if rows else c // plan.lines
        return (line, n) if of_a else (n, line)

    def place(tile: Any, part: Any, c: Any) -> Any:
        return (part * tiles + tile) * S + c

    left = f"<float, {tiles * parts * S}, false>"

    # What is beyond the last k or line is the last again, and is not added: a load under a condition would be
    # waited for before the next one begins.
    @T.macro
    def read(A, B, xs, vs, sums, part, tile, ty, tx):
        for iteration in T.serial(iterations):
            for u, n, w in T.grid(U, pieces, piece):
                with T.sblock("vector"):
                    k = T.meta_var(at(part, iteration, u, ty, tx, 0))
                    vs[u, n * piece + w] = of_vector(A, B, T.min(k, K - near), n, w)
            for v, u, w in T.grid(*loads):
                with T.sblock("matrix"):
                    i = T.meta_var(line(tile, ty, tx, v if rows else 0))
                    xs[v, u, w] = of_matrix(A, B, i, at(part, iteration, u, ty, tx, 0), w)
            for v, n, u, w in T.grid(loads[0], count, *loads[1:]):
                with T.sblock("add"):
                    s = T.meta_var(of_thread(v if rows else w, n))
                    y = T.meta_var(of_piece(n, w if rows else 0))
                    k = T.meta_var(at(part, iteration, u, ty, tx, w))
                    more = T.meta_var(sums[s] + cast(xs[v, u, w], wide) * cast(vs[u, y], wide))
                    sums[s] = T.Select(k < K, more, sums[s])

    @T.macro
    def fold(values, count, shuffles, distance):
        for step, v in T.grid(shuffles, count):
            with T.sblock("fold"):
                values[v] = values[v] + cast(
                    T.tvm_warp_shuffle_down(
                        T.uint32(FULL_MASK), cast(values[v], "float32"), distance >> step, WARP, WARP
                    ),
                    wide,
                )

    @T.prim_func(s_tir=True)
    def gemv(A: T.Buffer(a_shape, operands), B: T.Buffer(b_shape, operands), C: T.Buffer((M, N), result)):
        T.func_attr({"global_symbol": name, "tirx.noalias": True})
        for tile in T.thread_binding(tiles, thread="blockIdx.x"):
            for part in T.thread_binding(parts, thread="blockIdx.y"):
                for ty in T.thread_binding(across, thread="threadIdx.y"):
                    for tx in T.thread_binding(lanes, thread="threadIdx.x"):
                        sums = T.alloc_buffer((mine,), wide, scope="local")
                        total = T.alloc_buffer((1,), wide, scope="local")
                        xs = T.alloc_buffer(loads, operands, scope="local")
                        vs = T.alloc_buffer((U, count * near), operands, scope="local")
                        of_warps = T.alloc_buffer((shared_groups, S), wide, scope="shared")
                        t = T.meta_var(ty * lanes + tx)
                        for s in T.serial(mine):
                            with T.sblock("zero"):
                                sums[s] = zero
                        read(A, B, xs, vs, sums, part, tile, ty, tx)
                        fold(sums, mine, folds, first)
                        for s in T.serial(mine):
                            with T.sblock("leave"):
                                T.where(t % leaders == 0 if rows else t % WARP < leaders)
                                of_warps[tx // WARP if rows else t // WARP, of_block(ty, tx, s)] = sums[s]
                        for e in T.serial(rounds):
                            with T.sblock("total"):
                                T.where(e * block + t < S)
                                c = T.meta_var(e * block + t)
                                total[0] = of_warps[0, c]
                                for g in T.serial(1, groups):
                                    total[0] = total[0] + of_warps[g, c]
                                if parts > 1:
                                    T.evaluate(
                                        call(
                                            f"leave_sum{left}",
                                            place(tile, part, c),
                                            cast(total[0], "float32"),
                                        )
                                    )
                                else:
                                    if line_of(tile, c) < lines:
                                        C[of_c(tile, c)] = cast(total[0], result)
                        if parts > 1:
                            with T.sblock("last"):
                                if T.Not(call("is_last_block<false>", parts, returns="bool")):
                                    T.evaluate(T.thread_return())
                            with T.sblock("rest"):
                                total[0] = zero
                                for p in T.serial(ceil_div(parts, among)):
                                    if p * among + t // S < parts:
                                        total[0] = total[0] + cast(
                                            call(
                                                f"left_sum{left}",
                                                place(tile, p * among + t // S, t % S),
                                                returns="float32",
                                            ),
                                            wide,
                                        )
                                T.evaluate(call("__syncthreads"))
                            fold(total, 1, rest_folds, WARP // 2)
                            with T.sblock("leave_rest"):
                                T.where(t % together < S)
                                of_warps[t // together, t % together] = total[0]
                            with T.sblock("total_rest"):
                                T.where(t < S)
                                total[0] = of_warps[0, t]
                                for g in T.serial(1, block // together):
                                    total[0] = total[0] + of_warps[g, t]
                                if line_of(tile, t) < lines:
                                    C[of_c(tile, t)] = cast(total[0], result)

    return gemv


def schedule(sch: Schedule, gemm: Gemm, config: Config) -> None:
    """16-byte loads, all of an iteration before the first sum; what is in registers needs unrolled loops."""
    for name in ("vector", "matrix"):
        sch.vectorize(sch.get_loops(sch.get_sblock(name))[-1])
    unroll(sch, sch.get_loops(sch.get_sblock("vector"))[-3:-1])
    unroll(sch, sch.get_loops(sch.get_sblock("matrix"))[-3:-1])
    unroll(sch, sch.get_loops(sch.get_sblock("add"))[-4:])


ROWS_FROM = 4 * BLOCKS
CONFIGS = {
    "4x2": Config(),
    "4x1": Config(loads=4),
    "1x8": Config(tm=1),
    "columns": Config(block=1024, loads=4),
    "narrow_columns": Config(loads=4),
    "few": Config(vectors=8),
    "few_rows": Config(block=512, vectors=4),
}


def choose_of_one(gemm: Gemm) -> str:
    """Where C has one row or one column: four rows to a thread, two loads of each under way, where there are
    many rows, or one load if rows are so short that there would be too few blocks; else one row, with eight
    loads. By columns large blocks, if loads are at least half as wide as they can be: on an H200 1x4096x4096
    took 18.0 us with 1024 threads and 18.9 with 256, but 1x777x777 3.5 and 3.1."""
    if not by_rows(gemm):
        return "columns" if 2 * width_of(gemm) >= gemm.vector else "narrow_columns"
    return of_four_rows(gemm, CONFIGS) if gemm.m * gemm.n >= ROWS_FROM else "1x8"


def of_four_rows(gemm: Gemm, configs: Mapping[str, Config]) -> str:
    """The configuration with four rows to a thread that has enough blocks: on an H200 6000x1x296 of halves
    took 4.1 us with two loads of each row under way, and 3.0 with one, which more lanes share."""
    return "4x2" if plan_of(gemm, configs["4x2"]).tiles >= BLOCKS else "4x1"


def choose(gemm: Gemm) -> str | Config:
    """The same, or where C has a few rows or columns the configuration for several vectors, of just so many
    as there are, because the twin computes as many as it has room for."""
    count = min(gemm.m, gemm.n)
    if count == 1:
        return choose_of_one(gemm)
    most = CONFIGS["few" if by_rows(gemm) else "few_rows"]
    return replace(most, vectors=min(count, most.vectors))


RUNG = Rung(
    family="sgemm",
    name="gemv",
    summary="C of a few columns or rows: the matrix is read once, in wide loads; sums by shuffles",
    article="beyond 000",
    config=CONFIGS["4x2"],
    configs=CONFIGS,
    choose=choose,
    shapes="N up to 8, M up to 4 (nt: 8); others are for sgemm/split_k",
    schedule=schedule,
    launch=launch,
    refuses=refuses,
    prim_func=prim_func,
)

if __name__ == "__main__":
    run_as_script(RUNG)
