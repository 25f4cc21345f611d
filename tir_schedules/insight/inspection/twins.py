"""A rung's schedule beside its twin: metrics of both, and the roofline that they stand under."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence, TypeVar

from tir_schedules.files import Json, to_json
from tir_schedules.insight.metrics.counting import Metrics
from tir_schedules.insight.metrics.roofline import Gpu, Roofline, gpu_for, roofline
from tir_schedules.insight.metrics.rungs import FORMS, metrics_of_rungs
from tir_schedules.ladders.problems import Job
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload

Value = TypeVar("Value")


@dataclass(frozen=True)
class Inspection:
    """A rung on one workload.

    kernels: "schedule" and "twin" -> metrics of each launch. refused: the same -> why there are none.
    """

    rung: Rung
    workload: Workload
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

    @property
    def place(self) -> int:
        """The place of the rung's own launch among all, because others may copy its operands before it."""
        before, _ = self.rung.others(self.workload)
        return len(before)

    def own(self, form: str) -> Metrics:
        """The metrics of that launch."""
        return self.kernels[form][self.place]

    def roofline(self, form: str) -> Roofline:
        return roofline(self.gpu, self.workload, self.kernels[form])

    def as_json(self) -> Json:
        """A kernel has the metrics of the rung's own launch, "earlier_launches" and "later_launches" those of
        others, where there are any."""
        kernels: dict[str, Json] = {form: {"refused": reason} for form, reason in self.refused.items()}
        for form, launches in self.kernels.items():
            earlier, later = launches[: self.place], launches[self.place + 1 :]
            others = {"earlier_launches": earlier, "later_launches": later}
            kernels[form] = {**self.own(form).as_json(), "roofline": self.roofline(form)}
            kernels[form] |= {name: some for name, some in others.items() if some}
        names = {"rung": self.rung.id, "shape": str(self.workload), "workload": self.workload}
        return to_json({**names, "arch": self.arch, "gpu": self.gpu.name, "kernels": kernels})


def inspect(jobs: Sequence[Job], arch: str, gpu: str | None = None) -> list[Inspection]:
    """Inspect rungs, each on one workload. Where one kernel is refused, the other is still there.

    gpu: whose datasheet the roofline is from; None: a GPU of what each rung is compiled for.

    BadInput for a workload that is too large for the CPU machine, and for an architecture that is not known.
    """
    found, refused = metrics_of_rungs(jobs, arch)
    kernels = {(subject.name, subject.form): launches for subject, launches in found}
    reasons = {(row["name"], row["form"]): row["reason"] for row in refused}
    present = {name for name, _ in [*kernels, *reasons]}  # a rung that needs a later architecture is not
    return [
        Inspection(rung, workload, own, gpu_for(own, gpu), by_form(kernels, rung), by_form(reasons, rung))
        for rung, workload in jobs
        if rung.id in present
        for own in [rung.arch_for(arch)]
    ]


def by_form(by_name: dict[tuple[str, str], Value], rung: Rung) -> dict[str, Value]:
    """Form -> what (name, form) of a rung leads to."""
    return {form: by_name[rung.id, form] for form in FORMS if (rung.id, form) in by_name}
