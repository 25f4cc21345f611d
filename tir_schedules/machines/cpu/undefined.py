"""Steps beside a kernel's own that follow values which nothing has written: see core/undefined.cpp.

Such a value is in a register that is read before it is written, which is what a variable without an initial
value becomes, or in local memory, where nvcc keeps arrays that it cannot keep in registers. Only the
registers that may hold one are followed, so that most kernels have no such steps. Where lanes meet, and in
the factors of a matrix product, nothing is followed: their results count as defined. So do values that are
put together from parts, one of which is defined.
"""

from __future__ import annotations

import numpy as np

from tir_schedules.machines.cpu.context import NONE, Lowering, Step, size_of
from tir_schedules.machines.cpu.extents import SHARED
from tir_schedules.machines.cpu.memory import LOCAL_WINDOW, address, items
from tir_schedules.machines.cpu.ptx import BITS, Address, Instruction, Operand, Register, Vector, registers_in

SHARED_WINDOW = 1 << 36
ANY_OF, ALL_OF, CHOSEN, EACH = range(4)
PARTS = {"and", "or", "lop3", "bfi", "prmt", "shf"}
NOT_FOLLOWED = {"shfl", "vote", "activemask", "redux", "match", "elect", "atom", "ldmatrix", "ld", "ldu"}


class Undefined:
    """The registers of a kernel that may hold an undefined value, and their places."""

    def __init__(self, low: Lowering):
        self.low = low
        self.has_local = low.kernel.local_bytes > 0
        first = low.kernel.blocks[0].live_in
        self.followed = self._closure(set(first))
        self.places: dict[Register, int] = {}
        for register in sorted(self.followed, key=lambda r: r.name):
            self.places[register] = low.file.holding(
                np.array([NONE if register in first else 0, *[0] * 15], np.uint32)
            )
        for register in first:  # NaN, so that results show it even where nothing is followed
            low.file.fill(register, size_of(register.type), 0xFF)

    def _closure(self, registers: set[Register]) -> set[Register]:
        """Those, what local memory is loaded into, and all that is computed from them."""
        if not registers and not self.has_local:
            return registers
        users: dict[Register, list[Instruction]] = {}
        for instruction in self.low.kernel.instructions:
            if self._may_load_local(instruction):
                registers.update(instruction.results)
            for register in sources(instruction):
                users.setdefault(register, []).append(instruction)
        pending = list(registers)
        while pending:
            for user in users.get(pending.pop(), ()):
                pending += set(user.results) - registers
                registers.update(user.results)
        return registers

    def _may_load_local(self, i: Instruction) -> bool:
        return self.has_local and i.name in ("ld", "ldu") and self._may_be_local(i, i.operands[1])

    def _may_be_local(self, i: Instruction, where: Operand) -> bool:
        if i.space == "generic":
            return self.low.extents.known[self.low.extents.of(where, "generic")].space != SHARED
        return i.space == "local"

    def before(self, i: Instruction) -> list[Step]:
        """Steps that go before an instruction, under its guard."""
        if not self.followed and not self.has_local:
            return []
        used = {
            operand.base
            for operand in i.operands
            if isinstance(operand, Address) and operand.base in self.followed
        }
        if i.name in ("atom", "red", "cp") or i.opcode.startswith("wmma.store"):
            operands = i.operands[1:] if i.results else i.operands
            used |= {register for operand in operands for register in registers_in(operand)} & self.followed
        steps = self._use(used, i)
        if i.name in ("ld", "ldu") and self.followed.intersection(i.results):
            return steps + [self._load(i)]
        if i.name == "st" and i.space != "param":
            return steps
        return steps + self._flow(i)

    def after(self, i: Instruction) -> list[Step]:
        """Steps that go after an instruction, under its guard."""
        if i.name != "st" or not self.followed and not self.has_local:
            return []
        values = [self.places.get(value, NONE) for value in items(i.operands[1])]
        local = self.has_local and self._may_be_local(i, i.operands[0])
        return (
            [self._beside("undefined.store", i, i.operands[0], values)]
            if local or set(values) != {NONE}
            else []
        )

    def guards(self, i: Instruction | None) -> list[Step]:
        """A check of the predicate that guards an instruction."""
        return self._use({i.guard[0]} & self.followed, i) if i and i.guard else []

    def _use(self, registers: set[Register], i: Instruction) -> list[Step]:
        places = [self.places[register] for register in sorted(registers, key=lambda r: r.name)]
        return [Step("undefined.use", (len(places), *places), i)] if places else []

    def _load(self, i: Instruction) -> Step:
        if not self._may_load_local(i):
            return self._flow(i)[0]
        return self._beside(
            "undefined.load",
            i,
            i.operands[1],
            [self.places.get(value, NONE) for value in items(i.operands[0])],
        )

    def _beside(self, function: str, i: Instruction, where: Operand, places: list[int]) -> Step:
        base, wide, offset = address(self.low, where, i)
        offset += {"local": LOCAL_WINDOW, "shared": SHARED_WINDOW}.get(i.space, 0)
        numbers = (base, wide, BITS[i.type] // 8, i.vector_length, *places)
        return Step(function, numbers, i, offset, extent=self.low.extents.of(where, i.space))

    def _flow(self, i: Instruction) -> list[Step]:
        if is_product(i):
            results, found = (
                [self.places.get(register, NONE) for register in items(i.operands[k])] for k in (0, 3)
            )
            return (
                [Step("undefined.flow", (EACH, len(results), len(found), *results, *found), i)]
                if set(results) != {NONE}
                else []
            )
        results = [self.places[register] for register in i.results if register in self.followed]
        if not results:
            return []
        if i.name == "selp":
            held = self.low.place(i.operands[3], "pred", i)
            flow, found = CHOSEN, [*(self.places.get(operand, NONE) for operand in i.operands[1:4]), held]
        else:
            flow, found = (
                ANY_OF,
                [self.places[register] for register in sources(i) if register in self.followed],
            )
            if is_put_together(i):
                parts = [part for operand in i.operands[1:3] for part in items(operand)]
                flow, found = (
                    (ALL_OF, found) if all(part in self.followed for part in parts) else (ANY_OF, [])
                )
        return [Step("undefined.flow", (flow, len(results), len(found), *results, *found), i)]


def is_product(i: Instruction) -> bool:
    return i.name == "mma" or i.opcode.startswith("wmma.mma")


def is_put_together(i: Instruction) -> bool:
    return i.name in PARTS or i.name == "mov" and isinstance(i.operands[1], Vector)


def sources(i: Instruction) -> list[Register]:
    """The registers that make its results undefined when they are."""
    if i.name in NOT_FOLLOWED or i.opcode.startswith("wmma.load"):
        return []
    operands = i.operands[3:4] if is_product(i) else i.operands[1:]
    return [register for operand in operands for register in registers_in(operand)]
