"""All launches of a workload on a machine, one after another."""

from __future__ import annotations

from typing import Any, Sequence

from tir_schedules.model.execution import Execution
from tir_schedules.model.kernel import Binary


def execute(
    machine: Any, workload: Any, binaries: Sequence[Binary], given: dict[str, Any], **options: Any
) -> list[tuple[Execution, dict[str, Any]]]:
    """Launch all kernels of a workload on a machine, each once: what it says of each, and the arguments,
    outputs among them.

    given: arguments of the first launch, whose outputs are written. options: of the machine's `run`.
    """
    arguments, done = given, []
    for binary in binaries:
        arguments = workload.prepared(arguments, binary.kernel.grid)
        done.append((machine.run(binary, arguments, workload.outputs, **options), arguments))
    return done
