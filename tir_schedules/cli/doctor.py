"""The verb `doctor`: what is installed, what is missing, how to get it."""

from __future__ import annotations

import json

from tir_schedules.cli.options import Options, Verbs


def add_verb(verbs: Verbs) -> None:
    verb = verbs.add_parser("doctor", help="what is installed, what is missing, how to get it")
    verb.add_argument("--clear-cache", action="store_true", help="remove everything compiled so far")
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(verb=doctor)


def doctor(options: Options) -> int:
    from tir_schedules.doctor import clear_cache, diagnose

    if options.clear_cache:
        clear_cache()
    items = diagnose()
    if options.json:
        print(json.dumps([vars(item) for item in items], indent=2))
    else:
        from rich.markup import escape

        from tir_schedules.console import print_table

        rows = [tuple(map(escape, (i.name, i.status, i.detail, i.remedy))) for i in items]
        print_table(("what", "status", "detail", "remedy"), rows, prose={"detail": 30, "remedy": 20}, keys=0)
    return 3 if any(item.status == "missing" for item in items) else 0
