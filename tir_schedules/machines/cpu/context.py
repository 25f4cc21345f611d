"""What lowering builds up: places in the register file, constants, counters; and the micro-op."""

from __future__ import annotations

from collections import defaultdict
from typing import Hashable, NamedTuple

import numpy as np

from tir_schedules.machines.cpu import ptx
from tir_schedules.machines.cpu.abi import BUFFER_SHIFT, SPECIAL, How, function_address
from tir_schedules.machines.cpu.lane_code import STORAGE

LANES = np.arange(32)
LANE_MASKS = {
    "lanemask_eq": 1 << LANES,
    "lanemask_lt": (1 << LANES) - 1,
    "lanemask_le": (2 << LANES) - 1,
    "lanemask_ge": 0xFFFFFFFF & ~((1 << LANES) - 1),
    "lanemask_gt": 0xFFFFFFFF & ~((2 << LANES) - 1),
}
ALWAYS = {
    "smid": 0,
    "nsmid": 1,
    "gridid": 0,
    "current_graph_exec": 0,
    **{f"reserved_smem_offset_{name}": 0 for name in ("begin", "end", "cap")},
    **{f"{name}.w": 0 for name in ("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid")},
    **{f"cluster_{name}.w": 0 for name in ("ctaid", "nctaid")},
}
"""Special registers that hold one number. The machine is one multiprocessor that runs one grid, and reserves
no shared memory; a fourth extent is always 0 (PTX ISA 9.0, 10.1)."""

REFUSED_REGISTERS = {
    "pm": "it counts what a GPU's profiler is told to: profile on a GPU",
    "envreg": "the driver decides what it holds: pass a parameter",
    "reserved_smem_offset": "shared memory of the system's: declare a variable",
    "aggr_smem_size": "it counts what the system takes: read %total_smem_size",
    **{
        name: f"read its parts, such as %{name}.x"
        for name in ("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid")
    },
    **{f"cluster_{name}": f"read its parts, such as %cluster_{name}.x" for name in ("ctaid", "nctaid")},
}
"""Special registers of PTX ISA 9.0 that are not known, by how the name begins; and what would be right."""

