"""Made-up counters of kernels, for pages that show them. Nothing here was counted."""

from tir_schedules.insight.banks.requests import Pattern
from tir_schedules.insight.metrics.counting import Metrics
from tir_schedules.model.counters import Access, Counters
from tir_schedules.model.findings import Location
from tir_schedules.model.gpus import occupancy
from tir_schedules.model.kernel import Binary, Kernel, Resources
from tir_schedules.report.counted import Counted
from tir_schedules.subjects.subject import Subject

PADDED = ("wmma_padded", "wmma_padded:article_004", "mma_ldmatrix")


def counted(jobs, arch):
    """In place of report.counted.count: unpadded loads cost four times the ideal, padded stores twice."""
    return [
        kernel_of(rung, workload, form, arch) for rung, workload in jobs for form in ("schedule", "twin")
    ], []


def kernel_of(rung, workload, form, arch, findings=()):
    kernel = Kernel(rung.id, "", rung.entry, (), (4, 4, 1), (32, 8, 1), arch)
    binary = Binary(
        kernel, "", b"", Resources(registers=64, shared=5120 if rung.id.split("/")[1] in PADDED else 4096)
    )
    bare, padded = "wmma_shared" in rung.id, rung.id.split("/")[1] in PADDED
    accesses = {
        "shared_load": Access(1000, 4004 if bare else 1001, 1001),
        "shared_store": Access(200, 404 if padded else 202, 202),
        "global_load": Access(100, 1600, 1600),
        "global_store": Access(50, 200, 200),
    }
    metrics = Metrics(
        binary,
        occupancy(arch, kernel.block, 64, binary.resources.shared),
        Counters(accesses, {}, 0, 0),
        findings,
    )
    return Counted(Subject(rung.family, rung.id, form, workload, (binary,)), (metrics,))


def patterns(binaries, workload, buffer):
    """In place of request_patterns: lanes side by side, 16 bytes each."""
    addresses = tuple(range(0, 512, 16))
    return [
        Pattern(buffer, "", (Location(1),), kind, 16, tuple(range(32)), addresses, 8, (0,), 4, 4)
        for kind in ("ldmatrix", "shared_store")
    ]
