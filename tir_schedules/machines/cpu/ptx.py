"""PTX as data: operands, instructions, variables, basic blocks, kernels. No semantics live here.

Source: PTX ISA, version 9.0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Iterable, Iterator, Sequence, Union

from tir_schedules.errors import CheckFailed

BITS = {
    "pred": 1, "b1": 1, "s4": 4, "u4": 4,
    "b8": 8, "u8": 8, "s8": 8,
    "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16, "e4m3x2": 16, "e5m2x2": 16,
    "b32": 32, "u32": 32, "s32": 32, "f32": 32, "f16x2": 32, "bf16x2": 32, "tf32": 32,
    "s16x2": 32, "u16x2": 32,
    "b64": 64, "u64": 64, "s64": 64, "f64": 64, "b128": 128,
}  # fmt: skip
"""Width of each PTX type."""

STATE_SPACES = ("global", "shared", "local", "const", "param")


class UnsupportedInstruction(CheckFailed):
    """The CPU machine does not know a PTX construct; nothing has been executed."""


@dataclass(frozen=True, eq=False, slots=True)
class Register:
    """One object for each register of a kernel: two are never equal."""

    name: str
    type: str

    @property
    def bits(self) -> int:
        return BITS[self.type]


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant. kind: "int"; or "f32" or "f64", where value is the bit pattern."""

    value: int
    kind: str = "int"


@dataclass(frozen=True, slots=True)
class Symbol:
    name: str


@dataclass(frozen=True, slots=True)
class SpecialRegister:
    """Such as tid.x, without the percent sign."""

    name: str


@dataclass(frozen=True, slots=True)
class Address:
    """[base + offset]; base is None for an absolute address. coordinates: of a box of a tensor map, innermost
    first."""

    base: Union[Register, Symbol, None]
    offset: int = 0
    coordinates: tuple["Operand", ...] = ()


