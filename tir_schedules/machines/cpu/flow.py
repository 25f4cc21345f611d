"""From a list of instructions and labels to basic blocks with their successors and live registers."""

from __future__ import annotations

from typing import Sequence, Union

from tir_schedules.machines.cpu.abi import Exit
from tir_schedules.machines.cpu.instructions import form_of
from tir_schedules.machines.cpu.ptx import BasicBlock, Instruction, Register, Symbol

RETURN = Instruction("ret", (), has_result=False)


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
        elif form_of(item).ends is not None:
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
    how = form_of(end).ends if end else None
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
    """Set live_in and live_out of every block: the least solution of the usual backward equations."""
    used: list[set[Register]] = []
    defined: list[set[Register]] = []
    for block in blocks:
        reads: set[Register] = set()
        writes: set[Register] = set()
        for instruction in block.all_instructions:
            reads.update(register for register in instruction.reads if register not in writes)
            writes.update(instruction.results)
        used.append(reads)
        defined.append(writes)
    first = blocks[0].index
    live_in = [set(reads) for reads in used]
    live_out: list[set[Register]] = [set() for _ in blocks]
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            k = block.index - first
            out = set[Register]().union(*(live_in[successor - first] for successor in block.successors))
            into = used[k] | (out - defined[k])
            if out != live_out[k] or into != live_in[k]:
                live_out[k], live_in[k], changed = out, into, True
    for block, into, out in zip(blocks, live_in, live_out):
        block.live_in, block.live_out = frozenset(into), frozenset(out)
