"""Configurations "rfactor": the tree of a sum, by only schedule primitives.

`rfactor` turns one sum into a sum of partial sums. If it is called again and again on the remaining sum, it
makes the levels of a tree: as many partial sums as the block has threads, half as many, a quarter, ... and at
last two. `set_scope` puts them in shared memory, and `bind` gives each partial sum to a thread.

Primitives cannot express two things of the article's tree. First, all levels of the article's tree use one
array, but `rfactor` makes an array for each level. TVM lets arrays that are two levels apart share memory, so
a block takes 1.5 times or twice as much shared memory. Second, the article's tree has one loop over the
levels. Here each level is a separate loop nest, so there is no loop to unroll, and the last level, which
stores its sum to global memory, needs no barrier after it. `tree_in_place` in steps.py has the one array and
the loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from tir_schedules.ladders.reduce import steps
from tir_schedules.tir.schedule import Block, Loop, PrimFunc, Schedule, unroll
from tir_schedules.workloads.reduction import Reduction

Pairing = Callable[[Schedule, Loop, int], Loop]
"""Which elements make a partial sum: of a loop over elements, and a number of partial sums, the loop over
these."""
Placing = Callable[[Schedule, Block, int, int], Loop]
"""Which thread makes a partial sum: of the block of a level and its number, and the threads of a block, the
loop over threads. It is the third; the second has one iteration."""


@dataclass(frozen=True)
class Rfactor(steps.Config):
    """For the tree by primitives."""


def sum_of_blocks(reduction: Reduction, config: Rfactor, name: str, loads: int = 1) -> PrimFunc:
    """The bare sum; every block of threads has a chunk to itself.

    loads: elements for each thread.
    """
    chunk = config.block * loads
    return reduction.partial_sums(name, steps.ceil_div(reduction.n, chunk), chunk)


def add_neighbours(sch: Schedule, config: Rfactor, placing: Placing) -> None:
    """The whole schedule of `divergent` and `interleaved`."""
    levels = split_into_levels(sch, config.block, neighbours)
    spread(sch, levels)
    bind_levels(sch, levels, config.block, placing)


def fold_in_halves(sch: Schedule, config: Rfactor) -> None:
    """The whole schedule of `sequential` and `first_add`."""
    bind_levels(sch, split_into_levels(sch, config.block, halves), config.block, first_threads)


def halves(sch: Schedule, elements: Loop, sums: int) -> Loop:
    """Partial sum i is of the elements i, i + sums, ...: the array is folded."""
    _, kept = sch.split(elements, [None, sums])
    return kept


def neighbours(sch: Schedule, elements: Loop, sums: int) -> Loop:
    """Partial sum i is of the elements 2i and 2i + 1."""
    kept, _ = sch.split(elements, [sums, None])
    return kept


def split_into_levels(sch: Schedule, threads: int, pairing: Pairing) -> list[Block]:
    """Partial sums in shared memory: at level 0 one per thread, whose elements lie a block apart, then half
    as many from level to level, down to two.

    Returns the block of each level; the block "sum" adds the two of the last.
    """
    levels: list[Block] = []
    sums = threads
    while sums > 1:
        elements = sch.get_loops(sch.get_sblock("sum"))[-1]
        kept = (pairing if levels else halves)(sch, elements, sums)
        levels.append(sch.rfactor(kept, 1))
        sch.set_scope(levels[-1], 0, "shared")
        sums //= 2
    return levels


def spread(sch: Schedule, levels: list[Block]) -> None:
    """Partial sum i of level k stays where the first of its elements was, in word 2^k i, as in a tree in
    place: the words between are left out."""
    for number, level in enumerate(levels[1:], 1):
        sch.transform_layout(level, ("write", 0), lambda b, i: [b, i, i % 1])
        sch.storage_align(level, 0, 1, 1 << number, 0)  # rows of one word, 2^k words apart


def first_threads(sch: Schedule, level: Block, number: int, threads: int) -> Loop:
    """Thread t makes partial sum t."""
    _, thread = sch.split(sch.get_loops(level)[1], [None, threads])
    return thread


def spread_threads(sch: Schedule, level: Block, number: int, threads: int) -> Loop:
    """Thread 2^k t makes partial sum t of level k; those between rest."""
    sums, pair = sch.get_loops(level)[1:3]
    once, idle = sch.split(sch.add_unit_loop(pair), [None, 1 << number])
    sch.reorder(once, sums)
    return sch.fuse(sums, idle)


def bind_levels(sch: Schedule, levels: list[Block], threads: int, placing: Placing) -> None:
    """A block of threads per sum, level after level. Elements are added in a register first, then pair by
    pair in shared memory; thread 0 adds the last two."""
    total = sch.get_sblock("sum")
    block, elements = sch.get_loops(total)
    sch.bind(block, "blockIdx.x")
    for number, level in reversed([*enumerate(levels)]):
        sch.compute_at(level, block, preserve_unit_loops=True)
        thread = placing(sch, level, number, threads)
        sch.bind(thread, "threadIdx.x")
        unroll(sch, sch.get_loops(level)[3:])
        if number == 0:
            sch.reverse_compute_at(sch.cache_write(level, 0, "local"), thread)
    sch.add_unit_loop(elements)
    sch.bind(first_threads(sch, total, len(levels), threads), "threadIdx.x")
    sch.unroll(elements)
