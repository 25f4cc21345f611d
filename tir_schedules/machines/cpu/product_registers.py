"""Micro-ops beside a kernel's own that watch registers which a wgmma changes or reads while the warp goes on:
see core/warpgroup.cpp. nvcc keeps sums in one place of PTX throughout, so that this is exact."""

from __future__ import annotations

from tir_schedules.machines.cpu.context import Lowering, MicroOp
from tir_schedules.machines.cpu.instructions.warpgroup import held_registers, is_product
from tir_schedules.machines.cpu.ptx import Instruction, PtxKernel, Register


class ProductRegisters:
    """The registers of a kernel that are sums or factors of a wgmma. They need places of their own: they are
    written when nobody names them."""

    def __init__(self, kernel: PtxKernel):
        self.registers = frozenset[Register]().union(
            *(held_registers(i) for i in kernel.instructions if is_product(i))
        )

    def before(self, low: Lowering, i: Instruction) -> list[MicroOp]:
        """What goes before an instruction that touches any; a wgmma looks after its own."""
        if not self.registers or is_product(i):
            return []
        touched = [
            {register for register in registers if register in self.registers}
            for registers in (i.reads, i.results)
        ]
        read, written = (sorted(registers, key=lambda r: r.name) for registers in touched)
        if not read and not written:
            return []
        places = [low.place(register, "b32", i) for register in (*read, *written)]
        moves = int(i.name == "mov")
        return [MicroOp("wgmma.registers", (moves, len(read), len(written), *places), i)]