BYTES = {kind: int(storage[1:]) // 8 for kind, storage in STORAGE.items()}

PARAMETERS = "parameters of the kernel"
"""The variable that a kernel's parameters are where it reads them as memory."""

WORKSPACE = "the grid's workspace"
"""What a cooperative launch lends a kernel: cooperative groups count there who has arrived."""

WORKSPACE_WORDS = {"envreg1": 32, "envreg2": 0}
"""Special registers with the halves of its address, and the bits below each half."""


def register_remedy(name: str) -> str:
    """Why a special register is not known, after a colon; empty for one that PTX does not have."""
    why = REFUSED_REGISTERS.get(name) or REFUSED_REGISTERS.get(name.rstrip("_0123456789"))
    return f": {why}" if why else ""


def size_of(kind: str) -> int:
    """Bytes of one lane's register of a type."""
    return BYTES[kind]


class Reach(NamedTuple):
    """An address: place of the register, whether that has 64 bits, and what is added to it. within: the
    operand whose variable it must stay in, if any."""

    base: int
    wide: bool
    offset: int
    within: ptx.Address | None = None


class RegisterFile:
    """Offsets of 32-lane registers. Those that live within one block give their place back."""

    def __init__(self) -> None:
        self.bytes = 0
        self._places: dict[Hashable, int] = {}
        self._free: dict[int, list[int]] = defaultdict(list)
        self._constants: dict[tuple, tuple[int, np.ndarray]] = {}
        self._initial: list[tuple[int, np.ndarray]] = []

    def place(self, register: Hashable, size: int) -> int:
        """Where a register of `size` bytes per lane is."""
        place = self._places.get(register)
        if place is None:
            free = self._free[size]
            place = self._places[register] = free.pop() if free else self._new(size)
        return place

    def release(self, register: Hashable, size: int) -> None:
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

    def fill(self, register: Hashable, size: int, byte: int) -> None:
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
    """State while one kernel is lowered.

    counted: instruction and class of each access that is counted. narrowest_shared, narrowest_store: bytes of
    the narrowest access to shared memory, and of the narrowest store to global memory; races are told apart
    at this width. by_lines: whether that may be 16 bytes for rows of matrices, too. unused: whether no
    instruction reads the results of the current one. functions: of the module, in the order of their
    addresses. followed: places that say where registers are undefined. successors: of the block that is
    lowered. how: what is known of how loads access memory beyond their opcodes.
    """

    def __init__(self, module: ptx.PtxModule, kernel: ptx.PtxKernel):
        self.kernel = kernel
        self.file = RegisterFile()
        self.counted: list[tuple[ptx.Instruction, str]] = []
        self.temporaries: list[tuple[ptx.Register, int]] = []
        self.narrowest_shared, self.narrowest_store, self.unused = 4, 16, False
        self.by_lines = False
        self.special = [self.file.place(name, 4) for name in SPECIAL]
        self.buffers = {name: number for number, name in enumerate(module.variables)}
        self.parameters = {parameter.name: parameter.offset for parameter in kernel.parameters}
        self.functions = module.functions
        self.followed: dict[ptx.Operand, int] = {}
        self.how: dict[ptx.Instruction, How] = {}
        self.successors: tuple[int, ...] = ()
        self._constants: dict[tuple[ptx.Immediate, str], int] = {}

    def place(self, operand: ptx.Operand, kind: str, i: ptx.Instruction) -> int:
        """Register offset of an operand; a constant or a variable's address gets a register that holds it."""
        if isinstance(operand, ptx.Register):
            return self.file.place(operand, size_of(operand.type))
        if isinstance(operand, ptx.SpecialRegister):
            name = operand.name
            if name in SPECIAL:
                return self.special[SPECIAL.index(name)]
            if name in ALWAYS:
                return self.place(ptx.Immediate(ALWAYS[name]), kind, i)
            if name in WORKSPACE_WORDS:
                word = self.address_of(ptx.Symbol(WORKSPACE), i) >> WORKSPACE_WORDS[name]
                return self.place(ptx.Immediate(word & 0xFFFFFFFF), "u32", i)
            if operand.name in LANE_MASKS:
                return self.file.constant(LANE_MASKS[operand.name].astype(np.uint32))
            raise i.unsupported(f"special register %{operand.name}{register_remedy(operand.name)}")
        if isinstance(operand, ptx.Symbol):
            operand = ptx.Immediate(self.address_of(operand, i))
        if not isinstance(operand, ptx.Immediate):
            raise i.unsupported(f"operand {operand}")
        place = self._constants.get((operand, kind))
        if place is None:
            place = self.file.constant(np.repeat(constant(operand, kind), 32))
            self._constants[operand, kind] = place
        return place

    def address_of(self, symbol: ptx.Symbol, i: ptx.Instruction) -> int:
        """Address of a variable in its own space; of a global or const variable, in global memory."""
        if symbol.name in self.kernel.variables:
            return self.kernel.variables[symbol.name].offset
        if symbol.name in self.buffers:
            return (self.buffers[symbol.name] + 1) << BUFFER_SHIFT
        if symbol.name in self.parameters and PARAMETERS in self.buffers:
            return ((self.buffers[PARAMETERS] + 1) << BUFFER_SHIFT) + self.parameters[symbol.name]
        if symbol.name in self.functions:
            return function_address(self.functions.index(symbol.name))
        raise i.unsupported(f"symbol {symbol.name}")

    def address(
        self, address: ptx.Operand, i: ptx.Instruction, beyond: int = 0, bounded: bool = False
    ) -> Reach:
        """What an address operand says. beyond: what is added to it. bounded: whether it must stay in the
        variable that it comes from."""
        if not isinstance(address, ptx.Address):
            raise i.unsupported(f"address {address}")
        within, offset = address if bounded else None, address.offset + beyond
        if isinstance(address.base, ptx.Register):
            base = self.place(address.base, address.base.type, i)
            return Reach(base, address.base.bits == 64, offset, within)
        start = self.address_of(address.base, i) if address.base is not None else 0
        return Reach(self.place(ptx.Immediate(0), "u64", i), True, offset + start, within)

    def temporary(self, name: str, kind: str) -> ptx.Register:
        """A register of our own that lives until the current PTX instruction is done."""
        register = ptx.Register(f"temporary {name}", kind)
        self.temporaries.append((register, size_of(kind)))
        return register

    def counter(self, i: ptx.Instruction, kind: str) -> int:
        """Number of a new counter, of one access."""
        self.counted.append((i, kind))
        return len(self.counted) - 1

    def watch_shared(self, i: ptx.Instruction, element_bytes: int) -> None:
        """Note the width of what may be an access to shared memory."""
        if i.space in ("shared", "generic"):
            self.narrowest_shared = min(self.narrowest_shared, element_bytes)
        if i.space in ("global", "generic") and i.name != "ld":
            self.narrowest_store = min(self.narrowest_store, element_bytes)


def constant(immediate: ptx.Immediate, kind: str) -> np.ndarray:
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
