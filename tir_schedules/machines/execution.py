"""All launches of a workload on a machine, one after another.

What they need of the CPU machine is made while compilers are at work: else all launches wait for its own
library, and then each for its kernel to be lowered, which several threads cannot do at once. An error is left
to the launch, where it is met again and told.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Sequence

from tir_schedules import interrupts
from tir_schedules.model.kernel import Binary, Kernel
from tir_schedules.model.machine import Device, Execution, Machine
from tir_schedules.model.workload import Arguments, Workload


def execute(
    machine: Machine, workload: Workload, binaries: Sequence[Binary], given: Arguments, *, count: bool = False
) -> list[tuple[Execution, Arguments]]:
    """Launch all kernels of a workload on a machine, each once.

    What the machine says of each, and its arguments, outputs among them. given: arguments of the first
    launch, whose outputs are written. count: also count accesses and instructions.
    """
    arguments, done = given, []
    outputs = written(workload, [binary.kernel for binary in binaries])
    for number, binary in enumerate(binaries):
        arguments = binary.kernel.prepared(workload, arguments)
        done.append((machine.run(binary, arguments, outputs[number], count=count), arguments))
    return done


def written(workload: Workload, kernels: Sequence[Kernel]) -> list[tuple[str, ...]]:
    """What each launch may write: outputs, and the workspaces that it is the first to take."""
    made = (name for kernel in kernels for name, _ in kernel.workspaces)
    found, left = [], list(dict.fromkeys((*workload.workspaces, *made)))
    for kernel in kernels:
        taken = {*kernel.params, *(tensor.of for tensor in kernel.maps)}
        found.append((*workload.outputs, *(name for name in left if name in taken)))
        left = [name for name in left if name not in taken]
    return found


# ---- made early ---
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
