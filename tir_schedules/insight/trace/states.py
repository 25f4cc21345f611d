"""The states of a rung's schedule, one after each primitive: TIR, CUDA once it is a kernel, and metrics."""

from __future__ import annotations

import os
import re
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Callable, Iterable, Mapping, Sequence

import numpy as np

from tir_schedules.compiler.lower import declared_launch, emit, last_line, lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.source_text import kernel_part
from tir_schedules.emit import section_of, with_places
from tir_schedules.errors import CheckFailed, TirSchedulesError
from tir_schedules.files import Json
from tir_schedules.insight.metrics.counting import Metrics, occupancy_of
from tir_schedules.insight.metrics.formats import list_findings
from tir_schedules.insight.ring.timeline import Timeline, timeline, watch_units
from tir_schedules.insight.trace.recorder import Step, only_function, record, script
from tir_schedules.machines.execution import execute, written
from tir_schedules.model.findings import NOTES, Finding
from tir_schedules.model.gpus import find_sm
from tir_schedules.model.kernel import Binary, Kernel
from tir_schedules.model.launch import Dim3
from tir_schedules.model.rung import Rung
from tir_schedules.model.verify import shared_checks
from tir_schedules.model.workload import Workload, parameters_of
from tir_schedules.run import launches_around, launches_left
from tir_schedules.tir.tvm import import_tvm, nodes_in
from tir_schedules.workloads import element_type

if TYPE_CHECKING:
    from tvm import IRModule

WARP_BUDGET = 1 << 20
"""Most instructions of a warp. A warp of a finished rung executes some ten thousand; a state in which one
thread does the work of a whole block would take minutes."""

LOCAL_BYTES = 64 << 20
"""Most local memory of a block's threads with which a state is executed."""


@dataclass(frozen=True)
class Measured:
    """A state's kernel, compiled and executed.

    metrics: of its first launch; None where it was not executed, for the reason `unknown`. outside: buffers
    that are parameters as long as their copies are outside the bound loops; outputs are not checked then.
    buffers: these as it was given them.
    wrong: the worst element of a wrong output; empty when all are right.
    """

    binary: Binary
    metrics: Metrics | None = None
    outside: tuple[str, ...] = ()
    wrong: str = ""
    unknown: str = ""
    buffers: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    @property
    def right(self) -> bool | None:
        """Whether the outputs are right; None where that is not known."""
        return None if self.unknown or self.outside else not self.wrong

    def as_json(self) -> Json:
        told = {name: getattr(self, name) for name in ("right", "wrong", "outside", "unknown", "metrics")}
        return told | {"resources": self.binary.resources}


@dataclass(frozen=True)
class State:
    """The function after a step, or before the first one (step None).

    tir: TVMScript. cuda: the kernel in the source; empty where it cannot be lowered. same: number of the
    first state with that CUDA and launch. measured: None where it cannot be lowered or compiled; reason: why,
    in one line.
    """

    number: int
    step: Step | None
    tir: str
    cuda: str = ""
    same: int | None = None
    measured: Measured | None = None
    reason: str = ""

    @property
    def metrics(self) -> Metrics | None:
        return self.measured.metrics if self.measured else None

    @property
    def repeats(self) -> bool:
        """Whether an earlier state has the same CUDA and launch."""
        return self.same is not None and self.same != self.number


@dataclass(frozen=True)
class Trace:
    """A rung's schedule of a workload, state by state. refusal: why it is refused, or empty. ring: who waits
    for whom in the finished kernel, where it has mbarriers."""

    rung: Rung
    workload: Workload
    arch: str
    states: tuple[State, ...] = field(repr=False)
    refusal: str = ""
    ring: Timeline | None = field(default=None, repr=False)

    @property
    def first_kernel(self) -> int | None:
        """Number of the first state that lowers to a kernel."""
        return next((state.number for state in self.states if state.cuda), None)

    @property
    def right(self) -> bool:
        """Whether the finished schedule is accepted, its outputs are right, and the CPU machine finds no
        fault."""
        return not self.fault

    @property
    def fault(self) -> str:
        """Why it is not right, in one line that begins with the rung; empty where it is right."""
        last, why = self.states[-1], ""
        if self.refusal:
            return self.refusal
        measured = last.measured
        if measured is None:
            why = last.reason or "no kernel"
        elif measured.wrong or measured.unknown or measured.metrics is None:
            why = measured.wrong or measured.unknown or "not executed"
        elif measured.outside:
            why = f"code outside the kernel fills {', '.join(measured.outside)}; outputs are not judged"
        elif found := [each for each in measured.metrics.findings if each.kind not in NOTES]:
            why = list_findings(found)
        return f"{self.rung.id}: {why}" if why else ""

    def cuda_before(self, state: State) -> str:
        """The CUDA of the last earlier state that has any."""
        return next((earlier.cuda for earlier in reversed(self.states[: state.number]) if earlier.cuda), "")


