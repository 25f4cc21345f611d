"""Adds up the parts of C that the `split_k` of SGEMM and of HGEMM leave: their second launch.

A thread has four neighbours of a row of C, 16 bytes of each part, because rows of parts are padded to 16
bytes. If C is large, a thread adds up all parts, in their order, and blocks have 128 threads. On an H200
three parts of 5148x214 take 3.4 us in this way, and 6.5 us with a thread for each element.

If C is small, there are fewer of these threads than SMs could have, and each would wait for part after part.
So warps of a block have the same elements of different parts: the first has part 0, the next part 1, and so
on. If there are more parts than warps, it goes on with the first warp. Each warp adds its parts in their
order. The first warp adds the sums of all warps, in the order of the warps, through shared memory. 30 parts
of 209x43 take 2.0 us in this way, and 3.4 us with a thread for all parts.

The order is the same in every run, whichever part was ready first. The sum is float32. If C has another
format, the sum is rounded once, at the end.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tir_schedules.model.gpus import WARP
from tir_schedules.model.launch import Launch, ceil_div
from tir_schedules.model.rung import Rung
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.partial_sums import PartialSums

SUMMARY = "blocks share a tile of C along K, and a second launch adds up their parts"

VECTOR = 4  # elements of a part in 16 bytes
ALONE = 128  # threads of a block, where none shares its elements
AT_ONCE = 8  # parts that a thread asks for before it adds them


@dataclass(frozen=True)
class Config:
    """most_warps: of a block, that share parts; fewer where parts are fewer. large: pieces of 16 bytes of a
    part from which on one thread adds up all parts."""

    most_warps: int = 8
    large: int = 8192


def pieces_of(sums: PartialSums) -> int:
    """16 bytes each, of a part."""
    return sums.m * (sums.pitch // VECTOR)


def block_of(sums: PartialSums, config: Config) -> tuple[int, int]:
    """Pieces that a block adds up, and warps that share the parts of each."""
    if pieces_of(sums) >= config.large:
        return ALONE, 1
    return WARP, min(config.most_warps, sums.parts)


def launch(sums: PartialSums, config: Config) -> Launch:
    wide, warps = block_of(sums, config)
    return Launch((ceil_div(pieces_of(sums), wide), 1, 1), (wide, warps, 1))


def prim_func(sums: PartialSums, config: Config, name: str) -> PrimFunc:
    """Blocks "zero", "load" and "add" of a thread's sums, "share" of these with the first warp, "warps" that
    adds them, and "store" of what that makes of them."""
    from tvm.script import tirx as T

    M, N, parts, result = sums.m, sums.n, sums.parts, sums.result
    wide, warps = block_of(sums, config)
    across, pieces, blocks = sums.pitch // VECTOR, pieces_of(sums), ceil_div(pieces_of(sums), wide)
    iterations = ceil_div(parts, warps)
    at_once = min(iterations, AT_ONCE)
    zero = T.float32(0)

    def cast(value: Any) -> Any:
        return T.Cast(result, value) if result != "float32" else value

    @T.prim_func(s_tir=True)
    def add_up(S: T.Buffer((parts, M, sums.pitch), "float32"), C: T.Buffer((M, N), result)):
        T.func_attr({"global_symbol": name, "tirx.noalias": True})
        for b in T.thread_binding(blocks, thread="blockIdx.x"):
            for w in T.thread_binding(warps, thread="threadIdx.y"):
                for t in T.thread_binding(wide, thread="threadIdx.x"):
                    found = T.alloc_buffer((VECTOR,), "float32", scope="local")
                    part = T.alloc_buffer((at_once, VECTOR), "float32", scope="local")
                    for e in T.unroll(VECTOR):
                        with T.sblock("zero"):
                            ve = T.axis.spatial(VECTOR, e)
                            found[ve] = zero
                    for iteration in T.serial(ceil_div(iterations, at_once)):
                        for asked in T.unroll(at_once):
                            for e in T.vectorized(VECTOR):
                                with T.sblock("load"):
                                    vp = T.axis.spatial(blocks * wide, b * wide + t)
                                    vw, vt, va, ve = T.axis.remap("SSSS", [w, iteration, asked, e])
                                    T.where(
                                        b * wide + t < pieces
                                        and (iteration * at_once + asked) * warps + w < parts
                                    )
                                    part[va, ve] = S[
                                        (vt * at_once + va) * warps + vw,
                                        vp // across,
                                        vp % across * VECTOR + ve,
                                    ]
                        for asked in T.unroll(at_once):
                            for e in T.unroll(VECTOR):
                                with T.sblock("add"):
                                    va, ve = T.axis.remap("RS", [asked, e])
                                    T.where(
                                        b * wide + t < pieces
                                        and (iteration * at_once + asked) * warps + w < parts
                                    )
                                    found[ve] = found[ve] + part[va, ve]
                    if warps > 1:
                        shared = T.alloc_buffer((warps, WARP, VECTOR), "float32", scope="shared")
                        for e in T.vectorized(VECTOR):
                            with T.sblock("share"):
                                vw, vt, ve = T.axis.remap("SSS", [w, t, e])
                                shared[vw, vt, ve] = found[ve]
                        for e in T.unroll(VECTOR):
                            for other in T.unroll(1, warps):
                                with T.sblock("warps"):
                                    vt, ve = T.axis.remap("SS", [t, e])
                                    vo = T.axis.reduce((1, warps), other)
                                    T.where(w == 0)
                                    found[ve] = found[ve] + shared[vo, vt, ve]
                    for e in T.serial(VECTOR):
                        with T.sblock("store"):
                            vp = T.axis.spatial(blocks * wide, b * wide + t)
                            ve = T.axis.spatial(VECTOR, e)
                            T.where(
                                w == 0 and b * wide + t < pieces and (b * wide + t) % across * VECTOR + e < N
                            )
                            C[vp // across, vp % across * VECTOR + ve] = cast(found[ve])

    return add_up


def schedule(sch: Schedule, sums: PartialSums, config: Config) -> None:
    """Elements are stored together where rows of C allow."""
    element = sch.get_loops(sch.get_sblock("store"))[-1]
    (sch.unroll if sums.n % VECTOR else sch.vectorize)(element)
    sch.overlap_launches()


def rung(family: str) -> Rung:
    """The rung of this launch for a ladder; each ladder has a twin of it."""
    return Rung(
        family=family,
        name="split_k_sum",
        summary="adds up the partial sums of split_k",
        config=Config(),
        schedule=schedule,
        launch=launch,
        prim_func=prim_func,
    )
