"""From a parsed kernel to what the engine runs: an array of (function, register offsets) and a table of basic
blocks."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np

from tir_schedules.machines.cpu.context import NONE, SPECIAL, Counted, Lowering, Step, size_of
from tir_schedules.machines.cpu.extents import EXTENT, Extents
from tir_schedules.machines.cpu.flow import is_block_barrier
from tir_schedules.machines.cpu.library import Library
from tir_schedules.machines.cpu.memory import lower_warp_instruction
from tir_schedules.machines.cpu.ptx import BasicBlock, Immediate, Instruction, PtxKernel, PtxModule, Register
from tir_schedules.machines.cpu.signatures import Signature
from tir_schedules.machines.cpu.undefined import Undefined

BRANCH, BARRIER, LEAVE = range(3)
ALWAYS = NONE, 0
"""No guard."""
WITHOUT_EFFECT = {
    "membar",
    "fence",
    "prefetch",
    "prefetchu",
    "nanosleep",
    "discard",
    "applypriority",
    "pmevent",
}

INSTRUCTION = np.dtype(
    [(name, "u8") for name in ("run", "operands", "extent")]
    + [("offset", "i8"), ("guard", "u4"), ("negated", "u4"), ("line", "i4"), ("counter", "i4")]
)
BLOCK = np.dtype(
    [(name, "u4") for name in ("first", "count", "cost", "exit", "guard", "negated", "taken", "otherwise")]
    + [("line", "i4")]
)


class ProgramHeader(ctypes.Structure):
    """Program in core/machine.h."""

    _fields_ = [
        ("instructions", ctypes.c_void_p),
        ("blocks", ctypes.c_void_p),
        ("initial_registers", ctypes.c_void_p),
        ("register_bytes", ctypes.c_uint32),
        ("special", ctypes.c_uint32 * len(SPECIAL)),
    ]


@dataclass(frozen=True)
class Program:
    """A kernel ready to run; the arrays are kept alive because the header points into them.

    granule_shift: log2 of the bytes of shared memory that are watched as one, the narrowest access of the
    kernel.
    """

    module: PtxModule
    kernel: PtxKernel
    header: ProgramHeader
    counted: list[Counted]
    extents: Extents
    granule_shift: int
    arrays: tuple[np.ndarray, ...]


def lower(library: Library, module: PtxModule, kernel: PtxKernel) -> Program:
    """Lower every instruction. UnsupportedInstruction names the first that is not known."""
    lowering = Lowering(module, kernel)
    keep: set[Register] = set()
    for block in kernel.blocks:
        keep |= block.live_in | block.live_out
        if block.end and block.end.guard:
            keep.add(block.end.guard[0])
    for register in sorted(keep, key=lambda r: r.name):
        lowering.file.place(register, size_of(register.type))
    undefined = Undefined(lowering)
    steps: list[Step] = []
    guards: list[tuple[int, int]] = []
    blocks = np.zeros(len(kernel.blocks), BLOCK)
    for block in kernel.blocks:
        first = len(steps)
        for step, guard in lower_block(lowering, undefined, block, keep):
            steps.append(step)
            guards.append(guard)
        blocks[block.index] = (
            first,
            len(steps) - first,
            len(block.all_instructions),
            *block_end(lowering, block),
        )
    functions = library.lane_functions(
        step.function for step in steps if isinstance(step.function, Signature)
    )
    instructions, operands = np.zeros(len(steps) + 1, INSTRUCTION), []
    starts = []
    for step in steps:
        starts.append(len(operands))
        operands += [operand & NONE for operand in step.operands]
    pool, extents = np.array([*operands, 0], np.uint32), lowering.extents.array()
    for k, (step, guard) in enumerate(zip(steps, guards)):
        function = (
            functions[step.function.text]
            if isinstance(step.function, Signature)
            else library.function(step.function)
        )
        where = pool.ctypes.data + 4 * starts[k]
        extent = extents.ctypes.data + EXTENT.itemsize * step.extent
        instructions[k] = (function, where, extent, step.offset, *guard, step.instruction.line, step.counter)
    registers = lowering.file.initial()
    header = ProgramHeader(
        instructions.ctypes.data, blocks.ctypes.data, registers.ctypes.data, len(registers)
    )
    header.special[:] = lowering.special
    shift = lowering.narrowest_shared.bit_length() - 1
    return Program(
        module,
        kernel,
        header,
        lowering.counted,
        lowering.extents,
        shift,
        (instructions, blocks, registers, pool, extents),
    )


def lower_block(
    low: Lowering, undefined: Undefined, block: BasicBlock, keep: set[Register]
) -> list[tuple[Step, tuple[int, int]]]:
    """Steps with their guards. keep: registers that other blocks see; the others' places are used again after
    their last use."""
    steps: list[tuple[Step, tuple[int, int]]] = []
    mentions = [set(instruction.results) | set(instruction.reads) for instruction in block.instructions]
    last = {register: k for k, registers in enumerate(mentions) for register in registers}
    for k, instruction in enumerate(block.instructions):
        if instruction.name not in WITHOUT_EFFECT:
            guard = guard_of(low, instruction)
            lowered = lower_warp_instruction(low, instruction) or [low.lane_step(instruction)]
            steps += ((step, ALWAYS) for step in undefined.guards(instruction))
            steps += (
                (step, guard)
                for step in [*undefined.before(instruction), *lowered, *undefined.after(instruction)]
            )
        for register in mentions[k]:
            if register not in keep and last[register] == k:
                low.file.release(register, size_of(register.type))
        for register, size in low.temporaries:
            low.file.release(register, size)
        low.temporaries.clear()
    return steps + [(step, ALWAYS) for step in undefined.guards(block.end)]


def guard_of(lowering: Lowering, instruction: Instruction) -> tuple[int, int]:
    if instruction.guard is None:
        return ALWAYS
    register, negated = instruction.guard
    return lowering.place(register, "pred", instruction), int(negated)


def block_end(lowering: Lowering, block: BasicBlock) -> tuple[int, ...]:
    """exit, guard, negated, taken, otherwise, line of a basic block."""
    end = block.end
    line = end.line if end else block.instructions[-1].line if block.instructions else 0
    if end is None or end.name == "bra":
        kind = BRANCH
    elif is_block_barrier(end):
        check_block_barrier(end)
        kind = BARRIER
    elif end.name == "trap":
        raise end.unsupported()
    else:
        kind = LEAVE
    guard = guard_of(lowering, end) if end else ALWAYS
    following = (*block.successors, 0, 0)
    taken, otherwise = (0, following[0]) if kind == LEAVE else following[:2]
    return (kind, *guard, taken, otherwise, line)


def check_block_barrier(instruction: Instruction) -> None:
    """Only the barrier of __syncthreads: number 0, all threads, nothing reduced."""
    known = {"bar", "barrier", "sync", "cta", "aligned"}
    if not set(instruction.parts) <= known or instruction.operands != (Immediate(0),):
        raise instruction.unsupported("only barrier 0 of all threads")
