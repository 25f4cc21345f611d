"""The verb `new`: files to begin a rung or a ladder of one's own with."""

from __future__ import annotations

from tir_schedules.cli.options import Options, Verbs
from tir_schedules.ladders.registry import FAMILIES


def add_verb(verbs: Verbs) -> None:
    verb = verbs.add_parser("new", help="write a rung or a ladder of your own to begin with, and its twin")
    verb.add_argument("what", choices=("rung", "ladder"), help="a file NAME.py, or a folder NAME")
    verb.add_argument("name", metavar="NAME", help="letters, digits and _")
    verb.add_argument("--ladder", choices=FAMILIES, default="sgemm", help="of the rung (default sgemm)")
    verb.set_defaults(verb=new)


def new(options: Options) -> int:
    from tir_schedules.console import print_line
    from tir_schedules.ladders.starting_points import new_ladder, new_rung

    if options.what == "rung":
        written, place = new_rung(options.name, options.ladder), f"./{options.name}.py"
    else:
        written, place = new_ladder(options.name), f"./{options.name}"
    print_line(f"wrote {', '.join(map(str, written))}")
    print_line(f"next: tir-schedules run {place}")
    return 0
