"""Micro-ops: calls of functions of the core for a warp.

Each is a class beside the family that lowers to it. Its fields are its operands; codegen.py writes the C++
struct that reads them, so that both sides have one description. The operands are 32-bit numbers: those of the
fields in their order, each list as its length, and behind them what is in the lists.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from enum import Enum, IntFlag
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from tir_schedules.machines.cpu.abi import NONE
from tir_schedules.machines.cpu.ptx import Address, Instruction

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform():
        return lambda made: made


class Reach(NamedTuple):
    """An address: place of the register, whether that has 64 bits, and what is added to it. within: the
    operand whose variable it must stay in, if any."""

    base: int
    wide: bool
    offset: int
    within: Address | None = None


# ---- kinds of fields ---
class Kind:
    """How a field becomes operands. words: as many as it has in front of the lists."""

    words: ClassVar[int] = 1

    def add(self, op: MicroOp, value: Any, fixed: list[int], listed: list[int]) -> None:
        fixed.append(value)


@dataclass(frozen=True)
class Number(Kind):
    """A constant. cpp: its type in C++. enum: what it is one of, or has the bits of."""

    cpp: str = "u32"
    enum: type[Enum] | None = None


@dataclass(frozen=True)
class Place(Kind):
    """Where a register of a lane is, one for each of the 32. cpp: the type of one of them. optional: whether
    there may be none; C++ has nullptr for it."""

    cpp: str
    optional: bool = False

    def add(self, op: MicroOp, value: Any, fixed: list[int], listed: list[int]) -> None:
        fixed.append(NONE if value is None else value)


@dataclass(frozen=True)
class Several(Kind):
    """A list: its length, and behind all fields what is in it."""

    item: Kind

    def add(self, op: MicroOp, value: Any, fixed: list[int], listed: list[int]) -> None:
        fixed.append(len(value))
        for each in value:
            self.item.add(op, each, listed, listed)


class Reached(Kind):
    """An address of each lane: place, whether of 64 bits, and the offset in two words."""

    words = 4

    def add(self, op: MicroOp, value: Any, fixed: list[int], listed: list[int]) -> None:
        base, wide, offset, within = value
        fixed += (base, wide, offset & NONE, offset >> 32 & NONE)
        op.within = op.within or within


class Counts(Kind):
    """Number of the counter of an access, -1 for none: it is in the row of MICRO_OP."""

    words = 0

    def add(self, op: MicroOp, value: Any, fixed: list[int], listed: list[int]) -> None:
        op.counter = value


Constant = Annotated[int, Number()]
Flag = Annotated[bool, Number("bool")]
Halves = Annotated[int, Place("u16")]
Words = Annotated[int, Place("u32")]
Integers = Annotated[int, Place("s32")]
Longs = Annotated[int, Place("u64")]
Lanes = Annotated[int, Place("u8")]
"""Registers whose type another operand says."""
Undefineds = Annotated[int, Place("Undefined")]
Where = Annotated[Reach, Reached()]
Counter = Annotated[int, Counts()]


def kind_of(annotation: Any) -> Kind:
    """Of the annotation of a field."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return annotation.__metadata__[0]
    if origin is Union:
        place = kind_of(get_args(annotation)[0])
        assert isinstance(place, Place)
        return Place(place.cpp, optional=True)
    if origin is SequenceOf:
        return Several(kind_of(get_args(annotation)[0]))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return Number("u32" if issubclass(annotation, IntFlag) else annotation.__name__, annotation)
    raise TypeError(f"no field of a micro-op: {annotation}")


# ---- micro-ops ---
Op = TypeVar("Op", bound="MicroOp")


@dataclass_transform()
class Described:
    """Lets a type checker know that a micro-op is made from its fields."""


class MicroOp(Described):
    """One call of a function of the core, on behalf of an instruction. name: of the function; names: of
    several with the same operands, each of which is a subclass. executed: whether the core has a function; it
    reads the operands of the others."""

    instruction: Instruction
    function: ClassVar[str] = ""
    executed: ClassVar[bool] = True
    kinds: ClassVar[dict[str, Kind]] = {}

    def __init_subclass__(cls, name: str = "", names: str = "", executed: bool = True) -> None:
        scope, own = vars(sys.modules[cls.__module__]), cls.__dict__.get("__annotations__", {})
        cls.function, cls.executed = name, executed
        cls.kinds = cls.kinds | {field: kind_of(eval(text, scope)) for field, text in own.items()}
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

    def __init__(self, instruction: Instruction, **values: Any):
        self.instruction = instruction
        self.counter, self.within = -1, None
        fixed: list[int] = []
        listed: list[int] = []
        for name, kind in self.kinds.items():
            kind.add(self, values.pop(name), fixed, listed)
        if values:
            raise TypeError(f"{self.function} has no {', '.join(values)}")
        self.operands = (*fixed, *listed)


MICRO_OPS: dict[str, type[MicroOp]] = {}
"""By the name of the function in the core."""
