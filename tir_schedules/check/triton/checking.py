"""A Triton kernel checked on arrays of numpy: compiled, launched on the CPU machine, its outputs compared."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

from tir_schedules.check.arguments import Argument, make_argument, seed_of
from tir_schedules.check.expressions import Asked
from tir_schedules.check.preparing import (
    Bound,
    Prepared,
    Request,
    Step,
    all_trials,
    check_launch,
    question_of,
)
from tir_schedules.check.target import Parameter, Target, arithmetic_of
from tir_schedules.check.triton.compiling import Launch, compile_triton, first_configuration
from tir_schedules.check.triton.functions import executed, innermost, kernel_of
from tir_schedules.check.triton.library import the_triton
from tir_schedules.check.types import CType
from tir_schedules.errors import BadInput
from tir_schedules.machines.choice import CPU_ARCH
from tir_schedules.model.findings import Finding
from tir_schedules.model.machine import Machine
from tir_schedules.source import Source
from tir_schedules.verdicts import Outcome

WITHIN = re.compile(r"(?:reads|writes) \S+\[\d+\], which is also accessed by warp")
"""In a message: an element of an array, and another access by the same block."""

OWN_MEMORY = "global_smem"
"""What Triton calls the shared memory that it lays out itself."""


def prepare_triton(request: Request) -> Prepared:
    """A request for a Python file, ready to run.

    BadInput for what Triton has no use for; CheckFailed when the kernel does not compile.
    """
    if len(request.launches) != 1 or request.usual:
        raise BadInput(
            "a Triton kernel is checked by --kernel, --grid, --arg and --expect, one launch at a time"
        )
    (asked,) = request.launches
    kernel = kernel_of(path_of(request.source), asked.kernel)
    given = place_arguments(innermost(kernel), request)
    arguments = {name: one.value if isinstance(one, Argument) else one for name, one in given.items()}
    launch = compile_triton(
        kernel, asked.grid, arguments, arch=request.options.arch, file=request.source.file
    )
    made = {name: one for name, one in given.items() if isinstance(one, Argument)}
    prepared = prepare_launch(request, launch, made)
    note = executed(path_of(request.source)).note
    return replace(prepared, adjust=partial(add_note, note, prepared.adjust)) if note else prepared


def add_note(note: str, adjust: Any, outcome: Outcome, machine: Machine) -> Outcome:
    """An outcome with a note of what was left out of the file."""
    outcome = adjust(outcome, machine)
    return replace(outcome, unshown=(*outcome.unshown, note))


def configuration(source: Source, kernel: str) -> dict[str, Any]:
    """What the first configuration of `@triton.autotune` sets, and constexprs that the kernel's signature
    gives a value and no `@triton.heuristics` another."""
    found, ruled, constant = kernel_of(path_of(source), kernel), set[str](), the_triton().language.constexpr
    function, first = innermost(found), first_configuration(found)
    while found is not function:
        ruled |= set(getattr(found, "values", ()))
        found = found.fn
    defaults = {
        one.name: one.default.value if isinstance(one.default, constant) else one.default
        for one in function.params
        if one.is_constexpr and one.has_default and one.name not in ruled
    }
    return {**defaults, **first}


def path_of(source: Source) -> Path:
    """The path of a file as the user named it, if that leads to the file."""
    path = Path(source.file)
    return path if path.is_file() else Path(source.folder, path.name)


def place_arguments(function: Any, request: Request) -> dict[str, Any]:
    """Arguments by the names of parameters: constexprs and options, `--arg` by name and by place, numbers of
    `--let` by theirs."""
    found: dict[str, Any] = {**request.triton, **request.arguments}
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
        found[name] = make_argument(one, sizes, "", folder, seed_of(name, request.seed))
    return found | {one.name: sizes[one.name] for one in free if one.name not in found and one.name in sizes}


def numbers(given: Mapping[str, Any]) -> dict[str, int | float]:
    """The arguments that expressions may name."""
    return {name: value for name, value in given.items() if isinstance(value, (int, float))}


def prepare_launch(request: Request, launch: Launch, made: Mapping[str, Argument]) -> Prepared:
    """A launch as the other checks have it. made: what is known of its arrays."""
    kernel = launch.binary.kernel
    target = Target(kernel.entry, kernel.label, ())
    check_launch(kernel.label, Asked(kernel.label, kernel.grid, kernel.block))
    arrays = {name: value for name, value in launch.arguments.items() if isinstance(value, np.ndarray)}
    values = {name: value for name, value in launch.arguments.items() if name not in arrays}
    bounds = tuple(Bound(Parameter(name, CType("", name in arrays), 8), name) for name in kernel.params)
    given = {name: replace(made.get(name, Argument(None)), value=array) for name, array in arrays.items()}
    others = {name: Argument(value) for name, value in numbers(launch.given).items()}
    label = kernel.label + (f" ({launch.choice})" if launch.choice else "")
    steps = (Step(target, launch.binary, bounds, values),)
    trials = all_trials(question_of(request, others, {}, arithmetic_of([launch.binary.ptx])), given)
    return Prepared(request, label, steps, trials, partial(without_compilers, kernel.arch))


def without_compilers(arch: str, outcome: Outcome, machine: Machine) -> Outcome:
    """What became of it without what Triton is the author of."""
    settled = getattr(machine, "orders", 1) > 1 and not outcome.wrong
    return replace(
        outcome,
        error=add_remedy(outcome.error, arch),
        findings=own_findings(outcome.findings, settled),
        notes=tuple(note for note in outcome.notes if not is_of_compiler(note)),
    )


def add_remedy(error: str, arch: str) -> str:
    """What the machine does not know of a newer architecture Triton does without for an older one."""
    if arch == CPU_ARCH or "does not know" not in error:
        return error
    return f"{error}; Triton compiles it without that for --arch {CPU_ARCH}"


def own_findings(findings: Sequence[Finding], settled: bool) -> tuple[Finding, ...]:
    """Findings without those that the kernel's author is not to blame for. settled: whether several orders of
    warps were executed, with all values right.

    Where a tensor has fewer elements than a program has threads, several of them load an element, and one
    stores it: an update in place looks like a race. Whether what the others loaded matters shows in the
    values: one order has them load before the store, the reverse order after it. Lanes that add up one sum,
    each with its own rounding, store it together in memory that Triton lays out.
    """
    settled = settled and all(finding.kind != "order_dependent" for finding in findings)
    return tuple(
        finding
        for finding in findings
        if not (replicated_store(finding) or (settled and replicated_load(finding)))
    )


def replicated_load(finding: Finding) -> bool:
    """Whether it is between a load and a store behind it, of one program, in global memory."""
    in_one_program = WITHIN.search(finding.message)
    if finding.kind not in ("race", "lockstep") or finding.other is None or not in_one_program:
        return False
    here, there = finding.location.ptx_line, finding.other.ptx_line
    return here < there if finding.message.startswith("reads") else here > there


def replicated_store(finding: Finding) -> bool:
    """Whether it is between lanes that execute one store to Triton's own memory."""
    together = finding.other is not None and finding.location.ptx_line == finding.other.ptx_line
    writes = finding.message.startswith(f"writes {OWN_MEMORY} ")
    return finding.kind in ("race", "lockstep") and together and writes


def is_of_compiler(note: Finding) -> bool:
    """Whether a note is of the compiler's own making: lanes that hold one value store it all together."""
    return note.kind == "same_value" and OWN_MEMORY in note.message
