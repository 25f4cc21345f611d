"""From a list of instructions and labels to basic blocks with their successors and live registers."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Iterable, Sequence, Union

from tir_schedules.machines.cpu.abi import Exit
from tir_schedules.machines.cpu.instructions import row_of
from tir_schedules.machines.cpu.ptx import BasicBlock, Instruction, Register, Symbol

RETURN = Instruction("ret", (), access="")


def basic_blocks(items: Sequence[Union[Instruction, str]], first: int = 0) -> list[BasicBlock]:
    """Split at labels (the strings) and after what ends a block; find successors and live registers.

    first: number of the first block.
    """
    blocks, labels = [BasicBlock(first)], {}
    for item in items:
        current = blocks[-1]
        starts = isinstance(item, str) and current.instructions
        if starts or current.end is not None:
            current = BasicBlock(first + len(blocks))
            blocks.append(current)
        if isinstance(item, str):
            labels[item] = current.index
        elif row_of(item).ends is not None:
            current.end = item
        else:
            current.instructions.append(item)
    if blocks[-1].end is None:
        blocks[-1].end = RETURN
    for block in blocks:
        block.successors = successors(block, labels)
    find_live_registers(blocks)
    return blocks


def successors(block: BasicBlock, labels: dict[str, int]) -> tuple[int, ...]:
    end, following = block.end, block.index + 1
    how = row_of(end).ends if end else None
    if end is None or how in (Exit.BARRIER, Exit.WAIT, Exit.CALL):
        return (following,)
    onward = (following,) if end.guard else ()
    if how in (Exit.BRANCH, Exit.SWITCH):
        targets = [target.name for target in end.operands if isinstance(target, Symbol)]
        if not targets or not labels.keys() >= set(targets):
            raise end.unsupported(f"a branch to {' or '.join(targets) or 'what is no label'}")
        return (*(labels[target] for target in targets), *onward)
    return onward


def find_live_registers(blocks: list[BasicBlock]) -> None:
    """Set what every block reads first, and what is live where it begins: the least solution of the usual
    backward equations, a bit for each register."""
    written: list[set[Register]] = []
    for block in blocks:
        reads, writes = set[Register](), set[Register]()
        for instruction in block.all_instructions:
            reads.update(register for register in instruction.reads if register not in writes)
            writes.update(instruction.results)
        block.reads_first = frozenset(reads)
        written.append(writes)
    registers = list(dict.fromkeys(register for block in blocks for register in block.reads_first))
    numbers = {register: k for k, register in enumerate(registers)}
    first, before = blocks[0].index, defaultdict[int, list[int]](list)
    for block in blocks:
        block.registers = registers
        for successor in block.successors:
            before[successor - first].append(block.index - first)
    pending, waiting = deque(reversed(range(len(blocks)))), set(range(len(blocks)))
    while pending:
        k = pending.popleft()
        waiting.discard(k)
        block, live = blocks[k], 0
        for successor in block.successors:
            live |= blocks[successor - first].live
        live &= ~bits_of(written[k], numbers)
        live |= bits_of(block.reads_first, numbers)
        if live != block.live:
            block.live = live
            new = [k for k in before[k] if k not in waiting]
            waiting.update(new)
            pending += new


def bits_of(registers: Iterable[Register], numbers: dict[Register, int]) -> int:
    """The bits of those registers that have a number."""
    found = 0
    for number in {numbers[register] for register in registers if register in numbers}:
        found |= 1 << number
    return found


def reached(
    registers: Iterable[Register], steps: Iterable[tuple[Iterable[Register], Iterable[Register]]]
) -> set[Register]:
    """These registers, and all that follow from them. steps: from any of some registers to all of others."""
    following: dict[Register, list[Iterable[Register]]] = defaultdict(list)
    for sources, results in steps:
        for register in sources:
            following[register].append(results)
    seen = set(registers)
    pending = list(seen)
    while pending:
        for results in following.get(pending.pop(), ()):
            pending += (new := set(results) - seen)
            seen |= new
    return seen
