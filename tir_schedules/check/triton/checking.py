"""A Triton kernel checked on arrays of numpy: compiled, launched on the CPU machine, its outputs compared."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

from tir_schedules.check.api import Result, result_of
from tir_schedules.check.arguments import OUT, Argument, made, seed_of
from tir_schedules.check.binding import Bound
from tir_schedules.check.expecting import Expected
from tir_schedules.check.launches import Asked
from tir_schedules.check.session import (
    Checked,
    Prepared,
    Request,
    Step,
    Trial,
    check_work,
    perform,
    truths_of,
)
from tir_schedules.check.target import Parameter, Target
from tir_schedules.check.triton.compiling import Grid, Launch, compile_triton
from tir_schedules.check.triton.functions import innermost, kernel_of
from tir_schedules.check.types import CType
from tir_schedules.errors import BadInput, CheckFailed, nearest
from tir_schedules.machines.choice import CPU_ARCH, choose
from tir_schedules.model.findings import Finding
from tir_schedules.model.machine import Machine
from tir_schedules.source import Source
from tir_schedules.verdicts import Outcome

WITHIN = re.compile(r"(?:reads|writes) \S+\[\d+\], which is also accessed by warp")
"""In a message: an element of an array, and another access by the same block."""

OWN_MEMORY = "global_smem"
"""What Triton calls the shared memory that it lays out itself."""


def check_triton(
    kernel: Any,
    grid: Grid,
    *arguments: Any,
    expect: Mapping[str, str | np.ndarray] | None = None,
    outputs: Sequence[str] = (),
    tolerance: float | None = None,
    arch: str = CPU_ARCH,
    orders: int = 2,
    **named: Any,
) -> Result:
    """Launch a Triton kernel as `kernel[grid](*arguments, **named)` would, on arrays of numpy.

        result = check_triton(add, (4,), x, y, out, 1000, BLOCK=256, expect={"out": "x + y"})
        assert result.ok, result.faults

    kernel: a function under `@triton.jit`; of `@triton.autotune` the first configuration is taken. named:
    also num_warps, num_stages. Arrays are copied and not changed. expect: what arrays should be, as arrays or
    expressions of arguments, by the kernel's names. outputs: arrays whose content counts as unwritten.
    tolerance, orders: as of `tir_schedules.check.api.check`.

    What is wrong with the kernel is in the result, also that it does not compile, or has what the machine
    does not know; BadInput and MissingTool are raised.
    """
    function = innermost(kernel)
    given = by_name(function, arguments, named)
    unknown = next((name for name in outputs if not isinstance(given.get(name), np.ndarray)), None)
    if unknown is not None:
        raise BadInput(f"there is no array {unknown!r}{nearest(unknown, given)}")
    request = Request(
        Source(""), (), numbers(given),
        expect=tuple(Expected(name, value) for name, value in (expect or {}).items()), tolerance=tolerance,
    )  # fmt: skip
    try:
        launch = compile_triton(kernel, grid, given, arch=arch)
        done = judged(prepared(request, launch, outputs), choose("cpu", orders))
    except CheckFailed as error:
        done = Checked(function.__name__, Outcome(function.__name__, str(error)))
    return result_of(done)


def check_request(request: Request, machine: Machine) -> Checked:
    """The same of a command: `request.source` is a Python file. BadInput, MissingTool and CheckFailed as
    `prepare_triton` has them."""
    return judged(prepare_triton(request), machine)


def prepare_triton(request: Request) -> Prepared:
    """A request for a Python file, ready to run.

    BadInput for what Triton has no use for; CheckFailed when the kernel does not compile.
    """
    if len(request.launches) != 1 or request.usual:
        raise BadInput(
            "a Triton kernel is checked by --kernel, --grid, --arg and --expect, one launch at a time"
        )
    (asked,) = request.launches
    path = Path(request.source.folder, Path(request.source.file).name)
    kernel = kernel_of(path, asked.kernel)
    given = placed(innermost(kernel), request)
    arguments = {name: one.value if isinstance(one, Argument) else one for name, one in given.items()}
    launch = compile_triton(
        kernel, asked.grid, arguments, arch=request.options.arch, file=request.source.file
    )
    roles = {name: one.role for name, one in given.items() if isinstance(one, Argument)}
    return prepared(request, launch, [name for name in roles if roles[name] == OUT], roles)


def placed(function: Any, request: Request) -> dict[str, Any]:
    """Arguments by the names of parameters: constexprs and options, `--arg` by name and by place, numbers of
    `--let` by theirs."""
    found: dict[str, Any] = dict(request.triton)
    folder = Path(request.source.folder or ".")
    sizes = {**request.sizes, **numbers(request.triton)}
    free = [one for one in function.params if one.name not in found]
    names = {one.name for one in request.given}
    left = [
        one.name for one in free if one.name not in names and one.name not in sizes and not one.is_constexpr
    ]
    for one in request.given:
        if not one.name and not left:
            raise BadInput(f"--arg {one.text}: {function.__name__} has no parameter left for it")
        name = one.name or left.pop(0)
        found[name] = made(one, sizes, "", folder, seed_of(name, request.seed))
    return found | {one.name: sizes[one.name] for one in free if one.name not in found and one.name in sizes}


def by_name(function: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by the names of the function's parameters."""
    if len(arguments) > len(function.arg_names):
        raise BadInput(
            f"{function.__name__} takes {len(function.arg_names)} arguments"
            f" ({', '.join(function.arg_names)}), {len(arguments)} are given"
        )
    by_place = dict(zip(function.arg_names, arguments))
    twice = next((name for name in named if name in by_place), None)
    if twice:
        raise BadInput(f"{function.__name__}: {twice} is given by its place and by its name")
    return {**by_place, **named}


