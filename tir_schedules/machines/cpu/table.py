"""The table of instructions: a Row says all that the machine knows of one kind. The families in
`instructions` make them.

Every other module asks the row, not the instruction's name; but extents.py knows how nvcc lays out a stack.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from typing import Any, Callable, Mapping, NamedTuple, Sequence, Union

from tir_schedules.machines.cpu.abi import Exit, Polls
from tir_schedules.machines.cpu.context import Lowering
from tir_schedules.machines.cpu.lane_code import HALVES, LaneCode, is_float
from tir_schedules.machines.cpu.micro_ops import MicroOp, MicroOpType, Number
from tir_schedules.machines.cpu.ptx import Address, Immediate, Instruction, Opcode, Operand, Pair, Vector

Lowered = Sequence[Union[MicroOp, Instruction]]
"""What becomes of an instruction: calls of the core, and instructions that each lane executes for itself."""

Lower = Callable[[Lowering, Instruction], Lowered]
Operation = Callable[[LaneCode], None]
"""Writes the C++ of one lane."""

Zeros = Callable[[Union[Operand, None]], int]
"""How many low bits of an operand are provably zero."""


class Spread(Enum):
    """How a value that nothing has written passes from the operands of an instruction to its results."""

    ANY = "a result is undefined when any operand is"
    PARTS = "a result is put together: it is undefined when all parts are"
    CHOSEN = "a result is one of two operands, which a predicate chooses"
    ADDEND = "each result is as undefined as the addend in its place"
    SUMS = "each result is as undefined as it was, unless a predicate says that it starts anew"
    NONE = "results count as defined"
    LOAD = "results are as undefined as what lies in memory"
    STORE = "memory becomes as undefined as the operands"
    USE = "operands leave the thread: an undefined one is a fault"


# ---- operands ---
class Slot(NamedTuple):
    """One operand of an instruction. access: "=" where it is written, "+" where it is also read. form: "[" of
    an address, "#" of a constant, "{" where it may be a vector, "|" of two results, "" of any other. kind:
    its type, where that is not the opcode's. optional: whether it may be left out; of two results, the
    second. many: whether more may follow."""

    name: str
    access: str
    form: str
    kind: str
    optional: bool
    many: bool

    def takes(self, operand: type) -> bool:
        """Whether an operand of a class may stand there."""
        if self.form == "|":
            return operand is Pair or self.optional and operand not in (Address, Vector, Immediate)
        if self.form == "[" or operand is Address:
            return self.form == "[" and operand is Address
        if self.form == "#":
            return operand is Immediate
        return operand is not Pair and (operand is not Vector or self.form == "{")


@lru_cache(maxsize=None)
def slots(operands: str) -> tuple[Slot, ...]:
    """The operands of a text such as "=d|=p?, [a], b{}, #n, c:pred?, d...": see README.md."""
    return tuple(map(slot, operands.split(", "))) if operands else ()


def slot(text: str) -> Slot:
    many, text = text.endswith("..."), text.removesuffix("...")
    optional, text = text.endswith("?"), text.removesuffix("?")
    text, _, kind = text.partition(":")
    access = text[0] if text[0] in "=+" else ""
    name = text.lstrip("=+[#").rstrip("]{}")
    form = next((form for form in "[#{|" if form in text), "")
    return Slot(name, access, form, kind, optional, many)


def fits(expected: tuple[Slot, ...], given: tuple[type, ...]) -> bool:
    """Whether operands of these classes may stand in the slots."""
    if not expected:
        return not given
    first, rest = expected[0], expected[1:]
    if given and first.takes(given[0]) and fits(expected if first.many else rest, given[1:]):
        return True
    may_be_left_out = first.many or first.optional and first.form != "|"
    return may_be_left_out and fits(rest, given)


# ---- pipes ---
PIPES = {
    "load": "lsu", "store": "lsu", "atomic": "lsu", "cp_async": "lsu", "mbarrier": "lsu", "shuffle": "lsu",
    "tma": "tma", "move": "alu", "int": "alu", "convert": "xu", "special": "xu", "control": "cbu",
    "barrier": "adu", "mma": "tensor", "wgmma": "tensor", "fp16": "fma", "fp32": "fma", "fp64": "fp64",
}  # fmt: skip
"""Class of instruction -> the pipe of an SM that executes most of it, in the words of Nsight Compute."""

Pipe = Union[str, Callable[[Opcode], str]]
MIX_BY_TYPE = ("fp16", "fp32", "fp64", "int")


@dataclass(frozen=True)
class Row:
    """One kind of instruction. The defaults are those of arithmetic that each lane does for itself.

    lower: what becomes of it; None when nothing has to be executed. Of one that ends a basic block: what is
    executed before the block ends.
    operands: in PTX's order, as `slots` reads them. modifiers: what its opcode may hold besides types and its
    name.
    ends: how it ends a basic block; None when it does not.
    mix: its class in the counters' instruction mix; empty when that goes by its type.
    pipe: of an SM: its name, or those of some classes, such as "int:fma"; other classes are in PIPES.
    access: what it does to memory, if anything: "reads", "writes" or "updates".
    observes: what a loop that depends on its result waits for.
    fence: whether ptxas merges no accesses to shared memory across it.
    spread: how undefined values pass through it.
    gathers: whether the lanes that an operand `members` names may be at several such instructions.
    units: whether it is of asynchronous units, mbarriers or clusters.
    orders: whether it orders accesses of threads in another way than a barrier of the block.
    makes_addresses: whether what it computes from an address may be an address in the same variable.
    zeros: how many low bits of its result are provably zero, from those of its operands.
    operation: the C++ of one lane.
    known: whether it is not refused; remedy, since: of one that is, what would be right in its place, and the
    oldest GPU that has it. ours: whether no PTX has it, and functions.py writes it.
    """

    lower: Lower | None
    operands: str = ""
    modifiers: str = ""
    ends: Exit | None = None
    mix: str = ""
    pipe: Pipe = ""
    access: str = "writes"
    observes: Polls = Polls.NOTHING
    fence: bool = False
    spread: Spread = Spread.ANY
    gathers: bool = False
    units: bool = False
    orders: bool = False
    makes_addresses: bool = True
    zeros: Callable[[Instruction, Zeros], int] | None = None
    operation: Operation | None = None
    remedy: str = ""
    known: bool = True
    since: int = 0
    ours: bool = False

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        return slots(self.operands)

    @cached_property
    def result(self) -> str:
        """How the first operand is accessed: see Slot."""
        return self.slots[0].access if self.slots else ""

    @cached_property
    def members(self) -> int | None:
        """Which operand names the lanes that execute it together, counted from the last; None when it asks
        for none."""
        names = [slot.name for slot in self.slots]
        return names.index("members") - len(names) if "members" in names else None

    @cached_property
    def operand_types(self) -> Mapping[int, str]:
        """Types of operands that do not have the opcode's type, by position."""
        return {k: slot.kind for k, slot in enumerate(self.slots) if slot.kind}

    @cached_property
    def allowed(self) -> frozenset[str]:
        return frozenset(self.modifiers.split())

    def mix_of(self, opcode: Opcode) -> str:
        """Its class, which for arithmetic goes by its type."""
        kind = opcode.types[-1] if opcode.types else ""
        if self.mix:
            return self.mix
        if kind.removesuffix("x2") in HALVES:
            return "fp16"
        return ("fp64" if kind == "f64" else "fp32") if is_float(kind) else "int"

    def pipe_of(self, opcode: Opcode) -> str:
        """The pipe of an SM that executes most of what ptxas makes of it for sm_90."""
        if callable(self.pipe):
            return self.pipe(opcode)
        if self.pipe and ":" not in self.pipe:
            return self.pipe
        named = dict(part.split(":") for part in self.pipe.split())
        return (PIPES | named)[self.mix_of(opcode)]


def lane(operation: Operation, operands: str, modifiers: str = "", **how: Any) -> Row:
    """The Row of an instruction that each lane executes for itself, on registers alone."""
    return Row(by_itself, operands, modifiers, operation=operation, **how)


def by_itself(low: Lowering, instruction: Instruction) -> Lowered:
    """Lowers an instruction that each lane executes for itself."""
    return [instruction]


def passthrough(op: MicroOpType) -> Lower:
    """Lowers an instruction whose operands are the first fields of a micro-op; other fields are modifiers."""

    def lower(low: Lowering, i: Instruction) -> Lowered:
        values: dict[str, Any] = {name: i.has(name) for name in op.fields}
        for (name, kind), operand in zip(op.fields.items(), i.operands):
            number = operand.value if isinstance(operand, Immediate) else operand
            values[name] = number if isinstance(kind, Number) else operand
        return [op(low, i, **values)]

    return lower


def refused(remedy: str, since: int = 0) -> Row:
    """The Row of an instruction that is refused."""

    def lower(low: Lowering, instruction: Instruction) -> Lowered:
        raise instruction.unsupported(remedy)

    return Row(lower, remedy=remedy, since=since, known=False)


UNKNOWN = refused("")
