"""A Triton kernel checked on arrays of numpy: launched on a machine, its outputs compared."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping, Sequence

import numpy as np

from tir_schedules.check.triton.compiling import Grid, Launch, compile_triton
from tir_schedules.check.triton.functions import innermost
from tir_schedules.errors import BadInput, TirSchedulesError, nearest
from tir_schedules.machines.choice import CPU_ARCH
from tir_schedules.machines.cpu import CpuMachine, UnsupportedInstruction
from tir_schedules.model.counters import Counters
from tir_schedules.model.execution import Execution
from tir_schedules.model.findings import Finding
from tir_schedules.model.machine import Machine
from tir_schedules.model.verify import compare
from tir_schedules.run import written_by
from tir_schedules.verdicts import Outcome, WrongValue

ULPS = 8
"""Units of the largest value by which an output may differ, where no tolerance is given."""

WITHIN = re.compile(r"(?:reads|writes) \S+\[\d+\], which is also accessed by warp")
"""In a message: an element of an array, and another access by the same block."""

OWN_MEMORY = "global_smem"
"""What Triton calls the shared memory that it lays out itself."""


@dataclass(frozen=True)
class Checked:
    """What became of a launch. counters: None where they were not asked for. launch: what was compiled and
    launched; None where that failed."""

    outcome: Outcome
    counters: Counters | None = field(default=None, repr=False)
    launch: Launch | None = field(default=None, repr=False)

    @property
    def ok(self) -> bool:
        return self.outcome.ok

    @property
    def faults(self) -> tuple[str, ...]:
        """Everything that is wrong, one text each."""
        return self.outcome.faults

    def __str__(self) -> str:
        choice = f"; {self.launch.choice}" if self.launch and self.launch.choice else ""
        return "\n".join([f"{self.outcome.kernel}: {self.outcome.word}{choice}", *self.faults])


def check_triton(
    kernel: Any,
    grid: Grid,
    *arguments: Any,
    expect: Mapping[str, np.ndarray] | None = None,
    inout: Iterable[str] | None = None,
    tolerance: float | None = None,
    arch: str = CPU_ARCH,
    orders: int = 2,
    count: bool = False,
    machine: Machine | None = None,
    **named: Any,
) -> Checked:
    """Launch a Triton kernel as `kernel[grid](*arguments, **named)` would, on arrays of numpy.

        checked = check_triton(add, (4,), x, y, out, 1000, BLOCK=256, expect={"out": x + y})
        assert checked.ok, checked

    expect: what arrays hold afterwards, by the kernel's names. They are its outputs, and without `inout` it
    may not rely on what is in them. inout: arrays that it both reads and writes. Where neither is given every
    array may be written, and only hazards are found. tolerance: the most by which a value may differ; by
    default 8 units in the last place of the largest. orders: of blocks and warps. machine: by default the CPU
    machine.

    As a launch does, it writes into the arrays. A kernel that does not compile, or has what the machine does
    not know, gives an outcome that says so; BadInput and MissingTool are raised.
    """
    function = innermost(kernel)
    given = by_name(function, arguments, named)
    label = function.__name__
    try:
        launch = compile_triton(kernel, grid, given, arch=arch)
        outputs, kept = roles(launch, expect, inout)
        for name in set(outputs) - set(kept):
            poison(launch.given[name])
        execution = execute(machine or CpuMachine(orders=orders), launch, outputs, kept, count)
        wrong = mismatches(launch, execution, expect or {}, tolerance)
    except TirSchedulesError as error:
        if error.exit_code != 1:
            raise
        return Checked(Outcome(label, str(error)))
    found = own_findings(execution.findings, settled=orders > 1 and not wrong)
    notes = tuple(note for note in execution.notes if not of_triton(note))
    left = {name: launch.given[name].copy() for name in outputs}
    outcome = Outcome(label, "", wrong, found, execution.seconds, (left,), execution.printed, notes)
    return Checked(outcome, execution.counters, launch)


def by_name(function: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by the names of the function's parameters."""
    if len(arguments) > len(function.arg_names):
        raise BadInput(
            f"{function.__name__} takes {len(function.arg_names)} arguments"
            f" ({', '.join(function.arg_names)}), {len(arguments)} are given"
        )
    placed = dict(zip(function.arg_names, arguments))
    twice = next((name for name in named if name in placed), None)
    if twice:
        raise BadInput(f"{function.__name__}: {twice} is given by its place and by its name")
    return {**placed, **named}


