"""PTX as data: operands, instructions, variables, basic blocks, kernels. No semantics live here.

Source: PTX ISA, version 9.0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Iterator, Union

from tir_schedules.errors import CheckFailed

BITS = {
    "pred": 1, "b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16,
    "b32": 32, "u32": 32, "s32": 32, "f32": 32, "f16x2": 32, "bf16x2": 32, "tf32": 32,
    "b64": 64, "u64": 64, "s64": 64, "f64": 64, "b128": 128,
}  # fmt: skip
"""Width of each PTX type."""

STATE_SPACES = ("global", "shared", "local", "const", "param")


class UnsupportedInstruction(CheckFailed):
    """The CPU machine does not know a PTX construct; nothing has been executed."""


@dataclass(frozen=True)
class Register:
    name: str
    type: str

    @property
    def bits(self) -> int:
        return BITS[self.type]


@dataclass(frozen=True)
class Immediate:
    """A constant. kind: "int"; or "f32" or "f64", where value is the bit pattern."""

    value: int
    kind: str = "int"


@dataclass(frozen=True)
class Symbol:
    name: str


@dataclass(frozen=True)
class SpecialRegister:
    """Such as tid.x, without the percent sign."""

    name: str


@dataclass(frozen=True)
class Address:
    """[base + offset]; base is None for an absolute address."""

    base: Union[Register, Symbol, None]
    offset: int = 0


@dataclass(frozen=True)
class Vector:
    items: tuple["Operand", ...]


@dataclass(frozen=True)
class Pair:
    """first|second, two results."""

    first: "Operand"
    second: "Operand"


@dataclass(frozen=True)
class Negated:
    """!predicate"""

    register: Register


Operand = Union[Register, Immediate, Symbol, SpecialRegister, Address, Vector, Pair, Negated]
SINK = Symbol("_")
"""Where a result goes that nobody wants."""


def items(operand: Operand) -> list[Operand]:
    """Those of a vector; any other operand by itself."""
    return list(operand.items) if isinstance(operand, Vector) else [operand]


def registers_in(operand: Operand) -> Iterator[Register]:
    """Every register an operand mentions."""
    if isinstance(operand, Register):
        yield operand
    elif isinstance(operand, Vector):
        for item in operand.items:
            yield from registers_in(item)
    elif isinstance(operand, Pair):
        yield from registers_in(operand.first)
        yield from registers_in(operand.second)
    elif isinstance(operand, Address) and isinstance(operand.base, Register):
        yield operand.base
    elif isinstance(operand, Negated):
        yield operand.register


@dataclass(frozen=True)
class Instruction:
    """opcode: with its modifiers, "ld.global.v4.f32". guard: (predicate, whether it must be false) or None.

    line: in the PTX text, from 1. source: (file number, line) of the CUDA source, or (0, 0); of code that was
    inlined, where that was. within: the line of the inlined function itself. has_result: whether the first
    operand is written.
    """

    opcode: str
    operands: tuple[Operand, ...]
    guard: tuple[Register, bool] | None = None
    line: int = 0
    source: tuple[int, int] = (0, 0)
    within: tuple[int, int] = (0, 0)
    has_result: bool = True

    @cached_property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.opcode.split("."))

    @property
    def name(self) -> str:
        return self.parts[0]

    @cached_property
    def types(self) -> tuple[str, ...]:
        return tuple(part for part in self.parts[1:] if part in BITS)

    @property
    def type(self) -> str:
        """The last type the opcode names, that of the operands in most instructions."""
        if not self.types:
            raise self.unsupported()
        return self.types[-1]

    @cached_property
    def vector_length(self) -> int:
        return next((int(part[1]) for part in self.parts if part in ("v2", "v4", "v8")), 1)

    @cached_property
    def space(self) -> str:
        """The state space of a memory instruction, "generic" when the opcode names none."""
        return next(
            (part for part in (p.split("::")[0] for p in self.parts) if part in STATE_SPACES), "generic"
        )

    def has(self, modifier: str) -> bool:
        return modifier in self.parts[1:]

    def choice(self, modifiers: tuple[str, ...] | list[str]) -> str:
        """Which of the modifiers the opcode has; UnsupportedInstruction when none."""
        for part in self.parts[1:]:
            if part in modifiers:
                return part
        raise self.unsupported()

    def address(self, k: int) -> Address:
        """Operand k, which must be an address."""
        operand = self.operands[k] if k < len(self.operands) else None
        if not isinstance(operand, Address):
            raise self.unsupported(f"address {operand}")
        return operand

    def number(self, k: int) -> int:
        """Operand k, which must be a constant."""
        operand = self.operands[k] if k < len(self.operands) else None
        if not isinstance(operand, Immediate):
            raise self.unsupported(f"operand {operand}")
        return operand.value

    def unsupported(self, why: str = "") -> UnsupportedInstruction:
        reason = f" ({why})" if why else ""
        return UnsupportedInstruction(
            f"PTX line {self.line}: the CPU machine does not know {self.opcode}{reason}"
        )

    @cached_property
    def results(self) -> tuple[Register, ...]:
        """Registers it writes."""
        if not self.has_result or not self.operands or isinstance(self.operands[0], Address):
            return ()
        return tuple(registers_in(self.operands[0]))

    @cached_property
    def reads(self) -> tuple[Register, ...]:
        """Registers it reads; a guarded instruction also reads what it may leave unchanged."""
        sources = self.operands[1:] if self.results else self.operands
        read = tuple(register for operand in sources for register in registers_in(operand))
        return read + ((self.guard[0], *self.results) if self.guard else ())


@dataclass
class Variable:
    """A variable. offset: in its space; extern: an array of dynamic size."""

    name: str
    space: str
    align: int
    size: int
    initial: bytes = b""
    extern: bool = False
    offset: int = 0


@dataclass(frozen=True)
class Parameter:
    """A kernel parameter; offset and size in bytes of the parameter buffer."""

    name: str
    type: str
    size: int
    offset: int


@dataclass
class BasicBlock:
    """Instructions without branches between them; `end` is the branch, barrier or exit that closes it, or
    None.

    successors: indices of the blocks that may follow; for a guarded branch the target comes first.
    """

    index: int
    instructions: list[Instruction] = field(default_factory=list)
    end: Instruction | None = None
    successors: tuple[int, ...] = ()
    live_in: frozenset[Register] = frozenset()
    live_out: frozenset[Register] = frozenset()

    @property
    def all_instructions(self) -> list[Instruction]:
        return self.instructions + ([self.end] if self.end else [])


@dataclass
class PtxKernel:
    """One .entry. shared_bytes: static shared memory; dynamic shared memory begins there, rounded up to 16.

    local_bytes: stack of each thread.
    """

    name: str
    parameters: list[Parameter]
    variables: dict[str, Variable]
    blocks: list[BasicBlock]
    shared_bytes: int
    local_bytes: int

    @property
    def instructions(self) -> Iterator[Instruction]:
        for block in self.blocks:
            yield from block.all_instructions


@dataclass
class PtxModule:
    """A PTX file. variables: in global and const space. files: number -> name of the CUDA source. target:
    "sm_80"."""

    kernels: dict[str, PtxKernel]
    variables: dict[str, Variable]
    files: dict[int, str]
    target: str
