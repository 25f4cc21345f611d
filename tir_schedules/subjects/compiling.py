"""Jobs compiled into subjects: both kernels of every rung, and the vendor's library beside them."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Callable, Iterable, Sequence

from tir_schedules.compiler.lower import fitted, lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.toolchain import check_arch
from tir_schedules.compiler.twin import load_fixed_twin, load_twin
from tir_schedules.console import print_error, progress
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.ladders.problems import Job, check_job
from tir_schedules.model.kernel import FIXED_TWIN, Kernel
from tir_schedules.model.rung import Rung, StandIn
from tir_schedules.model.workload import Workload
from tir_schedules.run import launches
from tir_schedules.subjects.subject import Row, Subject, vendors_of


def runnable(jobs: Sequence[Job], arch: str) -> list[Job]:
    """Those that run on an architecture, and whose rungs take the shape; a line says which do not. BadInput
    when none is left."""
    unfit, refused, fit = {}, {}, []
    for rung, workload in settle_jobs(jobs, arch, refused):
        try:
            rung.check_arch(arch)
        except BadInput as error:
            unfit[rung.id] = error
            continue
        try:
            if rung.refuses and not rung.file:
                fitted(rung, workload)
            fit.append((rung, workload))
        except BadInput as error:
            refused[f"{rung.id} on {workload}"] = error
    if not fit:
        raise next(iter((unfit | refused).values()))
    if unfit:
        print_error(f"left out, because they need another architecture than {arch}: {', '.join(unfit)}")
    for error in refused.values():
        print_error(f"left out: {error}")
    return fit


def settle_jobs(jobs: Iterable[Job], arch: str, refused: dict[str, BadInput] | None = None) -> list[Job]:
    """Jobs in which a name such as "sgemm/fastest" is replaced by the rung that it stands for. A line says
    which rung that is. Raises BadInput for products that a rung does not have.

    refused: takes those for which there is none; without it, the first is raised.
    """
    found: dict[tuple[str, Workload], Job] = {}
    for rung, workload in jobs:
        if isinstance(rung, StandIn):
            check_arch(arch)
        try:
            check_job(rung, workload)
            each_meant = rung.all_settled(workload, arch)
        except BadInput as error:
            if refused is None:
                raise
            refused[f"{rung.id} on {workload}"] = error
            continue
        for meant, settled in each_meant:
            if meant is not rung:
                print_error(meant.why)
            found.setdefault((meant.typed, settled), (meant, settled))
    return list(found.values())


Taker = Callable[[Subject], object]


def compile_jobs(
    jobs: Sequence[Job], arch: str, twin: str = "twin", then: Taker | None = None
) -> tuple[list[Subject], list[Row]]:
    """Subjects and refused rows, with a bar while nvcc works. twin, then: as in `subjects_of`."""
    jobs = runnable(jobs, arch)
    with progress(len(jobs), "compiling") as step:
        return subjects_of(jobs, arch, step, twin, *([then] if then else []))


def subjects_of(
    jobs: Sequence[Job],
    arch: str,
    progress: Callable[[str], object] = lambda name: None,
    twin: str = "twin",
    then: Taker = lambda subject: None,
) -> tuple[list[Subject], list[Row]]:
    """Schedules and twins of (rung, workload) pairs compiled for `arch`, and the vendor's subjects per
    distinct workload.

    Workloads keep the order in which they are first met; the vendor's subjects are the last of a workload.
    The last jobs are started first: in a ladder they take longest to compile, and at the end no core should
    wait for another.
    progress: called with a rung's id when its two kernels for a workload are on their way to nvcc. twin: of
    which form twins are, "twin" (it takes sizes at run time) or FIXED_TWIN (it is compiled for the shape, as
    a schedule is). then: called in another thread with each schedule and twin as soon as it is compiled.
    Also returns a refused row for each kernel that cannot be made. Raises BadInput for an architecture that
    nvcc or a rung does not take, MissingTool without nvcc.
    """
    check_arch(arch)
    for rung, _ in jobs:
        rung.check_arch(arch)
    forms = {"schedule": lower, twin: load_fixed_twin if twin == FIXED_TWIN else load_twin}
    started: list[list[tuple[Subject, Future[Subject]]]] = []
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for rung, workload in reversed(jobs):
            own = [form for form in forms if form != twin or rung.twinned]
            pairs = [(Subject(rung.family, rung.id, form, workload), forms[form]) for form in own]
            started.append([(each, start(pool, make, rung, each, arch, then)) for each, make in pairs])
            progress(rung.id)
        pending: dict[Workload, list[tuple[Subject, Future[Subject]]]] = {}
        for (_, workload), those in zip(jobs, reversed(started)):
            pending.setdefault(workload, []).extend(those)
        subjects, refused = [], []
        for workload, waiting in pending.items():
            for subject, future in waiting:
                try:
                    subjects.append(future.result())
                except CheckFailed as error:
                    refused.append(subject.refused(str(error)))
            family = waiting[0][0].family
            subjects += [Subject(family, name, "vendor", workload) for name in vendors_of(family)]
    return subjects, refused


def start(
    pool: ThreadPoolExecutor,
    make: Callable[..., Kernel],
    rung: Rung,
    subject: Subject,
    arch: str,
    then: Taker,
) -> Future[Subject]:
    """Make the kernels of all launches here (TVM is not for several threads), compile them in the pool."""
    try:
        kernels = launches(make, rung, subject.workload, arch)
    except CheckFailed as error:
        failed: Future[Subject] = Future()
        failed.set_exception(error)
        return failed

    def compiled() -> Subject:
        whole = replace(subject, binaries=tuple(map(compile_kernel, kernels)))
        then(whole)
        return whole

    return pool.submit(compiled)