def trace(
    rung: Rung, workload: Workload, arch: str, progress: Callable[[str], None] = lambda name: None
) -> Trace:
    """Record the rung's schedule and lower each state here (TVM is not for several threads), while a pool
    compiles and executes what is new.

    progress: called with a name for each finished state. BadInput for an architecture that the rung or the
    occupancy rules do not know.
    """
    rung = rung.fitted(workload)
    arch = rung.arch_for(arch)
    find_sm(arch)
    recording = record(rung, workload)
    modules = [recording.start, *(step.module for step in recording.steps)]
    following = cache(partial(rest_of, rung, workload, arch))
    before, after = launches_around(lower, rung, workload, arch)
    kernels: list[Kernel | str] = []
    first: dict[Kernel, int] = {}
    pending: dict[Kernel, Future[Measured]] = {}
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for number, module in enumerate(modules):
            kernel = kernel_of(module, rung, workload, arch)
            kernels.append(kernel)
            if isinstance(kernel, Kernel) and first.setdefault(kernel, number) == number:
                outside = buffers_outside(module, kernel)
                chain = [kernel, *([] if outside else (*following(kernel.results), *after))]
                pending[kernel] = pool.submit(measure, chain, workload, outside, before)
        states = []
        for number, (module, kernel) in enumerate(zip(modules, kernels)):
            step = recording.steps[number - 1] if number else None
            state = State(number, step, script(module))
            if isinstance(kernel, str):
                states.append(replace(state, reason=kernel))
            else:
                states.append(with_kernel(state, kernel, first[kernel], pending[kernel]))
            progress(step.primitive if step else "")
    return Trace(rung, workload, arch, tuple(states), recording.refusal, ring_of(states[-1], workload))


def ring_of(state: State, workload: Workload) -> Timeline | None:
    """Who waits for whom in block 0,0,0 of a state's kernel; None where it was not executed to its end, or
    has no mbarrier."""
    from tir_schedules.machines.cpu import CpuMachine

    measured = state.measured
    if not measured or not measured.metrics or measured.outside or "mbarrier" not in measured.binary.ptx:
        return None
    events = watch_units(measured.binary, workload, machine=CpuMachine(budget=WARP_BUDGET)).events
    found = timeline(events) if events else None
    return found if found and found.rows else None


def with_kernel(state: State, kernel: Kernel, same: int, pending: "Future[Measured]") -> State:
    state = replace(state, cuda=kernel_part(kernel.source, kernel.entry)[1], same=same)
    try:
        return replace(state, measured=pending.result())
    except CheckFailed as error:
        return replace(state, reason=short_reason(str(error)))


def kernel_of(module: "IRModule", rung: Rung, workload: Workload, arch: str) -> Kernel | str:
    """The kernel that a function becomes, or why it becomes none."""
    declared = declared_launch(rung, workload)
    told = {"parts": declared.parts, "workspaces": declared.workspaces} if declared else {}
    tvm = import_tvm()
    try:
        emitted = emit(tvm.s_tir.Schedule(module), rung.entry, arch)
        kernel = Kernel(
            f"{rung.id} (tir)", emitted.source, rung.entry, emitted.params, arch=arch,
            **vars(emitted.launch) | told,
        )  # fmt: skip
        known = {*parameters_of(workload, kernel.results), *(tensor.name for tensor in kernel.maps)}
        if not known.issuperset(kernel.params):
            return kernel
        return with_places([section_of(kernel, workload, *rung.others(workload))])[0]
    except TirSchedulesError as error:
        return short_reason(str(error))
    except Exception as error:  # TVM turns its errors into Python's, of many classes
        return short_reason(last_line(error))


def rest_of(rung: Rung, workload: Workload, arch: str, results: Dim3) -> list[Kernel]:
    """The finished rung's launches after the first, where the workload takes several. results: of the
    first."""
    return launches_left(lower, rung.then, workload.rest(results), arch)


def buffers_outside(module: "IRModule", kernel: Kernel) -> dict[str, np.ndarray]:
    """Zeros for the buffers that the kernel takes besides the function's own parameters."""
    blocks = nodes_in(only_function(module).body, import_tvm().s_tir.SBlock)
    found = {
        buffer.name: np.zeros([int(extent) for extent in buffer.shape], element_type(str(buffer.dtype)))
        for block in blocks
        for buffer in block.alloc_buffers
        if buffer.name in kernel.params
    }
    return {name: found[name] for name in kernel.params if name in found}


