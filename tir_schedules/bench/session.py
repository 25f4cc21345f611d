"""Bench sessions: subjects are compiled or unpacked and measured on this computer's GPU."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Sequence

from tir_schedules.bench.sampling import Policy
from tir_schedules.console import print_error, progress
from tir_schedules.files import Json
from tir_schedules.ladders.problems import Job
from tir_schedules.machines.choice import the_gpu
from tir_schedules.subjects.packs import load_pack, save_pack
from tir_schedules.subjects.results import about, document
from tir_schedules.subjects.subject import Row, Subject

if TYPE_CHECKING:
    from tir_schedules.bench.measure import Measurement
    from tir_schedules.machines.gpu import GpuMachine


def gpu_machine() -> GpuMachine:
    """This computer's GPU. MissingTool, in one line, when there is none or CuPy is missing."""
    return the_gpu("without a GPU nothing can be timed, but --predict shows what can be known")


def pack_jobs(
    jobs: Sequence[Job], arch: str, path: Path, command: str, twin: str = "twin", more: Json | None = None
) -> tuple[list[Subject], list[Row]]:
    """Compile rungs on workloads and write the pack, if anything compiles, with CUB's library where it is
    needed; returns subjects and refused rows. command: what made the pack. twin: the form of twins. more:
    what else the pack is to say of itself."""
    from tir_schedules.subjects.compiling import compile_jobs

    subjects, refused = compile_jobs(jobs, arch, twin)
    if any(subject.binaries for subject in subjects):
        source = {**about(command), "arch": arch, "refused": refused, **(more or {})}
        save_pack(subjects, source, path, cub_library(subjects, arch))
    return subjects, refused


def cub_library(subjects: Sequence[Subject], arch: str) -> bytes | None:
    """CUB's library, compiled, where one of the subjects needs it."""
    if not any(subject.name == "CUB" for subject in subjects):
        return None
    from tir_schedules.bench.vendor import build_cub

    return build_cub(arch)


def measure_jobs(
    machine: GpuMachine,
    jobs: Sequence[Job],
    arch: str,
    command: str,
    policy: Policy = Policy(),
    twin: str = "twin",
) -> Json:
    """Time schedules, twins and the vendor's library; returns a results document.

    command: as the document names it. twin: the form of twins.
    """
    from tir_schedules.subjects.compiling import compile_jobs

    subjects, refused = compile_jobs(jobs, arch, twin)
    measurement, policy = measure_subjects(machine, subjects, policy, None)
    return document(about(command), measurement, asdict(policy), refused)


def measure_pack(path: Path, command: str, policy: Policy = Policy(), baseline: Json | None = None) -> Json:
    """The same of what a pack holds. baseline: earlier results, which are to be of the same GPU."""
    pack = load_pack(path)
    machine = gpu_machine()
    check_baseline(machine, baseline)
    if pack.cub:
        print_error(trusting(path, pack.cub))
    refused = pack.about.pop("refused", [])
    measurement, policy = measure_subjects(machine, pack.subjects, policy, pack.cub)
    return document(about(command), measurement, asdict(policy), refused, pack.about)


def check_baseline(machine: GpuMachine, baseline: Json | None) -> None:
    """BadInput for results to compare with that are of another GPU."""
    if baseline:
        from tir_schedules.bench.compare import check_same_device

        check_same_device(baseline, machine.device_name)


def trusting(pack: Path, library: bytes) -> str:
    """What it means to time a pack that has CUB's library."""
    digest = hashlib.sha256(library).hexdigest()[:12]
    return (
        f"CUB's library in {pack} (SHA-256 {digest}) runs on this computer's CPU, with all your rights: time"
        " only packs you trust"
    )


def measure_subjects(
    machine: GpuMachine, subjects: Sequence[Subject], policy: Policy, cub: bytes | None
) -> tuple[Measurement, Policy]:
    """Measure; returns the measurement and the policy it followed."""
    from tir_schedules.bench.measure import measure

    with progress(None, "timing") as step:
        return measure(machine, subjects, policy, step, cub=cub), policy
