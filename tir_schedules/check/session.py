"""A check: a file's kernels, launched one after another on what is asked for, and judged.

`prepare` leads from a request to kernels ready to run with their arguments, which `inspect` and the like take
as well; `perform` runs and judges them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

from tir_schedules.check.arguments import IN, OUT, Argument, Given, made, seed_of
from tir_schedules.check.binding import Bound, bound, checked, named_in, variable_in, with_variable
from tir_schedules.check.building import Built, Options, build
from tir_schedules.check.expecting import Expected, Truth, truth_of
from tir_schedules.check.launches import Asked
from tir_schedules.check.target import Target, alone
from tir_schedules.check.usual import Usual, usual_trials
from tir_schedules.errors import BadInput, CheckFailed, nearest
from tir_schedules.machines.cpu.ptx import UnsupportedInstruction
from tir_schedules.model.execution import Execution
from tir_schedules.model.kernel import Binary, Kernel
from tir_schedules.model.launch import check_grid
from tir_schedules.model.machine import Machine
from tir_schedules.run import written_by
from tir_schedules.source import Source
from tir_schedules.verdicts import Outcome, WrongValue

MOST_THREADS = 1 << 28
"""Of a launch: some minutes of the CPU machine."""


@dataclass(frozen=True)
class Request:
    """What is checked. launches: in order. arguments: as they are written, or made already, by name. expect:
    what outputs should be; usual: or a workload of the ladders that says so. tolerance: see `truth_of`."""

    source: Source
    launches: tuple[Asked, ...]
    sizes: Mapping[str, int | float] = field(default_factory=dict)
    given: tuple[Given, ...] = ()
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    expect: tuple[Expected, ...] = ()
    usual: Usual | None = None
    tolerance: float | None = None
    options: Options = Options()
    seed: int = 0


@dataclass(frozen=True)
class Step:
    """One launch, ready to run. values: what each of the kernel's parameters is given, by the names in
    `binary.kernel.params`, but for arrays, which are in the trial."""

    target: Target
    binary: Binary
    bounds: tuple[Bound, ...]
    values: Mapping[str, Any]

    def stored_to(self) -> list[str]:
        """Names of arrays that the kernel may write, as far as its parameters tell."""
        return [
            name
            for one, name in zip(self.bounds, self.binary.kernel.params)
            if name not in self.values and not one.parameter.type.const
        ]


@dataclass(frozen=True)
class Trial:
    """Inputs, and what outputs should be. arguments: arrays by name."""

    arguments: Mapping[str, Argument]
    truths: Mapping[str, Truth]
    kind: str = ""


@dataclass(frozen=True)
class Prepared:
    """A request ready to run."""

    request: Request
    label: str
    steps: tuple[Step, ...]
    trials: tuple[Trial, ...]


@dataclass(frozen=True)
class Checked:
    """What became of a request. outcome: verdict, findings, wrong values, what was printed. outputs: arrays
    that were written, by name, as the last launch left them. executions: of each launch with the first
    inputs, with its counters. unsupported: whether it has what the machine does not know, which its error
    names."""

    label: str
    outcome: Outcome
    outputs: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)
    executions: tuple[Execution, ...] = field(default=(), repr=False)
    steps: tuple[Step, ...] = field(default=(), repr=False)
    unsupported: bool = False


def failed(label: str, error: CheckFailed, steps: tuple[Step, ...] = ()) -> Checked:
    """What could not be run."""
    return Checked(label, Outcome(label, str(error)), steps=steps, unsupported=isinstance(error, UnsupportedInstruction))


def prepare(request: Request, built: Built | None = None) -> Prepared:
    """Kernels compiled and their arguments made. built: the file, where it has been compiled already.

    BadInput for what is asked for and cannot be; CheckFailed where the file does not compile or CUDA would
    refuse a launch.
    """
    built = built or build(request.source, [asked.kernel for asked in request.launches], request.options)
    chosen = [built.target(asked.kernel) for asked in request.launches]
    label = ", ".join(dict.fromkeys(target.shown for target in chosen))
    if request.usual:
        if len(chosen) != 1:
            raise BadInput(f"--as is for one launch; {len(chosen)} are given: say what is right by --expect")
        arguments, trials = usual_trials(request.usual, chosen[0], request.launches[0], request.given, request.sizes)
        bounds = [[Bound(parameter, parameter.name) for parameter in chosen[0].parameters]]
        found = {**arguments, **trials[0][1]}
    else:
        bounds, found = all_bound(request, built, chosen)
    variables = {name: found.pop(name) for name in [*found] if not used(name, bounds) and variable(built, name)}
    check_unused(request, built, found, bounds, chosen)
    numbers: dict[str, Any] = {}
    steps = tuple(
        step(built, target, asked, one, found, variables, numbers)
        for target, asked, one in zip(chosen, request.launches, bounds)
    )
    arrays = {name: argument for name, argument in found.items() if argument.array is not None}
    if request.usual:
        made_trials = tuple(
            Trial({**arrays, **{k: v for k, v in own.items() if v.array is not None}}, truths, kind)
            for kind, own, truths in trials  # type: ignore[possibly-undefined]
        )
        return Prepared(request, label, steps, made_trials)
    names = {**request.sizes, **{name: argument.value for name, argument in (found | variables).items()}}
    truths = {}
    for one in request.expect:
        if one.output not in arrays:
            raise BadInput(f"{one.what}: there is no array {one.output!r}{nearest(one.output, arrays)}")
        output = arrays[one.output].value
        truths[f"{one.output}[{one.where}]"] = truth_of(one, output, names, request.tolerance)
    return Prepared(request, label, steps, (Trial(arrays, truths),))


def all_bound(
    request: Request, built: Built, chosen: Sequence[Target]
) -> tuple[list[list[Bound]], dict[str, Argument]]:
    """Parameters and arguments of every launch. Arrays whose format is left out have that of the first
    pointer that takes them."""
    known = {one.name for one in request.given if one.name} | set(request.arguments)
    given = [*request.given, *(Given(name, "") for name in request.arguments)]
    own = [one for one in given if not (one.name and one.name in request.sizes)]
    bounds = []
    for target, asked in zip(chosen, request.launches):
        if asked.arguments is None:
            bounds.append(bound(target, own, request.sizes))
        else:
            bounds.append(named_in(target, asked.arguments, known, scalars(request)))
    formats: dict[str, str] = {}
    for one in (each for many in bounds for each in many):
        if one.name and one.parameter.type.pointer is not False:
            formats.setdefault(one.name, one.parameter.type.format)
    found = dict(request.arguments)
    folder = Path(request.source.folder or ".")
    for at, one in enumerate(request.given):
        name = one.name or f"#{at}"
        seed = seed_of(name, request.seed)
        found[name] = made(one, {**request.sizes}, formats.get(name, ""), folder, seed)
    return renamed(bounds, found)


def scalars(request: Request) -> dict[str, Any]:
    """Sizes, and the numbers among arguments that are made already."""
    values = {name: one.value for name, one in request.arguments.items() if one.array is None and one.value is not None}
    return {**request.sizes, **values}


def renamed(
    bounds: list[list[Bound]], found: dict[str, Argument]
) -> tuple[list[list[Bound]], dict[str, Argument]]:
    """Arguments that go by their place get the names of the parameters they go to."""
    names = {one.name: one.parameter.name for many in bounds for one in many if one.name.startswith("#")}
    renamed = [[replace(one, name=names.get(one.name, one.name)) for one in many] for many in bounds]
    return renamed, {names.get(name, name): argument for name, argument in found.items()}


def used(name: str, bounds: Sequence[Sequence[Bound]]) -> bool:
    return any(one.name == name for many in bounds for one in many)


def variable(built: Built, name: str) -> bool:
    return variable_in(built.made.ptx, name) is not None


def check_unused(
    request: Request, built: Built, found: Mapping[str, Argument], bounds: Sequence[Sequence[Bound]],
    chosen: Sequence[Target],
) -> None:  # fmt: skip
    """BadInput for an argument that nothing takes."""
    spoken = " ".join(str(one.value) for one in request.expect if isinstance(one.value, str))
    for name in found:
        if not used(name, bounds) and name not in spoken:
            signatures = "; ".join(dict.fromkeys(target.signature for target in chosen))
            raise BadInput(f"nothing takes the argument {name!r}: {signatures}")


def step(
    built: Built, target: Target, asked: Asked, bounds: Sequence[Bound], found: Mapping[str, Argument],
    variables: Mapping[str, Argument], numbers: dict[str, Any],
) -> Step:  # fmt: skip
    """A launch with its kernel compiled and its numbers in their formats."""
    params, values = [], {}
    for at, one in enumerate(bounds):
        argument = found[one.name] if one.name else Argument(one.value)
        value = checked(one.parameter, argument, target)
        if isinstance(value, np.ndarray):
            params.append(one.name)
        else:
            params.append(f"{one.parameter.name}@{at}")
            values[params[-1]] = value
    check_grid(target.shown, asked.grid)
    check_work(target, asked)
    kernel = replace(
        built.kernel, label=target.shown, entry=target.symbol, params=tuple(params), grid=asked.grid,
        block=asked.block, dynamic_shared=asked.shared,
    )  # fmt: skip
    ptx = alone(built.made.ptx, target.symbol)
    for name, argument in variables.items():
        if argument.array is None:
            raise BadInput(f"--arg {name}= is for a variable of the file: give an array, such as f32[1]:{argument.text}")
        ptx = with_variable(ptx, name, argument.array)
    return Step(target, built.binary(target, kernel, ptx), tuple(bounds), values)


def check_work(target: Target, asked: Asked) -> None:
    blocks, threads = int(np.prod(asked.grid)), int(np.prod(asked.block))
    if blocks * threads > MOST_THREADS:
        raise BadInput(
            f"{target.shown}: a grid of {blocks} blocks of {threads} threads is too large; {MOST_THREADS}"
            " threads are the most that are executed: take smaller sizes"
        )


def perform(prepared: Prepared, machine: Machine) -> Checked:
    """Run every launch with each trial's inputs, and compare what they leave. A trial that fails is the
    last; findings are those of the first that has some."""
    label, seconds, printed = prepared.label, 0.0, ""
    findings, notes, wrong = (), (), ()
    executions: tuple[Execution, ...] = ()
    outputs: dict[str, np.ndarray] = {}
    for trial in prepared.trials:
        counted = not executions and machine.name == "cpu"
        try:
            done, arrays, written = launched(prepared.steps, trial, machine, counted)
        except CheckFailed as error:
            return failed(label, error, prepared.steps)
        findings = findings or tuple(finding for one in done for finding in one.findings)
        notes = notes or tuple(note for one in done for note in one.notes)
        printed = printed or "".join(one.printed for one in done)
        seconds += sum(one.seconds for one in done)
        executions = executions or tuple(done)
        outputs = outputs or {name: arrays[name] for name in arrays if name in written}
        wrong = tuple(wrongs(prepared.steps, done, trial, arrays))
        if wrong:
            break
    outcome = Outcome(label, "", wrong, findings, seconds, (), printed, notes)
    return Checked(label, outcome, outputs, executions, prepared.steps)


def launched(
    steps: Sequence[Step], trial: Trial, machine: Machine, counted: bool
) -> tuple[list[Execution], dict[str, np.ndarray], set[str]]:
    """Executions of all launches, the arrays as they are left, and the names of those that were written."""
    arrays = {name: np.array(argument.value, order="C") for name, argument in trial.arguments.items()}
    done, written = [], set[str]()
    for one in steps:
        names = set(one.binary.kernel.params)
        values = {**one.values, **{name: array for name, array in arrays.items() if name in names}}
        outputs = [name for name in dict.fromkeys(one.stored_to()) if trial.arguments[name].role != IN]
        before = {name: arrays[name].copy() for name in outputs} if machine.name != "cpu" else {}
        held = [name for name in outputs if trial.arguments[name].role != OUT or name in written]
        more: dict[str, Any] = {"given": held} if machine.name == "cpu" else {}
        done.append(machine.run(one.binary, values, outputs, count=counted, **more))
        for name in outputs:
            places = done[-1].writers(name)
            stored = bool(places) if places is not None else not same(before[name], arrays[name])
            written |= {name} if stored else set()
    return done, arrays, written


def same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.tobytes() == other.tobytes()


def wrongs(
    steps: Sequence[Step], done: Sequence[Execution], trial: Trial, arrays: Mapping[str, np.ndarray]
) -> list[WrongValue]:
    """Outputs that are not what they should be, and the line that stored them."""
    found = []
    for key, truth in trial.truths.items():
        name = key.partition("[")[0]
        mismatch = truth.mismatch(name, arrays[name])
        if mismatch:
            mismatch = replace(mismatch, inputs=trial.kind)
            index = mismatch.flat_index(arrays[name].shape)
            step, execution = last_writer(steps, done, name, index)
            blame = written_by(execution, name, index, step.binary.kernel)
            found.append(WrongValue(step.target.shown, mismatch, *blame))
    return found


def last_writer(
    steps: Sequence[Step], done: Sequence[Execution], name: str, index: int
) -> tuple[Step, Execution]:
    """The last launch that stored an element; else the last that may store to the array."""
    pairs = [pair for pair in zip(steps, done) if name in pair[0].stored_to()]
    for pair in reversed(pairs):
        if pair[1].writer(name, index):
            return pair
    return pairs[-1] if pairs else (steps[-1], done[-1])
