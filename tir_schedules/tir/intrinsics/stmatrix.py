"""stmatrix: the sums of a warpgroup to shared memory, in the format and layout that a box is stored from."""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from typing import Any

from tvm.backend.cuda.op import cuda_func_call
from tvm.script import tirx as T

from tir_schedules.tir.intrinsics import Intrinsic, intrinsic
from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.intrinsics.wgmma import ROWS, SHARED, SUMS, THREADS, share

NAMES = {"float16": "half", "bfloat16": "nv_bfloat16", "float32": "float"}
PAIRS = {
    ("float32", "float16"): "__floats2half2_rn(sums[i], sums[i + 1])",
    ("float32", "bfloat16"): "__floats2bfloat162_rn(sums[i], sums[i + 1])",
    ("float16", "float16"): "__halves2half2(sums[i], sums[i + 1])",
}
"""Formats of sums and of C -> two neighbouring sums in the format of C."""


def text_of(accumulate: str, result: str) -> str:
    """A device function with one stmatrix."""
    pair = PAIRS[accumulate, result]
    return f"""// Puts 8 sums of a thread, 16 columns of its warp's 16 rows, where a box is stored from. tile: 64 rows of 64
// columns, 64 more columns `slab` bytes on. part: which 16 columns. Of four 8 x 8 matrices, two of the first
// 8 columns and two of the others, lane l gives the address of row l % 8 of matrix l / 8.
static __device__ __forceinline__ void store_sums(unsigned tile, int slab, int part, {NAMES[accumulate]} &first)
{{
    const {NAMES[accumulate]} *const sums = &first;
    unsigned pairs[4];
#pragma unroll
    for (int i = 0; i < 8; i += 2) {{
        const auto pair = {pair};
        pairs[i / 2] = reinterpret_cast<const unsigned &>(pair);
    }}
    const unsigned row = threadIdx.x / 32 * 16 + threadIdx.x % 16;
    const unsigned piece = (part % 4 * 2 + threadIdx.x % 32 / 16) ^ row % 8;
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {{%1, %2, %3, %4}};" ::"r"(
                     tile + part / 4 * slab + row * 128 + piece * 16),
                 "r"(pairs[0]), "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3])
                 : "memory");
}}
"""


@intrinsic
def store(blocks: int, n: int, rows: int, accumulate: str, result: str) -> Intrinsic:
    """blocks * 64 rows and n columns of sums to slabs of 64 columns, each of `rows` rows, in the format
    `result`. What stood there has been stored before, and is ready to be stored."""
    places, height = n // 2, blocks * ROWS
    text = text_of(accumulate, result)

    def cast(value: Any) -> Any:
        return T.Cast(result, value) if result != accumulate else value

    def place_of_sum(i: Any, j: Any) -> tuple[Any, ...]:
        return (i // ROWS, *share(i % ROWS, j))

    @T.prim_func(s_tir=True)
    def description(c: T.handle, s: T.handle) -> None:
        C = T.match_buffer(c, (blocks, THREADS, places), accumulate, align=4, offset_factor=1, scope=SUMS)
        S = T.match_buffer(s, (n // 64, height, 64), result, align=64, offset_factor=1, scope=SHARED)
        with T.sblock("root"):
            T.reads(C[0:blocks, 0:THREADS, 0:places])
            T.writes(S[0 : n // 64, 0:height, 0:64])
            for i, j in T.grid(height, n):
                with T.sblock("store"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    at_c = T.meta_var(place_of_sum(vi, vj))
                    T.reads(C[at_c])
                    T.writes(S[vj // 64, vi, vj % 64])
                    S[vj // 64, vi, vj % 64] = cast(C[at_c])

    @T.prim_func(s_tir=True)
    def implementation(c: T.handle, s: T.handle) -> None:
        C = T.match_buffer(c, (blocks, THREADS, places), accumulate, align=4, offset_factor=1, scope=SUMS)
        S = T.match_buffer(s, (n // 64, height, 64), result, align=64, offset_factor=1, scope=SHARED)
        with T.sblock("root"):
            T.reads(C[0:blocks, 0:THREADS, 0:places])
            T.writes(S[0 : n // 64, 0:height, 0:64])
            tile = T.meta_var(call("shared_address", T.address_of(S[0, 0, 0]), returns="uint32"))
            for thread in T.thread_binding(0, THREADS, "threadIdx.x"):
                if thread == 0:
                    T.evaluate(call("wait_until_stores_have_read"))
                T.evaluate(call("sync_warpgroup", call("warpgroup_barrier", returns="uint32")))
                for block, part in T.grid(blocks, n // 16):
                    T.evaluate(
                        cuda_func_call(
                            "store_sums", tile + T.Cast("uint32", block * (ROWS * 128)), rows * 128, part,
                            C[block, thread, part * 8], source_code=text,
                        )
                    )  # fmt: skip
                T.evaluate(call("fence_async_proxy"))
                T.evaluate(call("sync_warpgroup", call("warpgroup_barrier", returns="uint32")))

    return description, implementation
