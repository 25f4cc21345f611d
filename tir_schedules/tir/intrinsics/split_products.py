"""Products of parts by wgmma, and their sums, which are added to others in float32 now and then.

An element of A or B is a sum of parts. A K tile in shared memory has all parts of its elements, each as a
matrix of its own in rows along K. Which parts are multiplied is a list of pairs; all products of a K tile are
one group.

A tensor core cuts its sums off, it does not round: of long sums more is lost than by additions in float32. So
sums of a part of K begin from 0, and `promote` adds them to others, in registers as well.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from typing import Any, Callable

from tvm.backend.cuda.op import cuda_func_call
from tvm.script import tirx as T

from tir_schedules.tir.intrinsics import in_halves, ring
from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.intrinsics.wgmma import (
    ROWS,
    SHARED,
    SUMS,
    THREADS,
    fence_text,
    place_of_sum,
    product_text,
)
from tir_schedules.tir.schedule import PrimFunc

STEP = 32  # bytes of a row along K, of a product
SIZES = {"float16": 2, "bfloat16": 2, "float32": 4}  # bytes; float32 are tf32
TURN = "wait_for_turn"

Pairs = tuple[tuple[int, int], ...]


def sum_of_products(left: Callable[[int], Any], right: Callable[[int], Any], pairs: Pairs) -> Any:
    """The products of parts in float32, added up. left, right: a part of an element of A, or of B."""
    first, *others = (T.Cast("float32", left(i)) * T.Cast("float32", right(j)) for i, j in pairs)
    for each in others:
        first = first + each
    return first


def partial_sums_map(n: int) -> Callable[[Any, Any, Any], list[Any]]:
    """As `wgmma.sums_map`, with the number of a part of K before it."""

    def index_map(part: Any, i: Any, j: Any) -> list[Any]:
        return [part, j // n, *place_of_sum(i, j % n)]

    return index_map


def group_text(name: str, product: str, blocks: int, n: int, row: int, pairs: Pairs) -> str:
    """A device function that starts all products of a K tile. row: bytes of its rows."""
    lines = [
        f"    {product}((&first)[{block * n // 2}],"
        f" further(tile_a, {i} * a_part + {block * ROWS * row + step * STEP}),"
        f" further(tile_b, {j} * b_part + {step * STEP}), {'1' if number or step else 'added'});"
        for number, (i, j) in enumerate(pairs)
        for step in range(row // STEP)
        for block in range(blocks)
    ]
    return f"""// Starts the products of parts of a K tile. a, b: addresses of the first parts.
