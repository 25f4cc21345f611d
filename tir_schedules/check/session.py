"""Checks: files are compiled, each once for all that compile it alike; their kernels are run on each trial's
inputs, and what they leave is judged."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Iterator, Mapping, Sequence

import numpy as np

from tir_schedules.check.arguments import OUT
from tir_schedules.check.building import Built, Compiling, build
from tir_schedules.check.expecting import Truth
from tir_schedules.check.preparing import Prepared, Request, Step, prepare
from tir_schedules.check.trials import Trial
from tir_schedules.check.triton.checking import prepare_triton
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.cpu.ptx import UnsupportedInstruction
from tir_schedules.machines.execution import warm
from tir_schedules.model.findings import Finding, Location
from tir_schedules.model.machine import Execution, Machine
from tir_schedules.run import writer_of
from tir_schedules.source import Source
from tir_schedules.verdicts import Outcome, WrongValue

Written = dict[str, Any]
"""Arrays that launches have written, by name: which elements, or None where the machine does not know."""


@dataclass(frozen=True)
class Checked:
    """What became of a request. outcome: verdict, findings, wrong values, what was printed. outputs: arrays
    that were written, by name, as the last launch left them. executions: of each launch with the first
    inputs, with its counters. unsupported: whether it has what the machine does not know, which its error
    names. prepared: what was run, to run it again."""

    label: str
    outcome: Outcome
    outputs: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)
    executions: tuple[Execution, ...] = field(default=(), repr=False)
    steps: tuple[Step, ...] = field(default=(), repr=False)
    unsupported: bool = False
    prepared: Prepared | None = field(default=None, repr=False)


def failed_check(label: str, error: CheckFailed, steps: tuple[Step, ...] = ()) -> Checked:
    """What could not be run."""
    return Checked(
        label, Outcome(label, str(error)), steps=steps, unsupported=isinstance(error, UnsupportedInstruction)
    )


def perform(prepared: Prepared, machine: Machine) -> Checked:
    """Run every launch with each trial's inputs, and compare what they leave."""
    done = run_trials(prepared, machine)
    return replace(done, outcome=prepared.adjust(done.outcome, machine)) if prepared.adjust else done


def run_trials(prepared: Prepared, machine: Machine) -> Checked:
    """A trial that fails is the last; findings are those of the first that has some."""
    label, seconds, printed = prepared.label, 0.0, ""
    findings, notes, wrong = (), (), ()
    executions: tuple[Execution, ...] = ()
    outputs: dict[str, np.ndarray] = {}
    unreached: Places = {}
    for number, trial in enumerate(prepared.trials.runs):
        counted = machine.name == "cpu" and (not executions or bool(unreached))
        by = machine_for(machine, number, executions)
        try:
            done, arrays, written = launch_all(prepared.steps, trial, by, counted)
        except CheckFailed as error:
            return failed_check(label, error, prepared.steps)
        if trial.special and any(has_no_end(one) for one in done):
            continue
        findings = findings or tuple(told_with(trial, finding) for one in done for finding in one.findings)
        notes = notes or tuple(note for one in done for note in one.notes)
        printed = printed or "".join(one.printed for one in done)
        seconds += sum(one.seconds for one in done)
        if counted:
            left = unreached_by(done)
            unreached = left if not executions else {at: left[at] for at in unreached.keys() & left.keys()}
        executions = executions or tuple(done)
        outputs = outputs or {name: arrays[name] for name in arrays if name in written}
        wrong = tuple(wrongs(prepared.steps, done, trial, arrays))
        if wrong:
            break
    judged = any(truth.value.size for trial in prepared.trials.runs for truth in trial.truths.values())
    unexecuted = () if wrong else tuple(sorted(unreached.values(), key=lambda one: (one.file, one.line)))
    unshown = () if wrong else (*prepared.trials.unshown, *unjudged_outputs(prepared, outputs, judged))
    outcome = Outcome(
        label, "", wrong, findings, seconds, (), printed, notes, judged, prepared.trials.loose, unshown,
        unexecuted,
    )  # fmt: skip
    return Checked(label, outcome, outputs, executions, prepared.steps, prepared=prepared)


