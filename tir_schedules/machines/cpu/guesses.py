"""Loads whose value a compare-and-swap decides: a loop of atomicCAS begins with a guess of what is there.

The CUDA programming guide writes atomic functions in this way. Whatever such a load returns, the value counts
only once atom.cas has found it at the address: a stale one makes another round of the loop.
"""

from __future__ import annotations

from collections import defaultdict

from tir_schedules.machines.cpu.instructions import row_of
from tir_schedules.machines.cpu.ptx import Address, Instruction, PtxKernel, Register
from tir_schedules.machines.cpu.table import Spread

COPIES = ("mov", "cvta")
"""Instructions that hand an address on."""


def guessed_loads(kernel: PtxKernel) -> set[Instruction]:
    """The loads whose value goes nowhere but into compare-and-swap at the same address."""
    swaps = [i for i in kernel.instructions if i.name == "atom" and i.has("cas")]
    if not swaps:
        return set()
    origins = Origins(kernel)
    places = defaultdict[tuple, list[Instruction]](list)
    for swap in swaps:
        places[origins.of(swap.address(1), swap)].append(swap)
    uses = defaultdict[Register, list[Instruction]](list)
    for i in kernel.instructions:
        for register in i.reads:
            uses[register].append(i)
    return {
        i
        for i in kernel.instructions
        if is_load(i)
        and (of_place := places.get(origins.of(i.address(1), i)))
        and decided_by(of_place, i, uses)
    }


def is_load(i: Instruction) -> bool:
    return i.name == "ld" and row_of(i).spread is Spread.LOAD and isinstance(i.operands[1], Address)


class Origins:
    """Where an address comes from, through copies of registers that have one definition."""

    def __init__(self, kernel: PtxKernel):
        self.definitions = defaultdict[Register, list[Instruction]](list)
        for i in kernel.instructions:
            for register in i.results:
                self.definitions[register].append(i)

    def of(self, address: Address, i: Instruction) -> tuple:
        base = address.base
        while isinstance(base, Register):
            defined = self.definitions[base]
            if len(defined) != 1 or defined[0].name not in COPIES or defined[0].guard:
                break
            source = defined[0].operands[1]
            if isinstance(source, Address) or not hasattr(source, "name"):
                break
            base = source
        return base, address.offset


def decided_by(swaps: list[Instruction], load: Instruction, uses: dict[Register, list[Instruction]]) -> bool:
    """Whether every use of what is loaded leads to these, or compares it with what they have found."""
    found = {register for swap in swaps for register in swap.results}
    pending, seen, reaches = [*load.results], set(load.results), False
    while pending:
        register = pending.pop()
        for i in uses[register]:
            if i in swaps and register not in (i.address(1).base, i.guard and i.guard[0]):
                reaches = True
                continue
            if i.name == "setp" and any(operand in found for operand in i.operands[1:]):
                continue
            if row_of(i).operation is None or not i.results:
                return False
            new = set(i.results) - seen
            seen |= new
            pending += new
    return reaches
