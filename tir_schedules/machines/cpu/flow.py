"""From a list of instructions and labels to basic blocks with their successors and live registers."""

from __future__ import annotations

from typing import Sequence, Union

from tir_schedules.machines.cpu.ptx import BasicBlock, Instruction, Symbol

ENDS = ("bra", "ret", "exit", "trap")
RETURN = Instruction("ret", ())


def is_block_barrier(instruction: Instruction) -> bool:
    """Whether it is a __syncthreads, which every warp of the block must reach."""
    return instruction.name in ("bar", "barrier") and not instruction.has("warp")


def basic_blocks(items: Sequence[Union[Instruction, str]]) -> list[BasicBlock]:
    """Split at labels (the strings) and after branches, barriers and exits; then find successors and live
    registers."""
    blocks, labels = [BasicBlock(0)], {}
    for item in items:
        current = blocks[-1]
        starts = isinstance(item, str) and current.instructions
        if starts or current.end is not None:
            current = BasicBlock(len(blocks))
            blocks.append(current)
        if isinstance(item, str):
            labels[item] = current.index
        elif item.name in ENDS or is_block_barrier(item):
            current.end = item
        elif item.name == "brx":
            raise item.unsupported()
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
    if end is None or is_block_barrier(end):
        return (following,)
    onward = (following,) if end.guard else ()
    if end.name == "bra":
        target = end.operands[0]
        assert isinstance(target, Symbol)
        return (labels[target.name], *onward)
    return onward


def find_live_registers(blocks: list[BasicBlock]) -> None:
    """Set live_in and live_out of every block: the least solution of the usual backward equations."""
    used, defined = [], []
    for block in blocks:
        reads, writes = set(), set()
        for instruction in block.all_instructions:
            reads.update(register for register in instruction.reads if register not in writes)
            writes.update(instruction.results)
        used.append(reads)
        defined.append(writes)
    live_in, live_out = [set(reads) for reads in used], [set() for _ in blocks]
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            k = block.index
            out = set().union(*(live_in[successor] for successor in block.successors))
            into = used[k] | (out - defined[k])
            if out != live_out[k] or into != live_in[k]:
                live_out[k], live_in[k], changed = out, into, True
    for block in blocks:
        block.live_in, block.live_out = frozenset(live_in[block.index]), frozenset(live_out[block.index])
