"""Run rungs: emit or load the twins, compile, execute on a machine, and judge the outputs. What `tir-schedules run` does."""
from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Iterator, Sequence

import numpy as np

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel, file_name
from tir_schedules.compiler.twin import load_source, load_twin
from tir_schedules.errors import TirSchedulesError
from tir_schedules.kernel import Kernel
from tir_schedules.machines.execution import Execution, Finding, execute
from tir_schedules.rung import Rung
from tir_schedules.verify import shared_checks


@dataclass(frozen=True)
class Outcome:
    """One kernel on one workload. faults: one line each, empty when the kernel is right; findings: those the machine saw.

    seconds: of all executions. outputs: by name, of each of the workload's checks in order, as far as they ran.
    """

    kernel: str
    faults: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0
    outputs: tuple[dict[str, np.ndarray], ...] = field(default=(), repr=False)

    @property
    def ok(self) -> bool:
        return not self.faults

    def as_json(self) -> dict[str, Any]:
        findings = [asdict(finding) for finding in self.findings]
        return {"ok": self.ok, "seconds": self.seconds, "faults": self.faults, "findings": findings}


@dataclass(frozen=True)
class Verdict:
    """A rung on one workload: its schedule and its twin, and whether their outputs are the same bit for bit.

    twin is None where only one kernel ran (`--source`, `--tuned`); identical then too.
    """

    rung: Rung
    workload: Any
    schedule: Outcome
    twin: Outcome | None
    identical: bool | None

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        return (self.schedule, self.twin) if self.twin else (self.schedule,)

    @property
    def ok(self) -> bool:
        return all(outcome.ok for outcome in self.outcomes)

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with either kernel, one line each."""
        return tuple(fault for outcome in self.outcomes for fault in outcome.faults)

    @property
    def seconds(self) -> float:
        """Time both kernels took to execute."""
        return sum(outcome.seconds for outcome in self.outcomes)

    def as_json(self) -> dict[str, Any]:
        kernels = {"schedule": self.schedule, "twin": self.twin}
        return {
            "rung": self.rung.id,
            "workload": asdict(self.workload),
            "ok": self.ok,
            "identical": self.identical,
            "kernels": {name: outcome.as_json() for name, outcome in kernels.items() if outcome},
        }


def run(
    jobs: Sequence[tuple[Rung, Any]], arch: str, machine: Any, source: str | None = None, folder: str = ""
) -> Iterator[Verdict]:
    """Verify rungs on workloads, given in pairs; verdicts come in order, as they are ready.

    arch: "sm_80". source: CUDA text to run in place of what the schedule emits, without the twin. folder: where that finds what
    it includes by name.
    A rung that cannot be emitted or compiled yields a verdict that says so; errors of use (BadInput, MissingTool) are raised.
    """
    makers = [lower, load_twin] if source is None else [partial(load_source, source, folder=folder)]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        pending = []
        for rung, workload in jobs:
            own = makers if rung.twinned else makers[:1]
            pending.append((rung, workload, [start(pool, make, rung, workload, arch, machine) for make in own]))
        for rung, workload, outcomes in pending:
            yield judge_pair(rung, workload, [outcome.result() for outcome in outcomes])


def start(pool: ThreadPoolExecutor, make, rung: Rung, workload: Any, arch: str, machine: Any) -> "Future[Outcome]":
    """Make the kernels here (TVM is not for several threads), compile and execute them in the pool."""
    try:
        kernels = launches(make, rung, workload, arch)
    except TirSchedulesError as error:
        return pool.submit(failed, rung.id, error)
    return pool.submit(outcome_of, kernels, workload, machine)


def launches(make, rung: Rung, workload: Any, arch: str) -> list[Kernel]:
    """The kernel of each launch the workload takes: one for a GEMM, for a reduction one after another until one number is left.

    make: `lower`, `load_twin` or the like. A source given in place of a rung's own is for the first launch.
    """
    kernels = []
    while workload is not None:
        kernels.append(make(rung, workload, arch))
        workload = workload.rest(kernels[-1].grid)
        make = lower if isinstance(make, partial) else make
    return kernels


def failed(name: str, error: TirSchedulesError) -> Outcome:
    """The outcome of a kernel that could not be made. Errors of use concern the whole run and are raised."""
    if error.exit_code != 1:
        raise error
    return Outcome(name, (str(error),))


def outcome_of(kernels: Sequence[Kernel], workload: Any, machine: Any) -> Outcome:
    """Compile, execute with the inputs of each check, one launch after another with outputs poisoned beforehand, compare with the truth.

    A check that fails is the last; findings are those of the first check that has some.
    """
    kernel, wrong, findings, seconds, kept = kernels[-1], [], (), 0.0, []
    try:
        binaries = [compile_kernel(kernel) for kernel in kernels]
        for check in shared_checks(workload):
            executions, arguments = execute(machine, workload, binaries, check.arguments())
            findings = findings or tuple(finding for execution in executions for finding in execution.findings)
            seconds += sum(execution.seconds for execution in executions)
            kept.append({name: arguments[name] for name in workload.outputs})
            mismatch = check.mismatch(kept[-1])
            if mismatch:
                wrong.append(f"{kernel.label}: {mismatch}; {written_by(executions[-1], mismatch, kept[-1], kernel)}")
                break
    except TirSchedulesError as error:
        return failed(kernel.label, error)
    return Outcome(kernel.label, (*map(str, findings), *wrong), findings, seconds, tuple(kept))


def written_by(execution: Execution, mismatch, outputs, kernel: Kernel) -> str:
    """Which line stored the wrong element; where nothing did, which line stores others, or which kernel should."""
    location = execution.writer(mismatch.output, mismatch.flat_index(outputs[mismatch.output].shape))
    if location:
        return f"stored by {location}"
    others = execution.writers(mismatch.output)
    if others is None:
        return "--machine cpu names the line that stores it"
    if others:
        return f"nothing stored it, others are stored by {others[0]}"
    definition = kernel.source[: kernel.source.rindex(f"{kernel.entry}(")].count("\n") + 1
    return f"the kernel at {file_name(kernel)}:{definition} stores nothing to {mismatch.output}"


def judge_pair(rung: Rung, workload: Any, outcomes: list[Outcome]) -> Verdict:
    """Compare the outputs of a schedule with those of its twin, when both ran."""
    schedule, twin = outcomes[0], outcomes[1] if len(outcomes) > 1 else None
    if twin is None or not (schedule.outputs and twin.outputs):
        return Verdict(rung, workload, schedule, twin, None)
    pairs = list(zip(shared_checks(workload), schedule.outputs, twin.outputs))
    mismatches = (check.disagreement(ours, others) for check, ours, others in pairs)
    mismatch = next((found for found in mismatches if found), None)
    if mismatch:
        schedule = replace(schedule, faults=(*schedule.faults, f"{schedule.kernel}: {mismatch}"))
    identical = all(np.array_equal(ours[name], others[name]) for _, ours, others in pairs for name in workload.outputs)
    return Verdict(rung, workload, schedule, twin, identical)
