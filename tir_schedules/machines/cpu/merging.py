"""Which neighbouring shared-memory accesses ptxas turns into one of 8 or 16 bytes: a model on PTX.

Accesses of one basic block merge when they have one base register and contiguous constant offsets, the base
is provably aligned, and no store (for loads), barrier or volatile access lies between. Checked against the
LDS and STS of SASS.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from typing import Iterable

from tir_schedules.machines.cpu import ptx
from tir_schedules.machines.cpu.flow import reached
from tir_schedules.machines.cpu.instructions import row_of
from tir_schedules.machines.cpu.table import Spread, Zeros

ANY = 64
"""Trailing zeros of the number zero: aligned to anything."""

MOST_FROM_LAYOUT = 10


@dataclass(frozen=True)
class Merged:
    """leads: whether this access counts for all. offset (from the base register), bytes: of the whole."""

    leads: bool
    offset: int
    bytes: int


def merged_accesses(kernel: ptx.PtxKernel) -> dict[int, Merged]:
    """PTX line of each shared access that is merged with others -> how."""
    groups = [group for block in kernel.blocks for group in contiguous_candidates(block) if len(group) > 1]
    zeros = trailing_zeros(kernel, [address_of(group[0]).base for group in groups])
    merged: dict[int, Merged] = {}
    for group in groups:
        merge_group(group, zeros, merged)
    return merged


def address_of(i: ptx.Instruction) -> ptx.Address:
    """The address of a load or a store."""
    return i.address(1 if i.has_result else 0)


def access_bytes(i: ptx.Instruction) -> int:
    return ptx.BITS[i.type] // 8 * i.vector_length


def contiguous_candidates(block: ptx.BasicBlock) -> Iterable[list[ptx.Instruction]]:
    """Shared accesses of one kind, with one value of one base register and nothing in the way between."""
    groups: dict[tuple, list[ptx.Instruction]] = {}
    fences: Counter[str] = Counter()
    versions: Counter[ptx.Operand | None] = Counter()
    for i in block.instructions:
        row = row_of(i)
        if i.space == "shared" and row.spread in (Spread.LOAD, Spread.STORE):
            if i.has("volatile"):
                fences.update(("ld", "st"))
            else:
                kind, base = i.name, address_of(i).base
                groups.setdefault((kind, base, versions[base], fences[kind]), []).append(i)
                fences["ld" if kind == "st" else "st"] += 1
        elif row.fence or i.space == "shared" or i.space == "generic" and i.name in ("st", "atom", "red"):
            fences.update(("ld", "st"))
        elif i.space == "generic" and i.name == "ld":
            fences["st"] += 1
        for register in i.results:
            versions[register] += 1
    return groups.values()


def merge_group(group: list[ptx.Instruction], zeros: Zeros, merged: dict[int, Merged]) -> None:
    at: dict[int, ptx.Instruction] = {}
    for i in group:
        at.setdefault(address_of(i).offset, i)
    for size in (16, 8):
        for offset in sorted(at):
            first = at[offset]
            aligned = zeros(address_of(first).base) >= size.bit_length() - 1 and offset % size == 0
            if first.line in merged or not aligned:
                continue
            position, members = offset, []
            while position < offset + size and position in at:
                member = at[position]
                if member.line in merged or access_bytes(member) >= size:
                    break
                members.append(member)
                position += access_bytes(member)
            if position == offset + size and len(members) > 1:
                merged.update({member.line: Merged(member is members[0], offset, size) for member in members})


def trailing_zeros(kernel: ptx.PtxKernel, wanted: Iterable[ptx.Operand | None]) -> Zeros:
    """How many low bits of a wanted operand are provably zero: the greatest fixed point over all instructions
    that it is computed by."""
    registers = {operand for operand in wanted if isinstance(operand, ptx.Register)}
    made = reached(registers, ((i.results, i.reads) for i in kernel.instructions)) if registers else set()
    makers = deque(i for i in kernel.instructions if not made.isdisjoint(i.results))
    users: dict[ptx.Register, list[ptx.Instruction]] = defaultdict(list)
    for i in makers:
        for register in i.reads:
            users[register].append(i)
    known: dict[ptx.Register, int] = {}

    def zeros(operand: ptx.Operand | None) -> int:
        if operand is None:
            return ANY
        if isinstance(operand, ptx.Register):
            return known.get(operand, ANY)
        if isinstance(operand, ptx.Immediate):
            return lowest_bit(operand.value)
        if isinstance(operand, ptx.Symbol) and operand.name in kernel.variables:
            return min(MOST_FROM_LAYOUT, lowest_bit(kernel.variables[operand.name].offset))
        return 0

    while makers:
        i = makers.popleft()
        of_result = row_of(i).zeros if len(i.results) == 1 else None
        result = min(ANY, of_result(i, zeros)) if of_result else 0
        for register in i.results:
            if result < known.get(register, ANY + 1):
                known[register] = result
                makers += users[register]
    return zeros


def lowest_bit(value: int) -> int:
    return (value & -value).bit_length() - 1 if value else ANY
