"""stmatrix: the sums of a warpgroup to shared memory, in the format and layout that boxes are stored from.

A box has 64 rows of 128 bytes: 64 columns of 16 bits, or 32 of float32, which stmatrix does not know; lanes
then store their pairs themselves.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from typing import Any, Callable

from tvm.backend.cuda.op import cuda_func_call
from tvm.script import tirx as T

from tir_schedules.tir.intrinsics import in_halves
from tir_schedules.tir.intrinsics.boxes import BOXES
from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.intrinsics.wgmma import ROWS, SUMS, THREADS, share
from tir_schedules.tir.schedule import PrimFunc

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
// Stores 8 sums of a thread, 16 columns of its warp's 16 rows, in the box at an address. part: which 16
// columns.
static __device__ __forceinline__ void store_sums(unsigned box, int part, {sums} &first)
{{
    const {sums} *const sums = &first;
"""

MATRICES = """{pairs}
    const unsigned values[4] = {{{values}}};
    const unsigned row = threadIdx.x / 32 * 16 + threadIdx.x % 16;
    const unsigned piece = (part * 2 + threadIdx.x % 32 / 16) ^ row % 8;
    store_matrices(box + row * 128 + piece * 16, values);
}}
"""

FLOATS = """    const unsigned row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    const unsigned place = box + row * 128 + threadIdx.x % 2 * 8;
    const unsigned piece = part * 4 + threadIdx.x % 4 / 2;
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


def boxes_map(columns: int) -> Callable[[Any, Any], list[Any]]:
    """The index map of C in shared memory: column and row of boxes, which have so many columns; row and
    column in the box."""

    def index_map(i: Any, j: Any) -> list[Any]:
        return [j // columns, i // ROWS, i % ROWS, j % columns]

    return index_map


@in_halves
def store(describes: bool, columns: int, places: int, accumulate: str, result: str) -> PrimFunc:
    """64 rows and so many columns of sums to shared memory, in the format `result`: a box, ready to be stored
    from there. places: which boxes take in turns. What stood in this one has been stored before: at the end
    of a box a warpgroup waits for what stands in the next place."""
    sums, text = columns // 2, text_of(accumulate, result)

    def cast(value: Any) -> Any:
        return T.Cast(result, value) if result != accumulate else value

    def sync() -> Any:
        return cuda_func_call("sync_own_warpgroup", source_code=SYNC)

    def wait(groups: int) -> Any:
        return call(f"wait_until_stores_have_read<{groups}>")

    @T.prim_func(s_tir=True)
    def half(c: T.handle, s: T.handle) -> None:
        C = T.match_buffer(c, (1, THREADS, sums), accumulate, align=4, offset_factor=1, scope=SUMS)
        S = T.match_buffer(s, (1, 1, ROWS, columns), result, align=64, offset_factor=1, scope=BOXES)
        with T.sblock("root"):
            T.reads(C[0, 0:THREADS, 0:sums])
            T.writes(S[0, 0, 0:ROWS, 0:columns])
            if describes:
                for i, j in T.grid(ROWS, columns):
                    with T.sblock("store"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        thread, place = T.meta_var(share(vi, vj))
                        T.reads(C[0, thread, place])
                        T.writes(S[0, 0, vi, vj])
                        S[0, 0, vi, vj] = cast(C[0, thread, place])
            else:
                box = T.meta_var(call("shared_address", T.address_of(S[0, 0, 0, 0]), returns="uint32"))
                for thread in T.thread_binding(0, THREADS, "threadIdx.x"):
                    if places == 1:  # the only place is still being stored
                        if thread == 0:
                            T.evaluate(wait(0))
                        T.evaluate(sync())
                    for part in T.unroll(columns // PART):
                        T.evaluate(
                            cuda_func_call(
                                "store_sums", box, part, C[0, thread, part * (PART // 2)], source_code=text
                            )
                        )
                    T.evaluate(call("fence_async_proxy"))
                    if places > 1:
                        if thread == 0:
                            T.evaluate(wait(places - 2))
                    T.evaluate(sync())

    return half
