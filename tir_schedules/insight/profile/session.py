"""Profile sessions: kernels are compiled, predicted, launched under Nsight Compute, and become a result."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Sequence

from tir_schedules.bench.tables import refusal
from tir_schedules.errors import CheckFailed
from tir_schedules.insight.metrics.rungs import metrics_of_rungs
from tir_schedules.insight.profile.cases import load_cases, packed_case, save_cases, verify_cases
from tir_schedules.insight.profile.nsight import tool
from tir_schedules.insight.profile.results import Result, count_launches, document
from tir_schedules.ladders.problems import Job
from tir_schedules.machines.choice import the_gpu
from tir_schedules.machines.gpu import GpuMachine
from tir_schedules.processes import temporary_folder
from tir_schedules.subjects.results import about
from tir_schedules.subjects.subject import Row

CASES = "tir_schedules.insight.profile.cases"
"""The module that launches what a pack holds, for Nsight Compute to watch."""

OTHERWISE = (
    "without a GPU `inspect` shows what is predicted, and `profile --from FILE` what was counted elsewhere"
)


def gpu_machine() -> GpuMachine:
    """This computer's GPU. MissingTool, in one line, when there is none or CuPy is missing."""
    return the_gpu(OTHERWISE)


def pack_jobs(jobs: Sequence[Job], arch: str, path: Path, command: str) -> tuple[int, list[Row]]:
    """Compile jobs, predict their counters and write the pack, if anything compiles; returns how many
    launches it has, and refused rows. command: what made the pack."""
    found, refused = metrics_of_rungs(jobs, arch)
    cases = [packed_case(launches) for _, launches in found]
    source = {**about(command), "arch": arch, "refused": refused}
    if found:
        save_cases([subject for subject, _ in found], cases, source, path)
    return sum(len(launches) for _, launches in found), refused


def profile_pack(machine: GpuMachine, path: Path, command: str) -> tuple[Result, list[str]]:
    """Count the launches of a pack on this computer's GPU; returns the document, and a line for each kernel
    that is refused or wrong."""
    cases, source = load_cases(path)
    faults = [refusal(row) for row in source.pop("refused", [])]
    wrong, entries = verify_cases(machine, cases)
    count_launches(entries, [sys.executable, "-m", CASES, str(path)])
    return document(command, source, entries), [*faults, *wrong]


def profile_jobs(
    machine: GpuMachine, jobs: Sequence[Job], arch: str, command: str
) -> tuple[Result, list[str]]:
    """The same of jobs, which are compiled here."""
    with temporary_folder() as folder:
        path = folder / "counters.zip"
        launches, refused = pack_jobs(jobs, arch, path, command)
        if not launches:
            raise CheckFailed("; ".join(map(refusal, refused)))
        return profile_pack(machine, path, command)


def check_profiler() -> None:
    """MissingTool without Nsight Compute."""
    tool("ncu")
