"""Which neighbouring shared-memory accesses ptxas turns into one of 8 or 16 bytes: a model on PTX.

Accesses of one basic block merge when they have one base register and contiguous constant offsets, the base
is provably aligned, and no store (for loads), barrier or volatile access lies between. Checked against the
LDS and STS of SASS.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Callable, Iterable

from tir_schedules.machines.cpu.ptx import (  # fmt: skip
    BITS,
    Address,
    BasicBlock,
    Immediate,
    Instruction,
    Operand,
    PtxKernel,
    Register,
    Symbol,
)

ANY = 64
"""Trailing zeros of the number zero: aligned to anything."""

MOST_FROM_LAYOUT = 10


@dataclass(frozen=True)
class Merged:
    """leads: the access that counts for all of them. offset, bytes: of the merged access, from the base
    register."""

    leads: bool
    offset: int
    bytes: int


def merged_accesses(kernel: PtxKernel) -> dict[int, Merged]:
    """PTX line of each shared access that is merged with others -> how."""
    zeros = trailing_zeros(kernel)
    merged: dict[int, Merged] = {}
    for block in kernel.blocks:
        for group in contiguous_candidates(block):
            merge_group(group, zeros, merged)
    return merged


def address_of(instruction: Instruction) -> Address:
    operand = instruction.operands[0 if instruction.name == "st" else 1]
    assert isinstance(operand, Address)
    return operand


def access_bytes(instruction: Instruction) -> int:
    return BITS[instruction.type] // 8 * instruction.vector_length


def contiguous_candidates(block: BasicBlock) -> Iterable[list[Instruction]]:
    """Shared accesses of one kind with the same value in the same base register, nothing in the way between
    them."""
    groups: dict[tuple, list[Instruction]] = {}
    fences, versions = Counter(), Counter()
    for instruction in block.instructions:
        if instruction.space == "shared" and instruction.name in ("ld", "st"):
            if instruction.has("volatile"):
                fences.update(("ld", "st"))
            else:
                base = address_of(instruction).base
                groups.setdefault(
                    (instruction.name, base, versions[base], fences[instruction.name]), []
                ).append(instruction)
                fences["ld" if instruction.name == "st" else "st"] += 1
        elif instruction.name in ("bar", "barrier", "cp") or instruction.space == "shared":
            fences.update(("ld", "st"))
        versions.update(instruction.results)
    return groups.values()


def merge_group(
    group: list[Instruction], zeros: Callable[[Operand | None], int], merged: dict[int, Merged]
) -> None:
    at: dict[int, Instruction] = {}
    for instruction in group:
        at.setdefault(address_of(instruction).offset, instruction)
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


def trailing_zeros(kernel: PtxKernel) -> Callable[[Operand | None], int]:
    """How many low bits of an operand are provably zero: the greatest fixed point over all instructions."""
    known: dict[Register, int] = {}

    def zeros(operand: Operand | None) -> int:
        if operand is None:
            return ANY
        if isinstance(operand, Register):
            return known.get(operand, ANY)
        if isinstance(operand, Immediate):
            return lowest_bit(operand.value)
        if isinstance(operand, Symbol) and operand.name in kernel.variables:
            return min(MOST_FROM_LAYOUT, lowest_bit(kernel.variables[operand.name].offset))
        return 0

    changed = True
    while changed:
        changed = False
        for instruction in kernel.instructions:
            if len(instruction.results) != 1:
                known.update({register: 0 for register in instruction.results})
                continue
            (register,) = instruction.results
            result = min(ANY, result_zeros(instruction, zeros))
            if result < known.get(register, ANY + 1):
                known[register], changed = result, True
    return zeros


def lowest_bit(value: int) -> int:
    return (value & -value).bit_length() - 1 if value else ANY


def result_zeros(i: Instruction, zeros: Callable[[Operand | None], int]) -> int:
    """Trailing zeros of an integer instruction's result; 0 when nothing is known."""
    if i.has("hi"):
        return 0
    first, second, third = (list(i.operands[1:4]) + [None] * 3)[:3]
    if i.name in ("mov", "cvta") or i.name == "cvt" and i.type[0] in "usb":
        return zeros(first)
    if i.name in ("add", "sub", "or", "xor", "min", "max", "selp"):
        return min(zeros(first), zeros(second))
    if i.name == "and":
        return max(zeros(first), zeros(second))
    if i.name == "mul":
        return zeros(first) + zeros(second)
    if i.name == "mad":
        return min(zeros(first) + zeros(second), zeros(third))
    if i.name == "shl":
        return zeros(first) + (second.value if isinstance(second, Immediate) else 0)
    if i.name == "shr" and isinstance(second, Immediate):
        return max(0, zeros(first) - second.value)
    if i.name == "bfi" and isinstance(third, Immediate):
        return min(zeros(first) + third.value, zeros(second))
    return 0
