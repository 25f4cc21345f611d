"""Run rungs: emit or load the twins, compile, execute on a machine, and judge the outputs. What
`tir-schedules run` does."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Callable, Iterator, Sequence

import numpy as np

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.signature import definitions
from tir_schedules.compiler.source_text import places_of, shown_name
from tir_schedules.compiler.twin import check_parameters, load_source, load_twin
from tir_schedules.emit import Make, placed_in_text
from tir_schedules.errors import TirSchedulesError
from tir_schedules.ladders.problems import Job, check_job
from tir_schedules.machines.execution import execute, warm
from tir_schedules.machines.execution import lower as lower_early
from tir_schedules.model.findings import Location
from tir_schedules.model.kernel import Binary, Kernel
from tir_schedules.model.machine import Execution, Machine
from tir_schedules.model.rung import Preparation, Rung
from tir_schedules.model.verify import Check, Mismatch, shared_checks
from tir_schedules.model.workload import Arguments, Workload
from tir_schedules.source import Source
from tir_schedules.verdicts import Outcome, Verdict, WrongValue, disagreement


def run(jobs: Sequence[Job], arch: str, machine: Machine, source: Source | None = None) -> Iterator[Verdict]:
    """Verify rungs on workloads, given in pairs; verdicts come in order, as they are ready.

    arch: "sm_80". source: CUDA to run in place of what the schedule emits, without the twin.
    The last jobs are started first: in a ladder they take longest to compile, and at the end no core should
    wait for another.
    A rung that cannot be emitted or compiled yields a verdict that says so; errors of use (BadInput,
    MissingTool) are raised.
    """
    makers: list[Make] = [lower, load_twin]
    if source:
        makers = [partial(load_source, source.text, file=source.file, folder=source.folder)]
    file = source.file if source else ""
    cores = os.cpu_count()
    warm(machine)
    with ThreadPoolExecutor(cores) as compiling, ThreadPoolExecutor(cores) as executing:
        pending = []
        for rung, workload in reversed(jobs):
            own = makers if rung.twinned else makers[:1]
            pools = compiling, executing
            kernels = [start(pools, make, rung, workload, arch, machine, file) for make in own]
            pending.append((rung, workload, kernels))
        for rung, workload, outcomes in reversed(pending):
            yield judge_pair(rung, workload, [outcome.result() for outcome in outcomes])


def start(
    pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor],
    make: Make,
    rung: Rung,
    workload: Workload,
    arch: str,
    machine: Machine,
    file: str = "",
) -> "Future[Outcome]":
    """Make the kernels here (TVM is not for several threads), compile them in the one pool and execute them
    in the other: while the CPU machine itself is compiled, kernels are, too."""
    compiling, executing = pools
    try:
        kernels = launches(make, rung, workload, arch)
    except TirSchedulesError as error:
        return executing.submit(failed_outcome, file or rung.id, error)
    binaries = {id(kernel): compiling.submit(ready, kernel, machine) for kernel in kernels}

    def compiled(kernel: Kernel) -> Binary:
        return binaries[id(kernel)].result()

    return executing.submit(outcome_of, kernels, workload, machine, compiled)


def ready(kernel: Kernel, machine: Machine) -> Binary:
    """A kernel compiled, and lowered where the machine needs that."""
    return lower_early(machine, compile_kernel(kernel))


def launches(make: Make, rung: Rung, workload: Workload, arch: str) -> list[Kernel]:
    """The kernel of each launch the workload takes: one for a GEMM, or two where blocks share K, and those
    around it that the rung has; for a reduction one after another until one number is left.

    make: `lower`, `load_twin` or the like. A source given in place of a rung's own is for the first launch.
    """
    check_job(rung, workload)
    rung, workload = rung.settled(workload, arch)
    make = placed_in_text(make, rung, workload, arch) if make is lower else make
    before, after = launches_around(lower if isinstance(make, partial) else make, rung, workload, arch)
    return [*before, *launches_left(make, rung, workload, arch), *after]


def launches_left(make: Make, rung: Rung, left: Workload | None, arch: str) -> list[Kernel]:
    """The same of what is `left` to do, if anything."""
    kernels: list[Kernel] = []
    while left is not None:
        kernels.append(make(rung, left, arch))
        left, rung = left.rest(kernels[-1].results), rung.then
        make = lower if isinstance(make, partial) else make
    return kernels


def launches_around(
    make: Make, rung: Rung, workload: Workload, arch: str
) -> tuple[list[Kernel], list[Kernel]]:
    """The kernels of the launches before a rung's own and after it, with arguments of the workload."""

    def named(each: Preparation) -> Kernel:
        kernel = make(each.rung, each.workload, arch)
        params = tuple(each.names[name] for name in kernel.params)
        return replace(kernel, params=params, workspaces=workspaces)

    before, after = rung.others(workload)
    workspaces = rung.fitted(workload).declared(workload).workspaces if before else ()
    return [*map(named, before)], [*map(named, after)]