def roles(
    launch: Launch, expect: Mapping[str, np.ndarray] | None, inout: Iterable[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which arrays the kernel may write, and which of them it may read before."""
    kept = tuple(inout or ())
    for name in (*kept, *(expect or {})):
        if name not in launch.arrays:
            known = ", ".join(launch.arrays) or "none"
            raise BadInput(f"there is no array {name!r}{nearest(name, launch.arrays)}; arrays are {known}")
    for name, array in (expect or {}).items():
        if np.shape(array) != launch.given[name].shape:
            raise BadInput(
                f"{name} has shape {launch.given[name].shape}, and {np.shape(array)} is expected of it"
            )
    if expect is None and inout is None:
        return launch.arrays, launch.arrays
    return tuple(dict.fromkeys((*(expect or {}), *kept))), kept


def poison(array: np.ndarray) -> None:
    """Fill an output with what a kernel must not rely on."""
    array.view(np.uint8)[...] = 0xFF


def execute(
    machine: Machine, launch: Launch, outputs: Sequence[str], kept: Sequence[str], count: bool
) -> Execution:
    """Launch what was compiled; Triton's own memory may be read and written, too."""
    written = (*outputs, *launch.scratch)
    try:
        if isinstance(machine, CpuMachine):
            given = (*kept, *launch.scratch)
            return machine.run(launch.binary, launch.arguments, written, count=count, given=given)
        return machine.run(launch.binary, launch.arguments, written, count=count)
    except UnsupportedInstruction as error:
        raise UnsupportedInstruction(with_remedy(str(error), launch.binary.kernel.arch)) from None


def with_remedy(refusal: str, arch: str) -> str:
    """What the machine does not know of a newer architecture Triton does without for an older one."""
    if arch == CPU_ARCH:
        return refusal
    return f"{refusal}; Triton compiles it without that for --arch {CPU_ARCH}"


def mismatches(
    launch: Launch, execution: Execution, expect: Mapping[str, np.ndarray], tolerance: float | None
) -> tuple[WrongValue, ...]:
    """Outputs that are not what they should be."""
    found = []
    for name, array in expect.items():
        got, expected = launch.given[name], np.asarray(array)
        allowed = tolerance_of(got.dtype, expected) if tolerance is None else tolerance
        mismatch = compare(name, got, expected, allowed, "should be")
        if mismatch:
            kernel, index = launch.binary.kernel, mismatch.flat_index(got.shape)
            found.append(WrongValue(kernel.label, mismatch, *written_by(execution, name, index, kernel)))
    return tuple(found)


def tolerance_of(dtype: np.dtype, expected: np.ndarray) -> float:
    """ULPS units of the largest value; nothing of integers."""
    if dtype.kind in "iub" or not expected.size:
        return 0.0
    unit = float(np.finfo(dtype).eps) if dtype.kind == "f" else 2.0**-7
    return ULPS * unit * float(np.max(np.abs(expected.astype(np.float64))))


def own_findings(findings: Sequence[Finding], settled: bool) -> tuple[Finding, ...]:
    """Findings without those that the kernel's author is not to blame for. settled: whether several orders of
    warps were executed, with all values right.

    Where a tensor has fewer elements than a program has threads, several of them load an element, and one
    stores it: an update in place looks like a race. Whether what the others loaded matters shows in the
    values: one order has them load before the store, the reverse order after it.
    """
    settled = settled and all(finding.kind != "order_dependent" for finding in findings)
    return tuple(finding for finding in findings if not (settled and replicated_load(finding)))


def replicated_load(finding: Finding) -> bool:
    """Whether it is between a load and a store behind it, of one program, in global memory."""
    if (
        finding.kind not in ("race", "lockstep")
        or finding.other is None
        or WITHIN.search(finding.message) is None
    ):
        return False
    here, there = finding.location.ptx_line, finding.other.ptx_line
    return here < there if finding.message.startswith("reads") else here > there


def of_triton(note: Finding) -> bool:
    """Whether a note is of the compiler's own making: lanes that hold one value store it all together."""
    return note.kind == "same_value" and OWN_MEMORY in note.message
