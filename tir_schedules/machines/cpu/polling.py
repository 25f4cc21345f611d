"""Loops that wait for memory: those that end, or go another way, by what a load sees that others may have
stored to meanwhile."""

from __future__ import annotations

from tir_schedules.machines.cpu.abi import Exit
from tir_schedules.machines.cpu.instructions import form_of
from tir_schedules.machines.cpu.ptx import BasicBlock, Instruction, PtxKernel, Register

STRONG_LOADS = {"volatile", "relaxed", "acquire", "mmio"}


def observes(i: Instruction) -> bool:
    """Whether its result may change although the thread does nothing."""
    return i.name == "atom" or (i.name == "ld" and not STRONG_LOADS.isdisjoint(i.parts))


def polling_blocks(kernel: PtxKernel) -> set[int]:
    """The blocks whose branch back closes such a loop. Of a loop all blocks from its head to that branch
    count, in the order of the text."""
    return {
        block.index
        for block in kernel.blocks
        if block.end
        and form_of(block.end).ends is Exit.BRANCH
        and block.successors[0] <= block.index
        and waits(kernel.blocks[block.successors[0] : block.index + 1])
    }


def waits(loop: list[BasicBlock]) -> bool:
    """Whether a branch in these blocks depends on what an instruction in them observes."""
    instructions = [i for block in loop for i in block.instructions]
    seen: set[Register] = {register for i in instructions if observes(i) for register in i.results}
    count = 0
    while count != len(seen):
        count = len(seen)
        for i in instructions:
            if not seen.isdisjoint(i.reads):
                seen.update(i.results)
    return any(block.end and block.end.guard and block.end.guard[0] in seen for block in loop)