def failed_outcome(name: str, error: TirSchedulesError) -> Outcome:
    """The outcome of a kernel that could not be made. Errors of use concern the whole run and are raised."""
    if error.exit_code != 1:
        raise error
    return Outcome(name, str(error))


def outcome_of(
    kernels: Sequence[Kernel],
    workload: Workload,
    machine: Machine,
    compiled: Callable[[Kernel], Binary] = compile_kernel,
) -> Outcome:
    """Compile, execute with the inputs of each check, one launch after another with outputs poisoned
    beforehand, compare with the truth.

    A check that fails is the last; findings are those of the first check that has some.
    """
    label, wrong, findings, notes, seconds, kept, printed = kernels[0].label, (), (), (), 0.0, [], ""
    try:
        binaries = [compiled(kernel) for kernel in kernels]
        for binary in binaries:
            if binary.kernel.file:
                check_parameters(binary, workload)
        for check in shared_checks(workload):
            done = execute(machine, workload, binaries, check.arguments())
            findings = findings or tuple(finding for execution, _ in done for finding in execution.findings)
            notes = notes or tuple(note for execution, _ in done for note in execution.notes)
            printed = printed or "".join(execution.printed for execution, _ in done)
            seconds += sum(execution.seconds for execution, _ in done)
            kept.append({name: done[-1][1][name] for name in workload.outputs})
            mismatch = check.mismatch(kept[-1])
            if mismatch:
                wrong = (blame_line(kernels, done, check, mismatch),)
                break
    except TirSchedulesError as error:
        return failed_outcome(label, error)
    return Outcome(label, "", wrong, findings, seconds, tuple(kept), printed, notes)


def blame_line(
    kernels: Sequence[Kernel], done: Sequence[tuple[Execution, Arguments]], check: Check, mismatch: Mismatch
) -> WrongValue:
    """The wrong element, and which line of which launch stored it.

    done: execution and arguments of each launch. With several launches the first that lost something is at
    fault, because its results no longer add up.
    """
    output, shape = mismatch.output, done[-1][1][mismatch.output].shape
    kernel, execution, index = kernels[-1], done[-1][0], mismatch.flat_index(shape)
    for earlier, (one, arguments) in zip(kernels[:-1], done):
        if check.mismatch(check.workload.truth({**arguments, "X": arguments[output]})):
            unwritten = (
                place for place in range(arguments[output].size) if one.writer(output, place) is None
            )
            kernel, execution, index = earlier, one, next(unwritten, 0)
            break
    return WrongValue(kernel.label, mismatch, *writer_of(execution, output, index, kernel))


def writer_of(execution: Execution, output: str, index: int, kernel: Kernel) -> tuple[str, Location | None]:
    """Which line stored an element; where nothing did, which line stores others, or which kernel should."""
    location = execution.writer(output, index)
    if location:
        return "stored by", location
    others = execution.writers(output)
    if others is None:
        return "--machine cpu names the line that stores it", None
    if others:
        return "nothing stored it, others are stored by", others[0]
    found = definitions(kernel.source, kernel.entry)
    if not found:  # a macro defines it
        return f"{shown_name(kernel)} stores nothing to {output}", None
    row = kernel.source[: found[0].position].count("\n")
    file, line = places_of(kernel)[row]
    return f"the kernel at {file}:{line} stores nothing to {output}", None


def judge_pair(rung: Rung, workload: Workload, outcomes: list[Outcome]) -> Verdict:
    """Compare the outputs of a schedule with those of its twin, when both ran. Where one is wrong that is all
    there is to say."""
    schedule, twin = outcomes[0], outcomes[1] if len(outcomes) > 1 else None
    if twin is None or not (schedule.outputs and twin.outputs):
        return Verdict(rung, workload, schedule, twin, None)
    pairs = list(zip(shared_checks(workload), schedule.outputs, twin.outputs))
    differences = (check.disagreement(ours, others) for check, ours, others in pairs)
    differ = None if schedule.wrong or twin.wrong else next((found for found in differences if found), None)
    identical = all(
        np.array_equal(ours[name], others[name]) for _, ours, others in pairs for name in workload.outputs
    )
    return Verdict(rung, workload, schedule, twin, identical, disagreement(differ) if differ else "")
