"""Micro-ops beside a kernel's own. Undefined: they follow values that nothing has written, see
core/check/definedness.cpp. ProductRegisters: they watch registers that a wgmma changes or reads while the
warp goes on, see core/check/warpgroups.cpp.

An undefined value comes from a register that is read before it is written, as a variable without an initial
value is; from local memory, where nvcc keeps arrays that it cannot keep in registers; or from a shuffle that
reads a lane that its mask does not name.

A load of unwritten global or shared memory is itself a fault, unless a `selp` or a guarded `mov` may drop its
value, because nvcc loads ahead of the condition. The value is followed to where it is dropped, or used where
no later choice can drop it.

Only the registers that may hold one are followed, so that most kernels have no such micro-ops. Where lanes
meet otherwise, and in the factors of a matrix multiplication, nothing is followed: their results count as
defined. So do values that are put together from parts, if one part is defined.
"""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from typing import Any, Sequence

import numpy as np

from tir_schedules.machines.cpu import ptx
from tir_schedules.machines.cpu.abi import LOCAL_WINDOW, NONE, SHARED_WINDOW, UNDEFINED, Space
from tir_schedules.machines.cpu.context import Lowering, size_of
from tir_schedules.machines.cpu.extents import Extents
from tir_schedules.machines.cpu.flow import reached
from tir_schedules.machines.cpu.instructions import row_of
from tir_schedules.machines.cpu.instructions.warp import SHUFFLE, shuffled
from tir_schedules.machines.cpu.instructions.warpgroup import held_registers
from tir_schedules.machines.cpu.micro_ops import MicroOp, micro_op
from tir_schedules.machines.cpu.table import Spread

Flow = IntEnum("Flow", "ANY_OF ALL_OF CHOSEN EACH", start=0)
"""How what is undefined in some places becomes undefined in others."""

Pass = micro_op("Pass", "undefined.flow", "Flow how; Predicates? predicate; Undefineds?[] results sources")
"""predicate: of CHOSEN, whose sources are the places of both operands and of the predicate."""

Use = micro_op("Use", "undefined.use", "Undefineds[] used")
StartSums = micro_op("StartSums", "undefined.sums", "Predicates adds; Undefineds[] sums")
"""adds: whether what the sums of a product held counts."""

Shuffled = micro_op("Shuffled", "undefined.shuffled", f"{SHUFFLE}; Undefineds undefined")
"""Before a shuffle."""

Beside = micro_op(
    "Beside", "undefined.load undefined.store", "Where where; Constant width; Undefineds?[] values"
)
"""Beside a load or store: bytes of an element, and the places of the registers."""

Follow = micro_op("Follow", "undefined.follow", "Constant width")
"""Before a load whose unwritten bytes are followed. width: bytes of an element."""

Followed = micro_op("Followed", "undefined.followed", "Undefineds?[] values")
"""Behind it."""

WINDOWS = {"local": LOCAL_WINDOW, "shared": SHARED_WINDOW}


