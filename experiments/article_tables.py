"""An article's table beside what was measured here: for a terminal, and as Markdown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tir_schedules.bench.tables import THROTTLED, closing_lines, limit, provenance_line, refusal
from tir_schedules.bench.views import figures, short
from tir_schedules.errors import BadInput
from tir_schedules.insight.metrics.roofline import find_gpu
from tir_schedules.ladders.articles import ARTICLES, Article, Step
from tir_schedules.ladders.listings import COUNTS, FACTS, HASHES, LISTINGS, MAPS, SOURCES
from tir_schedules.numerals import power
from tir_schedules.report.articles import UNITS, in_unit, listing_rows
from tir_schedules.subjects.results import device_name
from tir_schedules.subjects.subject import vendors_of

TABLES = {
    name: replace(article, steps=tuple(step for step in article.steps if step.figures))
    for name in ("002", "003", "000", "001")
    for article in [ARTICLES[name]]
}
"""Articles with figures, and of them the steps that stand in their tables."""

KNOWN = FACTS | COUNTS | MAPS | HASHES
"""Facts of listings, in the order of the tables."""

NOTHING = "Not recorded yet."
Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""Headings and lines."""


def part_of(article: Article, results: dict[str, Any]) -> dict[str, Any]:
    """The results with only those rows that belong to an article."""
    shapes = {str(article.workload(size)) for size in article.sizes}
    names = {step.rung for step in article.steps} | {*vendors_of(article.family)}
    parts = {
        key: [
            row
            for row in results[key]
            if row["family"] == article.family and row["name"] in names and row["shape"] in shapes
        ]
        for key in ("rows", "refused")
    }
    return {**results, **parts}


class Here:
    """What was measured for an article at one size."""

    def __init__(self, article: Article, size: int, results: dict[str, Any]):
        self.article, shape = article, str(article.workload(size))
        self.rows, self.refused = (
            {(row["name"], row["form"]): row for row in results[key] if row["shape"] == shape}
            for key in ("rows", "refused")
        )

    def value(self, name: str, form: str, unit: str) -> float | None:
        """In a unit; None where it was not measured."""
        row = self.rows.get((name, form))
        return in_unit(row, unit) if row else None

    def cell(self, name: str, form: str, unit: str) -> str:
        """A value as text, marked when the GPU throttled; "refused", or "" where it was not asked for."""
        value = self.value(name, form, unit)
        if value is None:
            return "refused" if (name, form) in self.refused else ""
        return figures(value) + (THROTTLED if self.rows[name, form].get("throttled") else "")

    def cells(self, name: str, form: str) -> tuple[str, ...]:
        """The value in the article's unit, that of the twin, and the value in the further units the article
        has."""
        twin = self.cell(name, "twin", self.article.unit)
        return (
            self.cell(name, form, self.article.unit),
            twin,
            *(self.cell(name, form, unit) for unit in further_units(self.article)),
        )


def further_units(article: Article) -> list[str]:
    return [heading for heading in article.also if heading in UNITS]


def tables(article: Article, results: dict[str, Any]) -> list[Table]:
    """A table per size: the article's figures and their gain over the step before, then the same of what was
    measured."""
    return [
        (headings(article, size, device_name(results)), lines(article, number, results))
        for number, size in enumerate(article.sizes)
    ]


def headings(article: Article, size: int, gpu: str) -> tuple[str, ...]:
    there = (f"article, {article.unit}", *(f"article, {heading}" for heading in article.also), "gain")
    here = (
        f"{gpu}, {article.unit}",
        "its twin",
        *(f"{gpu}, {unit}" for unit in further_units(article)),
        "gain",
    )
    return (f"step, {power(size)}", "rung", *there, *here)


def lines(article: Article, number: int, results: dict[str, Any]) -> list[tuple[str, ...]]:
    """A line per step, and one for each of the vendor's libraries. number: of the size."""
    here, found = Here(article, article.sizes[number], results), []
    for before, step in zip((None, *article.steps), article.steps):
        published = gain(article.unit, *(one and printed(one, number) for one in (before, step)))
        measured = gain(
            article.unit, *(one and here.value(one.rung, "schedule", article.unit) for one in (before, step))
        )
        there = (step.figures[number] or "-", *step.also, published)
        found.append((step.name, short(step.rung), *there, *here.cells(step.rung, "schedule"), measured))
    nothing = ("",) * (2 + len(article.also))
    for vendor in vendors_of(article.family):
        if (vendor, "vendor") in here.rows:
            found.append(("NVIDIA's library", vendor, *nothing, *here.cells(vendor, "vendor"), ""))
    return found


