"""Loops that wait: those that end, or go another way, by what a load sees that others may have stored to
meanwhile, or by a phase of an mbarrier."""

from __future__ import annotations

from tir_schedules.machines.cpu.abi import Exit, Polls
from tir_schedules.machines.cpu.instructions import form_of
from tir_schedules.machines.cpu.ptx import BasicBlock, Instruction, PtxKernel, Register

STRONG_LOADS = {"volatile", "relaxed", "acquire", "mmio"}


def observes(i: Instruction) -> bool:
    """Whether its result may change although the thread does nothing."""
    return i.name == "atom" or (i.name == "ld" and not STRONG_LOADS.isdisjoint(i.parts))


def tests_barrier(i: Instruction) -> bool:
    return i.name == "mbarrier" and (i.has("test_wait") or i.has("try_wait"))


def polling_blocks(kernel: PtxKernel) -> dict[int, Polls]:
    """The blocks whose branch back closes such a loop, and what it waits for. Of a loop all blocks from its
    head to that branch count, in the order of the text."""
    found = {
        block.index: waits(kernel.blocks[block.successors[0] : block.index + 1])
        for block in kernel.blocks
        if block.end and form_of(block.end).ends is Exit.BRANCH and block.successors[0] <= block.index
    }
    return {index: polls for index, polls in found.items() if polls}


def waits(loop: list[BasicBlock]) -> Polls:
    """What a branch in these blocks depends on that instructions in them observe."""
    instructions = [i for block in loop for i in block.instructions]
    guards = {block.end.guard[0] for block in loop if block.end and block.end.guard}
    for polls, observed in ((Polls.OF_MEMORY, observes), (Polls.OF_BARRIERS, tests_barrier)):
        seen = {register for i in instructions if observed(i) for register in i.results}
        if seen and not guards.isdisjoint(reached(seen, instructions)):
            return polls
    return Polls.NOTHING


def reached(registers: set[Register], instructions: list[Instruction]) -> set[Register]:
    """These, and all that is computed from them."""
    seen, count = set(registers), 0
    while count != len(seen):
        count = len(seen)
        for i in instructions:
            if not seen.isdisjoint(i.reads):
                seen.update(i.results)
    return seen