def unjudged_outputs(prepared: Prepared, outputs: Mapping[str, np.ndarray], judged: bool) -> Iterator[str]:
    """Outputs and elements of outputs that have no expected value, if others have one; and outputs that have
    no elements."""
    first = prepared.trials.runs[0]
    said: dict[str, list[Truth]] = {}
    for key, truth in first.truths.items():
        said.setdefault(key.partition("[")[0], []).append(truth)
    left = [name for name in outputs if name not in said]
    if judged and left:
        yield f"nothing says what {' and '.join(left)} should be: say --expect {left[0]}=..."
    for name, truths in said.items():
        size = first.arguments[name].value.size
        places = [truth.flat for truth in truths if truth.flat is not None]
        if not size:
            yield f"{name} has no elements: nothing was compared"
        elif len(places) == len(truths):
            count = size - np.unique(np.concatenate([each.ravel() for each in places])).size
            yield from [f"{count} of {size} elements of {name} are not judged"] if count else []


Places = dict[tuple[str, int], Location]
"""Source lines by file and number."""


def unreached_by(done: Sequence[Execution]) -> Places:
    """Lines of the kernels that no lane of any launch executed."""
    counters = [one.counters for one in done if one.counters]
    executed = {(line.file, line.line) for one in counters for line in one.lines}
    left = {(place.file, place.line): place for one in counters for place in one.unreached}
    return {at: place for at, place in left.items() if at not in executed}


IN_ALL_ORDERS = 1
"""Trials that are executed in all orders of the machine; those behind them in one."""

LONGER = 64
"""How many times the instructions of the first trial a warp may execute with special numbers."""


def machine_for(machine: Machine, number: int, executions: Sequence[Execution]) -> Machine:
    """The machine for a trial, by its number. executions: those of the first trial."""
    if number < IN_ALL_ORDERS or not isinstance(machine, CpuMachine):
        return machine
    most = max((one.counters.warp_instructions for one in executions if one.counters), default=0)
    return machine.limited(1, LONGER * (most + 1000))


def has_no_end(execution: Execution) -> bool:
    """Whether a launch was stopped in a loop: NaN may keep one going that finite numbers end."""
    return any(finding.kind in ("endless_loop", "deadlock") for finding in execution.findings)


def hint_for(trial: Trial) -> str:
    """Which inputs a trial has that others have not."""
    also = "; --finite leaves such inputs out" if trial.special else ""
    return f"{trial.note}{also}" if trial.note else ""


def told_with(trial: Trial, finding: Finding) -> Finding:
    """A finding that says which inputs it needs, where these are special."""
    if not trial.special:
        return finding
    hint = f" ({hint_for(trial)})"
    brief = finding.brief and finding.brief + hint
    return replace(finding, message=finding.message + hint, brief=brief)


def launch_all(
    steps: Sequence[Step], trial: Trial, machine: Machine, counted: bool
) -> tuple[list[Execution], dict[str, np.ndarray], Written]:
    """Executions of all launches, the arrays as they are left, and those that were written."""
    arrays, written = fresh(trial), Written()
    done = [launch_step(step, trial, machine, arrays, written, count=counted) for step in steps]
    return done, arrays, written


def fresh(trial: Trial) -> dict[str, np.ndarray]:
    """A trial's arrays, which launches may write."""
    return {name: np.array(argument.value, order="C") for name, argument in trial.arguments.items()}


