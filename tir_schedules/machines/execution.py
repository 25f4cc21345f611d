"""All launches of a workload on a machine, one after another."""

from __future__ import annotations

from typing import Sequence

from tir_schedules.model.kernel import Binary, Kernel
from tir_schedules.model.machine import Execution, Machine
from tir_schedules.model.workload import Arguments, Workload


def execute(
    machine: Machine,
    workload: Workload,
    binaries: Sequence[Binary],
    given: Arguments,
    *,
    count: bool = False,
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
