"""Which machine executes, and for which architecture kernels are compiled for it."""

from __future__ import annotations

import importlib.util
from typing import Any

from tir_schedules.errors import BadInput, MissingTool

MACHINES = ("auto", "cpu", "gpu")
CPU_ARCH = "sm_80"
"""What the CPU machine's kernels are compiled for unless asked otherwise."""


def choose(name: str) -> Any:
    """The machine "cpu" or "gpu"; for "auto" the GPU when CuPy is installed and sees one, else the CPU
    machine.

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

    return CpuMachine()


def the_gpu(otherwise: str) -> Any:
    """This computer's GPU. MissingTool, in one line, when there is none or CuPy is missing. otherwise: what
    can be done without one."""
    try:
        return choose("gpu")
    except MissingTool as error:
        raise MissingTool(f"{str(error).replace(', or use --machine cpu', '')}; {otherwise}") from None


def arch_for(machine: Any, asked: str | None) -> str:
    """The architecture to compile for: the one asked for, else the GPU's own or CPU_ARCH.

    BadInput when a GPU does not run code for the one asked for.
    """
    if machine.name != "gpu":
        return asked or CPU_ARCH
    from tir_schedules.machines.gpu import runs_on

    if asked and not runs_on(asked, machine.arch):
        own = f"leave out --arch, or name {machine.arch}"
        raise BadInput(f"{machine.device_name} is {machine.arch} and does not run code for {asked}: {own}")
    return asked or machine.arch
