"""From a lowered kernel to a program of this process: numbers become addresses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tir_schedules.machines.cpu import abi
from tir_schedules.machines.cpu.extents import rows_of
from tir_schedules.machines.cpu.library import Library
from tir_schedules.machines.cpu.lowering import LoweredKernel
from tir_schedules.machines.cpu.signatures import Signature


@dataclass(frozen=True)
class LinkedKernel:
    """A kernel ready to run; the arrays are kept alive because the program points into them."""

    lowered: LoweredKernel
    program: abi.Program
    arrays: tuple[np.ndarray, ...]


def link(library: Library, kernel: LoweredKernel) -> LinkedKernel:
    """UnsupportedInstruction for a signature that is not known."""
    lanes = library.lane_functions(Signature(text, line) for text, line in kernel.lanes.items())
    functions = [lanes[name] if name in lanes else library.function(name) for name in kernel.functions]
    extents = rows_of(kernel.extents)
    rows = kernel.micro_ops.copy()
    rows["run"] = np.array(functions, np.uint64)[rows["run"]]
    rows["operands"] = kernel.operands.ctypes.data + kernel.operands.itemsize * rows["operands"]
    rows["extent"] = extents.ctypes.data + extents.itemsize * rows["extent"]
    program = abi.Program(
        rows.ctypes.data,
        kernel.blocks.ctypes.data,
        kernel.registers.ctypes.data,
        len(kernel.registers),
        kernel.special,
        kernel.traits,
        len(kernel.blocks),
        len(kernel.counted),
    )
    return LinkedKernel(kernel, program, (rows, extents))