def numbers(given: Mapping[str, Any]) -> dict[str, int | float]:
    """Those of the arguments that expressions may name."""
    return {name: value for name, value in given.items() if isinstance(value, (int, float))}


def prepared(
    request: Request, launch: Launch, outputs: Sequence[str], roles: Mapping[str, str] | None = None
) -> Prepared:
    """A launch as the other checks have it. outputs: arrays whose content counts as unwritten. roles: of
    arrays, where they are said."""
    kernel = launch.binary.kernel
    target = Target(kernel.entry, kernel.label, ())
    check_work(target, Asked(kernel.label, kernel.grid, kernel.block))
    arrays = {name: value for name, value in launch.arguments.items() if isinstance(value, np.ndarray)}
    values = {name: value for name, value in launch.arguments.items() if name not in arrays}
    bounds = tuple(Bound(Parameter(name, CType("", name in arrays), 8), name) for name in kernel.params)
    trial = {
        name: Argument(array, OUT if name in outputs else (roles or {}).get(name, ""))
        for name, array in arrays.items()
    }
    names = {**request.sizes, **arrays, **numbers(launch.given)}
    label = kernel.label + (f" ({launch.choice})" if launch.choice else "")
    steps = (Step(target, launch.binary, bounds, values),)
    return Prepared(request, label, steps, (Trial(trial, truths_of(request, trial, names)),))


def judged(ready: Prepared, machine: Machine) -> Checked:
    """Run it, and leave out what Triton is the author of."""
    done = perform(ready, machine)
    outcome, arch = done.outcome, ready.steps[0].binary.kernel.arch
    settled = getattr(machine, "orders", 1) > 1 and not outcome.wrong
    return replace(
        done,
        outcome=replace(
            outcome,
            error=with_remedy(outcome.error, arch),
            findings=own_findings(outcome.findings, settled),
            notes=tuple(note for note in outcome.notes if not of_triton(note)),
        ),
    )


def with_remedy(error: str, arch: str) -> str:
    """What the machine does not know of a newer architecture Triton does without for an older one."""
    if arch == CPU_ARCH or "does not know" not in error:
        return error
    return f"{error}; Triton compiles it without that for --arch {CPU_ARCH}"


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
    in_one_program = WITHIN.search(finding.message)
    if finding.kind not in ("race", "lockstep") or finding.other is None or not in_one_program:
        return False
    here, there = finding.location.ptx_line, finding.other.ptx_line
    return here < there if finding.message.startswith("reads") else here > there


def of_triton(note: Finding) -> bool:
    """Whether a note is of the compiler's own making: lanes that hold one value store it all together."""
    return note.kind == "same_value" and OWN_MEMORY in note.message
