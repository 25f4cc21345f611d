"""The articles' steps as rows: what their listings say, what they measured, and what was measured here."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tir_schedules.bench.views import figures
from tir_schedules.files import Json
from tir_schedules.ladders.articles import Article, Step
from tir_schedules.ladders.listings import COUNTS, FACTS, LISTINGS, MAPS, THREADS, Fact, Listing
from tir_schedules.report.recorded import DEFAULT_FOLDER
from tir_schedules.subjects.results import device_name, load_results

UNITS = {"us": ("median_us", 1), "GB/s": ("rate", 1), "TFLOPS": ("rate", 1), "GFLOPS": ("rate", 1000)}
"""Unit -> the key of a row of results that has it, and what it is multiplied by."""

RECORDED = DEFAULT_FOLDER / "articles_h100.json"


def in_unit(row: Json, unit: str) -> float:
    """What a row of results says, in an article's unit."""
    key, scale = UNITS[unit]
    return row[key] * scale


class Here:
    """What was measured of the articles' steps. device: where; empty where nothing is recorded."""

    def __init__(self, path: Path = RECORDED):
        results = load_results(path) if path.is_file() else None
        self.device = device_name(results) if results else ""
        rows = results["rows"] if results else []
        self.rows = {(row["name"], row["shape"]): row for row in rows if row["form"] == "schedule"}

    def figures(self, article: Article, step: Step) -> tuple[str, ...]:
        """Figures of the schedule, one for each of the article's sizes; "" if it was not measured."""
        found = (self.rows.get((step.rung, str(article.workload(size)))) for size in article.sizes)
        return tuple(figures(in_unit(row, article.unit)) if row else "" for row in found)


def join_figures(values: tuple[str, ...], unit: str) -> str:
    """ "95.5, 724 us" of one figure for each size, once where they are all the same; "-" without any."""
    values = values[:1] if len(set(values)) == 1 else values
    return f"{', '.join(value or '-' for value in values)} {unit}" if any(values) else "-"


def list_facts(facts: dict[str, Fact]) -> str:
    """ "threads 1024, grid 32x64x1" of launch and code; counts and maps are left out"""
    return ", ".join(f"{name} {show_fact(name, fact)}" for name, fact in facts.items() if name in FACTS)


def show_fact(name: str, fact: Fact) -> str:
    """ "32x64x1" of a grid, "1 then 0" of waits, "1,024 in 256" of a cost and its requests, hashes one by
    one, and of a map "0: 0-3 x 0; 1: ..." """
    if isinstance(fact, int):
        return str(fact)
    if name in MAPS:
        numbers = (str(number) if number >= 0 else "last" for number in THREADS)
        return "; ".join(f"{number}: {part}" for number, part in zip(numbers, fact))
    if name in COUNTS:
        requests, cost = fact
        return f"{cost:,} in {requests:,}"
    return {"grid": "x", "all_maps": ", "}.get(name, " then ").join(map(str, fact))


class ListingRow(NamedTuple):
    """A fact of a step: as the listing has it, the schedule and the twin; reasons where these differ."""

    step: str
    fact: str
    listing: str
    schedule: str
    twin: str
    reason: str


def listing_rows(article: Article) -> list[ListingRow]:
    """All facts of the listings of an article, step by step, as tests hold them."""
    return [
        ListingRow(
            step.name,
            name,
            show_fact(name, fact),
            show_fact(name, expected(listing, "schedule")[name]),
            show_fact(name, expected(listing, "twin")[name]),
            " ".join(each.reason for each in listing.differences if each.fact == name),
        )
        for step in article.steps
        for listing in [LISTINGS[article.name][step.name]]
        for name, fact in listing.facts.items()
    ]


def expected(listing: Listing, form: str) -> dict[str, Fact]:
    """The facts that a schedule or a twin has: those of the listing, except for declared differences."""
    return {**listing.facts, **{each.fact: each.value for each in listing.differences if form in each.forms}}
