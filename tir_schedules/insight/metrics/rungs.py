"""Rungs compiled and counted: metrics of schedules and twins, several kernels at a time."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from math import prod
from os import cpu_count
from typing import Sequence

from tir_schedules.console import progress
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.insight.metrics.counting import Metrics
from tir_schedules.insight.metrics.keeping import kept_metrics
from tir_schedules.ladders.known import ladder_of
from tir_schedules.ladders.problems import Job
from tir_schedules.machines.choice import choose
from tir_schedules.machines.execution import warm
from tir_schedules.model.gpus import find_sm
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload
from tir_schedules.subjects.compiling import compile_jobs
from tir_schedules.subjects.subject import Row, Subject

FORMS = ("schedule", "twin")


def metrics_of_rungs(jobs: Sequence[Job], arch: str) -> tuple[list[tuple[Subject, list[Metrics]]], list[Row]]:
    """Schedules and twins with the metrics of their launches, and a refused row for each that has none.

    A kernel is counted while nvcc compiles others. BadInput for a workload that is too large for the CPU
    machine, and for an architecture that is not known.
    """
    find_sm(arch)
    for rung, workload in jobs:
        check_size(rung, workload)
    warm(choose("cpu"))
    counts: dict[Subject, Future[list[Metrics]]] = {}
    with ThreadPoolExecutor(cpu_count()) as pool:

        def count(subject: Subject) -> None:
            counts[subject] = pool.submit(kept_metrics, subject.binaries, subject.workload)

        subjects, refused = compile_jobs(jobs, arch, then=count)
        subjects, found = [subject for subject in subjects if subject.form in FORMS], []
        with progress(len(subjects), "counting") as step:
            for subject in subjects:
                try:
                    found.append((subject, counts[subject].result()))
                except CheckFailed as error:
                    refused.append(subject.refused(str(error)))
                step(subject.label)
    return found, refused


def check_size(rung: Rung, workload: Workload) -> None:
    """BadInput for what would take the CPU machine minutes."""
    ladder = ladder_of(rung.family)
    most = ladder.shapes_for("largest")[0]
    if prod(workload.shape) > prod(most):
        option = f"--{ladder.option} {','.join(map(str, most))}"
        raise BadInput(
            f"{workload} would take the CPU machine minutes: name at most as much work as {option};"
            " counters per request, per instruction and per flop hardly change with the size"
        )
