"""Shared by the rungs of the Reduce ladder: their Config and launch, and trees as scripts."""

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
    """block: threads per block, a power of two up to 1024: see `BlocksFrom`."""

    block: int = 256


@dataclass(frozen=True)
class BlocksFrom:
    """`refuses` of a rung whose blocks are powers of two from `least` on."""

    least: int

    def __call__(self, reduction: Reduction, config: Config) -> str:
        if config.block < self.least or config.block & (config.block - 1):
            return f"a block has a power of two of threads, from {self.least} on, and not {config.block}"
        return ""


def one_each(reduction: Reduction, config: Config) -> Launch:
    """A thread per element."""
    return Launch((ceil_div(reduction.n, config.block), 1, 1), (config.block, 1, 1))


def two_each(reduction: Reduction, config: Config) -> Launch:
    """A thread per two elements, a block apart."""
    return Launch((ceil_div(reduction.n, 2 * config.block), 1, 1), (config.block, 1, 1))


def log2(power: int) -> int:
    return power.bit_length() - 1


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


@dataclass(frozen=True)
class TreeLevel:
    """Level k of a tree, as functions of thread t and k: whether t works, and tile[into] += tile[source].

    t, k and what is made of them are integers of Python or expressions of TVM.
    """

    works: Callable[[Any, Any], Any]
    into: Callable[[Any, Any], Any]
    source: Callable[[Any, Any], Any]


def tree_in_place(reduction: Reduction, block: int, name: str, level: TreeLevel, loads: int = 1) -> PrimFunc:
    """The tree of the article: one array in shared memory, a loop over the levels.

    A level reads what another thread wrote to the same array at the level before. Primitives cannot make that
    from a sum, see `tree.py`. So the tree is written with its threads, as blocks "load", "level" (in a loop
    over k) and "store"; primitives still decide how its loop becomes CUDA. loads: elements a thread adds at
    first.
    """
    from tvm.script import tirx as T

    n, dtype, chunk, levels = reduction.n, reduction.dtype, block * loads, log2(block)
    blocks, read = ceil_div(n, chunk), reader(n, dtype, chunk)

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


@dataclass(frozen=True)
class WarpTail(Config):
    """volatile: 1 for the outdated idiom without __syncwarp."""

    volatile: int = 0


def tree_with_warp_tail(reduction: Reduction, config: WarpTail, name: str) -> PrimFunc:
    """The tree of `first_add` down to 64 sums, then a block "tail" that one warp executes. No primitive makes
    a __syncwarp."""
    from tvm.script import tirx as T

    n, dtype, block = reduction.n, reduction.dtype, config.block
    blocks, level = ceil_div(n, 2 * block), folding(block)
    halvings = log2(2 * WARP)
    rounds = log2(block) - halvings
    read, volatile = reader(n, dtype, 2 * block), bool(config.volatile)
    annotations = {"tirx.volatile": True} if volatile else {}

    @T.prim_func(s_tir=True)
    def reduce(X: T.Buffer((n,), dtype), Y: T.Buffer((blocks,), dtype)):
        T.func_attr({"global_symbol": name, "tirx.noalias": True})
        for b in T.thread_binding(blocks, thread="blockIdx.x"):
            tile = T.alloc_buffer((block,), dtype, scope="shared", annotations=annotations)
            for t in T.thread_binding(block, thread="threadIdx.x"):
                with T.sblock("load"):
                    vb, vt = T.axis.remap("SS", [b, t])
                    tile[vt] = added(read, X, vb, vt, block, 2)
            for k in T.serial(rounds):
                for t in T.thread_binding(block, thread="threadIdx.x"):
                    with T.sblock("level"):
                        vt = T.axis.spatial(block, t)
                        vk = T.axis.opaque(rounds, k)
                        T.where(level.works(t, k))
                        T.reads(tile[0:block])
                        T.writes(tile[0:block])
                        tile[vt] = tile[vt] + tile[level.source(vt, vk)]
            for t in T.thread_binding(block, thread="threadIdx.x"):
                with T.sblock("tail"):
                    vb, vt = T.axis.remap("SS", [b, t])
                    T.reads(tile[0:block])
                    T.writes(Y[vb], tile[0:block])
                    T.tvm_storage_sync("shared")
                    with T.attr(0, "hand_threaded", 1):  # from here on TVM inserts no barriers
                        if vt < WARP:
                            if volatile:
                                for j in T.unroll(halvings):
                                    tile[vt] = tile[vt] + tile[vt + (WARP >> j)]
                            else:
                                total = T.alloc_buffer((1,), dtype, scope="local")
                                total[0] = tile[vt]
                                for j in T.unroll(halvings):
                                    total[0] = total[0] + tile[vt + (WARP >> j)]
                                    T.cuda.warp_sync()
                                    tile[vt] = total[0]
                                    T.cuda.warp_sync()
                        if vt == 0:
                            Y[vb] = tile[0]

    return reduce


def folding(block: int) -> TreeLevel:
    """s = block/2 >> k; threads below s add what lies s further."""
    half = block // 2
    return TreeLevel(
        works=lambda t, k: t < (half >> k), into=lambda t, k: t, source=lambda t, k: t + (half >> k)
    )


def level_loop(sch: Schedule) -> Loop:
    """The loop over the levels of a tree."""
    return sch.get_loops(sch.get_sblock("level"))[1]


def keep_loop(sch: Schedule) -> None:
    """Neither TVM nor nvcc unrolls the loop over the levels."""
    sch.annotate(level_loop(sch), "disable_unroll", 1)
