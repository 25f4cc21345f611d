"""`check`: a kernel of a CUDA or PTX file on numpy arrays, judged by the CPU machine.

from tir_schedules.check.api import check

result = check("saxpy.cu", grid=4, block=256, sizes={"n": 1000},
               arguments={"a": 2.0, "x": x, "y": y}, expect={"y": "a * x + y"})
assert result.ok, result.faults
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

from tir_schedules.check.arguments import OUT, Argument, Given
from tir_schedules.check.building import Compiling
from tir_schedules.check.expecting import expectation
from tir_schedules.check.expressions import Asked, dim3, parse_launch
from tir_schedules.check.preparing import Request
from tir_schedules.check.session import Checked, check_requests
from tir_schedules.check.usual import Usual
from tir_schedules.errors import BadInput
from tir_schedules.machines.choice import CPU_ARCH, choose
from tir_schedules.model.counters import Counters
from tir_schedules.model.findings import Finding
from tir_schedules.source import Source, read_source
from tir_schedules.verdicts import CELLS, LOOSE, PASS, UNJUDGED

Extent = int | Sequence[int]


@dataclass(frozen=True)
class Result:
    """What became of a kernel, or of several launched in order.

    verdict: "pass", "FAIL" (a value is wrong), "HAZARD" (a finding, though values came out right), "ERROR"
    (it did not compile, or CUDA would refuse the launch), "no hazard" (nothing says what is right, and
    nothing was found) or "loose" (rounding explains more than elements of the inputs change). faults:
    everything that is wrong, one text each, with file and line. findings: those of the machine. unshown:
    inputs that no run shows to matter, and why. outputs: arrays that were written, by name, as the kernels
    left them. counters: of each launch; wavefronts of shared memory, 32-byte sectors of global memory, see
    `Counters`. printed: by printf. seconds: that the machine took.
    """

    verdict: str
    faults: tuple[str, ...]
    findings: tuple[Finding, ...]
    outputs: Mapping[str, np.ndarray] = field(repr=False)
    counters: tuple[Counters | None, ...] = field(repr=False)
    printed: str = field(repr=False)
    seconds: float = 0.0
    unshown: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.verdict in (CELLS[PASS], CELLS[UNJUDGED], CELLS[LOOSE])


def check(
    file: str | Path,
    kernel: str = "",
    *,
    grid: Extent = 1,
    block: Extent = 1,
    shared: int = 0,
    launches: Sequence[str] = (),
    arguments: Mapping[str, Any] | Sequence[Any] = (),
    outputs: Sequence[str] = (),
    sizes: Mapping[str, int | float] | None = None,
    expect: Mapping[str, str | np.ndarray] | None = None,
    tolerance: float | None = None,
    usual: tuple[str, Sequence[int]] | None = None,
    arch: str = CPU_ARCH,
    orders: int = 2,
    defines: Sequence[str] = (),
    includes: Sequence[str | Path] = (),
    seed: int = 0,
    finite: bool = False,
) -> Result:
    """Compile a file, launch a kernel, and judge what it leaves.

    file: a path of CUDA or PTX, or the text itself. kernel: its name, `"sgemm<128, 8>"` of a template; left
    out where there is one. grid, block: (x, y, z), those left out are 1. shared: bytes of dynamic shared
    memory. launches: in place of these four, several in order, such as
    `"scan[cdiv(N, 256), 256](X, sums, N)"`. arguments: by the parameters' names: arrays of numpy of any shape
    (they are copied and not changed), numbers, None for a null pointer, or texts as `--arg` takes them, such
    as "f32[M,K]"; texts also in the parameters' order. outputs: names of arrays whose content counts as
    unwritten. sizes: names for those texts and for `launches`; a parameter of that name takes it.
    expect: what arrays should be, as arrays or expressions of arguments. tolerance: of each element, absolute
    and as a share of its value; None for what rounding explains. usual: ("sgemm", (M, N, K)), a ladder whose
    inputs and truth are taken. defines: "NAME=VALUE". orders: in which blocks and warps take turns.
    finite: leave out the runs with NaN, infinity, -0 and denormal numbers.

    Raises BadInput for what cannot be, such as an array of another format than its pointer's, MissingTool
    without a compiler; what is wrong with the kernel itself is in the result.
    """
    texts = isinstance(file, str) and "\n" in file
    source = Source(str(file), "kernel.cu", "") if texts else read_source(Path(file))
    sizes = dict(sizes or {})
    given, ready = sort_arguments(arguments, outputs)
    workload = Usual(usual[0], tuple(usual[1])) if usual else None
    if workload:
        sizes = {**workload.sizes, **sizes}
    asked = [parse_launch(text, sizes) for text in launches] or [
        Asked(kernel, extents(grid, "grid"), extents(block, "block"), shared)
    ]
    request = Request(
        source, tuple(asked), sizes, tuple(given), ready,
        tuple(expectation(name, value) for name, value in (expect or {}).items()), workload, tolerance,
        Compiling(arch, tuple(map(str, includes)), tuple(defines)), seed, finite,
    )  # fmt: skip
    (done,) = check_requests([request], choose("cpu", orders))
    return result_of(done)


def result_of(checked: Checked) -> Result:
    outcome = checked.outcome
    counters = tuple(execution.counters for execution in checked.executions)
    return Result(
        CELLS[outcome.word], outcome.faults, outcome.findings, checked.outputs, counters, outcome.printed,
        outcome.seconds, outcome.unshown,
    )  # fmt: skip


def extents(value: Extent, what: str) -> tuple[int, int, int]:
    values = [value] if isinstance(value, (int, np.integer)) else list(value)
    return dim3([int(one) for one in values], str(value), what)


def sort_arguments(
    arguments: Mapping[str, Any] | Sequence[Any], outputs: Sequence[str]
) -> tuple[list[Given], dict[str, Argument]]:
    """Arguments that are texts, and those that are made already. By place they are texts or arrays alike."""
    given, ready = [], {}
    pairs = arguments.items() if isinstance(arguments, Mapping) else [("", value) for value in arguments]
    for name, value in pairs:
        if isinstance(value, str):
            given.append(Given(name, value))
        elif not name:
            raise BadInput("arguments by their place are texts such as 'f32[N]'; give arrays by name")
        else:
            array = np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value
            ready[name] = Argument(array, OUT if name in outputs else "", name)
    return given, ready
