"""A trace printed, a line per step and what each step changes; and as JSON has it."""

from __future__ import annotations

from itertools import groupby
from typing import Iterator, Mapping

from rich.markup import escape

from tir_schedules.console import print_error, print_line, print_source, print_table, print_whole
from tir_schedules.files import Json, to_json
from tir_schedules.insight.metrics.formats import plural
from tir_schedules.insight.trace.diffs import unified
from tir_schedules.insight.trace.key_metrics import FIGURES, figures, outputs
from tir_schedules.insight.trace.states import State, Trace

COLUMNS = ("step", "call", *FIGURES, "outputs")
TIME_COLUMNS = ("predicted us", "gains")

STEP_FIELDS = ("primitive", "annotation", "call", "what", "places")
"""What JSON has of a step."""


def print_trace(trace: Trace, tir: bool, cuda: bool, times: Mapping[int, float] = {}) -> None:
    """A table with a line per step; then, if asked for, what each step changes. times: predicted microseconds
    by the number of a state."""
    steps = plural(len(trace.states) - 1, "step")
    print_line(f"{trace.rung.id}, {trace.workload}, {trace.arch}: {steps}; executed on the CPU machine")
    columns, cells = COLUMNS, [[escape(cell) for cell in row] for row in rows(trace)]
    if times:
        columns = (*COLUMNS[:-1], *TIME_COLUMNS, COLUMNS[-1])
        cells = [[*row[:-1], *gain, row[-1]] for row, gain in zip(cells, gains(trace, times))]
    print_table(columns, cells, prose={"call": 30, "outputs": 16})
    for gap in gaps(trace):
        print_line(gap)
    if trace.fault:
        print_error(trace.fault)
    if tir or cuda:
        print_changes(trace, tir, cuda)


def rows(trace: Trace) -> Iterator[list[str]]:
    """Cells of a state, all text; without figures where there are none, see `gaps`."""
    for state in trace.states:
        cells = [str(state.number), state.step.call if state.step else "(the algorithm)"]
        told = outputs(state) if state.metrics else ""
        again = f" (CUDA of {state.same})" if told and state.repeats else ""
        yield [*cells, *figures(state), told + again]


def gains(trace: Trace, times: Mapping[int, float]) -> Iterator[tuple[str, str]]:
    """For each state the predicted microseconds, and how many fewer they are than those of the last state
    that has some; "" for a state without a prediction, and for no difference."""
    last: float | None = None
    for state in trace.states:
        now = times.get(state.number)
        if now is None:
            yield "", ""
            continue
        gained = f"{last - now:+,.2f}" if last is not None and last != now else ""
        yield f"{now:,.2f}", gained
        last = now


def gaps(trace: Trace) -> Iterator[str]:
    """Why states have no figures: a line for neighbours that have one reason."""
    for why, group in groupby(
        trace.states, key=lambda state: state.reason or (state.measured.unknown if state.measured else "")
    ):
        numbers = [state.number for state in group]
        if why:
            yield f"{numbers[0]} to {numbers[-1]}: {why}" if len(numbers) > 1 else f"{numbers[0]}: {why}"


def print_changes(trace: Trace, tir: bool, cuda: bool) -> None:
    """For each step the diffs of its TIR and of its CUDA."""

    for before, state in zip(trace.states, trace.states[1:]):
        if state.step:
            print_whole(f"\nstep {state.number}: {state.step.call}")
            print_line(f"  {' > '.join(map(str, state.step.places))}: {state.step.what}")
        for wanted, name, old, new in (
            (tir, "TIR", before.tir, state.tir),
            (cuda, "CUDA", trace.cuda_before(state), state.cuda),
        ):
            if wanted and new:
                print_line(f"--- {name}" + ("" if new != old else ": unchanged"))
                if new != old:
                    print_source(unified(old, new), "diff")
            elif wanted:
                print_line(f"--- {name}: {state.reason}")


def as_json(trace: Trace, times: Mapping[int, float] = {}) -> Json:
    """Everything that is known of each state, with its texts and what changed in them."""
    told = {
        "rung": trace.rung.id,
        "workload": trace.workload,
        "arch": trace.arch,
        "first_kernel": trace.first_kernel,
        "right": trace.right,
        "refusal": trace.refusal,
        "ring": trace.ring,
        "states": [state_json(trace, state) | time_json(state, times) for state in trace.states],
    }
    return to_json(told | ({"why": trace.rung.why} if trace.rung.why else {}))


def time_json(state: State, times: Mapping[int, float]) -> Json:
    return {"predicted_us": times.get(state.number)} if times else {}


def state_json(trace: Trace, state: State) -> Json:
    """A state; without "measured" where it does not compile, and "metrics" of it null where it was not
    executed."""
    before, cuda = trace.states[max(0, state.number - 1)], trace.cuda_before(state)
    found: Json = {name: getattr(state, name) for name in ("number", "tir", "reason", "cuda", "same")}
    found["tir_diff"] = unified(before.tir, state.tir)
    found["cuda_diff"] = unified(cuda, state.cuda) if state.cuda else ""
    found |= {name: getattr(state.step, name) for name in STEP_FIELDS} if state.step else {}
    return found | ({"measured": state.measured} if state.measured else {})
