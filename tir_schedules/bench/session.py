"""What `tir-schedules bench` does: compile or unpack, measure on this computer's GPU, and make a results
document of it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any, Sequence

from tir_schedules.cli.problems import check_options, timed_workloads_of
from tir_schedules.console import print_error, progress
from tir_schedules.errors import BadInput
from tir_schedules.ladders.registry import find_each
from tir_schedules.machines.choice import arch_for, choose, the_gpu
from tir_schedules.model.rung import Rung
from tir_schedules.subjects.packs import load_pack, save_pack
from tir_schedules.subjects.results import about, document
from tir_schedules.subjects.subject import subjects_of
from tir_schedules.tuning.records.tuned import tuned_jobs


def gpu_machine() -> Any:
    """This computer's GPU. MissingTool, in one line, when there is none or CuPy is missing."""
    return the_gpu("without a GPU nothing can be timed, but --predict shows what can be known")


def jobs_of(options: Any, machine: Any = None) -> list[tuple[Rung, Any]]:
    """The rungs that are named, each once, with the workloads they are timed on. BadInput for names and
    options that do not fit.

    machine: with --tuned the GPU that records are to be of; without one, records for --arch count.
    """
    rungs = find_each(options.names, options.configs)
    check_options(rungs, options)
    if options.tuned is not None:
        machine = machine or choose("cpu")
        return tuned_jobs(
            rungs, options, machine, arch_for(machine, options.arch), timed_workloads_of, beside=True
        )
    return [(rung, workload) for rung in rungs for workload in timed_workloads_of(rung, options)]


def runnable(jobs: Sequence[tuple[Rung, Any]], arch: str) -> list[tuple[Rung, Any]]:
    """Those that run on an architecture; a line says which do not. BadInput when none does."""
    unfit = {}
    for rung, _ in jobs:
        try:
            rung.check_arch(arch)
        except BadInput as error:
            unfit[rung.id] = error
    fit = [job for job in jobs if job[0].id not in unfit]
    if not fit:
        raise next(iter(unfit.values()))
    if unfit:
        print_error(f"left out, they need a later architecture than {arch}: {', '.join(unfit)}")
    return fit


def compiled(jobs: Sequence[tuple[Rung, Any]], arch: str):
    """Subjects and refused rows, with a bar while nvcc works."""
    jobs = runnable(jobs, arch)
    with progress(len(jobs), "compiling") as step:
        return subjects_of(jobs, arch, step)


def pack(options: Any, command: str) -> tuple[str, list[dict[str, str]]]:
    """Compile for another computer and write the pack; returns a line that says what is in it, and refused
    rows."""
    check_pack_arch(options.arch)
    subjects, refused = pack_jobs(jobs_of(options), options.arch, options.pack, command)
    kernels = len({binary.cubin for subject in subjects for binary in subject.binaries})
    what = f"{len(subjects)} subjects, {kernels} kernels for {options.arch}"
    advice = f"copy {options.pack} to where the GPU is and run `tir-schedules bench {options.pack.name}`"
    return f"packed {what}: {advice}", refused


def check_pack_arch(arch: str | None) -> None:
    """BadInput when a pack is asked for without the architecture it is for."""
    if not arch:
        raise BadInput(
            "--pack compiles for another computer's GPU: name its architecture, such as --arch sm_90"
        )


def pack_jobs(
    jobs: Sequence[tuple[Rung, Any]], arch: str, path: Path, command: str
) -> tuple[list[Any], list[dict[str, str]]]:
    """Compile rungs on workloads and write the pack, with CUB's library where it is needed; returns subjects
    and refused rows."""
    subjects, refused = compiled(jobs, arch)
    cub = None
    if any(subject.name == "CUB" for subject in subjects):
        from tir_schedules.bench.vendor import build_cub

        cub = build_cub(arch)
    save_pack(subjects, {**about(command), "arch": arch, "refused": refused}, path, cub)
    return subjects, refused


def measured(options: Any, command: str) -> dict[str, Any]:
    """Time what the options name, or what a pack holds, on this computer's GPU; returns a results
    document."""
    packed = is_pack(options.names)
    machine = gpu_machine() if not packed and options.tuned is not None else None
    jobs = (
        [] if packed else jobs_of(options, machine)
    )  # bad names and options show before anything slow starts
    loaded = load_pack(Path(options.names[0])) if packed else None
    machine = machine or gpu_machine()
    if options.compare_with:
        from tir_schedules.bench.compare import check_same_device

        check_same_device(options.compare_with, machine.device_name)
    if loaded and loaded.cub:
        print_error(trusting(options.names[0], loaded.cub))
    if loaded:
        subjects, refused = loaded.subjects, loaded.about.pop("refused", [])
    else:
        subjects, refused = compiled(jobs, arch_for(machine, options.arch))
    measurement, policy = timed(machine, subjects, options.sustained, loaded.cub if loaded else None)
    return document(about(command), measurement, asdict(policy), refused, loaded.about if loaded else None)


def trusting(pack: str, library: bytes) -> str:
    """What it means to time a pack that has CUB's library."""
    digest = hashlib.sha256(library).hexdigest()[:12]
    return (
        f"CUB's library in {pack} (SHA-256 {digest}) runs on this computer's CPU, with all your rights: time"
        " only packs you trust"
    )


def timed(machine: Any, subjects: Sequence[Any], sustained: bool, cub: bytes | None) -> tuple[Any, Any]:
    """Measure; returns the measurement and the policy it followed."""
    from tir_schedules.bench.measure import Policy, measure

    policy = Policy(sustained=sustained)
    with progress(None, "timing") as step:
        return measure(machine, subjects, policy, step, cub=cub), policy


def is_pack(names: Sequence[str]) -> bool:
    """Whether the names are one pack file. BadInput when a pack is named among other things."""
    packs = [name for name in names if re.search(r"\.zip$", name, re.I)]
    if packs and len(names) > 1:
        raise BadInput(
            f"a pack is timed alone: name {packs[0]} without"
            f" {', '.join(name for name in names if name != packs[0])}"
        )
    return bool(packs)
