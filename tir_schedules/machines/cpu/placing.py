"""Source lines of instructions that nvcc gives line 0, such as loads that it moves ahead of a branch."""

from __future__ import annotations

from collections import Counter
from typing import Iterable, Union

from tir_schedules.machines.cpu import ptx

Item = Union[ptx.Instruction, str]

FARTHEST = 100
"""Instructions that are looked through for one that reads a result."""

ENDS = ("ret", "exit", "trap")


def place_all(items: list[Item]) -> None:
    """Give every instruction of a function a line, if any has one: that of the first that reads its result,
    of the last that makes what it stores, else of the next in its block, of the one before, or of the next at
    all."""
    instructions = [(k, item) for k, item in enumerate(items) if not isinstance(item, str)]
    lost = [k for k, item in instructions if not item.source[1]]
    if len(lost) in (0, len(instructions)):
        return
    labels = {item: k for k, item in enumerate(items) if isinstance(item, str)}
    written = Counter(name for _, item in instructions for name in item.results)
    found = {k: reader_of(items, labels, k) or writer_of(items, written, k) for k in lost}
    following: ptx.Instruction | None = None
    for k in reversed(range(len(items))):
        item = items[k]
        if isinstance(item, str):
            following = None
            continue
        move(item, found.get(k) or following)
        following = item if item.source[1] else following
    carry(items)
    carry(reversed(items))


def reader_of(items: list[Item], labels: dict[str, int], at: int) -> ptx.Instruction | None:
    """The first instruction with a line that reads what another leaves, on any way from there."""
    start = items[at]
    assert isinstance(start, ptx.Instruction)
    results, ways, seen = set(start.results), [at + 1], set[int]()
    while ways and results and len(seen) < FARTHEST:
        k = ways.pop()
        if k in seen or k >= len(items):
            continue
        seen.add(k)
        item = items[k]
        if isinstance(item, str):
            ways.append(k + 1)
            continue
        if results.intersection(item.reads) and item.source[1]:
            return item
        if not results.issubset(item.results) and (item.guard or item.name not in (*ENDS, "bra")):
            ways.append(k + 1)
        if item.name == "bra":
            names = (one.name for one in item.operands if isinstance(one, ptx.Symbol))
            ways += (labels[name] for name in names if name in labels)
    return None


def writer_of(items: list[Item], written: Counter[ptx.Register], at: int) -> ptx.Instruction | None:
    """The last instruction with a line that leaves what another stores: in its block, in that before, or
    before them in a register that is written several times. nvcc makes one store, of line 0, of those at the
    ends of `if` and `else`. written: how often each register is."""
    start, blocks = items[at], 0
    assert isinstance(start, ptx.Instruction)
    if start.results:
        return None
    for k in reversed(range(at)):
        item = items[k]
        if isinstance(item, str):
            blocks += 1
        elif item.source[1]:
            found = {*item.results} & {*start.reads}
            if any(blocks <= 1 or written[name] > 1 for name in found):
                return item
    return None


def carry(items: Iterable[Item]) -> None:
    """Give instructions without a line that of the one before."""
    known: ptx.Instruction | None = None
    for item in items:
        if isinstance(item, ptx.Instruction):
            move(item, known)
            known = item if item.source[1] else known


def move(item: ptx.Instruction, known: ptx.Instruction | None) -> None:
    if known is not None and not item.source[1]:
        item.source, item.within = known.source, known.within
