"""A signature is a lane's instruction without its registers: opcode and operand types, `add.f32 f32 f32 f32`.

Instructions of one signature share one compiled function; the operands are offsets into the register file.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Sequence

from tir_schedules.machines.cpu import ptx
from tir_schedules.machines.cpu.instructions import row_of
from tir_schedules.machines.cpu.lane_code import STORAGE, LaneCode


@dataclass(frozen=True)
class Signature:
    """text: opcode and operand types. line: of the PTX, for the message that it is not known."""

    text: str
    line: int = 0

    @property
    def function_name(self) -> str:
        return "lane_" + hashlib.sha256(self.text.encode()).hexdigest()[:16]

    def source(self) -> str:
        """The C++ function. UnsupportedInstruction when the instruction is not known."""
        instruction, types = self.instruction()
        declarations = "".join(
            f"{STORAGE[kind]}* o{k} = ({STORAGE[kind]}*)(R + op.operands[{k}]);\n"
            for k, kind in enumerate(types)
        )
        return (
            f"// {self.text}\n"
            f'extern "C" void {self.function_name}(Machine&, Warp& warp, u8* R, const MicroOp& op) {{\n'
            "WarpLanes& W = (WarpLanes&)warp;\n"
            f'const s32* mask = W.mask;\n{declarations}_Pragma("GCC ivdep")\n'
            f"for (int l = 0; l < 32; ++l) {{\n{lane_code(instruction)}}}\n}}\n"
        )

    def instruction(self) -> tuple[ptx.Instruction, list[str]]:
        """An instruction that has this signature, over registers o0, o1, ..., and their types."""
        types: list[str] = []

        def operand(word: str) -> ptx.Operand:
            if word.startswith("{"):
                return ptx.Vector(tuple(operand(part) for part in word[1:-1].split(",")))
            if "|" in word:
                first, second = word.split("|")
                return ptx.Pair(operand(first), operand(second))
            if word == "_":
                return ptx.SINK
            if word.startswith("#"):
                return ptx.Immediate(int(word[1:]))
            types.append(word.lstrip("!"))
            register = ptx.Register(f"o{len(types) - 1}", types[-1])
            return ptx.Negated(register) if word.startswith("!") else register

        opcode, *words = self.text.split(" ")
        return ptx.Instruction(opcode, tuple(operand(word) for word in words), line=self.line), types


CANONICAL = {kind: f"b{bits}" for kind, bits in ptx.BITS.items()} | {
    "pred": "pred", "f32": "f32", "tf32": "f32", "f64": "f64",
}  # fmt: skip
"""One type per way of storing a register."""

Placed = list[tuple[ptx.Operand, str]]
"""Operands in registers, each with its type."""


def signature_of(instruction: ptx.Instruction) -> tuple[str, Placed]:
    """The text of the signature, and for each of its registers the operand in its place, with its type."""
    places: Placed = []
    row = row_of(instruction)
    if not instruction.types and not row.operand_types:
        raise instruction.unsupported()
    words = [instruction.opcode]
    for k, operand in enumerate(instruction.operands):
        if isinstance(operand, ptx.Register):
            words.append(in_register(operand, operand.type, places))
        elif row.slots[k].form == "#" and isinstance(operand, ptx.Immediate):
            words.append(f"#{operand.value}")
        else:
            words.append(word_of(operand, operand_type(instruction, k), instruction, places))
    return " ".join(words), places


def word_of(operand: ptx.Operand, kind: str, instruction: ptx.Instruction, places: Placed) -> str:
    """An operand in the signature; its registers are added to the places. kind: its type, if the operand
    itself has none."""
    if isinstance(operand, ptx.Register):
        kind = operand.type
    elif isinstance(operand, ptx.Vector):
        part = f"b{ptx.BITS[instruction.type] // len(operand.items)}"
        return "{" + ",".join([word_of(item, part, instruction, places) for item in operand.items]) + "}"
    elif isinstance(operand, ptx.Pair):
        first = word_of(operand.first, "pred", instruction, places)
        second = word_of(operand.second, "pred", instruction, places)
        return f"{first}|{second}"
    elif isinstance(operand, ptx.Negated):
        return "!" + word_of(operand.register, "pred", instruction, places)
    elif operand == ptx.SINK:
        return "_"
    return in_register(operand, kind, places)


def in_register(operand: ptx.Operand, kind: str, places: Placed) -> str:
    """The type as registers of a lane have it, in which the operand is added to the places."""
    stored = CANONICAL[kind]
    places.append((operand, stored))
    return stored


def operand_type(instruction: ptx.Instruction, k: int) -> str:
    """The type of operand k when it is not a register and so has none of its own."""
    operand, known = instruction.operands[k], row_of(instruction).operand_types
    if k in known:
        return known[k]
    kind = instruction.type
    if isinstance(operand, ptx.SpecialRegister):
        return "u32"
    if isinstance(operand, ptx.Symbol):
        return "b64" if ptx.BITS[kind] == 64 else "b32"
    if k == 3 and instruction.has("wide"):  # what is added to a product of twice the width
        return f"b{2 * ptx.BITS[kind]}"
    return kind


def lane_code(instruction: ptx.Instruction) -> str:
    """C++ statements of one lane.

    UnsupportedInstruction for a name or type that is not known. They are never ignored.
    """
    row = row_of(instruction)
    if row.operation is None:
        raise instruction.unsupported()
    code = LaneCode(instruction)
    try:
        row.operation(code)
    except KeyError as error:
        raise instruction.unsupported(f"type or modifier {error}") from None
    return code.text()


def library_source(signatures: Sequence[Signature], headers: Sequence[str]) -> str:
    """One C++ file with the functions of all signatures, over the helpers of some headers."""
    includes = "".join(f'#include "{header}"\n' for header in headers)
    return includes + "#include <cmath>\n\n" + "\n".join(signature.source() for signature in signatures)
