"""What a benchmark times: kernels compiled for one architecture, and the vendor library's own."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Sequence

from tir_schedules.errors import CheckFailed, one_line
from tir_schedules.model.kernel import Binary, Kernel

if TYPE_CHECKING:
    from tir_schedules.model.rung import Rung

VENDORS = {"sgemm": "cuBLAS", "hgemm": "cuBLAS", "reduce": "CUB"}
"""Family -> the library its kernels are timed beside."""


@dataclass(frozen=True)
class Subject:
    """One thing that is timed on one workload.

    family: "sgemm", "reduce" or "hgemm". name: a rung's id such as "sgemm/warp_tiling:128x128", or "cuBLAS",
    "CUB".
    form: "schedule", "twin" or "vendor". binaries: one per launch, in order; none for a vendor's library.
    """

    family: str
    name: str
    form: str
    workload: Any
    binaries: tuple[Binary, ...] = field(default=(), repr=False)

    @property
    def label(self) -> str:
        """How messages name it: "sgemm/naive (schedule)", "cuBLAS"."""
        return self.name if self.form == "vendor" else f"{self.name} ({self.form})"

    def refused(self, reason: str) -> dict[str, str]:
        """The row of results that says why it was not timed; one line."""
        return {
            "family": self.family,
            "name": self.name,
            "form": self.form,
            "shape": str(self.workload),
            "reason": one_line(reason),
        }

    def identity(self) -> dict[str, Any]:
        """The part of a row of results that says what was timed."""
        names = {"family": self.family, "name": self.name, "form": self.form}
        return names | {"shape": str(self.workload), "workload": asdict(self.workload)}


def rate_of(family: str, workload: Any, micros: float) -> tuple[float, str]:
    """The rate of a workload that takes so many microseconds, and its unit: "GB/s" of sums, "TFLOPS" of
    products."""
    return (
        (workload.bytes / micros / 1e3, "GB/s")
        if family == "reduce"
        else (workload.flops / micros / 1e6, "TFLOPS")
    )


def subjects_of(
    jobs: Sequence[tuple["Rung", Any]], arch: str, progress: Callable[[str], None] = lambda name: None
) -> tuple[list[Subject], list[dict[str, str]]]:
    """Schedules and twins of (rung, workload) pairs compiled for `arch`, and one vendor's subject per
    distinct workload.

    Workloads keep the order in which they are first met; the vendor's subject is the last of a workload.
    progress: called with a rung's id when its two kernels for a workload are on their way to nvcc. Also
    returns a refused row for each kernel that cannot be made. Raises BadInput for an architecture that nvcc
    or a rung does not take, MissingTool without nvcc.
    """
    from tir_schedules.compiler.lower import lower
    from tir_schedules.compiler.toolchain import check_arch
    from tir_schedules.compiler.twin import load_twin

    check_arch(arch)
    for rung, _ in jobs:
        rung.check_arch(arch)
    forms = {"schedule": lower, "twin": load_twin}
    pending: dict[Any, list[tuple[Subject, Future]]] = {workload: [] for _, workload in jobs}
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for rung, workload in jobs:
            for form, make in forms.items():
                if form == "twin" and not rung.twinned:
                    continue
                subject = Subject(rung.family, rung.id, form, workload)
                pending[workload].append((subject, start(pool, make, rung, workload, arch)))
            progress(rung.id)
        subjects, refused = [], []
        for workload, waiting in pending.items():
            for subject, future in waiting:
                try:
                    binaries = tuple(future.result())
                except CheckFailed as error:
                    refused.append(subject.refused(str(error)))
                else:
                    subjects.append(Subject(subject.family, subject.name, subject.form, workload, binaries))
            family = waiting[0][0].family
            subjects.append(Subject(family, VENDORS[family], "vendor", workload))
    return subjects, refused


def start(
    pool: ThreadPoolExecutor, make: Callable[..., Kernel], rung: "Rung", workload: Any, arch: str
) -> Future:
    """Make the kernels of all launches here (TVM is not for several threads), compile them in the pool."""
    from tir_schedules.compiler.nvcc import compile_kernel
    from tir_schedules.run import launches

    try:
        kernels = launches(make, rung, workload, arch)
    except CheckFailed as error:
        failed: Future = Future()
        failed.set_exception(error)
        return failed
    return pool.submit(lambda: [compile_kernel(kernel) for kernel in kernels])
