"""What lowering builds up: places in the register file, constants, counters, and the steps that use them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tir_schedules.machines.cpu.extents import Extents
from tir_schedules.machines.cpu.lane_code import STORAGE
from tir_schedules.machines.cpu.merging import Merged, merged_accesses
from tir_schedules.machines.cpu.ptx import (  # fmt: skip
    Immediate,
    Instruction,
    Operand,
    PtxKernel,
    PtxModule,
    Register,
    SpecialRegister,
    Symbol,
)
from tir_schedules.machines.cpu.signatures import Signature, signature_of

NONE = 0xFFFFFFFF
BUFFER_SHIFT = 40

SPECIAL = [
    "tid.x", "tid.y", "tid.z", "laneid", "warpid", "ctaid.x", "ctaid.y", "ctaid.z", "ntid.x", "ntid.y",
    "ntid.z",
    "nctaid.x", "nctaid.y", "nctaid.z",
]  # fmt: skip
"""Special registers, in the order of Program.special in core/machine.h."""

LANES = np.arange(32)
LANE_MASKS = {
    "lanemask_eq": 1 << LANES,
    "lanemask_lt": (1 << LANES) - 1,
    "lanemask_le": (2 << LANES) - 1,
    "lanemask_ge": 0xFFFFFFFF & ~((1 << LANES) - 1),
    "lanemask_gt": 0xFFFFFFFF & ~((2 << LANES) - 1),
}
SIZES = {"u8": 1, "s8": 1, "u16": 2, "s16": 2, "u32": 4, "s32": 4, "f32": 4, "u64": 8, "s64": 8, "f64": 8}


@dataclass(frozen=True)
class Step:
    """One engine instruction. function: a name of the core, or a signature; operands: register offsets and
    constants.

    extent: number of the variable that its address stays in, see Extents; 0 for any.
    """

    function: str | Signature
    operands: tuple[int, ...]
    instruction: Instruction
    offset: int = 0
    counter: int = -1
    extent: int = 0


@dataclass(frozen=True)
class Counted:
    """An access that is counted: its class (see Counters), and what ptxas merges it into."""

    instruction: Instruction
    kind: str
    merged: Merged | None


def size_of(kind: str) -> int:
    """Bytes of one lane's register of a type."""
    return SIZES[STORAGE[kind]]


class RegisterFile:
    """Offsets of 32-lane registers. Those that live within one block give their place back."""

    def __init__(self) -> None:
        self.bytes = 0
        self._places: dict[object, int] = {}
        self._free: dict[int, list[int]] = defaultdict(list)
        self._constants: dict[tuple, tuple[int, np.ndarray]] = {}
        self._initial: list[tuple[int, np.ndarray]] = []

    def place(self, register: object, size: int) -> int:
        """Where a register of `size` bytes per lane is."""
        if register not in self._places:
            free = self._free[size]
            self._places[register] = free.pop() if free else self._new(size)
        return self._places[register]

    def release(self, register: object, size: int) -> None:
        if register in self._places:
            self._free[size].append(self._places.pop(register))

    def constant(self, values: np.ndarray) -> int:
        """Where a register is that always holds `values`, one per lane."""
        key = (values.dtype.itemsize, values.tobytes())
        if key not in self._constants:
            self._constants[key] = (self._new(values.dtype.itemsize), values)
        return self._constants[key][0]

    def holding(self, values: np.ndarray) -> int:
        """A new place that holds `values` when a warp starts."""
        self._initial.append((self._new(-(-values.nbytes // 32)), values))
        return self._initial[-1][0]

    def fill(self, register: object, size: int, byte: int) -> None:
        """Let a register hold a byte everywhere when a warp starts; it must never be released."""
        self._initial.append((self.place(register, size), np.full(32 * size, byte, np.uint8)))

    def initial(self) -> np.ndarray:
        content = np.zeros(self.bytes, np.uint8)
        for place, values in [*self._constants.values(), *self._initial]:
            content[place : place + values.nbytes] = values.view(np.uint8)
        return content

    def _new(self, size: int) -> int:
        place = self.bytes
        self.bytes += -(-32 * size // 64) * 64
        return place


class Lowering:
    """State while one kernel is lowered."""

    def __init__(self, module: PtxModule, kernel: PtxKernel):
        self.module, self.kernel = module, kernel
        self.file = RegisterFile()
        self.merged = merged_accesses(kernel)
        self.extents = Extents(kernel)
        self.counted: list[Counted] = []
        self.temporaries: list[tuple[object, int]] = []
        self.narrowest_shared = 4
        self.special = [self.file.place(name, 4) for name in SPECIAL]
        self.buffers = {name: number for number, name in enumerate(module.variables)}

    # operands ---
    def place(self, operand: Operand, kind: str, instruction: Instruction) -> int:
        """Register offset of an operand; constants and addresses of variables get a register that holds
        them."""
        if isinstance(operand, Register):
            return self.file.place(operand, size_of(operand.type))
        if isinstance(operand, SpecialRegister):
            if operand.name in SPECIAL:
                return self.special[SPECIAL.index(operand.name)]
            if operand.name in LANE_MASKS:
                return self.file.constant(LANE_MASKS[operand.name].astype(np.uint32))
            raise instruction.unsupported(f"special register %{operand.name}")
        if isinstance(operand, Symbol):
            operand = Immediate(self.address_of(operand, instruction))
        if not isinstance(operand, Immediate):
            raise instruction.unsupported(f"operand {operand}")
        return self.file.constant(np.repeat(constant(operand, kind), 32))

    def address_of(self, symbol: Symbol, instruction: Instruction) -> int:
        """Address of a variable in its own space; of a global or const variable, in global memory."""
        if symbol.name in self.kernel.variables:
            return self.kernel.variables[symbol.name].offset
        if symbol.name in self.buffers:
            return (self.buffers[symbol.name] + 1) << BUFFER_SHIFT
        raise instruction.unsupported(f"symbol {symbol.name}")

    def temporary(self, name: str, kind: str) -> Register:
        """A register of our own that lives until the current PTX instruction is done."""
        register = Register(f"temporary {name}", kind)
        self.temporaries.append((register, size_of(kind)))
        return register

    def counter(self, instruction: Instruction, kind: str) -> int:
        self.counted.append(
            Counted(
                instruction, kind, self.merged.get(instruction.line) if kind.startswith("shared") else None
            )
        )
        return len(self.counted) - 1

    # instructions
    # ----------------------------------------------------------------------------------------------------
    def lane_step(self, instruction: Instruction) -> Step:
        """An instruction that each lane executes for itself."""
        signature, places = signature_of(instruction)
        offsets = tuple(self.place(operand, kind, instruction) for operand, kind in places)
        return Step(signature, offsets, instruction)


def constant(immediate: Immediate, kind: str) -> np.ndarray:
    """A number as one element of the numpy type that a register of `kind` holds."""
    size = size_of(kind)
    if kind == "pred":
        return np.array([immediate.value != 0], "u4")
    if kind in ("f32", "f64"):
        if immediate.kind == "int":
            return np.array([immediate.value], f"f{size}")
        pattern = np.array([immediate.value], "u4" if immediate.kind == "f32" else "u8")
        return pattern.view(f"f{pattern.itemsize}").astype(f"f{size}")
    return np.array([immediate.value & ((1 << 8 * size) - 1)], f"u{size}")
