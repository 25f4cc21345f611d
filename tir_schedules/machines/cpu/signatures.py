"""A signature is an instruction without its registers: its opcode and the types of its operands, `add.f32 f32
f32 f32`.

Instructions of one signature share one compiled function; the operands are offsets into the register file.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from tir_schedules.machines.cpu import arithmetic, selection  # noqa: F401 (they fill the table of operations)
from tir_schedules.machines.cpu.lane_code import STORAGE, lane_code
from tir_schedules.machines.cpu.ptx import (  # fmt: skip
    BITS,
    SINK,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    SpecialRegister,
    Symbol,
    Vector,
)

LITERALS = {("lop3", 4)}
"""Operands that are part of the operation rather than data: (name, position)."""

OPERAND_TYPES = {
    ("shl", 2): "u32", ("shr", 2): "u32", ("bfi", 3): "u32", ("bfi", 4): "u32", ("bfe", 2): "u32", ("bfe",
    3): "u32",
    ("shf", 3): "u32", ("selp", 3): "pred", ("setp", 3): "pred", ("cvta", 1): "u64",
}  # fmt: skip
"""Types of operands that are not those of their instruction: (name, position) -> type."""


@dataclass(frozen=True)
class Signature:
    """text: its identity, from which `from_text` makes it again. instruction: over registers o0, o1, ... of
    `types`."""

    text: str
    instruction: Instruction
    types: tuple[str, ...]

    @property
    def function_name(self) -> str:
        return "lane_" + hashlib.sha256(self.text.encode()).hexdigest()[:16]

    def source(self) -> str:
        """The C++ function. UnsupportedInstruction when the instruction is not known."""
        declarations = "".join(
            f"{STORAGE[kind]}* o{k} = ({STORAGE[kind]}*)(R + I.operands[{k}]);\n"
            for k, kind in enumerate(self.types)
        )
        return (
            f"// {self.text}\n"
            f'extern "C" void {self.function_name}(Machine&, Warp& W, u8* R, const Instruction& I) {{\n'
            f'const s32* mask = W.mask;\n{declarations}_Pragma("GCC ivdep")\n'
            f"for (int l = 0; l < 32; ++l) {{\n{lane_code(self.instruction)}}}\n}}\n"
        )


def canonical(kind: str) -> str:
    """One type per way of storing a register."""
    return kind if kind in ("pred", "f32", "f64") else "f32" if kind == "tf32" else f"b{BITS[kind]}"


def signature_of(instruction: Instruction) -> tuple[Signature, list[tuple[Operand, str]]]:
    """The signature, and for each of its registers the operand that takes the place, with its type."""
    places: list[tuple[Operand, str]] = []

    def show(operand: Operand, kind: str) -> str:
        if isinstance(operand, Vector):
            part = f"b{BITS[instruction.type] // len(operand.items)}"
            return "{" + ",".join(show(item, part) for item in operand.items) + "}"
        if isinstance(operand, Pair):
            return f"{show(operand.first, 'pred')}|{show(operand.second, 'pred')}"
        if isinstance(operand, Negated):
            return "!" + show(operand.register, "pred")
        if operand == SINK:
            return "_"
        kind = canonical(operand.type if isinstance(operand, Register) else kind)
        places.append((operand, kind))
        return kind

    words = [instruction.opcode]
    for k, operand in enumerate(instruction.operands):
        if (instruction.name, k) in LITERALS and isinstance(operand, Immediate):
            words.append(f"#{operand.value}")
        else:
            words.append(show(operand, operand_type(instruction, k)))
    text = " ".join(words)
    return from_text(text, instruction.line), places


def operand_type(instruction: Instruction, k: int) -> str:
    """The type of operand k when it is not a register and so has none of its own."""
    operand, name = instruction.operands[k], instruction.name
    if (name, k) in OPERAND_TYPES:
        return OPERAND_TYPES[name, k]
    if not instruction.types:
        raise instruction.unsupported()
    if isinstance(operand, SpecialRegister):
        return "u32"
    if isinstance(operand, Symbol):
        return "b64" if BITS[instruction.type] == 64 else "b32"
    if name == "mad" and k == 3 and instruction.has("wide"):
        return f"b{2 * BITS[instruction.type]}"
    return instruction.type


def from_text(text: str, line: int = 0) -> Signature:
    """The inverse of Signature.text."""
    types: list[str] = []

    def operand(word: str) -> Operand:
        if word.startswith("{"):
            return Vector(tuple(operand(part) for part in word[1:-1].split(",")))
        if "|" in word:
            first, second = word.split("|")
            return Pair(operand(first), operand(second))
        if word == "_":
            return SINK
        if word.startswith("#"):
            return Immediate(int(word[1:]))
        types.append(word.lstrip("!"))
        register = Register(f"o{len(types) - 1}", types[-1])
        return Negated(register) if word.startswith("!") else register

    opcode, *words = text.split(" ")
    operands = tuple(operand(word) for word in words)
    return Signature(text, Instruction(opcode, operands, line=line), tuple(types))


def library_source(signatures: list[Signature]) -> str:
    """One C++ file with the functions of all signatures."""
    return '#include "machine.h"\n#include <cmath>\n\n' + "\n".join(
        signature.source() for signature in signatures
    )
