"""From a parsed kernel to what the engine runs: micro-ops, and a table of basic blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Sequence

import numpy as np

from tir_schedules.machines.cpu import abi
from tir_schedules.machines.cpu.abi import BASIC_BLOCK, EXTENT, MICRO_OP, NONE, Exit
from tir_schedules.machines.cpu.context import Lowering, MicroOp, size_of
from tir_schedules.machines.cpu.extents import Extents
from tir_schedules.machines.cpu.instructions import form_of
from tir_schedules.machines.cpu.library import Library
from tir_schedules.machines.cpu.merging import Merged, merged_accesses
from tir_schedules.machines.cpu.ptx import BasicBlock, Instruction, PtxKernel, PtxModule, Register
from tir_schedules.machines.cpu.signatures import Signature, signature_of
from tir_schedules.machines.cpu.undefined import Undefined


class Guard(NamedTuple):
    """Place of a predicate, and whether it must be false."""

    place: int
    negated: int


ALWAYS = Guard(NONE, 0)


class Placed(NamedTuple):
    """What a row of MICRO_OP is made of. function: of the core, or of a lane. extent: number in Extents."""

    function: str | Signature
    operands: tuple[int, ...]
    line: int
    guard: Guard
    offset: int = 0
    counter: int = -1
    extent: int = 0


@dataclass(frozen=True)
class CountedAccess:
    """An access that is counted: its class (see Counters), and what ptxas merges it into."""

    instruction: Instruction
    kind: str
    merged: Merged | None


@dataclass(frozen=True)
class LoweredKernel:
    """A kernel ready to run; the arrays are kept alive because the program points into them.

    granule_shift: log2 of the bytes of shared memory that are watched as one, the narrowest access of the
    kernel.
    """

    module: PtxModule
    kernel: PtxKernel
    program: abi.Program
    counted: list[CountedAccess]
    extents: Extents
    granule_shift: int
    arrays: tuple[np.ndarray, ...]


def lower(library: Library, module: PtxModule, kernel: PtxKernel) -> LoweredKernel:
    """Lower every instruction. UnsupportedInstruction names the first that is not known."""
    blocks = Blocks(module, kernel)
    rows = np.zeros(len(kernel.blocks), BASIC_BLOCK)
    for block in kernel.blocks:
        first = len(blocks.ops)
        blocks.add(block)
        rows[block.index] = (
            first,
            len(blocks.ops) - first,
            len(block.all_instructions),
            *blocks.end_of(block),
        )
    low = blocks.low
    extents = blocks.extents.array()
    micro_ops, operands = assembled(library, blocks.ops, extents)
    registers = low.file.initial()
    program = abi.Program(
        micro_ops.ctypes.data, rows.ctypes.data, registers.ctypes.data, len(registers), tuple(low.special)
    )
    merged = merged_accesses(kernel)
    counted = [
        CountedAccess(i, kind, merged.get(i.line) if kind.startswith("shared") else None)
        for i, kind in low.counted
    ]
    arrays = (micro_ops, rows, registers, operands, extents)
    shift = low.narrowest_shared.bit_length() - 1
    return LoweredKernel(module, kernel, program, counted, blocks.extents, shift, arrays)


def assembled(library: Library, ops: Sequence[Placed], extents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of MICRO_OP, and the operands that they point to. extents: rows of EXTENT."""
    lanes = library.lane_functions(op.function for op in ops if isinstance(op.function, Signature))
    rows, starts, operands = np.zeros(len(ops) + 1, MICRO_OP), [], []
    for op in ops:
        starts.append(len(operands))
        operands += [operand & NONE for operand in op.operands]
    pool = np.array([*operands, 0], np.uint32)
    for k, (op, start) in enumerate(zip(ops, starts)):
        name = op.function
        function = lanes[name.text] if isinstance(name, Signature) else library.function(name)
        where = pool.ctypes.data + pool.itemsize * start
        extent = extents.ctypes.data + EXTENT.itemsize * op.extent
        rows[k] = (function, where, extent, op.offset, *op.guard, op.line, op.counter)
    return rows, pool


class Blocks:
    """Lowers a kernel's basic blocks, one after another.

    keep: registers that other blocks see; the places of the others are used again after their last use.
    """

    def __init__(self, module: PtxModule, kernel: PtxKernel):
        self.low = Lowering(module, kernel)
        self.extents = Extents(kernel)
        self.ops: list[Placed] = []
        self.keep: set[Register] = set()
        for block in kernel.blocks:
            self.keep |= block.live_in | block.live_out
            if block.end and block.end.guard:
                self.keep.add(block.end.guard[0])
        for register in sorted(self.keep, key=lambda r: r.name):
            self.low.file.place(register, size_of(register.type))
        self.undefined = Undefined(self.low, self.extents)

    def add(self, block: BasicBlock) -> None:
        """Lower the instructions of a block up to its end."""
        mentions = [set(instruction.results) | set(instruction.reads) for instruction in block.instructions]
        last = {register: k for k, registers in enumerate(mentions) for register in registers}
        for k, instruction in enumerate(block.instructions):
            self.instruction(instruction)
            for register in mentions[k]:
                if register not in self.keep and last[register] == k:
                    self.low.file.release(register, size_of(register.type))
            for register, size in self.low.temporaries:
                self.low.file.release(register, size)
            self.low.temporaries.clear()
        self.place(self.undefined.guards(block.end), ALWAYS)

    def instruction(self, i: Instruction) -> None:
        lower_it = form_of(i).lower
        if lower_it is None:
            return
        guard = self.guard(i)
        lowered = [self.placed(op, guard) for op in lower_it(self.low, i)]
        self.place(self.undefined.guards(i), ALWAYS)
        self.place(self.undefined.before(i), guard)
        self.ops += lowered
        self.place(self.undefined.after(i), guard)

    def place(self, ops: Sequence[MicroOp], guard: Guard) -> None:
        self.ops += (self.placed(op, guard) for op in ops)

    def placed(self, op: MicroOp | Instruction, guard: Guard) -> Placed:
        """A micro-op, or an instruction that each lane executes for itself."""
        if isinstance(op, Instruction):
            signature, operands = signature_of(op)
            places = tuple(self.low.place(operand, kind, op) for operand, kind in operands)
            return Placed(signature, places, op.line, guard)
        i = op.instruction
        extent = self.extents.of(op.where, i.space) if op.where else 0
        return Placed(op.function, op.operands, i.line, guard, op.offset, op.counter, extent)

    def guard(self, instruction: Instruction) -> Guard:
        if instruction.guard is None:
            return ALWAYS
        register, negated = instruction.guard
        return Guard(self.low.place(register, "pred", instruction), int(negated))

    def end_of(self, block: BasicBlock) -> tuple[int, ...]:
        """exit, guard, guard_negated, taken, otherwise, line of a basic block."""
        end, how, guard = block.end, Exit.BRANCH, ALWAYS
        line = end.line if end else block.instructions[-1].line if block.instructions else 0
        if end:
            form = form_of(end)
            assert form.ends is not None
            how, guard = form.ends, self.guard(end)
            if form.lower:
                form.lower(self.low, end)
        following = (*block.successors, 0, 0)
        taken, otherwise = (0, following[0]) if how is Exit.LEAVE else following[:2]
        return (how, *guard, taken, otherwise, line)
