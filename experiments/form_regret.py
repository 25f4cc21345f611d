"""How much longer the form that a model ranks first takes than the fastest of those that were timed.

    python experiments/form_regret.py results/states/forms_hgemm_h200.json [MORE.json ...]

Files are of cache_states.py or `bench`. A shape counts if at least three of its forms were timed and have an
estimate. The estimates are those of the code at hand, so the figures change with it. The last line is about
candidates: the fastest of the first few by estimate, as `bench --candidates` finds it.
"""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Iterable, Sequence

from scripts import exit_code

from tir_schedules.console import print_aligned, print_line
from tir_schedules.errors import BadInput
from tir_schedules.files import Json, read_json
from tir_schedules.ladders.fastest import estimated
from tir_schedules.ladders.known import workload_class
from tir_schedules.ladders.registry import find_one

LEAST, SHOWN, CANDIDATES = 3, 8, (2, 4, 6, 8)
"""Forms of a shape that counts; shapes that are shown, those with the most regret; numbers of candidates."""

NEEDED = {"family", "form", "name", "shape", "workload"}
"""What each row of a file has to have."""

Form = tuple[float, float, str]
"""Microseconds estimated, microseconds measured, name."""


def rows_of(file: Path) -> list[Json]:
    """The rows of a file of cache_states.py or `bench`. BadInput for another file."""
    read = read_json(file, "name a file of cache_states.py or bench")
    rows = read.get("rows") if isinstance(read, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) and NEEDED <= row.keys() for row in rows):
        raise BadInput(
            f"{file} is not a file of cache_states.py or bench: its rows need {', '.join(sorted(NEEDED))}"
        )
    return rows


def forms_of(rows: Iterable[Json]) -> dict[str, list[Form]]:
    """Shape -> forms that were timed and have an estimate."""
    found: dict[str, list[Form]] = defaultdict(list)
    for row in rows:
        measured = row.get("in_turns_us") or row.get("median_us")
        if row["form"] != "schedule" or not measured:
            continue
        workload = workload_class(row["family"])(**row["workload"])
        try:
            choice = estimated(find_one(row["name"], "form_regret.py"), workload)
        except BadInput:  # a form that is refused by now, or has no model
            continue
        found[row["shape"]].append((choice.estimate.microseconds, measured, row["name"]))
    return {shape: forms for shape, forms in found.items() if len(forms) >= LEAST}


def regrets(forms: dict[str, list[Form]], candidates: int = 1) -> list[tuple[float, str, Form, Form]]:
    """Regret, shape, the fastest of so many that are ranked first, and the fastest of all; the most regret
    first."""
    found = []
    for shape, timed in forms.items():
        first = min(sorted(timed)[:candidates], key=lambda form: form[1])
        best = min(timed, key=lambda form: form[1])
        found.append((first[1] / best[1] - 1, shape, first, best))
    return sorted(found, reverse=True)


def show(options: Namespace) -> int:
    rows = [row for file in options.files for row in rows_of(file)]
    forms = forms_of(rows)
    found = regrets(forms)
    if not found:
        raise BadInput(f"no shape has {LEAST} forms that were timed and have an estimate")
    lines = [
        (shape, f"{regret:.1%}", first[2], f"{first[1]:.1f}", best[2], f"{best[1]:.1f}")
        for regret, shape, first, best in found[:SHOWN]
    ]
    print_aligned(("shape", "regret", "ranked first", "us", "fastest", "us"), lines)
    print_line(f"shapes: {len(found)}; regret {summed_up(found)}")
    few = (f"{count}: {summed_up(regrets(forms, count))}" for count in CANDIDATES)
    print_line(f"of the fastest of candidates, {'; '.join(few)}")
    return 0


def summed_up(found: Sequence[tuple[float, str, Form, Form]]) -> str:
    each = [regret for regret, *_ in found]
    return f"{fmean(each):.1%} in the mean, {max(each):.1%} at most"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.json")
    return exit_code(show, parser, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
