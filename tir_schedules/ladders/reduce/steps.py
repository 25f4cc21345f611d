"""What rungs of the Reduce ladder share: their Config and launch, and what scripts of whole kernels read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from tir_schedules.model.launch import Launch, ceil_div
from tir_schedules.tir.schedule import PrimFunc
from tir_schedules.workloads.reduction import Reduction, constant_zero

WARP = 32
FULL_MASK = 0xFFFFFFFF


@dataclass(frozen=True)
class Config:
    """block: threads per block, a power of two from 128 to 1024."""

    block: int = 256


@dataclass(frozen=True)
class InPlace(Config):
    """For the tree of the article, in one array and in a loop over its levels: a script of the kernel."""


def sum_of_blocks(reduction: Reduction, launch: Launch, name: str, loads: int = 1) -> PrimFunc:
    """The bare sum; every block of threads has a chunk to itself.

    loads: elements for each thread.
    """
    return reduction.partial_sums(name, launch.grid[0], launch.block[0] * loads)


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
