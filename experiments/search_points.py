"""Configurations drawn from the spaces of three rungs: their CUDA, and how long each takes on a GPU."""

from __future__ import annotations

import io
import json
import os
import random
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tir_schedules.console import progress
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.files import Json, lists_to_tuples, write_bytes
from tir_schedules.ladders.known import workload_class
from tir_schedules.model.kernel import Kernel
from tir_schedules.model.workload import Workload
from tir_schedules.subjects.results import about, document
from tir_schedules.subjects.subject import Subject
from tir_schedules.tuning.space.points import Point, Space, Value
from tir_schedules.tuning.space.tunable import space_of

if TYPE_CHECKING:
    from tir_schedules.machines.gpu import GpuMachine

ARCH = "sm_90"
DRAWN = 320
"""Configurations of a rung, or all that its space has."""

SEED = 41
"""Of the draw."""

MEMBER = "candidates.json"
REMEDY = "name a .zip that `experiments/searches.py --emit` wrote"


@dataclass(frozen=True)
class Task:
    """What is searched: the space of a rung, for one workload."""

    rung: str
    shape: tuple[int, ...]

    @property
    def family(self) -> str:
        return self.rung.partition("/")[0]

    @property
    def space(self) -> Space[Any, Any]:
        return space_of(self.rung)

    @property
    def workload(self) -> Workload:
        return workload_class(self.family)(*self.shape)

    def drawn(self) -> list[Point]:
        """Each valid configuration is as likely as any other."""
        points = [*self.space.points(self.workload, ARCH)]
        return points if len(points) <= DRAWN else random.Random(SEED).sample(points, DRAWN)

    def name(self, point: Point) -> str:
        """ "sgemm/multistage:bm=64,bn=64,..."."""
        return f"{self.rung}:{','.join(f'{name}={value}' for name, value in point.items())}"

    def point(self, name: str) -> Point:
        """The point that has a name."""
        given = dict(each.split("=") for each in name.partition(":")[2].split(","))
        return {field: value_of(given[field], values) for field, values in self.space.fields.items()}


TASKS = (
    Task("sgemm/multistage", (2048, 2048, 2048)),
    Task("hgemm/mma_multistage", (2048, 2048, 2048)),
    Task("reduce/vectorized", (1 << 25,)),
)


def value_of(text: str, values: tuple[Value, ...]) -> Value:
    """The value that is written so."""
    return next(value for value in values if str(value) == text)


def emit(path: Path) -> tuple[int, int]:
    """Write the CUDA of all that are drawn. Returns how many were emitted and how many were refused."""
    from tir_schedules.compiler.lower import lower
    from tir_schedules.run import launches
    from tir_schedules.tuning.building.candidate import parsed_once

    made, refused = [], []
    with progress(None, "emitting") as step:
        for task in TASKS:
            for point in task.drawn():
                step(task.name(point))
                try:
                    kernels = launches(lower, parsed_once(task.space.rung_at(point)), task.workload, ARCH)
                except CheckFailed as error:
                    subject = Subject(task.family, task.name(point), "schedule", task.workload)
                    refused.append(subject.refused(str(error)))
                    continue
                made.append(
                    {
                        "family": task.family,
                        "name": task.name(point),
                        "workload": asdict(task.workload),
                        "kernels": [asdict(kernel) for kernel in kernels],
                    }
                )
    content = {"about": about("experiments/searches.py --emit"), "candidates": made, "refused": refused}
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(MEMBER, json.dumps(content))
    write_bytes(path, archive.getvalue())
    return len(made), len(refused)


def emitted(path: Path) -> Json:
    """What `emit` wrote. BadInput for a file that is something else."""
    try:
        with zipfile.ZipFile(path) as archive:
            return json.loads(archive.read(MEMBER))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise BadInput(f"{path} has no emitted candidates ({error}): {REMEDY}") from None


def timed(path: Path, machine: GpuMachine) -> Json:
    """Compile and time what `emit` wrote, as `bench` does it; returns a results document."""
    from tir_schedules.bench.sampling import Policy
    from tir_schedules.bench.session import measure_subjects

    content = emitted(path)
    subjects, refused = compiled(content["candidates"])
    policy = Policy(settle_s=1.0, pause_s=0.01, min_samples=5, max_samples=5, budget_s=0.5)
    measurement, policy = measure_subjects(machine, subjects, policy, None)
    return document(
        about(f"experiments/searches.py {path.name}"),
        measurement,
        asdict(policy),
        [*content["refused"], *refused],
        content["about"],
    )


def compiled(candidates: list[Json]) -> tuple[list[Subject], list[Json]]:
    """Subjects, and rows of those that nvcc refuses."""
    from tir_schedules.compiler.nvcc import compile_kernel

    def subject_of(candidate: Json) -> Subject | Json:
        workload = workload_class(candidate["family"])(**candidate["workload"])
        subject = Subject(candidate["family"], candidate["name"], "schedule", workload)
        try:
            kernels = [Kernel(**lists_to_tuples(kernel)) for kernel in candidate["kernels"]]
            return replace(subject, binaries=tuple(compile_kernel(kernel) for kernel in kernels))
        except CheckFailed as error:
            return subject.refused(str(error))

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool, progress(None, "compiling"):
        found = list(pool.map(subject_of, candidates))
    return [one for one in found if isinstance(one, Subject)], [
        one for one in found if not isinstance(one, Subject)
    ]
