"""How one lane of an instruction becomes C++: reading and writing its operands."""

from __future__ import annotations

from tir_schedules.machines.cpu.ptx import BITS, SINK, Instruction, Negated, Operand, Register

STORAGE = {
    "pred": "u32", "b8": "u8", "u8": "u8", "s8": "s8", "e4m3x2": "u16", "e5m2x2": "u16",
    "b16": "u16", "u16": "u16", "s16": "s16", "f16": "u16", "bf16": "u16",
    "b32": "u32", "u32": "u32", "s32": "s32", "f32": "f32", "tf32": "f32", "f16x2": "u32", "bf16x2": "u32",
    "s16x2": "u32", "u16x2": "u32",
    "b64": "u64", "u64": "u64", "s64": "s64", "f64": "f64", "b128": "u128",
}  # fmt: skip
"""C++ type that holds a register of a PTX type."""

WIDER = {
    "f32": "f64", "f64": "quad", "u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64", "u64": "u128",
    "s64": "s128",
}  # fmt: skip
"""C++ type that holds a product of two values of a PTX type exactly."""

FLOATS = ("f32", "f64", "tf32")
HALVES = {"f16": ("half_to_float", "float_to_half"), "bf16": ("bfloat_to_float", "float_to_bfloat")}
"""Helpers of core/numeric.h that widen a half to float32, and narrow float32 to it."""

CARRY = Register("W.carry", "b32")
"""The carry flag of each lane, from one instruction to the next."""

DIRECTIONS = {"rm": -1, "rp": 1, "rz": 0}


def is_float(type_: str) -> bool:
    return type_ in FLOATS


def unsigned(type_: str) -> str:
    return f"u{BITS[type_]}"


def raw(type_: str) -> str:
    """The type without interpretation: b32 for f32."""
    return type_ if type_ == "pred" else f"b{BITS[type_]}"


def rounding(instruction: Instruction) -> int | None:
    """-1, 0 or 1 for a directed rounding, None for rounding to nearest."""
    return next((DIRECTIONS[part] for part in instruction.parts if part in DIRECTIONS), None)


class LaneCode:
    """C++ of one lane of `instruction`, whose register operands o0, o1, ... are arrays indexed by the lane l.

    Results are computed into locals first and stored under the mask afterwards.
    """

    def __init__(self, instruction: Instruction):
        self.instruction = instruction
        self.computed: list[str] = []
        self.stored: list[str] = []

    def text(self) -> str:
        return "".join(self.computed + self.stored)

    def operand(self, k: int) -> Operand:
        return self.instruction.operands[k]

    def read(self, k: int, type_: str | None = None) -> str:
        """Operand k as a value of a type, by default that of the instruction."""
        type_ = type_ or self.instruction.type
        value = self.value(self.operand(k), type_)
        return f"flush({value})" if type_ == "f32" and self.instruction.has("ftz") else value

    def value(self, operand: Operand, type_: str) -> str:
        to = STORAGE[type_]
        if isinstance(operand, Negated):
            return f"(u32)!{operand.register.name}[l]"
        if not isinstance(operand, Register):
            raise self.instruction.unsupported(f"operand {operand}")
        name, source = f"{operand.name}[l]", STORAGE[operand.type]
        if source == to or "pred" in (operand.type, type_):
            return name
        if (source in FLOATS) == (to in FLOATS):
            return f"({to}){name}"
        if BITS[type_] == operand.bits:
            return f"bits<{to}>({name})"
        return f"({to})bits<u{operand.bits}>({name})"

    def halves(self, k: int, type_: str | None = None) -> list[str]:
        """Operand k of a type of halves as float32, one for each half."""
        type_ = type_ or self.instruction.type
        half = type_.removesuffix("x2")
        patterns = [self.read(k, type_)]
        if type_ != half:
            patterns = [f"(u16)({patterns[0]} >> {shift})" for shift in (0, 16)]
        if self.instruction.has("ftz"):
            patterns = [f"flush_{half}({pattern})" for pattern in patterns]
        return [f"{HALVES[half][0]}({pattern})" for pattern in patterns]

    def write_halves(self, values: list[str]) -> None:
        """Assign float32 expressions, one for each half, to the first operand."""
        type_ = self.instruction.type
        half = type_.removesuffix("x2")
        patterns = [f"{HALVES[half][1]}({value})" for value in values]
        if self.instruction.has("ftz"):
            patterns = [f"flush_{half}({pattern})" for pattern in patterns]
        self.write(f"pack({', '.join(patterns)})" if type_ != half else patterns[0], raw(type_))

    def write(self, expression: str, type_: str | None = None, to: Operand | None = None) -> None:
        """Assign an expression of a type to the first operand, or to `to`."""
        type_ = type_ or self.instruction.type
        register = self.operand(0) if to is None else to
        if register == SINK:
            return
        if not isinstance(register, Register):
            raise self.instruction.unsupported(f"result {register}")
        if type_ == "f32" and self.instruction.has("ftz"):
            expression = f"flush({expression})"
        target, source = STORAGE[register.type], STORAGE[type_]
        if target != source and register.type != "pred":
            if (target in FLOATS) != (source in FLOATS):
                expression = f"bits<{target}>({expression})"
            else:
                extended = f"(s{register.bits})" if type_[0] == "s" else ""
                expression = f"({target})({extended}({expression}))"
        local = f"v{len(self.computed)}"
        self.computed.append(f"const {target} {local} = {expression};\n")
        self.stored.append(f"{register.name}[l] = mask[l] ? {local} : {register.name}[l];\n")
