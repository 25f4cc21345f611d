"""What is known of a kernel without a GPU: resources, occupancy, and on the CPU machine its accesses and instructions."""
from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Sequence

from tir_schedules.insight.occupancy import Occupancy, occupancy
from tir_schedules.kernel import Binary
from tir_schedules.machines.execution import Access, Counters, Finding

SECTOR = 32  # bytes
LOADS = ("shared_load", "ldmatrix")
STORES = ("shared_store",)
COPIES = ("shared_cp_async",)
SHARED = (*LOADS, *STORES, *COPIES, "shared_atomic")
GLOBAL_LOADS = ("global_load", "global_cp_async")
GLOBAL_STORES = ("global_store", "global_atomic")
"""Classes of access of `Counters.accesses`: cost of shared ones in wavefronts, of global ones in sectors of 32 bytes."""


@dataclass(frozen=True)
class Metrics:
    """One launch of a kernel, executed on the CPU machine. findings: what the machine has to object, empty for a sound kernel."""

    binary: Binary
    occupancy: Occupancy
    counters: Counters
    findings: tuple[Finding, ...] = ()

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block, static and dynamic."""
        return shared_bytes(self.binary)

    def access(self, *classes: str) -> Access:
        """All accesses of some classes, summed."""
        return total(self.counters.accesses, classes)

    def as_json(self) -> dict[str, Any]:
        kernel = self.binary.kernel
        launch = {"grid": kernel.grid, "block": kernel.block, "dynamic_shared": kernel.dynamic_shared}
        return {
            "kernel": kernel.label,
            **launch,
            "resources": asdict(self.binary.resources) | {"shared_bytes": self.shared_bytes},
            "occupancy": self.occupancy.as_json(),
            "counters": asdict(self.counters),
            "findings": [str(finding) for finding in self.findings],
        }


def total(accesses: dict[str, Access], classes: Sequence[str]) -> Access:
    """The sum over classes of access."""
    return sum((accesses[name] for name in classes if name in accesses), Access())


def conflicts(access: Access) -> int:
    """Wavefronts beyond those that would do without bank conflicts."""
    return access.cost - access.ideal


def shared_bytes(binary: Binary) -> int:
    return binary.resources.shared + binary.kernel.dynamic_shared


def metrics_of(binaries: Sequence[Binary], workload: Any) -> list[Metrics]:
    """Metrics of each launch a workload takes, in order; a GEMM takes one.

    The whole workload is executed: sizes of some hundred take a fraction of a second, thousands take minutes. BadInput for
    an architecture whose occupancy is not known; CheckFailed for PTX the machine does not know.
    """
    from tir_schedules.machines.cpu import CpuMachine

    machine, arguments, found = CpuMachine(), workload.arguments(), []
    for binary in binaries:
        kernel = binary.kernel
        held = occupancy(kernel.arch, kernel.block, binary.resources.registers, shared_bytes(binary))
        arguments = workload.prepared(arguments, kernel.grid)
        execution = machine.run(binary, arguments, workload.outputs, count=True)
        found.append(Metrics(binary, held, execution.counters, execution.findings))
    return found
