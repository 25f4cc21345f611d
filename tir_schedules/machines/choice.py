"""Which machine executes, and for which architecture kernels are compiled for it."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Literal, cast, overload

from tir_schedules.errors import BadInput, MissingTool
from tir_schedules.model.rung import Unasked

if TYPE_CHECKING:
    from tir_schedules.machines.gpu import GpuMachine
    from tir_schedules.model.machine import Device, Machine

MACHINES = ("auto", "cpu", "gpu")
CPU_ARCH = Unasked("sm_80")
"""What the CPU machine's kernels are compiled for unless asked otherwise; a rung with an architecture of its
own is compiled for that."""


@overload
def choose(name: Literal["gpu"]) -> GpuMachine: ...
@overload
def choose(name: str, orders: int = ...) -> Machine: ...
def choose(name: str, orders: int = 1) -> Machine:
    """The machine "cpu" or "gpu"; for "auto" the GPU when CuPy is installed and sees one, else the CPU
    machine. orders: how many orders of blocks and warps the CPU machine executes.

    MissingTool when "gpu" is asked for and there is no CuPy or no GPU.
    """
    if name not in MACHINES:
        raise BadInput(f"machine is {name!r}; it can be {', '.join(MACHINES)}")
    if name == "gpu" or (name == "auto" and importlib.util.find_spec("cupy")):
        from tir_schedules.machines.gpu import GpuMachine

        try:
            return GpuMachine()
        except MissingTool:
            if name == "gpu":
                raise
    from tir_schedules.machines.cpu import CpuMachine

    return CpuMachine(orders=orders)


def the_gpu(otherwise: str) -> GpuMachine:
    """This computer's GPU. otherwise: what can be done without one.

    MissingTool, in one line, when there is none or CuPy is missing.
    """
    try:
        return choose("gpu")
    except MissingTool as error:
        raise MissingTool(f"{str(error).replace(', or use --machine cpu', '')}; {otherwise}") from None


def arch_for(machine: Device, asked: str | None) -> str:
    """The architecture to compile for: the one asked for, else the GPU's own or CPU_ARCH.

    BadInput when a GPU does not run code for the one asked for.
    """
    if machine.name != "gpu":
        return asked or CPU_ARCH
    from tir_schedules.machines.gpu import runs_on

    gpu = cast("GpuMachine", machine)
    if asked and not runs_on(asked, gpu.arch):
        own = f"leave out --arch, or name {gpu.arch}"
        raise BadInput(f"{gpu.device_name} is {gpu.arch} and does not run code for {asked}: {own}")
    return asked or gpu.arch
