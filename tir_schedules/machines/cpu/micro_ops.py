"""Micro-ops: calls of functions of the core for a warp.

Each is a class beside the family that lowers to it. Its fields are its operands; codegen.py writes the C++
struct that reads them, so that both sides have one description. The operands are 32-bit numbers: those of the
fields in their order, each list as its length, and behind them what is in the lists.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence as SequenceOf
from enum import Enum, IntFlag
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from tir_schedules.machines.cpu.abi import NONE
from tir_schedules.machines.cpu.context import Lowering, Reach
from tir_schedules.machines.cpu.ptx import SINK, Address, Instruction, Operand, Register

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform():
        return lambda made: made


# ---- kinds of fields ---
class Kind:
    """How a field becomes operands. words: as many as it has in front of the lists."""

    words: ClassVar[int] = 1

    def add(self, op: MicroOp, low: Lowering, value: Any, fixed: list[int], listed: list[int]) -> None:
        fixed.append(value)


class Number(Kind):
    """A constant. cpp: its type in C++. enum: what it is one of, or has the bits of."""

    def __init__(self, cpp: str = "u32", enum: type[Enum] | None = None):
        self.cpp, self.enum = cpp, enum


class Place(Kind):
    """Where a register of each lane is. cpp: the type of one of the 32; ptx: that of an operand that is a
    constant; empty: that of the opcode. optional: whether there may be none, such as a result that nobody
    wants; C++ has nullptr for it. What is given is an operand of the instruction, or already its place."""

    def __init__(self, cpp: str, ptx: str = "", optional: bool = False):
        self.cpp, self.ptx, self.optional = cpp, ptx, optional

    def add(self, op: MicroOp, low: Lowering, value: Any, fixed: list[int], listed: list[int]) -> None:
        if isinstance(value, Register):
            fixed.append(low.place(value, value.type, op.instruction))
        elif isinstance(value, int):
            fixed.append(value)
        elif value is None or self.optional and value == SINK:
            fixed.append(NONE)
        else:
            fixed.append(low.place(value, self.ptx or op.instruction.type, op.instruction))


class Several(Kind):
    """A list: its length, and behind all fields what is in it."""

    def __init__(self, item: Kind):
        self.item = item

    def add(self, op: MicroOp, low: Lowering, value: Any, fixed: list[int], listed: list[int]) -> None:
        fixed.append(len(value))
        for each in value:
            self.item.add(op, low, each, listed, listed)


class Reached(Kind):
    """An address of each lane: place, whether of 64 bits, and the offset in two words. What is given is an
    operand of the instruction, or a Reach."""

    words = 4

    def add(self, op: MicroOp, low: Lowering, value: Any, fixed: list[int], listed: list[int]) -> None:
        reach = value if isinstance(value, Reach) else low.address(value, op.instruction)
        base, wide, offset, within = reach
        fixed += (base, wide, offset & NONE, offset >> 32 & NONE)
        op.within = op.within or within


class Counts(Kind):
    """Number of the counter of an access, -1 for none: it is in the row of MICRO_OP."""

    words = 0

    def add(self, op: MicroOp, low: Lowering, value: Any, fixed: list[int], listed: list[int]) -> None:
        op.counter = value


Constant = Annotated[int, Number()]
Flag = Annotated[bool, Number("bool")]
Placed = Union[int, Operand]
Predicates = Annotated[Placed, Place("u32", "pred")]
Halves = Annotated[Placed, Place("u16", "b16")]
Words = Annotated[Placed, Place("u32", "b32")]
Integers = Annotated[Placed, Place("s32", "s32")]
Longs = Annotated[Placed, Place("u64", "b64")]
Lanes = Annotated[Placed, Place("u8")]
"""Registers whose type another operand says."""
Undefineds = Annotated[int, Place("Undefined")]
Where = Annotated[Union[Reach, Operand], Reached()]
Counter = Annotated[int, Counts()]


def kind_of(annotation: Any) -> Kind:
    """Of the annotation of a field."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return annotation.__metadata__[0]
    if origin is Union:
        place = kind_of(get_args(annotation)[0])
        assert isinstance(place, Place)
        return Place(place.cpp, place.ptx, optional=True)
    if origin is SequenceOf:
        return Several(kind_of(get_args(annotation)[0]))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return Number("u32" if issubclass(annotation, IntFlag) else annotation.__name__, annotation)
    raise TypeError(f"no field of a micro-op: {annotation}")


KINDS: dict[str, Kind] = {}
"""Those that every module knows, by the text of the annotation."""


def kind_named(text: str, scope: dict[str, Any]) -> Kind:
    kind = KINDS.get(text) or kind_of(eval(text, scope))
    if not isinstance(kind, Number) or not kind.enum:
        KINDS[text] = kind
    return kind


# ---- micro-ops ---
Op = TypeVar("Op", bound="MicroOp")


@dataclass_transform()
class Described:
    """Lets a type checker know that a micro-op is made from its fields."""


class MicroOp(Described):
    """One call of a function of the core, on behalf of an instruction. name: of the function; names: of
    several with the same operands, each of which is a subclass. executed: whether the core has a function; it
    reads the operands of the others."""

    low: Lowering
    instruction: Instruction
    function: ClassVar[str] = ""
    executed: ClassVar[bool] = True
    kinds: ClassVar[dict[str, Kind]] = {}

    def __init_subclass__(cls, name: str = "", names: str = "", executed: bool = True) -> None:
        scope, own = vars(sys.modules[cls.__module__]), cls.__dict__.get("__annotations__", {})
        cls.function, cls.executed = name, executed
        cls.kinds = cls.kinds | {field: kind_named(text, scope) for field, text in own.items()}
        if name:
            MICRO_OPS[name] = cls
        for each in names.split():
            made = "".join(part.capitalize() for part in each.split("."))
            type(made, (cls,), {"__module__": cls.__module__}, name=each)

    @classmethod
    def named(cls: type[Op], name: str) -> type[Op]:
        """That of a function, one of `names`."""
        made = MICRO_OPS[name]
        assert issubclass(made, cls)
        return made

    def __init__(self, low: Lowering, instruction: Instruction, **values: Any):
        self.instruction = instruction
        self.counter = -1
        self.within: Address | None = None
        fixed: list[int] = []
        listed: list[int] = []
        for name, kind in self.kinds.items():
            value = values[name]
            if isinstance(kind, Number):
                fixed.append(value)
            else:
                kind.add(self, low, value, fixed, listed)
        if len(values) != len(self.kinds):
            raise TypeError(f"{self.function} has no {', '.join(values.keys() - self.kinds.keys())}")
        self.operands = (*fixed, *listed)


MICRO_OPS: dict[str, type[MicroOp]] = {}
"""By the name of the function in the core."""


def fields(**values: Any) -> dict[str, Any]:
    """Some fields of a micro-op that is made."""
    return values
