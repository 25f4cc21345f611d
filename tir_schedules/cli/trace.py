"""The verb `trace`: a rung's schedule primitive by primitive, as a page, a table or JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tir_schedules.cli.options import RUNG_HELP, Options, Verbs, add_arch
from tir_schedules.cli.problems import add_problem, check_options, problem_of
from tir_schedules.files import check_folder
from tir_schedules.ladders.problems import TRACE_SHAPES, workload_of
from tir_schedules.ladders.registry import find_one

if TYPE_CHECKING:
    from tir_schedules.insight.trace.states import Trace
    from tir_schedules.model.rung import Rung
    from tir_schedules.model.workload import Workload


def add_verb(verbs: Verbs) -> None:
    """Add the parser of `trace` to those of the other verbs."""
    verb = verbs.add_parser(
        "trace",
        help="a rung's schedule step by step: TIR, CUDA, registers, wavefronts, sectors after each primitive",
    )
    verb.add_argument("rung", help=RUNG_HELP)
    add_problem(verb, TRACE_SHAPES)
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
    from tir_schedules.subjects.compiling import settle_jobs

    rung = find_one(options.rung, "trace")
    check_options([rung], options)
    workload = workload_of(rung, problem_of(rung.family, options), TRACE_SHAPES)
    ((rung, workload),) = settle_jobs([(rung, workload)], options.arch)
    if options.output:
        check_folder(options.output)
    found = trace_with_progress(rung, workload, options.arch)
    if options.output:
        write_page(found, options.output, quiet=options.json)
    if options.json:
        from tir_schedules.insight.trace.printing import as_json

        print(json.dumps(as_json(found), indent=1))
    elif options.tir or options.cuda or not options.output:
        from tir_schedules.insight.trace.printing import print_trace

        print_trace(found, options.tir, options.cuda)
    return 0 if found.right else 1


def trace_with_progress(rung: Rung, workload: Workload, arch: str) -> Trace:
    """The trace, with progress on a terminal. BadInput for a workload too large for the CPU machine."""
    from tir_schedules.compiler.toolchain import check_arch
    from tir_schedules.console import progress
    from tir_schedules.insight.metrics.rungs import check_size
    from tir_schedules.insight.trace.states import trace

    check_arch(arch)
    check_size(rung, workload)
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
