"""Metrics of each launch: resources by ptxas, occupancy by CUDA's rules, counters of the CPU machine."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Sequence

from tir_schedules.compiler.source_text import SourceText
from tir_schedules.files import Json, to_json
from tir_schedules.machines.execution import execute
from tir_schedules.model.counters import Access, Counters
from tir_schedules.model.findings import Finding
from tir_schedules.model.gpus import WARP, Occupancy, occupancy
from tir_schedules.model.kernel import Binary
from tir_schedules.model.workload import Arguments, Workload

SECTOR = 32  # bytes
LOADS = ("shared_load", "ldmatrix")
STORES = ("shared_store",)
COPIES = ("shared_cp_async",)
UNITS = ("wgmma", "tma_load", "tma_store")
"""What asynchronous units access; these accesses are not recorded one by one."""

SHARED = (*LOADS, *STORES, *COPIES, "shared_atomic", "wgmma")
GLOBAL_LOADS = ("global_load", "global_cp_async", "tma_load")
GLOBAL_STORES = ("global_store", "global_atomic", "tma_store")
GLOBAL = (*GLOBAL_LOADS, *GLOBAL_STORES)
"""Classes of access in `Counters.accesses`. Shared ones cost wavefronts, global ones 32-byte sectors."""

ACTIONS = {
    "shared_load": "load",
    "shared_store": "store",
    "ldmatrix": "ldmatrix",
    "shared_cp_async": "cp.async",
    "shared_atomic": "atomic",
}
"""Class of access to shared memory -> how pictures and tables call one access."""


@dataclass(frozen=True)
class Metrics:
    """One launch, executed on the CPU machine. findings: what the machine objects to."""

    binary: Binary
    occupancy: Occupancy
    counters: Counters
    findings: tuple[Finding, ...] = ()

    @property
    def warps(self) -> int:
        """Warps of the whole launch."""
        kernel = self.binary.kernel
        return prod(kernel.grid) * -(-kernel.threads // WARP)

    def access(self, *classes: str) -> Access:
        """All accesses of some classes, summed."""
        return total(self.counters.accesses, classes)

    def as_json(self) -> Json:
        kernel, resources = self.binary.kernel, vars(self.binary.resources)
        text = SourceText(kernel)
        lines = [vars(line) | {"text": text.whole_line(line.file, line.line)} for line in self.counters.lines]
        launch = {name: getattr(kernel, name) for name in ("grid", "block", "dynamic_shared")}
        told = {
            "kernel": kernel.label,
            **launch,
            "resources": resources | {"shared_bytes": self.binary.shared_bytes},
            "occupancy": self.occupancy,
            "counters": vars(self.counters) | {"lines": lines},
            "findings": list(map(str, self.findings)),
        }
        return to_json(told)


def total(accesses: dict[str, Access], classes: Sequence[str]) -> Access:
    """The sum over classes of access."""
    return sum((accesses[name] for name in classes if name in accesses), Access())


def conflicts(access: Access) -> int:
    """Wavefronts beyond those that would do without bank conflicts."""
    return access.cost - access.ideal


def metrics_of(binaries: Sequence[Binary], workload: Workload) -> list[Metrics]:
    """Metrics of each launch a workload takes, in order; a GEMM takes one.

    The whole workload is executed: sizes of some hundred take a fraction of a second, thousands take minutes.
    BadInput for an architecture whose occupancy is not known; CheckFailed for PTX the machine does not know.
    """
    return execute_and_count(binaries, workload, workload.arguments())[0]


def execute_and_count(
    binaries: Sequence[Binary], workload: Workload, given: Arguments
) -> tuple[list[Metrics], Arguments]:
    """The same with arguments given for the first launch; also returns the arguments of the last launch."""
    from tir_schedules.machines.cpu import CpuMachine

    held = [occupancy_of(binary) for binary in binaries]
    done = execute(CpuMachine(), workload, binaries, given, count=True)
    found = []
    for binary, resident, (execution, _) in zip(binaries, held, done):
        assert execution.counters is not None, "it was told to count"
        found.append(Metrics(binary, resident, execution.counters, execution.findings))
    return found, done[-1][1]


def occupancy_of(binary: Binary, shared: int | None = None, registers: int | None = None) -> Occupancy:
    """Occupancy of a compiled kernel, with other bytes of shared memory of a block or registers of a thread
    where they are given. BadInput for an architecture whose figures are not known."""
    registers = binary.resources.registers if registers is None else registers
    shared = binary.shared_bytes if shared is None else shared
    return occupancy(binary.kernel.arch, binary.kernel.block, registers, shared)
