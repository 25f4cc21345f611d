"""Schedules and twins compiled, executed on the CPU machine and described: what `tir-schedules inspect`
shows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from math import prod
from os import cpu_count
from typing import Any, Sequence

from tir_schedules.console import progress
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.insight.metrics.metrics import Metrics, metrics_of
from tir_schedules.insight.metrics.roofline import Gpu, Roofline, roofline
from tir_schedules.model.gpus import find_sm
from tir_schedules.model.rung import Rung
from tir_schedules.subjects.subject import Subject

FORMS = ("schedule", "twin")
MOST = {"sgemm": (1024, 1024, 1024), "hgemm": (2048, 2048, 2048), "reduce": (1 << 25,)}
"""Sizes that take the CPU machine up to a minute."""


@dataclass(frozen=True)
class Inspection:
    """A rung on one workload. kernels: "schedule" and "twin" -> metrics of each launch; refused: the same ->
    why there are none."""

    rung: Rung
    workload: Any
    arch: str
    gpu: Gpu
    kernels: dict[str, list[Metrics]]
    refused: dict[str, str]

    @property
    def name(self) -> str:
        """The rung's id with the configuration that it takes for the workload."""
        return self.rung.fitted(self.workload).id

    @property
    def ok(self) -> bool:
        return not self.refused

    def roofline(self, form: str) -> Roofline:
        return roofline(self.gpu, self.workload, self.kernels[form])

    def as_json(self) -> dict[str, Any]:
        """The first launch's metrics stand in the kernel itself; further launches, of a reduction, in its
        "later_launches"."""
        kernels: dict[str, Any] = {form: {"refused": reason} for form, reason in self.refused.items()}
        for form, (first, *later) in self.kernels.items():
            kernels[form] = {**first.as_json(), "roofline": self.roofline(form).as_json()}
            kernels[form] |= {"later_launches": [launch.as_json() for launch in later]} if later else {}
        names = {"rung": self.rung.id, "shape": str(self.workload), "workload": asdict(self.workload)}
        return names | {"arch": self.arch, "gpu": self.gpu.name, "kernels": kernels}


def inspect(jobs: Sequence[tuple[Rung, Any]], arch: str, gpu: Gpu) -> list[Inspection]:
    """Inspect rungs, each on one workload. A kernel that does not compile is refused, and the other is still
    there.

    BadInput for a workload that is too large for the CPU machine, and for an architecture that is not known.
    """
    found, refused = counted(jobs, arch)
    kernels = {(subject.name, subject.form): launches for subject, launches in found}
    reasons = {(row["name"], row["form"]): row["reason"] for row in refused}
    present = {name for name, _ in [*kernels, *reasons]}  # a rung that needs a later architecture is not
    return [
        Inspection(rung, workload, arch, gpu, of_rung(kernels, rung), of_rung(reasons, rung))
        for rung, workload in jobs
        if rung.id in present
    ]


def of_rung(by_name: dict[tuple[str, str], Any], rung: Rung) -> dict[str, Any]:
    """Those of (name, form) -> value that are a rung's, by form."""
    return {form: by_name[rung.id, form] for form in FORMS if (rung.id, form) in by_name}


def counted(
    jobs: Sequence[tuple[Rung, Any]], arch: str
) -> tuple[list[tuple[Subject, list[Metrics]]], list[dict[str, str]]]:
    """Schedules and twins of (rung, workload) pairs with the metrics of their launches, and a refused row for
    each that has none."""
    from tir_schedules.subjects.compiling import compiled

    find_sm(arch)
    for rung, workload in jobs:
        check_size(rung, workload)
    subjects, refused = compiled(jobs, arch)
    subjects, found = [subject for subject in subjects if subject.form in FORMS], []
    with progress(len(subjects), "counting") as step, ThreadPoolExecutor(cpu_count()) as pool:
        for subject, future in [
            (one, pool.submit(metrics_of, one.binaries, one.workload)) for one in subjects
        ]:
            try:
                found.append((subject, future.result()))
            except CheckFailed as error:
                refused.append(subject.refused(str(error)))
            step(subject.label)
    return found, refused


def check_size(rung: Rung, workload: Any) -> None:
    """BadInput for what would take the CPU machine minutes."""
    extents, most = extents_of(workload), MOST[rung.family]
    if prod(extents) > prod(most):
        option = f"--{'n' if rung.family == 'reduce' else 'mnk'} {','.join(map(str, most))}"
        raise BadInput(
            f"{workload} would take the CPU machine minutes: name at most as much work as {option};"
            " what there is per request, per instruction and per flop hardly changes with the size"
        )


def extents_of(workload: Any) -> tuple[int, ...]:
    """(M, N, K), or (N,) of a reduction."""
    return (workload.m, workload.n, workload.k) if hasattr(workload, "k") else (workload.n,)