def printed(step: Step, number: int) -> float | None:
    """A figure of the article as a number."""
    return float(step.figures[number]) if step.figures[number] else None


def gain(unit: str, before: float | None, after: float | None) -> str:
    """ "1.64x", of times or of rates; "-" where one of both is missing."""
    if not (before and after):
        return "-"
    return f"{before / after if unit == 'us' else after / before:.2f}x"


def notes_of(article: Article, results: dict[str, Any]) -> list[str]:
    """What was measured there and here, and what must be known to read it."""
    found = [f"Article: {article.about}.{roof_of(article)}"]
    found += [f"Here: {device_name(results)}, {provenance_line(results)}."]
    found += [f"Limits: {'; '.join(map(limit, results['limits']))}."] if results["limits"] else []
    known = {row["name"] for key in ("rows", "refused") for row in results[key]}
    missing = [short(step.rung) for step in article.steps if step.rung not in known]
    found += [f"Not measured yet: {', '.join(missing)}."] if missing else []
    marks = [line for line in closing_lines(results) if line.startswith(THROTTLED)]
    return found + list(article.notes) + marks + list(map(refusal, results["refused"]))


def roof_of(article: Article) -> str:
    """What the article's GPU can do by its datasheet, and how much of that the article's best figure is."""
    if not article.gpu:
        return ""
    gpu, number = find_gpu(article.gpu), len(article.sizes) - 1
    workload = article.workload(article.sizes[number])
    rates = [rate_in_tflops(article, number, step) for step in article.steps if step.figures[number]]
    peak, best = gpu.peak(workload), max(rates)
    return (
        f" A {gpu.name} has {peak:g} TFLOPS and {gpu.bandwidth:g} GB/s by its datasheet; the best figure at"
        f" {article.sizes[number]} is {figures(best)} TFLOPS, {100 * best / peak:.0f} % of that peak."
    )


def rate_in_tflops(article: Article, number: int, step: Step) -> float:
    """A step's figure as a rate. number: of the size."""
    figure = float(step.figures[number])
    if article.unit == "us":
        return article.workload(article.sizes[number]).flops / figure / 1e6
    return figure / {"GFLOPS": 1000, "TFLOPS": 1}[article.unit]


def article_of(name: str) -> Article:
    """The article of a name such as "002". BadInput when there is no table of it."""
    if name not in TABLES:
        raise BadInput(f"there is no table of an article {name!r}; there are {', '.join(TABLES)}")
    return TABLES[name]


def section(name: str, results: dict[str, Any] | None) -> str:
    """An article's tables as Markdown, or a line that says that nothing is recorded."""
    article = article_of(name)
    part = part_of(article, results) if results else {"rows": []}
    if not part["rows"]:
        return NOTHING
    notes = "\n".join(f"- {note}" for note in notes_of(article, part))
    return "\n\n".join([*(markdown(*table) for table in tables(article, part)), notes]).replace(
        THROTTLED, f"\\{THROTTLED}"
    )


def markdown(heads: tuple[str, ...], found: list[tuple[str, ...]]) -> str:
    rule = ("---", "---", *["--:"] * (len(heads) - 2))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, rule, *found))


def listing_section(name: str) -> str:
    """What an article's listings cost, as Markdown: a line per fact, a column per step, and what differs. Of
    name "facts": what the facts are."""
    if name == "facts":
        return "\n".join(f"- {fact}: {meaning}" for fact, meaning in KNOWN.items())
    article, notes = ARTICLES[name], []
    cells = {(fact, step.name): "" for fact in KNOWN for step in article.steps}
    for row in listing_rows(article):
        cells[row.fact, row.step] = row.listing + (f" \\{THROTTLED}" if row.reason else "")
        if row.reason:
            sides = f"schedule {row.schedule}, twin {row.twin}"
            notes.append(f"- \\{THROTTLED} {row.step}, {row.fact}: {sides}. {row.reason}")
    sources = [SOURCES[LISTINGS[name][step.name].source] for step in article.steps]
    used = dict.fromkeys(sources)
    lines = [
        (fact, *(cells[fact, step.name] for step in article.steps))
        for fact in KNOWN
        if any(cells[fact, step.name] for step in article.steps)
    ]
    heads = ("fact", *(f"{step.name} ({1 + [*used].index(at)})" for step, at in zip(article.steps, sources)))
    notes = [f"- ({number}) {source}" for number, source in enumerate(used, 1)] + notes
    return "\n\n".join([markdown(heads, lines), "\n".join(notes)])
