"""`tune` beside random search as tables and a plot."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Sequence

from article_tables import markdown
from search_replays import MODEL, RANDOM, TRAINED

from tir_schedules.bench.plots import SCHEDULE, TWIN, content_of, pyplot
from tir_schedules.files import Json, write_bytes

AFTER = (8, 16, 32, 64)
"""Trials after which the table looks at a search."""

Table = tuple[str, tuple[str, ...], list[tuple[str, ...]]]
"""Title, heads, and lines."""


def runs_of(rows: Sequence[Json], rung: str, search: str) -> list[list[float]]:
    """The shares of each seed's search."""
    return [row["shares"] for row in rows if row["rung"] == rung and row.get("search") == search]


def rungs_of(rows: Sequence[Json]) -> list[str]:
    return list(dict.fromkeys(row["rung"] for row in rows))


def summary(values: Sequence[float], digits: int = 3) -> str:
    """The mean and, in brackets, least and greatest."""
    mean, least, most = (
        f"{value:.{digits}f}" for value in (statistics.mean(values), min(values), max(values))
    )
    return f"{mean} ({least} to {most})"


def found_table(rows: Sequence[Json]) -> Table:
    lines = []
    for rung in rungs_of(rows):
        about = next(row for row in rows if row["rung"] == rung)
        for search in (MODEL, RANDOM):
            runs = runs_of(rows, rung, search)
            cells = (summary([run[min(count, len(run)) - 1] for run in runs]) for count in AFTER)
            lines.append((rung, about["shape"], str(about["configurations"]), search, *cells))
    heads = ("rung", "shape", "timed", "search", *(f"after {count}" for count in AFTER))
    return "Rate of the best configuration found, as a share of the best of all", heads, lines


def ranking_table(rows: Sequence[Json]) -> Table:
    lines = []
    for rung in rungs_of(rows):
        own = [row for row in rows if row["rung"] == rung and "spearman" in row]
        cells = (summary([row["spearman"] for row in own if row["trained"] == count], 2) for count in TRAINED)
        lines.append((rung, *cells))
    heads = ("rung", *(f"learned from {count}" for count in TRAINED))
    return "Spearman's correlation of the cost model's ranking with the measured one", heads, lines


def section(name: str, rows: Sequence[Json]) -> str:
    """The text below a marker of the README: "found" or "ranking"."""
    _, heads, lines = {"found": found_table, "ranking": ranking_table}[name](rows)
    return markdown(heads, lines)


def save_plot(rows: Sequence[Json], where: str, path: Path) -> None:
    """A panel for each rung: the best found against trials, the mean of all seeds and their range."""
    plt = pyplot()
    rungs = rungs_of(rows)
    figure, panels = plt.subplots(1, len(rungs), figsize=(4.5 * len(rungs), 3.6), layout="constrained")
    for rung, axes in zip(rungs, panels):
        for search, color in ((MODEL, SCHEDULE), (RANDOM, TWIN)):
            runs = list(zip(*runs_of(rows, rung, search)))
            trials = range(1, len(runs) + 1)
            axes.plot(trials, [statistics.mean(run) for run in runs], color=color, label=search)
            axes.fill_between(trials, [*map(min, runs)], [*map(max, runs)], color=color, alpha=0.2, lw=0)
        axes.set_title(f"{rung}, {next(row['shape'] for row in rows if row['rung'] == rung)}", fontsize=10)
        axes.set_xlabel("trials")
        axes.set_ylim(top=1.005)
    panels[0].set_ylabel("rate of the best found / best of all")
    panels[0].legend(frameon=False, loc="lower right")
    figure.suptitle(f"Five seeds each, times of an {where}", fontsize=12)
    write_bytes(path, content_of(figure, path.suffix.lower()[1:]))
