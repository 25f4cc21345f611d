"""Loops that wait: those that end, or go another way, by what a load sees that others may have stored to
meanwhile, or by a phase of an mbarrier."""

from __future__ import annotations

from collections import defaultdict

from tir_schedules.machines.cpu.abi import Exit, Polls
from tir_schedules.machines.cpu.flow import reached
from tir_schedules.machines.cpu.instructions import row_of
from tir_schedules.machines.cpu.ptx import BasicBlock, Instruction, PtxKernel
from tir_schedules.machines.cpu.table import Spread

STRONG_LOADS = {"volatile", "relaxed", "acquire", "mmio"}


def observed(i: Instruction) -> Polls:
    """What may change its result although the thread does nothing."""
    row = row_of(i)
    weak = row.spread is Spread.LOAD and STRONG_LOADS.isdisjoint(i.parts)
    return Polls.NOTHING if weak else row.observes


def polling_blocks(kernel: PtxKernel) -> dict[int, Polls]:
    """The blocks whose branch back closes such a loop, and what it waits for. Of a loop all blocks from its
    head to that branch count, in the order of the text."""
    ends: dict[int, list[int]] = defaultdict(list)  # by the head
    for block in kernel.blocks:
        if block.end and row_of(block.end).ends is Exit.BRANCH and block.successors[0] <= block.index:
            ends[block.successors[0]].append(block.index)
    found: dict[int, Polls] = {}
    for head, indices in ends.items():
        of_head: dict[int, Polls] = {}
        pending = [(0, len(indices) - 1)]
        while pending:  # a longer loop waits wherever a shorter one does: between two alike, all are
            low, high = pending.pop()
            for k in {low, high} - of_head.keys():
                of_head[k] = waits(kernel.blocks[head : indices[k] + 1])
            if of_head[low] == of_head[high]:
                of_head |= dict.fromkeys(range(low, high), of_head[low])
            elif high - low > 1:
                middle = (low + high) // 2
                pending += [(low, middle), (middle, high)]
        found |= {indices[k]: polls for k, polls in of_head.items() if polls}
    return found


def waits(loop: list[BasicBlock]) -> Polls:
    """What a branch in these blocks depends on that instructions in them observe."""
    instructions = [i for block in loop for i in block.instructions]
    guards = {block.end.guard[0] for block in loop if block.end and block.end.guard}
    observing = [(i, polls) for i in instructions if (polls := observed(i))]
    for polls in (Polls.OF_MEMORY, Polls.OF_BARRIERS):
        seen = {register for i, which in observing if which is polls for register in i.results}
        if seen and not guards.isdisjoint(reached(seen, ((i.reads, i.results) for i in instructions))):
            return polls
    return Polls.NOTHING
