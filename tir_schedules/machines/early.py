"""What launches on the CPU machine need, made while compilers are at work: else all launches wait for the
machine's own library, and then each for its kernel to be lowered, which several threads cannot do at once.

An error is left to the launch, where it is met again and told.
"""

from __future__ import annotations

from contextlib import suppress

from tir_schedules import interrupts
from tir_schedules.model.kernel import Binary
from tir_schedules.model.machine import Device


def warm(machine: Device) -> None:
    """Begin to compile the machine's library where it is not kept; neither a result nor the end of a command
    waits for that."""
    if machine.name == "cpu":
        interrupts.aside(compile_library)


def compile_library() -> None:
    from tir_schedules.machines.cpu.library import the_library

    with suppress(Exception):
        the_library()


def lower(machine: Device, binary: Binary) -> Binary:
    """Have a kernel lowered, for which the library is not needed. Returns the same binary."""
    if machine.name == "cpu":
        from tir_schedules.machines.cpu.kernels import lowered

        with suppress(Exception):
            lowered(binary.ptx, binary.kernel.entry)
    return binary
