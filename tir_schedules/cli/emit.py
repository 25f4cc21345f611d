"""The verb `emit`: what a rung's schedule becomes."""

from __future__ import annotations

import re

from tir_schedules.api.problems import shape_of
from tir_schedules.cli.options import RUNG_HELP, Options, Verbs, add_arch, add_path
from tir_schedules.cli.problems import add_problem
from tir_schedules.ladders.problems import EMIT_SHAPES


def add_verb(verbs: Verbs) -> None:
    verb = verbs.add_parser("emit", help="print what a rung's schedule becomes: CUDA, PTX, SASS or TIR")
    verb.add_argument("rung", help=RUNG_HELP)
    forms = verb.add_mutually_exclusive_group()
    for form in ("cuda", "ptx", "sass", "tir"):
        forms.add_argument(
            f"--{form}", dest="form", action="store_const", const=form, help=f"print {form.upper()}"
        )
    verb.add_argument("--twin", action="store_true", help="of the hand-written twin, not of the schedule")
    add_problem(verb, EMIT_SHAPES)
    add_arch(verb)
    add_path(verb, "-o", "--output", help="write to FILE instead of standard output")
    verb.set_defaults(verb=emit, form="cuda")


def emit(options: Options) -> int:
    from tir_schedules.api.emitting import emit
    from tir_schedules.console import print_error
    from tir_schedules.files import write_output

    code = emit(options.rung, form=options.form, twin=options.twin, arch=options.arch, **shape_of(options))
    if options.form != "cuda" and (others := other_launches(options)):
        print_error(
            f"{options.rung} takes {others + 1} launches; this is the {options.form.upper()} of the first;"
            " `emit` without an option prints the CUDA of all"
        )
    if options.output:
        write_output(options.output, code.text)
    else:
        code.show()
    return 0


def other_launches(options: Options) -> int:
    """How many launches a rung takes besides its own."""
    from tir_schedules.api.emitting import emit

    cuda = emit(options.rung, twin=options.twin, arch=options.arch, **shape_of(options)).text
    return len(re.findall(r"^// launch: ", cuda, re.M)) - 1
