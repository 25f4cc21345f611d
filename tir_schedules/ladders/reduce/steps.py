"""What rungs of the Reduce ladder share: their Config and launch, and the tree of the article as a script.

A tree works in place: a level reads what another thread wrote at the level before. TensorIR's primitives
cannot make that from a sum, so the tree is written with its threads; primitives still decide how its loops
become CUDA.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from tir_schedules.model.launch import Launch, ceil_div
from tir_schedules.tir.schedule import Loop, PrimFunc, Schedule
from tir_schedules.workloads.reduction import Reduction, constant_zero

WARP = 32
FULL_MASK = 0xFFFFFFFF


@dataclass(frozen=True)
class Config:
    """block: threads per block, a power of two from 128 to 1024."""

    block: int = 256


def one_each(reduction: Reduction, config: Config) -> Launch:
    """A thread per element."""
    return Launch((ceil_div(reduction.n, config.block), 1, 1), (config.block, 1, 1))


def two_each(reduction: Reduction, config: Config) -> Launch:
    """A thread per two elements, a block apart."""
    return Launch((ceil_div(reduction.n, 2 * config.block), 1, 1), (config.block, 1, 1))


def log2(power: int) -> int:
    return power.bit_length() - 1


@dataclass(frozen=True)
class TreeLevel:
    """Level k of a tree, as functions of thread t and k: whether t works, and tile[into] += tile[source].

    t, k and what is made of them are integers of Python or expressions of TVM.
    """

    works: Callable[[Any, Any], Any]
    into: Callable[[Any, Any], Any]
    source: Callable[[Any, Any], Any]


def tree(reduction: Reduction, block: int, name: str, level: TreeLevel, loads: int = 1) -> PrimFunc:
    """Blocks "load", "level" (in a loop over k) and "store" of a tree in shared memory.

    loads: elements a thread adds at first.
    """
    from tvm.script import tirx as T

    n, dtype, chunk, levels = reduction.n, reduction.dtype, block * loads, log2(block)
    blocks = ceil_div(n, chunk)
    read = reader(n, dtype, chunk)

    @T.prim_func(s_tir=True)
    def reduce(X: T.Buffer((n,), dtype), Y: T.Buffer((blocks,), dtype)):
        T.func_attr({"global_symbol": name, "tirx.noalias": True})
        tile = T.sblock_alloc_buffer((blocks, block), dtype, scope="shared")
        for b in T.thread_binding(blocks, thread="blockIdx.x"):
            for t in T.thread_binding(block, thread="threadIdx.x"):
                with T.sblock("load"):
                    vb, vt = T.axis.remap("SS", [b, t])
                    tile[vb, vt] = added(read, X, vb, vt, block, loads)
            for k in T.serial(levels):
                for t in T.thread_binding(block, thread="threadIdx.x"):
                    with T.sblock("level"):
                        vb, vt = T.axis.remap("SS", [b, t])
                        vk = T.axis.opaque(levels, k)
                        T.where(level.works(t, k))
                        T.reads(tile[vb, 0:block])
                        T.writes(tile[vb, 0:block])
                        tile[vb, level.into(vt, vk)] = (
                            tile[vb, level.into(vt, vk)] + tile[vb, level.source(vt, vk)]
                        )
            for t in T.thread_binding(block, thread="threadIdx.x"):
                with T.sblock("store"):
                    vb, vt = T.axis.remap("SS", [b, t])
                    T.where(t == 0)
                    Y[vb] = tile[vb, 0]

    return reduce


def reader(n: int, dtype: str, chunk: int) -> Callable[[Any, Any, Any], Any]:
    """read(X, b, i): element i of block b's chunk, zero beyond the end of X."""
    from tvm.script import tirx as T

    zero = constant_zero(dtype)
    if n % chunk == 0:
        return lambda X, b, i: X[b * chunk + i]
    return lambda X, b, i: T.if_then_else(b * chunk + i < n, X[b * chunk + i], zero)


def added(read: Callable[[Any, Any, Any], Any], X: Any, b: Any, t: Any, block: int, loads: int) -> Any:
    """Sum of the elements thread t loads, a block apart."""
    total = read(X, b, t)
    for load in range(1, loads):
        total = total + read(X, b, load * block + t)
    return total


def level_loop(sch: Schedule) -> Loop:
    """The loop over the levels of a tree."""
    return sch.get_loops(sch.get_sblock("level"))[1]
