"""The verb `trace`: a rung's schedule primitive by primitive, as a page, a table or JSON."""

from __future__ import annotations

from tir_schedules.api.problems import shape_of
from tir_schedules.cli.options import RUNG_HELP, Options, Verbs, add_arch, add_dry_run, add_path
from tir_schedules.cli.problems import add_problem
from tir_schedules.files import check_page
from tir_schedules.ladders.problems import TRACE_SHAPES


def add_verb(verbs: Verbs) -> None:
    """Add the parser of `trace` to those of the other verbs."""
    verb = verbs.add_parser(
        "trace",
        help="a rung's schedule step by step: TIR, CUDA, registers, wavefronts, sectors after each primitive",
    )
    verb.add_argument("rung", help=RUNG_HELP)
    add_problem(verb, TRACE_SHAPES)
    add_arch(verb)
    verb.add_argument("--tir", action="store_true", help="also print what each step changes in the TIR")
    verb.add_argument("--cuda", action="store_true", help="also print what each step changes in the CUDA")
    add_path(verb, "-o", "--output", help="write a self-contained HTML page instead of the table")
    verb.add_argument(
        "--time", action="store_true", help="predict how long each state takes on an H100, as `time` does"
    )
    add_dry_run(verb)
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(verb=trace_verb)


def trace_verb(options: Options) -> int:
    """Run the verb; returns the exit code: 1 when the finished schedule is not right."""
    from tir_schedules.api.results import finish
    from tir_schedules.api.tracing import plan_of_trace, trace
    from tir_schedules.console import print_error
    from tir_schedules.pages.folder import write_page

    if options.output:
        check_page(options.output)
    if options.dry_run:
        return finish(plan_of_trace(options.rung, options.arch, shape_of(options)), options.json, 1)
    found = trace(options.rung, arch=options.arch, time=options.time, **shape_of(options))
    if options.output:
        write_page(options.output, found.page())
    if options.json or not options.output:
        return finish(found.showing(options.tir, options.cuda), options.json, 1)
    if options.tir or options.cuda:
        found.showing(options.tir, options.cuda).show()
    elif found.fault:
        print_error(found.fault)
    return 0 if found.ok else 1
