"""wgmma: a warpgroup's products straight from shared memory, sums in its registers.

A warpgroup is 128 threads on threadIdx.x. It multiplies 64 rows of A with n columns of B, 16 deep at a
time. Both lie in shared memory in rows of 64 elements, 128 bytes, under the swizzle of 128 bytes: 16-byte
piece p of row r at p ^ (r % 8). Rows of A, and of a B stored as n x k, go along k; a B stored as k x n lies
in boxes of 64 columns, whose rows go along n.

The sums have TVM's scope "warp": what is in it belongs to the threads of a warp together, each holding a
part. TVM divides such a buffer among the lanes by itself where one of its dimensions counts them. With
`Schedule.set_warp_size(128)` its "warp" is a warpgroup, and `share` says which thread holds which sum.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from typing import Any, Callable

from tvm.backend.cuda.op import cuda_func_call
from tvm.script import tirx as T

from tir_schedules.tir.intrinsics import in_halves, ring
from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.schedule import PrimFunc

ROWS = 64  # of a product
DEPTH = 64  # of a K tile
THREADS = 128
SHARED, SUMS = "shared.dyn", "warp"
BOX_BYTES = DEPTH * 64 * 2
"""Bytes of 64 columns of a B stored as k x n."""

COPIED, FENCED, AWAITED, GIVEN = "copied", "fenced", "awaited", "given"
"""How operands come to be there. COPIED: stored by threads, with TVM's barriers around stores and reads.
FENCED: by asynchronous copies of threads. AWAITED: by TMA; every thread arrives at the K tile's
barrier, and waits. GIVEN: by a producer warpgroup, see the pass
`warp_specialization`."""

SUM_BYTES = {"float16": 2, "float32": 4}
PTX_TYPES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32"}


def share(row: Any, column: Any) -> tuple[Any, Any]:
    """Which thread of the warpgroup holds the sum of a row and column, of 64 and n, and in which place of
    its."""
    thread = row // 16 * 32 + row % 8 * 4 + column % 8 // 2
    return thread, column // 8 * 4 + row % 16 // 8 * 2 + column % 2


def place_of_sum(i: Any, j: Any) -> tuple[Any, ...]:
    """Where a warpgroup has the sum of a row and a column of its tile: 64 rows; thread; place."""
    return (i // ROWS, *share(i % ROWS, j))


def sums_map(n: int) -> Callable[[Any, Any], list[Any]]:
    """The index map, for `transform_layout`, of all sums: column of tiles, n wide; 64 rows; thread; place."""

    def index_map(i: Any, j: Any) -> list[Any]:
        return [j // n, *place_of_sum(i, j % n)]

    return index_map


def operand_map(along_k: bool, by_k_tile: bool) -> Callable[[Any, Any], list[Any]]:
    """The index map of an operand as it lies in shared memory. along_k: its rows go along k; else it has
    boxes of 64 columns. by_k_tile: first comes the number of the K tile along k."""

    def index_map(row: Any, column: Any) -> list[Any]:
        if along_k:
            return [column // DEPTH, row, column % DEPTH] if by_k_tile else [row, column]
        number = [row // DEPTH] if by_k_tile else []
        return [*number, column // 64, row % DEPTH if by_k_tile else row, column % 64]

    return index_map


def operands_of(count: int, accumulate: str) -> tuple[str, str]:
    """The head of a device function that takes so many registers of sums by the first sum, and the registers
    as operands of inline assembly that reads and writes them."""
    kind, sums, register = ("+f", "float", "float") if accumulate == "float32" else ("+r", "half", "unsigned")
    head = f"""({sums} &first{{}})
{{{{
    {register} *const sums = reinterpret_cast<{register} *>(&first);"""
    return head, ", ".join(f'"{kind}"(sums[{place}])' for place in range(count))


def product_text(
    name: str,
    n: int,
    dtype: str,
    accumulate: str,
    along_k: tuple[bool, bool] = (True, True),
    begins: bool = False,
    of_registers: bool = False,
) -> str:
    """A device function with one wgmma. along_k: whether rows of its operands go along k. begins: it has one
    argument more, which is 0 where sums are to begin with the products. of_registers: rows of A are in four
    registers, and not in shared memory."""
    count, of_a = n * SUM_BYTES[accumulate] // 8, 4 if of_registers else 1
    head, outputs = operands_of(count, accumulate)
    types = ".".join(PTX_TYPES[each] for each in (accumulate, dtype, dtype))
    in_shared = along_k[1:] if of_registers else along_k
    depth, transposed = 16, "".join(f", {int(not each)}" for each in in_shared)
    if dtype == "float32":  # tf32, which rows along k alone can have
        types, depth, transposed = "f32.tf32.tf32", 8, ""
    names = ", ".join(f"%{place}" for place in range(count))
    a, a_inputs, a_argument = f"%{count}", '"l"(a)', "unsigned long long a"
    if of_registers:
        a = f"{{{', '.join(f'%{count + place}' for place in range(of_a))}}}"
        a_inputs = ", ".join(f'"r"(a[{place}])' for place in range(of_a))
        a_argument = f"const unsigned (&a)[{of_a}]"
    arguments = f", {a_argument}, unsigned long long b" + (", int added" if begins else "")
    added, operand = "setp.eq.b32 add, 0, 0", ""
    if begins:
        added, operand = f"setp.ne.b32 add, %{count + of_a + 1}, 0", ', "r"(added)'
    rows = f"64 x {depth} of A" + (", in registers," if of_registers else "")
    return f"""// Adds the products of {rows} with {depth} x {n} of B to the sums of a thread.
static __device__ __forceinline__ void {name}{head.format(arguments)}
    asm volatile("{{\\n"
                 ".reg .pred add;\\n"
                 "{added};\\n"
                 "wgmma.mma_async.sync.aligned.m64n{n}k{depth}.{types}"
                 " {{{names}}},"
                 " {a}, %{count + of_a}, add, 1, 1{transposed};\\n"
                 "}}"
                 : {outputs}
                 : {a_inputs}, "l"(b){operand});
}}
"""


def fence_text(count: int, accumulate: str) -> str:
    """A device function with the fence before products. The sums are its operands, so that the compiler puts
    what it writes to them before it."""
    head, outputs = operands_of(count, accumulate)
    return f"""// Products may touch the sums from here on.
static __device__ __forceinline__ void begin_sums{head.format("")}
    asm volatile("wgmma.fence.sync.aligned;"
                 : {outputs}
                 :
                 : "memory");
}}
"""


@in_halves
def multiply(
    describes: bool,
    blocks: int,
    n: int,
    dtype: str,
    accumulate: str,
    along_k: tuple[bool, bool],
    operands: str,
) -> PrimFunc:
    """sums += A @ B for a K tile: blocks * 64 rows of A, n columns of B, 64 deep.

    along_k: whether rows of A and of B in shared memory go along k. operands: see COPIED. Three statements,
    which a pipeline can move apart: operands are there; the group of the K tile's products; this group is
    done, or where operands are AWAITED or GIVEN the one before it.
    """
    rows, places = blocks * ROWS, n // 2
    a_shape, b_shape = (
        (extent, DEPTH) if in_rows else (extent // 64, DEPTH, 64)
        for extent, in_rows in zip((rows, n), along_k)
    )
    (a_first, all_of_a), (b_first, all_of_b) = (
        ((0,) * len(shape), tuple(slice(0, extent) for extent in shape)) for shape in (a_shape, b_shape)
    )
    across_a, across_b = (16 if in_rows else BOX_BYTES for in_rows in along_k)
    # In 16 bytes, from one product to the next along k: along a row, or 16 rows on.
    step_of_a, step_of_b = (2 if in_rows else 16 * 128 // 16 for in_rows in along_k)
    name = f"multiply_64x{n}x16"
    text = product_text(name, n, dtype, accumulate, along_k)
    fence = fence_text(blocks * n * SUM_BYTES[accumulate] // 8, accumulate)

    def place_of(operand: int, k: Any, j: Any) -> tuple[Any, ...]:
        return (j, k) if along_k[operand] else (j // 64, k, j % 64)

    def cast(value: Any) -> Any:
        return T.Cast(accumulate, value) if accumulate != dtype else value

    def begin() -> Any:
        barrier = ring.full()
        if operands == AWAITED:
            return call("wait_for_token", barrier, call("arrive", barrier, returns="uint64"))
        return (
            call("wait_for_parity", barrier, ring.phase()) if operands == GIVEN else call("fence_async_proxy")
        )

    def descriptor(buffer: Any, first: tuple[Any, ...], across: int, further: Any) -> Any:
        # ThreadSync sees an access_ptr and puts barriers around it, but no address_of.
        pointer = buffer.access_ptr("r") if operands == COPIED else T.address_of(buffer[first])
        address = call("shared_address", pointer, returns="uint32")
        return call(f"describe<{across}>", address, returns="uint64") + T.Cast("uint64", further)

    def product(A: Any, B: Any, first: Any, block: Any, part: Any) -> Any:
        a = descriptor(A, a_first, across_a, block * (ROWS * 128 // 16) + part * step_of_a)
        return cuda_func_call(
            name, first, a, descriptor(B, b_first, across_b, part * step_of_b), source_code=text
        )

    @T.prim_func(s_tir=True)
    def half(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, a_shape, dtype, align=64, offset_factor=1, scope=SHARED)
        B = T.match_buffer(b, b_shape, dtype, align=64, offset_factor=1, scope=SHARED)
        C = T.match_buffer(c, (blocks, THREADS, places), accumulate, align=4, offset_factor=1, scope=SUMS)
        with T.sblock("root"):
            T.reads(C[0:blocks, 0:THREADS, 0:places], A[all_of_a], B[all_of_b])
            T.writes(C[0:blocks, 0:THREADS, 0:places])
            if describes:
                for i, j, k in T.grid(rows, n, DEPTH):
                    with T.sblock("multiply"):
                        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                        at_a, at_b = T.meta_var((place_of(0, vk, vi), place_of(1, vk, vj)))
                        at_c = T.meta_var(place_of_sum(vi, vj))
                        T.reads(C[at_c], A[at_a], B[at_b])
                        T.writes(C[at_c])
                        C[at_c] = C[at_c] + cast(A[at_a]) * cast(B[at_b])
            else:
                for thread in T.thread_binding(0, THREADS, "threadIdx.x"):
                    with T.sblock("begin"):
                        # Only A is named, because a pipeline counts the one group of copies once for each
                        # buffer that is read, and would wait for half as many as it must.
                        T.reads(A[all_of_a])
                        T.writes()
                        T.evaluate(begin())
                    with T.sblock("products"):
                        T.reads(C[0:blocks, 0:THREADS, 0:places], A[all_of_a], B[all_of_b])
                        T.writes(C[0:blocks, 0:THREADS, 0:places])
                        T.evaluate(cuda_func_call("begin_sums", C[0, thread, 0], source_code=fence))
                        for part in T.unroll(DEPTH // 16):
                            for block in T.unroll(blocks):
                                T.evaluate(product(A, B, C[block, thread, 0], block, part))
                        T.evaluate(call("commit_products"))
                    with T.sblock("end"):
                        T.reads(A[all_of_a], B[all_of_b])
                        T.writes()
                        T.evaluate(call(f"wait_for_products<{int(operands in (AWAITED, GIVEN))}>"))

    return half
