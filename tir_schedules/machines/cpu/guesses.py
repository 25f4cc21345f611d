"""Loads whose value a compare-and-swap decides: a loop of atomicCAS begins with a guess of what is there.

The CUDA programming guide writes atomic functions in this way. Whatever such a load returns, the value counts
only once atom.cas has found it at the address: a stale one makes another round of the loop.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Iterator

from tir_schedules.machines.cpu.abi import Exit
from tir_schedules.machines.cpu.instructions import row_of
from tir_schedules.machines.cpu.ptx import Address, Immediate, Instruction, Operand, PtxKernel, Register
from tir_schedules.machines.cpu.table import Spread

COPIES = ("mov", "cvta")
"""Instructions that hand an address on."""


def guessed_loads(kernel: PtxKernel) -> set[Instruction]:
    """The loads whose value goes nowhere but into compare-and-swap at the same address, and to where that has
    found it."""
    swaps = [i for i in kernel.instructions if i.name == "atom" and i.has("cas")]
    if not swaps:
        return set()
    values = Values(kernel)
    places = defaultdict[tuple, list[Instruction]](list)
    for swap in swaps:
        places[values.origin(swap.address(1))].append(swap)
    return {
        i
        for i in kernel.instructions
        if is_load(i)
        and (of_place := places.get(values.origin(i.address(1))))
        and any(
            values.uses[register] for swap in of_place for register in swap.results
        )  # whether it succeeded
        and values.decided_by(of_place, i)
    }


def is_load(i: Instruction) -> bool:
    return i.name == "ld" and row_of(i).spread is Spread.LOAD and isinstance(i.operands[1], Address)


class Values:
    """Where values of a kernel come from and go to."""

    def __init__(self, kernel: PtxKernel):
        self.blocks = kernel.blocks
        self.definitions = defaultdict[Register, list[Instruction]](list)
        self.uses = defaultdict[Register, list[Instruction]](list)
        self.block_of: dict[Instruction, int] = {}
        for block in kernel.blocks:
            for i in block.all_instructions:
                self.block_of[i] = block.index
                for register in i.results:
                    self.definitions[register].append(i)
                for register in i.reads:
                    self.uses[register].append(i)

    def origin(self, address: Address) -> tuple[object, int]:
        """What an address is told from others by: a base that has more than one definition, or is computed,
        and the bytes from there."""
        base, offset = address.base, address.offset
        while isinstance(base, Register) and len(self.definitions[base]) == 1:
            (defined,) = self.definitions[base]
            source, *others = defined.operands[1:] or (None,)
            if defined.guard or source is None or isinstance(source, (Address, Immediate)):
                break
            if defined.name == "add" and isinstance(others[0], Immediate):
                offset += others[0].value
            elif defined.name not in COPIES:
                break
            base = source
        return getattr(base, "name", base), offset

    def decided_by(self, swaps: list[Instruction], load: Instruction) -> bool:
        """Whether every use of the loaded value leads to these swaps, compares it with a value that they
        found, decides a branch, or comes after a loop that they ended."""
        found = {register for swap in swaps for register in swap.results}
        behind = self.behind(swaps, load, found)
        pending, seen, reaches = [*load.results], set(load.results), False
        while pending:
            register = pending.pop()
            for i in self.uses[register]:
                if i in swaps and register not in (i.address(1).base, i.guard and i.guard[0]):
                    reaches = True
                elif row_of(i).ends is Exit.BRANCH:
                    continue  # a hint: `while (mine > guess)` of a maximum
                elif self.block_of[i] not in behind and not compares(i, found):
                    if row_of(i).operation is None or not i.results:
                        return False
                    new = set(i.results) - seen
                    seen |= new
                    pending += new
        return reaches

    def behind(self, swaps: list[Instruction], load: Instruction, found: set[Register]) -> set[int]:
        """The blocks in which a swap has found the value, or the value is not there. These are all blocks
        except that of the load and those of a following loop that ends only by a comparison with the value
        found."""
        own = self.block_of[load]
        for head, last in self.loops_after(own):
            inside = set(range(head, last + 1))
            end = self.blocks[last].end
            assert end is not None
            left_elsewhere = any(
                block.end
                and (row_of(block.end).ends is not Exit.BRANCH or not set(block.successors) <= inside)
                for block in self.blocks[head:last]
            )
            decides = end.guard and all(compares(i, found) for i in self.definitions[end.guard[0]])
            if decides and not left_elsewhere and any(self.block_of[swap] in inside for swap in swaps):
                return {*range(len(self.blocks))} - inside - {own}
        return set()

    def loops_after(self, own: int) -> Iterator[tuple[int, int]]:
        """First and last blocks of the loops that a block goes on at, and nowhere else."""
        following = {*self.blocks[own].successors}
        for block in self.blocks:
            head = block.successors[0] if block.end and block.successors else -1
            branches = block.end and row_of(block.end).ends is Exit.BRANCH
            if branches and head <= block.index and following == {head}:
                yield head, block.index


def compares(i: Instruction, found: set[Register]) -> bool:
    """Whether it compares something with what a swap has found."""
    return i.name == "setp" and any(is_among(operand, found) for operand in i.operands[1:])


def is_among(operand: Operand, registers: set[Register]) -> bool:
    return isinstance(operand, Register) and operand in registers