@dataclass(frozen=True, slots=True)
class Vector:
    items: tuple["Operand", ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """first|second, two results."""

    first: "Operand"
    second: "Operand"


@dataclass(frozen=True, slots=True)
class Negated:
    """!predicate"""

    register: Register


Operand = Union[Register, Immediate, Symbol, SpecialRegister, Address, Vector, Pair, Negated]
SINK = Symbol("_")
"""The operand in the place of a result that is not wanted."""


def items(operand: Operand) -> list[Operand]:
    """The items of a vector; any other operand by itself."""
    return list(operand.items) if isinstance(operand, Vector) else [operand]


def registers_of(operands: Iterable[Operand]) -> tuple[Register, ...]:
    """Every register that the operands mention."""
    found: list[Register] = []
    for operand in operands:
        if isinstance(operand, Register):
            found.append(operand)
        elif isinstance(operand, Address):
            if isinstance(operand.base, Register):
                found.append(operand.base)
            found += registers_of(operand.coordinates)
        elif isinstance(operand, Vector):
            found += registers_of(operand.items)
        elif isinstance(operand, Pair):
            found += registers_of((operand.first, operand.second))
        elif isinstance(operand, Negated):
            found.append(operand.register)
    return tuple(found)


@dataclass(frozen=True)
class Opcode:
    """What an opcode says, such as "ld.global.v4.f32".

    parts: its name and its modifiers. types: those that are types. space: the state space of a memory
    instruction, "generic" when the opcode names none.
    """

    parts: tuple[str, ...]
    types: tuple[str, ...]
    vector_length: int
    space: str


@lru_cache(maxsize=None)
def read_opcode(text: str) -> Opcode:
    parts = tuple(text.split("."))
    spaces = [name for name in (part.split("::")[0] for part in parts) if name in STATE_SPACES]
    lengths = [int(part[1]) for part in parts if part in ("v2", "v4", "v8")]
    types = tuple(part for part in parts[1:] if part in BITS)
    return Opcode(parts, types, lengths[0] if lengths else 1, spaces[0] if spaces else "generic")


NO_PLACE = (0, 0)
"""The source line of what has none."""


@dataclass(eq=False, slots=True)
class Instruction:
    """opcode: with its modifiers. guard: (predicate, whether it must be false) or None.

    line: in the PTX text, from 1. source: (file number, line) of the CUDA source, or (0, 0); of code that was
    inlined, where that was. within: the line of the inlined function itself, and behind it those of the calls
    that lead there, the outermost last. access: of the first operand:
    "=" where it is written, "+" where it is also read. results, reads: registers that it writes and reads; a
    guarded instruction also reads what it may leave unchanged.
    """

    opcode: str
    operands: tuple[Operand, ...]
    guard: tuple[Register, bool] | None = None
    line: int = 0
    source: tuple[int, int] = NO_PLACE
    within: tuple[tuple[int, int], ...] = (NO_PLACE,)
    access: str = "="
    name: str = field(init=False, repr=False)
    parts: tuple[str, ...] = field(init=False, repr=False)
    types: tuple[str, ...] = field(init=False, repr=False)
    vector_length: int = field(init=False, repr=False)
    space: str = field(init=False, repr=False)
    results: tuple[Register, ...] = field(init=False, repr=False)
    reads: tuple[Register, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        opcode = read_opcode(self.opcode)
        self.name, self.parts, self.types = opcode.parts[0], opcode.parts, opcode.types
        self.vector_length, self.space = opcode.vector_length, opcode.space
        operands, results = self.operands, ()
        if self.access and operands and not isinstance(operands[0], Address):
            results = registers_of(operands[:1])
            operands = operands[1:] if results else operands
        self.results = results
        self.reads = registers_of(operands) + (results if self.access == "+" else ())
        if self.guard:
            self.reads += (self.guard[0], *results)

    @property
    def has_result(self) -> bool:
        """Whether the first operand is written."""
        return self.access != ""

    @property
    def type(self) -> str:
        """The last type the opcode names, that of the operands in most instructions."""
        if not self.types:
            raise self.unsupported()
        return self.types[-1]

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
        what = f"PTX line {self.line}: the CPU machine does not know {self.opcode}{reason}"
        return UnsupportedInstruction(what)


@dataclass
class Variable:
    """A variable. offset: in its space; extern: an array of dynamic size. references: addresses among its
    initial values."""

    name: str
    space: str
    align: int
    size: int
    initial: bytes = b""
    extern: bool = False
    offset: int = 0
    references: tuple["Reference", ...] = ()


@dataclass(frozen=True)
class Reference:
    """An address as an initial value: that of a variable or function, plus `addend`. The bits that `mask`
    has fill `bytes` bytes at `offset`."""

    offset: int
    bytes: int
    name: str
    addend: int
    mask: int


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel or function; offset and size in bytes of the parameter buffer."""

    name: str
    type: str
    size: int
    offset: int


@dataclass
class BasicBlock:
    """Instructions without branches between them; `end` is the branch, barrier or exit that closes it, or
    None.

    successors: indices of the blocks that may follow; for a guarded branch the target comes first.
    reads_first: registers that it reads before it writes them. live: those that may be read before they are
    written when it begins, a bit for each of `registers`.
    """

    index: int
    instructions: list[Instruction] = field(default_factory=list)
    end: Instruction | None = None
    successors: tuple[int, ...] = ()
    reads_first: frozenset[Register] = frozenset()
    live: int = 0
    registers: Sequence[Register] = ()

    @property
    def live_in(self) -> frozenset[Register]:
        return frozenset(r for r, bit in zip(self.registers, f"{self.live:b}"[::-1]) if bit == "1")

    @property
    def all_instructions(self) -> list[Instruction]:
        return self.instructions + ([self.end] if self.end else [])


@dataclass(frozen=True)
class Prototype:
    """What a function takes and returns; offsets are those of the bytes that a call hands over."""

    parameters: tuple[Parameter, ...]
    results: tuple[Parameter, ...]

    @property
    def shape(self) -> tuple[tuple[int, ...], ...]:
        """Bytes of each parameter and of each result."""
        return tuple(tuple(one.size for one in several) for several in (self.parameters, self.results))


@dataclass
class PtxFunction:
    """An .entry or a .func as it is written.

    items: instructions, and labels as text. variables: its own, by name. mentioned: every symbol it names.
    prototypes: of calls through a pointer, by label; an entry of `targets` names the functions such a call
    may reach, or the labels that a brx.idx may go to. passed: parameters and results that it declares for
    its calls, by name. line: of the PTX where it begins.
    """

    name: str
    prototype: Prototype
    is_entry: bool
    line: int
    items: list[Union[Instruction, str]] = field(default_factory=list)
    variables: dict[str, Variable] = field(default_factory=dict)
    mentioned: set[str] = field(default_factory=set)
    prototypes: dict[str, Prototype] = field(default_factory=dict)
    targets: dict[str, list[str]] = field(default_factory=dict)
    passed: dict[str, Parameter] = field(default_factory=dict)

    @property
    def instructions(self) -> list[Instruction]:
        return [item for item in self.items if isinstance(item, Instruction)]


@dataclass
class PtxKernel:
    """One .entry with the functions that it reaches. Their blocks come before its own, so that called lanes
    run before the lanes that wait for them.

    shared_bytes: static shared memory; dynamic shared memory begins there, rounded up to 16. local_bytes:
    stack of each thread, without the frames of recursive functions, which lie behind it. starts: first block
    of each function. stack_scale: bytes behind it for each byte that counts against the limit of the stack;
    0 when nothing is kept there. addresses_parameters: whether its parameters are read as memory.
    """

    name: str
    parameters: list[Parameter]
    variables: dict[str, Variable]
    blocks: list[BasicBlock]
    shared_bytes: int
    local_bytes: int
    starts: dict[str, int] = field(default_factory=dict)
    stack_scale: int = 0
    addresses_parameters: bool = False

    @property
    def first_blocks(self) -> list[int]:
        """The first blocks of the entry and of each function."""
        return [0, *self.starts.values()]

    @property
    def instructions(self) -> Iterator[Instruction]:
        for block in self.blocks:
            yield from block.all_instructions


@dataclass
class PtxModule:
    """A PTX file. variables: in global and const space. files: number -> name of the CUDA source. target:
    "sm_80". refused: kernels with unknown instructions, and why. functions: names of all; their addresses
    follow from their places here."""

    kernels: dict[str, PtxKernel]
    variables: dict[str, Variable]
    files: dict[int, str]
    target: str
    refused: dict[str, UnsupportedInstruction] = field(default_factory=dict)
    functions: tuple[str, ...] = ()
