"""The verb `trace`: a rung's schedule primitive by primitive, as a page, a table or JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator

from tir_schedules.cli.options import RUNG_HELP, Options, Verbs, add_arch
from tir_schedules.cli.problems import add_problem, check_options, problem_of
from tir_schedules.files import Json, check_folder
from tir_schedules.ladders.problems import SMALL_SHAPES, workload_of
from tir_schedules.ladders.registry import find_one

if TYPE_CHECKING:
    from tir_schedules.insight.trace.states import State, Trace

SHAPES = SMALL_SHAPES | {"sgemm": ((256, 128, 128),), "hgemm": ((256, 256, 128),)}
"""Whole tiles, and so small that the states of a half-finished schedule, which do the same work many times,
are soon executed."""

COLUMNS = (
    "step",
    "call",
    "registers",
    "shared bytes",
    "wavefronts (ideal)",
    "sectors",
    "instructions",
    "outputs",
)


def add_verb(verbs: Verbs) -> None:
    """Add the parser of `trace` to those of the other verbs."""
    verb = verbs.add_parser(
        "trace",
        help="a rung's schedule step by step: TIR, CUDA, registers, wavefronts, sectors after each primitive",
    )
    verb.add_argument("rung", help=RUNG_HELP)
    add_problem(verb, SHAPES)
    add_arch(verb)
    verb.add_argument("--tir", action="store_true", help="print what each step changes in the TIR, too")
    verb.add_argument("--cuda", action="store_true", help="print what each step changes in the CUDA, too")
    verb.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        help="write a self-contained HTML page instead of the table",
    )
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(verb=trace_verb)


def trace_verb(options: Options) -> int:
    """Run the verb; returns the exit code: 1 when the finished schedule is not right."""
    rung = find_one(options.rung, "trace")
    check_options([rung], options)
    workload = workload_of(rung, problem_of(rung.family, options), SHAPES)
    if options.output:
        check_folder(options.output)
    found = traced(rung, workload, options.arch)
    if options.output:
        write_page(found, options.output, quiet=options.json)
    if options.json:
        print(json.dumps(as_json(found), indent=1))
    elif options.tir or options.cuda or not options.output:
        print_trace(found, options.tir, options.cuda)
    return 0 if found.right else 1


def traced(rung: Any, workload: Any, arch: str) -> Trace:
    """The trace, with progress on a terminal."""
    from tir_schedules.compiler.toolchain import check_arch
    from tir_schedules.console import progress
    from tir_schedules.insight.trace.states import trace

    check_arch(arch)
    with progress(None, "tracing") as step:
        return trace(rung, workload, arch, step)


def write_page(trace: Trace, path: Path, quiet: bool) -> None:
    from tir_schedules.console import print_line
    from tir_schedules.files import write_text
    from tir_schedules.insight.trace.page import page

    text = page(trace)
    write_text(path, text)
    if not quiet:
        print_line(
            f"written: {path}, {len(trace.states) - 1} steps, {len(text.encode()) >> 10} KiB; open it in a"
            " browser"
        )


def print_trace(trace: Trace, tir: bool, cuda: bool) -> None:
    """A table with a line per step; then, if asked for, what each step changes."""
    from rich.markup import escape

    from tir_schedules.console import print_error, print_line, print_table

    print_line(
        f"{trace.rung.id}, {trace.workload}, {trace.arch}: {len(trace.states) - 1} steps; executed on the CPU"
        " machine"
    )
    print_table(
        COLUMNS, [[escape(cell) for cell in row] for row in rows(trace)], prose={"call": 30, "outputs": 16}
    )
    for gap in gaps(trace):
        print_line(gap)
    if trace.refusal:
        print_error(trace.refusal)
    if tir or cuda:
        print_changes(trace, tir, cuda)


def rows(trace: Trace) -> Iterator[list[str]]:
    """Cells of a state, all text; without figures where there are none, see `gaps`."""
    from tir_schedules.insight.inspection.tables import number, pair
    from tir_schedules.insight.metrics.counting import GLOBAL, SHARED
    from tir_schedules.insight.trace.key_metrics import INSTRUCTIONS, REGISTERS, SHARED_BYTES, outputs

    for state in trace.states:
        cells = [str(state.number), state.step.call if state.step else "(the algorithm)"]
        if state.measured:
            cells += [number(figure.value(state.measured)) for figure in (REGISTERS, SHARED_BYTES)]
        if state.metrics:
            sectors, instructions = state.metrics.access(*GLOBAL).cost, INSTRUCTIONS.value(state.measured)
            same = f" (CUDA of {state.same})" if state.repeats else ""
            cells += [
                pair(state.metrics.access(*SHARED)),
                number(sectors),
                number(instructions),
                outputs(state) + same,
            ]
        yield cells + [""] * (len(COLUMNS) - len(cells))


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
    from tir_schedules.console import print_line, print_source, print_whole
    from tir_schedules.insight.trace.diffs import unified

    for before, state in zip(trace.states, trace.states[1:]):
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


def as_json(trace: Trace) -> Json:
    """Everything that is known of each state, with its texts and what changed in them."""
    return {
        "rung": trace.rung.id,
        "workload": asdict(trace.workload),
        "arch": trace.arch,
        "first_kernel": trace.first_kernel,
        "right": trace.right,
        "refusal": trace.refusal,
        "states": [state_json(trace, state) for state in trace.states],
    }


def state_json(trace: Trace, state: State) -> Json:
    """A state; without "measured" where it does not compile, and "metrics" of it null where it was not
    executed."""
    from tir_schedules.insight.trace.diffs import unified

    step, measured = state.step, state.measured
    before = trace.states[max(0, state.number - 1)]
    found: Json = {"number": state.number}
    if step:
        found |= {
            "primitive": step.primitive,
            "annotation": step.annotation,
            "call": step.call,
            "what": step.what,
        }
        found["places"] = [asdict(place) for place in step.places]
    found |= {"tir": state.tir, "tir_diff": unified(before.tir, state.tir), "reason": state.reason}
    found |= {
        "cuda": state.cuda,
        "cuda_diff": unified(trace.cuda_before(state), state.cuda) if state.cuda else "",
        "same": state.same,
    }
    if measured:
        resources = asdict(measured.binary.resources)
        metrics = measured.metrics and measured.metrics.as_json()
        found["measured"] = {
            "right": measured.right,
            "wrong": measured.wrong,
            "outside": measured.outside,
            "unknown": measured.unknown,
        }
        found["measured"] |= {"resources": resources, "metrics": metrics}
    return found
