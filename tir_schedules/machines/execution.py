"""All launches of a workload on a machine, one after another."""

from __future__ import annotations

from typing import Sequence

from tir_schedules.model.execution import Execution
from tir_schedules.model.kernel import Binary
from tir_schedules.model.machine import Machine
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
    for binary in binaries:
        arguments = workload.prepared(arguments, binary.kernel.results)
        done.append((machine.run(binary, arguments, workload.outputs, count=count), arguments))
    return done
