"""A matrix copied from rows that start with a line of L2 to where it belongs: the launch after `repacked`.

A row of C may start at any address, but C itself is aligned. So its elements are taken eight by eight, across
rows, and stored as 16 bytes. A thread loads its eight elements one by one, because they may begin in the
middle of a row and end in the next. L1 serves them as in `repack`. One thread stores the remaining elements,
fewer than eight.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from tir_schedules.model.launch import Launch, ceil_div
from tir_schedules.model.rung import NoConfig, Preparation, Rung
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.half_gemm import VECTOR, HalfGemm
from tir_schedules.workloads.repacking import Unpacking

THREADS = 256  # of a block


def launch(unpacking: Unpacking, config: NoConfig) -> Launch:
    pieces = ceil_div(unpacking.rows * unpacking.columns, VECTOR)
    return Launch((ceil_div(pieces, THREADS), 1, 1), (THREADS, 1, 1))


def prim_func(unpacking: Unpacking, config: NoConfig, name: str) -> PrimFunc:
    """Blocks "load" and "store" of a thread's eight elements, and "rest" of those that are left."""
    from tvm.script import tirx as T

    rows, columns, pitch = unpacking.rows, unpacking.columns, unpacking.pitch
    elements = rows * columns
    blocks, whole, rest = launch(unpacking, config).grid[0], elements // VECTOR, elements % VECTOR

    @T.prim_func(s_tir=True)
    def unpack(X: T.Buffer((rows, pitch), "uint16"), Y: T.Buffer((elements,), "uint16")):
        T.func_attr({"global_symbol": name, "tirx.noalias": True})
        for b in T.thread_binding(blocks, thread="blockIdx.x"):
            for t in T.thread_binding(THREADS, thread="threadIdx.x"):
                eight = T.alloc_buffer((VECTOR,), "uint16", scope="local")
                for e in T.unroll(VECTOR):
                    with T.sblock("load"):
                        vp = T.axis.spatial(blocks * THREADS, b * THREADS + t)
                        ve = T.axis.spatial(VECTOR, e)
                        T.where(b * THREADS + t < whole)
                        eight[ve] = X[(vp * VECTOR + ve) // columns, (vp * VECTOR + ve) % columns]
                for e in T.vectorized(VECTOR):
                    with T.sblock("store"):
                        vp = T.axis.spatial(blocks * THREADS, b * THREADS + t)
                        ve = T.axis.spatial(VECTOR, e)
                        T.where(b * THREADS + t < whole)
                        Y[vp * VECTOR + ve] = eight[ve]
                for e in T.serial(rest):
                    with T.sblock("rest"):
                        ve = T.axis.spatial(VECTOR, e)
                        T.where(b * THREADS + t == whole)
                        Y[whole * VECTOR + ve] = X[
                            (whole * VECTOR + ve) // columns, (whole * VECTOR + ve) % columns
                        ]

    return unpack


def schedule(sch: Schedule, workload: Unpacking, config: NoConfig) -> None:
    sch.overlap_launches()


RUNG = Rung(
    family="hgemm",
    name="unpack",
    summary="a matrix copied from rows of whole lines of L2 to where it belongs",
    schedule=schedule,
    launch=launch,
    prim_func=prim_func,
)


def unpacking_of(gemm: HalfGemm) -> Preparation:
    """The launch that copies C to where it belongs."""
    names = {"X": "C_rows", "Y": "C", "ROWS": "M", "COLUMNS": "N"}
    return Preparation(RUNG, Unpacking(gemm.m, gemm.n), names)
