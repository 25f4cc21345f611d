"""Searches as a table on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator, Sequence

from rich.markup import escape

from tir_schedules.console import print_left_out, print_line, print_table
from tir_schedules.subjects.subject import rate_of
from tir_schedules.tuning.records.record import MEASURED, PREDICTED
from tir_schedules.tuning.records.searches import Run, Search

COLUMNS = ("rung", "shape", "target", "trials", "refused", "best", "rate", "best trial", "date")
SPARE = ("best trial", "date", "refused", "trials")


def print_searches(
    searches: Sequence[Search], paths: Sequence[Path], runs: dict[str, Run], drawn: Sequence[Path]
) -> None:
    """A table of searches, the point that each found, and what is to be known of runs, by rung.

    paths: of the files of records. drawn: files of plots.
    """
    rows = [tuple(map(escape, row(search))) for search in searches]
    print_left_out(print_table(COLUMNS, rows, prose={"shape": 12, "target": 6}, spare=SPARE, keys=0))
    for search in searches:
        for line in lines_of(search, runs.get(search.rung)):
            print_line(line)
    if any(search.records[0].kind == PREDICTED for search in searches):
        print_line("predicted: a cost from what the CPU machine counts and from occupancy; no GPU was timed")
    plots = f"; plots: {', '.join(map(str, drawn))}" if drawn else ""
    print_line(f"records: {', '.join(map(str, paths))}{plots}")


def lines_of(search: Search, run: Run | None) -> Iterator[str]:
    """The point that a search found, and what a run of it did."""
    if search.best:
        values = ", ".join(f"{name} {value}" for name, value in search.best.point.items())
        yield f"{search.rung} on {search.best.problem}: {values}"
    else:
        yield f"{search.rung}: all refused, the last because {search.records[-1].error}"
    if run and run.trials:
        yield run.pace
        yield from run.spent.lines if run.spent else ()
    if run and run.correlation is not None:
        yield (
            "rank correlation (Spearman) of the cost model's scores with the seconds of the candidates:"
            f" {run.correlation:.2f}"
        )


def row(search: Search) -> tuple[str, ...]:
    """A search as the cells of a table."""
    first, found = search.records[0], search.best
    target = first.device if first.kind == MEASURED else f"{first.arch}, predicted"
    target += ", shipped" if search.shipped else ""
    cells = ("-", "-", "-", search.records[-1].date[:10])
    if found:
        micros = found.median * 1e6
        rate, unit = rate_of(found.family, found.problem, micros)
        cells = (f"{micros:.4g} us", f"{rate:.4g} {unit}", str(found.trial), found.date[:10])
    return (search.rung, str(first.problem), target, str(len(search)), str(search.refused), *cells)
