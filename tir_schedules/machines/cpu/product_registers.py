"""Micro-ops beside a kernel's own that watch registers which a wgmma changes or reads while the warp goes on:
see core/warpgroup.cpp. nvcc keeps sums in one place of PTX throughout, so that this is exact."""

from __future__ import annotations

from tir_schedules.machines.cpu.context import Lowering
from tir_schedules.machines.cpu.instructions import row_of
from tir_schedules.machines.cpu.instructions.warpgroup import held_registers
from tir_schedules.machines.cpu.micro_ops import MicroOp, micro_op
from tir_schedules.machines.cpu.ptx import Instruction, PtxKernel, Register
from tir_schedules.machines.cpu.table import Spread

TouchRegisters = micro_op("TouchRegisters", "wgmma.registers", "Flag moves; Words[] read written")
"""moves: whether the instruction is a mov."""


class ProductRegisters:
    """The registers of a kernel that are sums or factors of a wgmma. They need places of their own: they are
    written when nobody names them."""

    def __init__(self, kernel: PtxKernel):
        self.registers = frozenset[Register]().union(
            *(held_registers(i) for i in kernel.instructions if row_of(i).spread is Spread.SUMS)
        )

    def before(self, low: Lowering, i: Instruction) -> list[MicroOp]:
        """What goes before an instruction that touches any; a wgmma looks after its own."""
        if not self.registers or row_of(i).spread is Spread.SUMS:
            return []
        touched = [
            {register for register in registers if register in self.registers}
            for registers in (i.reads, i.results)
        ]
        read, written = (sorted(registers, key=lambda r: r.name) for registers in touched)
        if not read and not written:
            return []
        return [TouchRegisters(low, i, moves=i.name == "mov", read=read, written=written)]
