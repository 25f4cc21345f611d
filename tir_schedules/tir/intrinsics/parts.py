"""Partial sums of Stream-K: several programs multiply K tiles of a tile of C, and one adds their sums.

An intrinsic knows the sums, not which K tiles they are of. So it has placeholders for that, and the pass
`persistent_kernel` replaces them.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from typing import Any

from tvm.backend.cuda.op import cuda_func_call
from tvm.script import tirx as T

from tir_schedules.tir.intrinsics import in_halves
from tir_schedules.tir.intrinsics.wgmma import ROWS, SUM_BYTES, SUMS, THREADS, place_of_sum
from tir_schedules.tir.schedule import PrimFunc

SHARED = ("leaves", "program", "end", "each", "extra", "programs")
"""What calls stand for: the arguments of `share_sums`, see streamed_parts.cuh."""

PREFIX = "tir_schedules.parts."


TEXT = """\
// What a thread does with its sums. `own` is here for TVM: where these are needed no longer it would have the
// others in their place, under another name, which it cannot divide among threads.
static __device__ __forceinline__ void whole_sums({sums} &whole, const {sums} &own, bool leaves, int program,
                                                  int end, int each, int extra, int programs)
{{
    {shared}(whole, leaves, program, end, each, extra, programs);
}}
"""


@in_halves
def whole(describes: bool, blocks: int, n: int, accumulate: str, programs: int, consumers: int) -> PrimFunc:
    """The sums of all K tiles, from those of a program's share: blocks * 64 rows, n columns. programs,
    consumers: programs, and consumer warpgroups of each."""
    rows, places = blocks * ROWS, n // 2
    vectors = blocks * places * SUM_BYTES[accumulate] // 16
    text = TEXT.format(
        sums="float" if accumulate == "float32" else "half",
        shared=f"share_sums<{programs}, {consumers * THREADS // 32}, {vectors}>",
    )

    def known(what: str) -> Any:
        return T.call_extern("bool" if what == "leaves" else "int32", PREFIX + what)

    def whole_sums(whole: Any, own: Any) -> Any:
        return cuda_func_call("whole_sums", whole, own, *map(known, SHARED), source_code=text)

    @T.prim_func(s_tir=True)
    def half(c: T.handle, w: T.handle) -> None:
        C = T.match_buffer(c, (blocks, THREADS, places), accumulate, align=4, offset_factor=1, scope=SUMS)
        W = T.match_buffer(w, (blocks, THREADS, places), accumulate, align=4, offset_factor=1, scope=SUMS)
        with T.sblock("root"):
            T.reads(C[0:blocks, 0:THREADS, 0:places])
            T.writes(W[0:blocks, 0:THREADS, 0:places])
            if describes:
                for i, j in T.grid(rows, n):
                    with T.sblock("whole"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        at = T.meta_var(place_of_sum(vi, vj))
                        T.reads(C[at])
                        T.writes(W[at])
                        W[at] = C[at]
            else:
                for thread in T.thread_binding(0, THREADS, "threadIdx.x"):
                    for block in T.unroll(blocks):
                        for place in T.unroll(places):
                            W[block, thread, place] = C[block, thread, place]
                    T.evaluate(whole_sums(W[0, thread, 0], C[0, thread, 0]))

    return half