// a_part, b_part: bytes to the next. added: 0 where sums are to begin with them.
static __device__ __forceinline__ void {name}(float &first, unsigned a, unsigned a_part, unsigned b,
                                              unsigned b_part, int added)
{{
    const unsigned long long tile_a = describe_rows<{row}>(a), tile_b = describe_rows<{row}>(b);
{chr(10).join(lines)}
    commit_products();
}}
"""


@in_halves
def multiply(
    describes: bool, blocks: int, n: int, dtype: str, depth: int, parts: int, pairs: Pairs, turns: int = 0
) -> PrimFunc:
    """sums += the products of parts of a K tile: blocks * 64 rows of A, n columns of B, `depth` deep, which a
    producer warpgroup has copied. Three statements as in `wgmma.multiply`.

    turns: warpgroups that take turns, see turns.cuh; 0 where they do not."""
    rows, places, takes_turns = blocks * ROWS, n // 2, turns > 0
    size = SIZES[dtype]
    product = f"multiply_64x{n}x{STEP // size}"
    name = f"multiply_parts_{rows}x{n}x{depth}"
    fence = fence_text(blocks * n // 2, "float32")
    text = product_text(product, n, dtype, "float32", (True, True), True) + group_text(
        name, product, blocks, n, size * depth, pairs
    )

    def added(A: Any, B: Any, i: Any, j: Any, k: Any) -> Any:
        return sum_of_products(lambda part: A[part, i, k], lambda part: B[part, j, k], pairs)

    def address(buffer: Any) -> Any:
        return call("shared_address", T.address_of(buffer[0, 0, 0]), returns="uint32")

    def bytes_of(stride: Any) -> Any:
        return T.Cast("uint32", stride * size)

    @T.prim_func(s_tir=True)
    def half(a: T.handle, b: T.handle, c: T.handle) -> None:
        a_part, b_part = T.int32(), T.int32()
        A = T.match_buffer(
            a,
            (parts, rows, depth),
            dtype,
            align=64,
            offset_factor=1,
            scope=SHARED,
            strides=[a_part, depth, 1],
        )
        B = T.match_buffer(
            b, (parts, n, depth), dtype, align=64, offset_factor=1, scope=SHARED, strides=[b_part, depth, 1]
        )
        C = T.match_buffer(c, (blocks, THREADS, places), "float32", align=4, offset_factor=1, scope=SUMS)
        with T.sblock("root"):
            T.reads(C[0:blocks, 0:THREADS, 0:places], A[0:parts, 0:rows, 0:depth], B[0:parts, 0:n, 0:depth])
            T.writes(C[0:blocks, 0:THREADS, 0:places])
            if describes:
                for i, j, k in T.grid(rows, n, depth):
                    with T.sblock("multiply"):
                        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                        at = T.meta_var(place_of_sum(vi, vj))
                        T.reads(C[at], A[0:parts, vi, vk], B[0:parts, vj, vk])
                        T.writes(C[at])
                        C[at] = C[at] + added(A, B, vi, vj, vk)
            else:
                for thread in T.thread_binding(0, THREADS, "threadIdx.x"):
                    T.evaluate(call("wait_for_parity", ring.full(), ring.phase()))
                    if takes_turns:
                        T.evaluate(call(f"{TURN}<{turns}>"))
                    T.evaluate(cuda_func_call("begin_sums", C[0, thread, 0], source_code=fence))
                    T.evaluate(
                        cuda_func_call(
                            name, C[0, thread, 0], address(A), bytes_of(a_part), address(B), bytes_of(b_part),
                            ring.added(), source_code=text,
                        )
                    )  # fmt: skip
                    if takes_turns:
                        T.evaluate(call(f"pass_turn<{turns}>"))
                    T.evaluate(call("wait_for_products<1>"))

    return half


@in_halves
def promote(describes: bool, blocks: int, n: int) -> PrimFunc:
    """sums += those of a part of K, whose products are done: blocks * 64 rows, n columns."""
    rows, places = blocks * ROWS, n // 2
    fence = fence_text(blocks * n // 2, "float32")

    @T.prim_func(s_tir=True)
    def half(p: T.handle, c: T.handle) -> None:
        P = T.match_buffer(p, (blocks, THREADS, places), "float32", align=4, offset_factor=1, scope=SUMS)
        C = T.match_buffer(c, (blocks, THREADS, places), "float32", align=4, offset_factor=1, scope=SUMS)
        with T.sblock("root"):
            T.reads(C[0:blocks, 0:THREADS, 0:places], P[0:blocks, 0:THREADS, 0:places])
            T.writes(C[0:blocks, 0:THREADS, 0:places])
            if describes:
                for i, j in T.grid(rows, n):
                    with T.sblock("promote"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        at = T.meta_var(place_of_sum(vi, vj))
                        T.reads(C[at], P[at])
                        T.writes(C[at])
                        C[at] = C[at] + P[at]
            else:
                for thread in T.thread_binding(0, THREADS, "threadIdx.x"):
                    # After the wait nvcc must not take them for what they were before: they are operands.
                    T.evaluate(cuda_func_call("begin_sums", P[0, thread, 0], source_code=fence))
                    for block in T.unroll(blocks):
                        for place in T.unroll(places):
                            C[block, thread, place] = C[block, thread, place] + P[block, thread, place]

    return half
