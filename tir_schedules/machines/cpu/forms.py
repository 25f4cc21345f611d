"""What the machine knows of an instruction: its Form. The families in `instructions` make them.

Every other module asks the Form, not the instruction's name; but extents.py knows how nvcc lays out a stack.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Callable, Mapping, NamedTuple, Sequence, Union

from tir_schedules.machines.cpu.abi import Exit
from tir_schedules.machines.cpu.context import Lowering
from tir_schedules.machines.cpu.lane_code import LaneCode
from tir_schedules.machines.cpu.micro_ops import MicroOp
from tir_schedules.machines.cpu.ptx import Instruction, Operand

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


class Line(NamedTuple):
    """Opcodes that the machine treats alike; `tir-schedules list --instructions` prints it.

    opcodes: separated by spaces; {,.sat} stands for nothing or .sat. precision: "exact", the bits of a GPU,
    but for those of a NaN of 32 or 64 bits; "modelled", right within a rule; or "refused". note: what an
    exact result was held against; the rule; what would be right instead. since: the oldest GPU that has it,
    90 for sm_90; 0: all that nvcc knows.
    """

    opcodes: str
    precision: str
    note: str
    since: int = 0


INTEGERS, FRACTIONS, COPIES = "Python's integers", "rational arithmetic", "the bytes themselves"


def exact(opcodes: str, held_against: str = INTEGERS, since: int = 0) -> Line:
    return Line(opcodes, "exact", held_against, since)


def modelled(opcodes: str, rule: str, since: int = 0) -> Line:
    return Line(opcodes, "modelled", rule, since)


def refusal(opcodes: str, remedy: str, since: int = 0) -> Line:
    return Line(opcodes, "refused", remedy, since)


@dataclass(frozen=True)
class Form:
    """One kind of instruction. The defaults are those of arithmetic that each lane does for itself.

    lower: what becomes of it; None when nothing has to be executed. Of one that ends a basic block: what is
    executed before the block ends.
    ends: how it ends a basic block; None when it does not.
    has_result: whether the first operand is written.
    mix: its class in the counters' instruction mix; empty when that goes by its type.
    access: what it does to memory, if anything: "reads", "writes" or "updates".
    fence: whether ptxas merges no accesses to shared memory across it.
    spread: how undefined values pass through it.
    members: which operand names the lanes that execute it together, counted from the last when negative; None
    when it asks for none. gathers: these may be at several such instructions.
    units: whether it is of asynchronous units, mbarriers or clusters.
    orders: whether it orders accesses of threads in another way than a barrier of the block.
    makes_addresses: whether what it computes from an address may be an address in the same variable.
    zeros: how many low bits of its result are provably zero, from those of its operands.

    remedy: of an instruction that is refused: what would be right in its place.

    operation: the C++ of one lane. modifiers: what its opcode may hold besides types. operand_types: of
    operands whose type is not the opcode's, by position. literals: operands that are part of the operation.

    lines: of the table of instructions. ours: whether no PTX has it, and functions.py writes it.
    """

    lower: Lower | None
    ends: Exit | None = None
    has_result: bool = True
    mix: str = ""
    access: str = "writes"
    fence: bool = False
    spread: Spread = Spread.ANY
    members: int | None = None
    gathers: bool = False
    units: bool = False
    orders: bool = False
    makes_addresses: bool = True
    zeros: Callable[[Instruction, Zeros], int] | None = None
    remedy: str = ""
    operation: Operation | None = None
    modifiers: frozenset[str] = frozenset()
    operand_types: Mapping[int, str] = field(default_factory=dict)
    literals: tuple[int, ...] = ()
    lines: tuple[Line, ...] = ()
    ours: bool = False

    def told(self, *lines: Line) -> Form:
        """The same Form with lines in the table of instructions."""
        return replace(self, lines=lines)


def lane(
    operation: Operation,
    modifiers: str = "",
    *,
    mix: str = "",
    spread: Spread = Spread.ANY,
    zeros: Callable[[Instruction, Zeros], int] | None = None,
    operand_types: Mapping[int, str] | None = None,
    literals: tuple[int, ...] = (),
) -> Form:
    """The Form of an instruction that each lane executes for itself, on registers alone."""
    return Form(
        by_itself,
        mix=mix,
        spread=spread,
        zeros=zeros,
        operation=operation,
        modifiers=frozenset(modifiers.split()),
        operand_types=operand_types or {},
        literals=literals,
    )


def by_itself(low: Lowering, instruction: Instruction) -> Lowered:
    """Lowers an instruction that each lane executes for itself."""
    return [instruction]


def refuse(low: Lowering, instruction: Instruction) -> Lowered:
    """Lowers no instruction."""
    raise instruction.unsupported()


def refused(remedy: str) -> Form:
    """The Form of an instruction that is refused. remedy: what would be right."""

    def lower(low: Lowering, instruction: Instruction) -> Lowered:
        raise instruction.unsupported(remedy)

    return Form(lower, has_result=False, remedy=remedy)


UNKNOWN = Form(refuse)