def measure(
    kernels: Sequence[Kernel],
    workload: Workload,
    outside: dict[str, np.ndarray],
    before: Sequence[Kernel] = (),
) -> Measured:
    """Compile and execute all launches: metrics of the first, outputs of the last. before: launches before
    those."""
    from tir_schedules.machines.cpu import CpuMachine, UnsupportedInstruction

    binaries = [compile_kernel(kernel) for kernel in kernels]
    kernel, resources = kernels[0], binaries[0].resources
    measured = Measured(binaries[0], outside=tuple(outside), buffers=outside)
    if resources.stack * kernel.threads > LOCAL_BYTES:
        unknown = f"not executed: each thread has {resources.stack:,} bytes of local memory"
        return replace(measured, unknown=unknown)
    machine, executions, check = CpuMachine(budget=WARP_BUDGET), [], shared_checks(workload)[0]
    arguments = check.arguments()
    done = execute(machine, workload, [compile_kernel(each) for each in before], arguments)
    arguments = done[-1][1] if done else arguments
    writable = written(workload, [*before, *kernels])[len(before) :]
    for binary, names in zip(binaries, writable):
        arguments = binary.kernel.prepared(workload, arguments)
        given = {*arguments, *outside, *(each.name for each in binary.kernel.maps)}
        if loops := [name for name in binary.kernel.params if name not in given]:
            unknown = f"not executed: the host launches it once for each {', '.join(loops)}"
            return replace(measured, unknown=unknown)
        try:
            outputs = [*names, *outside]
            executions.append(machine.run(binary, {**arguments, **outside}, outputs, count=True))
        except UnsupportedInstruction as error:
            unknown = f"not executed: {str(error).removeprefix(f'{binary.kernel.label}: ')}"
            return replace(measured, unknown=unknown)
        if any(finding.kind == "endless_loop" for finding in executions[-1].findings):
            unknown = f"not executed to its end: a warp takes more than {WARP_BUDGET:,} instructions"
            return replace(measured, unknown=unknown)
    held = occupancy_of(binaries[0])
    mismatch = None if outside else check.mismatch(arguments)
    seen = (*executions[0].findings, *executions[0].notes)
    findings = tuple(finding for finding in seen if not is_of_outside(finding, outside))
    counters = executions[0].counters
    assert counters is not None, "it was told to count"
    metrics = Metrics(binaries[0], held, counters, findings)
    return replace(measured, metrics=metrics, wrong=str(mismatch or ""))


def is_of_outside(finding: Finding, outside: Iterable[str]) -> bool:
    """Whether it only says that a buffer is uninitialized which code outside the kernel fills."""
    return finding.kind == "uninitialized" and any(f" {name}[" in finding.message for name in outside)


REASONS = (
    (
        r"must end in one CUDA kernel",
        "no kernel yet: loops are not bound to the blocks and threads of the GPU",
    ),
    (
        r"Cannot insert syncs inside condition",
        "a guard is around a barrier: the loop that it guards is not bound to threads yet",
    ),
    (
        r"Cannot find shape of the wmma fragment (\S+)",
        r"{0} is a tensor-core fragment, but not every use of it is tensorized yet",
    ),
    (
        r"TransformMmaBufferLayout requires",
        "there are tensor-core fragments, but not every use of them is tensorized yet",
    ),
    (
        r'no operator ".*" matches these operands|no suitable conversion function from "nvcuda::wmma',
        "tensor-core fragments are used as numbers: not every use of them is tensorized yet",
    ),
    (
        r"LowerWarpMemory failed",
        "the sums of a warpgroup are not yet laid out over its threads as wgmma has them",
    ),
    (
        r"'\w+' object has no attribute",
        "a pass that gives warps their roles, or lets blocks take turns, needs the finished loops",
    ),
    (
        r'identifier "tir_schedules" is undefined',
        "it calls a function that is declared only once everything is tensorized",
    ),
    (
        r"Order of the software pipeline is not defined",
        "the pipeline has its stages, but not yet the order of its statements",
    ),
    (
        r"Cannot allocate global memory",
        "a buffer between two blocks is in global memory, which a kernel cannot allocate",
    ),
    (
        r"Memory verification failed",
        "some code would run on the host, which cannot access the GPU's memory",
    ),
    (
        r"uses too much shared data \((0x[0-9a-f]+) bytes, (0x[0-9a-f]+) max\)",
        "a block would need {0:,} bytes of static shared memory; {1:,} is the limit",
    ),
    (r"uses too much .*?local.*? data", "a thread would need more local memory than there is"),
    (
        r": (\d+) bytes of shared memory per block; (sm_\w+) has (\d+)",
        "a block would need {0:,} bytes of shared memory; {1} has {2:,}",
    ),
    (r": (\d+) threads per block; CUDA allows (\d+)", "a block would have {0:,} threads; {1:,} is the limit"),
)
"""What TVM, nvcc or ptxas say -> what it means here, with the groups of the pattern."""


def short_reason(message: str) -> str:
    """Why a state has no kernel, in one line."""
    for pattern, meaning in REASONS:
        if match := re.search(pattern, message):
            return meaning.format(*map(number_or_text, match.groups()))
    line = next((line for line in message.splitlines() if "rror" in line), message).strip()
    return re.sub(r"^Check failed: \(.*?\)( is false)?: ", "", line)[:240]


def number_or_text(group: str) -> int | str:
    return int(group, 0) if re.fullmatch(r"\d+|0x[0-9a-f]+", group) else group
