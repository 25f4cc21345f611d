"""Micro-ops: calls of functions of the core for a warp.

Each kind is declared beside the family that lowers to it, with the fields that are its operands; codegen.py
writes the C++ struct that reads them, so that both sides have one description. The operands are 32-bit
numbers: those of the fields in their order, each list as its length, and behind them what is in the lists.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tir_schedules.machines.cpu.abi import NONE
from tir_schedules.machines.cpu.context import Lowering, Reach
from tir_schedules.machines.cpu.ptx import SINK, Address, Instruction, Register


@dataclass
class MicroOp:
    """One call of a function of the core, on behalf of an instruction. counter, within: of an access: its
    counter, -1: none; the address that it comes from."""

    function: str
    instruction: Instruction
    operands: tuple[int, ...] = ()
    counter: int = -1
    within: Address | None = None


# ---- kinds of fields ---
class Kind:
    """How a field becomes operands, and how C++ reads it. words: as many as it has in front of the lists."""

    words: ClassVar[int] = 1

    def add(self, op: MicroOp, low: Lowering, value: Any, fixed: list[int], listed: list[int]) -> None:
        fixed.append(value)

    def reader(self, operand: str, at: int, listed: str) -> tuple[str, str]:
        """Type and value in C++. operand: its first, number `at`; listed: where what a list has begins."""
        raise NotImplementedError


@dataclass(frozen=True)
class Number(Kind):
    """A constant. cpp: its type in C++, such as the name of an enumeration."""

    cpp: str

    def reader(self, operand: str, at: int, listed: str) -> tuple[str, str]:
        return self.cpp, f"({self.cpp}){operand}"


@dataclass(frozen=True)
class Place(Kind):
    """Where a register of each lane is. cpp: the type of one of the 32; ptx: that of an operand that is a
    constant; empty: that of the opcode. optional: whether it may be left out, as a result that is not wanted;
    C++ has nullptr for it. What is given is an operand of the instruction, or already its place."""

    cpp: str
    ptx: str = ""
    optional: bool = False

    def add(self, op: MicroOp, low: Lowering, value: Any, fixed: list[int], listed: list[int]) -> None:
        if isinstance(value, Register):
            fixed.append(low.place(value, value.type, op.instruction))
        elif isinstance(value, int):
            fixed.append(value)
        elif value is None or self.optional and value == SINK:
            fixed.append(NONE)
        else:
            fixed.append(low.place(value, self.ptx or op.instruction.type, op.instruction))

    def reader(self, operand: str, at: int, listed: str) -> tuple[str, str]:
        there = f"({self.cpp}*)(R + {operand})"
        return f"{self.cpp}*", f"{operand} == NONE ? nullptr : {there}" if self.optional else there


@dataclass(frozen=True)
class Several(Kind):
    """A list: its length, and behind all fields what is in it."""

    item: Number | Place

    def add(self, op: MicroOp, low: Lowering, value: Any, fixed: list[int], listed: list[int]) -> None:
        fixed.append(len(value))
        for each in value:
            self.item.add(op, low, each, listed, listed)

    def reader(self, operand: str, at: int, listed: str) -> tuple[str, str]:
        if isinstance(self.item, Number):
            return "Numbers", f"{{op->operands + {listed}, {operand}}}"
        return f"Registers<{self.item.cpp}>", f"{{R, op->operands + {listed}, {operand}}}"


class Reached(Kind):
    """An address of each lane: place, whether of 64 bits, and the offset in two words. What is given is an
    operand of the instruction, or a Reach."""

    words = 4

    def add(self, op: MicroOp, low: Lowering, value: Any, fixed: list[int], listed: list[int]) -> None:
        reach = value if isinstance(value, Reach) else low.address(value, op.instruction)
        base, wide, offset, within = reach
        fixed += (base, wide, offset & NONE, offset >> 32 & NONE)
        op.within = op.within or within

    def reader(self, operand: str, at: int, listed: str) -> tuple[str, str]:
        return "Address", f"{{R, op->operands + {at}}}"


class Counts(Kind):
    """Number of the counter of an access: it is in the row of MICRO_OP."""

    words = 0

    def add(self, op: MicroOp, low: Lowering, value: Any, fixed: list[int], listed: list[int]) -> None:
        op.counter = value

    def reader(self, operand: str, at: int, listed: str) -> tuple[str, str]:
        return "s32", "op->counter"


KINDS: dict[str, Kind] = {
    "Constant": Number("u32"),
    "Flag": Number("bool"),
    "Predicates": Place("u32", "pred"),
    "Halves": Place("u16", "b16"),
    "Words": Place("u32", "b32"),
    "Integers": Place("s32", "s32"),
    "Longs": Place("u64", "b64"),
    "Lanes": Place("u8"),
    "Undefineds": Place("Undefined"),
    "Where": Reached(),
    "Counter": Counts(),
}
"""By the names that declarations have for them; Lanes: registers whose type another operand says."""


def kind_named(text: str) -> Kind:
    """The kind of a declaration: `Words?` may be left out, `Words[]` is a list; other words name an
    enumeration."""
    item = text.removesuffix("[]")
    kind = KINDS.get(item.removesuffix("?")) or Number(item)
    if item.endswith("?"):
        assert isinstance(kind, Place)
        kind = replace(kind, optional=True)
    if item == text:
        return kind
    assert isinstance(kind, (Number, Place))
    return Several(kind)


# ---- kinds of micro-ops ---
@dataclass(frozen=True)
class MicroOpType:
    """Makes micro-ops of one function; or has the fields that the types of several functions extend.

    name: of the struct in C++. executed: whether the core has a function; it reads the operands of others.
    """

    name: str
    function: str
    fields: dict[str, Kind]
    executed: bool
    extended: MicroOpType | None = None

    def __call__(self, low: Lowering, instruction: Instruction, **values: Any) -> MicroOp:
        op = MicroOp(self.function, instruction)
        fixed: list[int] = []
        listed: list[int] = []
        for name, kind in self.fields.items():
            value = values[name]
            if isinstance(kind, Number):
                fixed.append(value)
            else:
                kind.add(op, low, value, fixed, listed)
        if len(values) != len(self.fields):
            raise TypeError(f"{self.function} has no {', '.join(values.keys() - self.fields.keys())}")
        op.operands = (*fixed, *listed)
        return op

    def __getitem__(self, function: str) -> MicroOpType:
        """The variant with this function, one of several."""
        made = MICRO_OPS[function]
        assert made.extended is self
        return made


TYPES: list[MicroOpType] = []
MICRO_OPS: dict[str, MicroOpType] = {}
"""By the name of the function in the core."""


def micro_op(name: str, functions: str, fields: str = "", executed: bool = True) -> MicroOpType:
    """Declare calls of one function of the core, or of several. fields: "Words a b; Longs c"."""
    declared = (declaration.split() for declaration in fields.split("; ") if declaration)
    known = {field: kind_named(kind) for kind, *names in declared for field in names}
    first, *others = functions.split()
    made = MicroOpType(name, "" if others else first, known, executed)
    TYPES.append(made)
    if not others:
        MICRO_OPS[first] = made
    for function in (first, *others) if others else ():
        struct = "".join(part.capitalize() for part in function.split("."))
        MICRO_OPS[function] = replace(made, name=struct, function=function, extended=made)
        TYPES.append(MICRO_OPS[function])
    return made
