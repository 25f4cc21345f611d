"""The verb `emit`: what a rung's schedule becomes."""

from __future__ import annotations

from pathlib import Path

from tir_schedules.cli.options import RUNG_HELP, Options, Verbs, add_arch
from tir_schedules.cli.problems import add_problem, check_options, problem_of
from tir_schedules.ladders.problems import EMIT_SHAPES, workload_of
from tir_schedules.ladders.registry import find_one


def add_verb(verbs: Verbs) -> None:
    verb = verbs.add_parser("emit", help="print what a rung's schedule becomes: CUDA, PTX, SASS or TIR")
    verb.add_argument("rung", help=RUNG_HELP)
    forms = verb.add_mutually_exclusive_group()
    for form in FORMS:
        forms.add_argument(
            f"--{form}", dest="form", action="store_const", const=form, help=f"print {form.upper()}"
        )
    verb.add_argument("--twin", action="store_true", help="of the hand-written twin, not of the schedule")
    add_problem(verb, EMIT_SHAPES)
    add_arch(verb)
    verb.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="write to FILE instead of standard output"
    )
    verb.set_defaults(verb=emit, form="cuda")


FORMS = {"cuda": "cuda", "ptx": "text", "sass": "text", "tir": "python"}


def emit(options: Options) -> int:
    from tir_schedules.emit import emit_text
    from tir_schedules.files import write_text
    from tir_schedules.subjects.compiling import settle_jobs

    rung = find_one(options.rung, "emit")
    check_options([rung], options)
    workload = workload_of(rung, problem_of(rung.family, options), EMIT_SHAPES)
    ((rung, workload),) = settle_jobs([(rung, workload)], options.arch)
    text = emit_text(rung, workload, options.arch, options.form, options.twin)
    if options.output:
        write_text(options.output, text)
    else:
        from tir_schedules.console import print_source

        print_source(text, FORMS[options.form])
    return 0