class Undefined:
    """The registers of a kernel that may hold an undefined value, and their places.

    nothing: whether no value can be undefined, so that nothing has to be followed. ahead: loads whose value
    may be dropped; loaded: registers that only these can leave undefined.
    """

    def __init__(self, low: Lowering, extents: Extents):
        self.low, self.extents = low, extents
        self.whole_masks = whole_masks([*low.kernel.instructions])
        self.has_local = low.kernel.local_bytes + low.kernel.stack_scale > 0
        blocks = low.kernel.blocks
        first = frozenset[ptx.Register]().union(*(blocks[k].live_in for k in low.kernel.first_blocks))
        self.followed = self._closure(set(first))
        self.ahead, self.loaded = self._loaded_ahead()
        self.followed |= self.loaded
        self.nothing = not self.followed and not self.has_local
        self.places: dict[ptx.Operand, int] = {}
        for register in sorted(self.followed, key=lambda r: r.name):
            content = np.zeros(1, UNDEFINED)
            content["lanes"] = NONE if register in first else 0
            self.places[register] = low.file.holding(content)
        for register in first:  # NaN, so that results show it even where nothing is followed
            low.file.fill(register, size_of(register.type), 0xFF)

    def _closure(self, registers: set[ptx.Register]) -> set[ptx.Register]:
        """Those, what local memory is loaded into, what shuffles give, and all that is computed from them."""
        for instruction in self.low.kernel.instructions:
            if self._may_load_local(instruction):
                registers.update(instruction.results)
            registers.update(self._shuffled(instruction))
        return reached(registers, ((sources(i), i.results) for i in self.low.kernel.instructions))

    def _loaded_ahead(self) -> tuple[set[int], set[ptx.Register]]:
        """PTX lines of loads whose value may be dropped, and the registers that these may leave undefined: as
        far as a choice comes after, and the results of choices."""
        code = [*self.low.kernel.instructions]
        chosen = {register for i in code if is_choice(i) for register in i.results}
        if not chosen:
            return set(), set()
        flows = [(i, sources(i)) for i in code]
        choices = {r for i, of in flows if is_choice(i) for r in (*of, *(i.results if i.guard else ()))}
        dropped = reached(choices, ((i.results, of) for i, of in flows if not is_choice(i)))
        ahead = [
            i
            for i in code
            if spread(i) is Spread.LOAD
            and i.space in ("global", "shared", "generic")
            and not dropped.isdisjoint(i.results)
            and self.followed.isdisjoint(i.results)
        ]
        kept = dropped | chosen
        steps = ((of, kept.intersection(i.results)) for i, of in flows)
        found = reached({register for i in ahead for register in i.results}, steps)
        return {i.line for i in ahead}, found - self.followed

    def _shuffled(self, i: ptx.Instruction) -> tuple[ptx.Register, ...]:
        """The result of a shuffle whose mask may leave lanes out."""
        if i.name != "shfl" or not i.has("sync") or i.operands[-1] in self.whole_masks:
            return ()
        to = i.operands[0]
        return ptx.registers_of([to.first if isinstance(to, ptx.Pair) else to])

    def _may_load_local(self, i: ptx.Instruction) -> bool:
        return self.has_local and spread(i) is Spread.LOAD and self._may_be_local(i, i.address(1))

    def _may_be_local(self, i: ptx.Instruction, where: ptx.Address) -> bool:
        if i.space == "generic":
            return self.extents.known[self.extents.of(where, "generic")].space != Space.SHARED
        return i.space == "local"

    def before(self, i: ptx.Instruction) -> list[MicroOp]:
        """Those that go before an instruction, under its guard."""
        used = set(ptx.registers_of(operand for operand in i.operands if isinstance(operand, ptx.Address)))
        if spread(i) is Spread.USE:
            operands = i.operands[1:] if i.results else i.operands
            used.update(ptx.registers_of(operands))
        ops = self._use(used & self.followed | self._used_up(i), i)
        if self._is_ahead(i):
            return [*ops, Follow(self.low, i, width=ptx.BITS[i.type] // 8)]
        if spread(i) is Spread.LOAD and self.followed.intersection(i.results):
            where, values = i.address(1), self._places(i.operands[0])
            local = self._may_load_local(i)
            return [*ops, self._beside("load", i, where, values) if local else self._flow(i)[0]]
        if spread(i) is Spread.STORE:
            return ops
        places = [self.places[result] for result in self._shuffled(i)]
        return ops + self._flow(i) + [Shuffled(self.low, i, **shuffled(i), undefined=at) for at in places]

    def after(self, i: ptx.Instruction) -> list[MicroOp]:
        """Those that go after an instruction, under its guard."""
        if self._is_ahead(i):
            return [Followed(self.low, i, values=self._places(i.operands[0]))]
        if spread(i) is not Spread.STORE:
            return []
        values = self._places(i.operands[1])
        local = self.has_local and self._may_be_local(i, i.address(0))
        if not local and set(values) == {NONE}:
            return []
        return [self._beside("store", i, i.address(0), values)]

    def _is_ahead(self, i: ptx.Instruction) -> bool:
        return i.line in self.ahead and spread(i) is Spread.LOAD

    def _used_up(self, i: ptx.Instruction) -> set[ptx.Register]:
        """What was loaded ahead and goes no further: the instruction uses it."""
        if not self.loaded or spread(i) is Spread.STORE:
            return set()
        passed = sources(i) if self.followed.intersection(i.results) else ()
        used = ptx.registers_of(i.operands[1:] if i.results else i.operands)
        return self.loaded.intersection(used).difference(passed)

    def guards(self, i: ptx.Instruction | None) -> list[MicroOp]:
        """A check of the predicate that guards an instruction."""
        return self._use({i.guard[0]} & self.followed, i) if i and i.guard else []

    def _use(self, registers: set[ptx.Register], i: ptx.Instruction) -> list[MicroOp]:
        places = [self.places[register] for register in sorted(registers, key=lambda r: r.name)]
        return [Use(self.low, i, used=places)] if places else []

    def _beside(self, what: str, i: ptx.Instruction, where: ptx.Address, places: list[int]) -> MicroOp:
        reached = self.low.address(where, i, WINDOWS.get(i.space, 0), bounded=True)
        made = Beside[f"undefined.{what}"]
        return made(self.low, i, where=reached, width=ptx.BITS[i.type] // 8, values=places)

    def _flow(self, i: ptx.Instruction) -> list[MicroOp]:
        how = spread(i)
        if how is Spread.ADDEND:
            results, found = self._places(i.operands[0]), self._places(i.operands[3])
            return self._pass(i, Flow.EACH, results, found) if set(results) != {NONE} else []
        results = [self.places[register] for register in i.results if register in self.followed]
        if not results:
            return []
        if how is Spread.SUMS:
            return [StartSums(self.low, i, adds=i.operands[3], sums=results)]
        if how is Spread.CHOSEN:
            chosen = [place for operand in i.operands[1:4] for place in self._places(operand)]
            return self._pass(i, Flow.CHOSEN, results, chosen, i.operands[3])
        found = [self.places[register] for register in sources(i) if register in self.followed]
        parts = [part for operand in i.operands[1:3] for part in ptx.items(operand)]
        if how is Spread.PARTS and len(parts) > 1 and self.loaded.isdisjoint(sources(i)):
            every = all(part in self.followed for part in parts)
            flow, found = (Flow.ALL_OF, found) if every else (Flow.ANY_OF, [])
            return self._pass(i, flow, results, found)
        return self._pass(i, Flow.ANY_OF, results, found)

    def _pass(
        self, i: ptx.Instruction, how: Flow, results: list[int], found: list[int], chooses: Any = None
    ) -> list[MicroOp]:
        return [Pass(self.low, i, how=how, predicate=chooses, results=results, sources=found)]

    def _places(self, operand: ptx.Operand) -> list[int]:
        """The place of each register of an operand; NONE for what is always defined."""
        return [self.places.get(one, NONE) for one in ptx.items(operand)]


def whole_masks(instructions: Sequence[ptx.Instruction]) -> set[ptx.Operand]:
    """Operands that name all lanes of a warp: the constant that does, and registers that always hold it.
    Registers that hold an activemask count as well: they are for warps that are whole."""
    constants = {ptx.Immediate(value) for value in (-1, 0xFFFFFFFF)}
    written = Counter(register for i in instructions for register in i.results)
    return constants | {
        i.results[0]
        for i in instructions
        if i.name == "activemask" or (i.name == "mov" and i.operands[1] in constants)
        if i.results and not i.guard and written[i.results[0]] == 1
    }


def spread(i: ptx.Instruction) -> Spread:
    return row_of(i).spread


def is_choice(i: ptx.Instruction) -> bool:
    return spread(i) is Spread.CHOSEN or i.name == "mov" and i.guard is not None


def sources(i: ptx.Instruction) -> tuple[ptx.Register, ...]:
    """The registers that make its results undefined when they are."""
    how = spread(i)
    if how in (Spread.NONE, Spread.USE, Spread.LOAD, Spread.SUMS):
        return ()
    return ptx.registers_of(i.operands[3:4] if how is Spread.ADDEND else i.operands[1:])


# ---- registers of a wgmma ---
TouchRegisters = micro_op("TouchRegisters", "wgmma.registers", "Flag moves; Words[] read written")
"""moves: whether the instruction is a mov."""


class ProductRegisters:
    """The registers of a kernel that are sums or factors of a wgmma. They need places of their own: they are
    written while no instruction names them. nvcc keeps sums in one place of PTX throughout, so that this is
    exact."""

    def __init__(self, kernel: ptx.PtxKernel):
        self.registers = frozenset[ptx.Register]().union(
            *(held_registers(i) for i in kernel.instructions if row_of(i).spread is Spread.SUMS)
        )

    def before(self, low: Lowering, i: ptx.Instruction) -> list[MicroOp]:
        """What goes before an instruction that touches any; a wgmma looks after its own."""
        if not self.registers or row_of(i).spread is Spread.SUMS:
            return []
        touched = (self.registers.intersection(registers) for registers in (i.reads, i.results))
        read, written = (sorted(registers, key=lambda r: r.name) for registers in touched)
        if not read and not written:
            return []
        return [TouchRegisters(low, i, moves=i.name == "mov", read=read, written=written)]
