"""A virtual machine that executes the PTX nvcc made, on the CPU: no GPU needed."""

from tir_schedules.machines.cpu.machine import CpuMachine
from tir_schedules.machines.cpu.ptx import UnsupportedInstruction

__all__ = ["CpuMachine", "UnsupportedInstruction"]
