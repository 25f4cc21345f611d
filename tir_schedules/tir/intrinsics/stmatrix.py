"""stmatrix: the sums of a warpgroup to shared memory, in the format and layout that boxes are stored from.

A box has 64 rows of 128 bytes: 64 columns of 16 bits, or 32 of float32, which stmatrix does not know; lanes
then store their pairs themselves.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from typing import Any

from tvm.backend.cuda.op import cuda_func_call
from tvm.script import tirx as T

from tir_schedules.tir.intrinsics import Intrinsic, intrinsic
from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.intrinsics.wgmma import ROWS, SHARED, SUMS, THREADS, share

PART = 16  # columns that are stored at once
PAIRS = {
    ("float32", "float16"): "__floats2half2_rn",
    ("float32", "bfloat16"): "__floats2bfloat162_rn",
    ("float16", "float16"): "__halves2half2",
}
"""Formats of sums and of C -> the function that makes two neighbours in the format of C of two sums."""

SYNC = """\
// __syncthreads for the threads of this warpgroup.
static __device__ inline void sync_own_warpgroup()
{
    sync_warpgroup(threadIdx.y + 1);
}
"""

HEAD = """\
// Stores 8 sums of a thread, 16 columns of its warp's 16 rows, in boxes of rows of 128 bytes. boxes: the
// address of the first; `next` bytes on are those of the next columns. part: which 16 columns.
static __device__ __forceinline__ void
store_sums(unsigned boxes, int next, int part, {sums} &first)
{{
    const {sums} *const sums = &first;
"""

MATRICES = """{pairs}
    const unsigned values[4] = {{{values}}};
    const unsigned row = threadIdx.x / 32 * 16 + threadIdx.x % 16;
    const unsigned piece = (part % 4 * 2 + threadIdx.x % 32 / 16) ^ row % 8;
    store_matrices(boxes + part / 4 * next + row * 128 + piece * 16, values);
}}
"""

FLOATS = """    const unsigned row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    const unsigned place = boxes + part / 2 * next + row * 128 + threadIdx.x % 2 * 8;
    const unsigned piece = part % 2 * 4 + threadIdx.x % 4 / 2;
{stores}
}}
"""
STORE_PAIR = """    asm volatile("st.shared.v2.f32 [%0], {{%1, %2}};" ::"r"(
                     place + {rows} + ((piece + {pieces}) ^ row % 8) * 16),
                 "f"(sums[{first}]), "f"(sums[{second}])
                 : "memory");"""


def text_of(accumulate: str, result: str) -> str:
    """A device function that stores some sums of a thread. It has no directive, such as that to unroll a
    loop: what stands before the last one is read with the headers, see compiler/front_end.py."""
    sums = "float" if accumulate == "float32" else "half"
    if result == "float32":
        stores = [
            STORE_PAIR.format(rows=half * 8 * 128, pieces=eight * 2, first=first, second=first + 1)
            for eight in range(2)
            for half in range(2)
            for first in [eight * 4 + half * 2]
        ]
        return (HEAD + FLOATS).format(sums=sums, stores="\n".join(stores))
    made = PAIRS[accumulate, result]
    pairs = [f"    const auto pair_{i} = {made}(sums[{2 * i}], sums[{2 * i + 1}]);" for i in range(4)]
    values = ", ".join(f"reinterpret_cast<const unsigned &>(pair_{i})" for i in range(4))
    return (HEAD + MATRICES).format(sums=sums, pairs="\n".join(pairs), values=values)


@intrinsic
def store(blocks: int, n: int, rows: int, accumulate: str, result: str) -> Intrinsic:
    """blocks * 64 rows and n columns of sums to shared memory, in the format `result`: as many slabs of
    128-byte rows as there must be, `rows` of them in each. It waits until what stood there has been stored;
    afterwards it is ready to be stored."""
    places, height = n // 2, blocks * ROWS
    width = 32 if result == "float32" else 64  # of rows of 128 bytes
    text = text_of(accumulate, result)

    def cast(value: Any) -> Any:
        return T.Cast(result, value) if result != accumulate else value

    def place_of_sum(i: Any, j: Any) -> tuple[Any, ...]:
        return (i // ROWS, *share(i % ROWS, j))

    def wait() -> Any:
        return cuda_func_call("sync_own_warpgroup", source_code=SYNC)

    @T.prim_func(s_tir=True)
    def description(c: T.handle, s: T.handle) -> None:
        C = T.match_buffer(c, (blocks, THREADS, places), accumulate, align=4, offset_factor=1, scope=SUMS)
        S = T.match_buffer(s, (n // width, height, width), result, align=64, offset_factor=1, scope=SHARED)
        with T.sblock("root"):
            T.reads(C[0:blocks, 0:THREADS, 0:places])
            T.writes(S[0 : n // width, 0:height, 0:width])
            for i, j in T.grid(height, n):
                with T.sblock("store"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    at_c = T.meta_var(place_of_sum(vi, vj))
                    T.reads(C[at_c])
                    T.writes(S[vj // width, vi, vj % width])
                    S[vj // width, vi, vj % width] = cast(C[at_c])

    @T.prim_func(s_tir=True)
    def implementation(c: T.handle, s: T.handle) -> None:
        C = T.match_buffer(c, (blocks, THREADS, places), accumulate, align=4, offset_factor=1, scope=SUMS)
        S = T.match_buffer(s, (n // width, height, width), result, align=64, offset_factor=1, scope=SHARED)
        with T.sblock("root"):
            T.reads(C[0:blocks, 0:THREADS, 0:places])
            T.writes(S[0 : n // width, 0:height, 0:width])
            boxes = T.meta_var(call("shared_address", T.address_of(S[0, 0, 0]), returns="uint32"))
            for thread in T.thread_binding(0, THREADS, "threadIdx.x"):
                if thread == 0:
                    T.evaluate(call("wait_until_stores_have_read"))
                T.evaluate(wait())
                for block in T.unroll(blocks):
                    for part in T.unroll(n // PART):
                        T.evaluate(
                            cuda_func_call(
                                "store_sums", boxes + T.Cast("uint32", block * (ROWS * 128)), rows * 128,
                                part, C[block, thread, part * (PART // 2)], source_code=text,
                            )
                        )  # fmt: skip
                T.evaluate(call("fence_async_proxy"))
                T.evaluate(wait())

    return description, implementation
