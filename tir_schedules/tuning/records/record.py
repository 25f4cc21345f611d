"""The record of one candidate that a search tried, and what it takes to make one."""

from __future__ import annotations

import hashlib
import math
import statistics
from dataclasses import asdict, dataclass
from typing import Any

from tir_schedules.errors import BadInput
from tir_schedules.ladders.known import is_ladder, workload_class
from tir_schedules.model.machine import Device
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload
from tir_schedules.provenance import software_versions
from tir_schedules.subjects.results import nvcc_version
from tir_schedules.tuning.records.journal import canonical
from tir_schedules.tuning.space.points import Point

MEASURED, PREDICTED = "measured", "predicted"
CPU_DEVICE = "CPU machine"


@dataclass(frozen=True)
class Task:
    """What records of one search have in common. rung: id without a variant. workload: its fields."""

    rung: str
    workload: dict[str, int | str]
    family: str
    arch: str
    device: str
    kind: str

    @classmethod
    def of(cls, rung: Rung, workload: Workload, arch: str, device: str, kind: str) -> Task:
        return cls(rung.base_id, asdict(workload), rung.family, arch, device, kind)

    @property
    def key(self) -> str:
        """The same text for equal tasks."""
        return canonical(vars(self))


@dataclass(frozen=True)
class Record:
    """One candidate that was tried.

    rung: id without a variant, "sgemm/pipelined". workload: its fields. arch: "sm_90". device: CPU_DEVICE, or
    a GPU such as "NVIDIA H200". kind: MEASURED or PREDICTED. seconds: every sample, none where the candidate
    was refused. error: why it was refused, empty when it was not. source: `source_hash` of the emitted CUDA,
    empty where there was none. versions, revision: of software and of this project. date: UTC, ISO 8601.
    trial: from 0, in the order of the search. metaschedule: TVM's TuningRecord.as_json.

    Values are those of JSON. ValueError where they are not what is said here.
    """

    rung: str
    point: Point
    workload: dict[str, int | str]
    family: str
    arch: str
    device: str
    kind: str
    seconds: tuple[float, ...]
    error: str
    source: str
    versions: dict[str, str]
    revision: str
    date: str
    trial: int
    metaschedule: list[Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", tuple(self.seconds))
        if not is_ladder(self.family) or self.rung.split("/")[0] != self.family:
            raise ValueError(f"its rung is {self.rung!r} and its family {self.family!r}")
        if not all(0 < second < math.inf for second in self.seconds):
            raise ValueError(f"its seconds are {list(self.seconds)}, not positive numbers")
        if bool(self.seconds) == bool(self.error):
            raise ValueError("it must have either seconds or an error")
        problem = problem_of(self.family, self.workload)
        object.__setattr__(self, "workload", asdict(problem))  # older records lack fields that came later

    def __str__(self) -> str:
        values = ", ".join(f"{name} {value}" for name, value in self.point.items())
        return f"trial {self.trial} of {self.rung} on {self.problem} ({values})"

    @property
    def task(self) -> Task:
        """What it has in common with the other records of its search."""
        return Task(self.rung, self.workload, self.family, self.arch, self.device, self.kind)

    @property
    def problem(self) -> Workload:
        """The workload itself, such as a Gemm."""
        return problem_of(self.family, self.workload)

    @property
    def median(self) -> float:
        """Seconds; infinite for a refused candidate, which so is the slowest."""
        return statistics.median(self.seconds) if self.seconds else math.inf


def problem_of(family: str, workload: dict[str, int | str]) -> Workload:
    """The workload that has these fields, such as a Gemm. ValueError when there is none."""
    try:
        return workload_class(family)(**workload)
    except (TypeError, BadInput) as error:
        raise ValueError(f"its workload is {workload}: {error}") from None


def source_hash(*sources: str) -> str:
    """SHA-256, in hex, of CUDA source, that of each launch."""
    return hashlib.sha256("\0".join(sources).encode()).hexdigest()


def versions_now() -> dict[str, str]:
    """Versions of software as records have them."""
    return {**software_versions(), **nvcc_version()}


def device_of(device: Device | None = None) -> str:
    """How records name a device: the GPU's own name, or CPU_DEVICE."""
    return device.device_name if device is not None and device.name == "gpu" else CPU_DEVICE