def launch_step(
    step: Step,
    trial: Trial,
    machine: Machine,
    arrays: dict[str, np.ndarray],
    written: Written,
    **options: Any,
) -> Execution:
    """Run one launch on arrays, in place, and add what it writes. options: further ones of the machine's
    `run`, such as `count`."""
    names = step.outputs(trial)
    kernel = step.binary.kernel
    described = {one.name for one in kernel.maps}
    pointed = (name for one, name in zip(step.bounds, kernel.params) if one.parameter.bytes == 8)
    if machine.name != "cpu" and not described.isdisjoint(pointed):
        raise CheckFailed(f"{kernel.label}: a pointer to a tensor map is for --machine cpu")
    taken = (*kernel.params, *(one.of for one in kernel.maps))
    values = {**step.values, **{name: arrays[name] for name in taken if name in arrays}}
    before = {}
    if machine.name == "cpu":
        unwritten = [name for name in values if name in arrays and trial.arguments[name].role == OUT]
        options["given"] = [name for name in names if name not in unwritten]
        nothing = np.array(False)
        options["stored"] = {
            name: written.get(name, np.broadcast_to(nothing, arrays[name].shape)) for name in unwritten
        }
    else:
        before = {name: arrays[name].copy() for name in names}
    execution = machine.run(step.binary, values, names, **options)
    for name in names:
        places = execution.writers(name)
        if places if places is not None else not same(before[name], arrays[name]):
            written[name] = execution.stored(name)
    return execution


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
            mismatch = replace(mismatch, inputs=trial.kind, hint=hint_for(trial) or mismatch.hint)
            index = mismatch.flat_index(arrays[name].shape)
            pair = last_writer(steps, done, trial, name, index)
            blame: tuple[str, Location | None] = ("no launch may store to it", None)
            if pair:
                blame = writer_of(pair[1], name, index, pair[0].binary.kernel)
            found.append(WrongValue((pair[0] if pair else steps[-1]).target.shown, mismatch, *blame))
    return found


def last_writer(
    steps: Sequence[Step], done: Sequence[Execution], trial: Trial, name: str, index: int
) -> tuple[Step, Execution] | None:
    """The last launch that stored an element; else the last that may store to the array, if one may."""
    pairs = [pair for pair in zip(steps, done) if name in pair[0].outputs(trial)]
    for pair in reversed(pairs):
        if pair[1].writer(name, index):
            return pair
    return pairs[-1] if pairs else None


def check_requests(
    requests: Sequence[Request], machine: Machine, others: Sequence[Request] = ()
) -> Iterator[Checked]:
    """Each request's result, in order. A file that does not compile, and a kernel that the machine does not
    know, are results as well; BadInput and MissingTool are raised. others: what is compiled along, because it
    is checked at another time."""
    for request, ready in prepare_requests(requests, machine, others):
        yield run_prepared(request, ready, machine)


def prepare_requests(
    requests: Sequence[Request], machine: Machine, others: Sequence[Request] = ()
) -> Iterator[tuple[Request, Prepared | CheckFailed]]:
    """Each request ready to run, in order, or why it is not. others: what is compiled along."""
    warm(machine)
    files: dict[tuple[Source, Compiling], Built | CheckFailed] = {}
    for request in requests:
        python = request.source.is_python
        alike = request.source, request.options
        if not python and alike not in files:
            files[alike] = build_for_all(request, others or requests)
        try:
            ready = prepare_triton(request) if python else prepare(request, built_or_raise(files[alike]))
        except BadInput as error:
            raise request.locate_error(error) from None
        except CheckFailed as error:
            ready = error
        yield request, ready


def built_or_raise(built: Built | CheckFailed) -> Built:
    if isinstance(built, CheckFailed):
        raise built
    return built


def run_prepared(request: Request, ready: Prepared | CheckFailed, machine: Machine) -> Checked:
    """What becomes of it when it is run."""
    label = request.launches[0].kernel or request.source.file
    if isinstance(ready, CheckFailed):
        return failed_check(label, ready)
    try:
        return perform(ready, machine)
    except CheckFailed as error:
        return failed_check(label, error)


def build_for_all(request: Request, requests: Sequence[Request]) -> Built | CheckFailed:
    """The file with what all that compile it alike launch."""
    alike = [each for each in requests if (each.source, each.options) == (request.source, request.options)]
    try:
        return build(request.source, [one.kernel for each in alike for one in each.launches], request.options)
    except CheckFailed as error:
        return error
