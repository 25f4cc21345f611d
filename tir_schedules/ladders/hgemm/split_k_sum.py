"""Adds up the parts of C that `split_k` leaves: its second launch.

A thread has four neighbours of a row of C, 16 bytes of each part, and warps of a block have the same elements
of different parts: the first has part 0, the next part 1, and where parts are more than warps, so on from the
first warp. So there are loads enough under way where C is small, and of 64 parts none waits for more than
eight. Each warp adds its parts in their order; the first one adds what they have found, in the order of the
warps, through shared memory. The order is the same in every run, whichever part was ready first.

The sum is float32. It becomes an element of C at the end, once.
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
from tir_schedules.workloads.partial_sums import RoundedSums

VECTOR = 4  # elements of a part in 16 bytes


@dataclass(frozen=True)
class Config:
    """most_warps: of a block, that share parts; fewer where parts are fewer."""

    most_warps: int = 8


def warps_of(sums: RoundedSums, config: Config) -> int:
    return min(config.most_warps, sums.parts)


def launch(sums: RoundedSums, config: Config) -> Launch:
    pieces = sums.m * (sums.pitch // VECTOR)
    return Launch((ceil_div(pieces, WARP), 1, 1), (WARP, warps_of(sums, config), 1))


def prim_func(sums: RoundedSums, config: Config, name: str) -> PrimFunc:
    """Blocks "zero" and "load" of a warp's sums, "share" of these with the first warp, "add" and "store" of
    what that makes of them."""
    from tvm.script import tirx as T

    M, N, parts, result = sums.m, sums.n, sums.parts, sums.result
    across, warps = sums.pitch // VECTOR, warps_of(sums, config)
    pieces, blocks, turns = M * across, launch(sums, config).grid[0], ceil_div(parts, warps)
    zero = T.float32(0)

    def cast(value: Any) -> Any:
        return T.Cast(result, value) if result != "float32" else value

    @T.prim_func(s_tir=True)
    def add_up(S: T.Buffer((parts, M, sums.pitch), "float32"), C: T.Buffer((M, N), result)):
        T.func_attr({"global_symbol": name, "tirx.noalias": True})
        for b in T.thread_binding(blocks, thread="blockIdx.x"):
            for w in T.thread_binding(warps, thread="threadIdx.y"):
                for t in T.thread_binding(WARP, thread="threadIdx.x"):
                    found = T.alloc_buffer((VECTOR,), "float32", scope="local")
                    part = T.alloc_buffer((turns, VECTOR), "float32", scope="local")
                    shared = T.alloc_buffer((warps, WARP, VECTOR), "float32", scope="shared")
                    for turn in T.unroll(turns):
                        for e in T.vectorized(VECTOR):
                            with T.sblock("load"):
                                vp = T.axis.spatial(blocks * WARP, b * WARP + t)
                                vw, vr, ve = T.axis.remap("SSS", [w, turn, e])
                                T.where(b * WARP + t < pieces and turn * warps + w < parts)
                                part[vr, ve] = S[vr * warps + vw, vp // across, vp % across * VECTOR + ve]
                    for e in T.unroll(VECTOR):
                        with T.sblock("zero"):
                            ve = T.axis.spatial(VECTOR, e)
                            found[ve] = zero
                    for turn in T.unroll(turns):
                        for e in T.unroll(VECTOR):
                            with T.sblock("add"):
                                vr, ve = T.axis.remap("RS", [turn, e])
                                T.where(b * WARP + t < pieces and turn * warps + w < parts)
                                found[ve] = found[ve] + part[vr, ve]
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
                            vp = T.axis.spatial(blocks * WARP, b * WARP + t)
                            ve = T.axis.spatial(VECTOR, e)
                            T.where(
                                w == 0 and b * WARP + t < pieces and (b * WARP + t) % across * VECTOR + e < N
                            )
                            C[vp // across, vp % across * VECTOR + ve] = cast(found[ve])

    return add_up


def schedule(sch: Schedule, sums: RoundedSums, config: Config) -> None:
    """Elements are stored together where rows of C allow."""
    element = sch.get_loops(sch.get_sblock("store"))[-1]
    (sch.unroll if sums.n % VECTOR else sch.vectorize)(element)


RUNG = Rung(
    family="hgemm",
    name="split_k_sum",
    summary="adds up the partial sums of split_k",
    config=Config(),
    schedule=schedule,
    launch=launch,
    prim_func=prim_func,
    passes=("early_launch",),
)
