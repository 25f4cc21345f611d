"""What stands in READMEs about shapes that a seed has drawn: how their ratios are distributed, and how much
the choice of a configuration lost."""

from __future__ import annotations

from typing import Any, Iterable, Sequence

from ratio_tables import fastest_pairs, gpu, summed_up, with_notes

from tir_schedules.bench.distribution import (
    Compared,
    Table,
    candidates_of,
    compared,
    drawing_of,
    regret_table,
    sentences,
    tables_of,
)
from tir_schedules.bench.tables import provenance_line
from tir_schedules.bench.views import groups_of

Recorded = dict[str, Any]


def newest(family: str, results: Sequence[Recorded]) -> tuple[Recorded, list[Compared]] | None:
    """The recording of a ladder's drawn shapes that was made last, and these."""
    found = [(recorded, compared(recorded).get(family)) for recorded in results]
    had = [(recorded, shapes) for recorded, shapes in found if shapes]
    return max(had, key=lambda each: each[0].get("date", ""), default=None)


def distribution(family: str, results: Sequence[Recorded]) -> str:
    """Tables of the newest recording; a line where there is none."""
    found = newest(family, results)
    if not found:
        return f"No drawn shapes of {family} were timed yet."
    return section(family, *found, tables_of(family, found[1]))


def regret(family: str, results: Sequence[Recorded]) -> str:
    """The shapes where the choice lost most, in the newest recording with other configurations beside it; a
    line where there is none."""
    found = newest(family, results)
    if not found:
        return f"No recording of drawn shapes of {family} has other configurations beside the choice."
    return section(family, *found, [regret_table(found[1])])


def section(family: str, recorded: Recorded, shapes: Sequence[Compared], tables: Iterable[Table]) -> str:
    """Tables, and below them where they come from and what they come to."""
    notes = sentences(family, shapes, drawing_of(recorded) or {})
    lines = [f"- {note}." for note in (f"{gpu(recorded)}, {provenance_line(recorded)}", *notes)]
    return "\n\n".join([*map(in_markdown, tables), "\n".join(lines)])


def in_markdown(table: Table) -> str:
    head, lines = table
    return with_notes([head, ("---",) * len(head), *lines], []).rstrip()


def headline(families: str, drawn: Sequence[Recorded], chosen: Sequence[Recorded]) -> str:
    """A line for each ladder: of its newest drawn shapes, or where there are none of those that were chosen.
    Where candidates were timed, it says also what is chosen without timing."""
    lines: list[str] = []
    for family in families.split():
        if found := newest(family, drawn):
            recorded, shapes = found
            drawing = drawing_of(recorded) or {}
            lines.append(
                "; ".join(sentences(family, shapes, drawing)[: 2 if candidates_of(drawing) > 1 else 1])
            )
        else:
            lines += chosen_shapes(family, chosen)
    return "\n".join(f"- {line}." for line in lines)


def chosen_shapes(family: str, results: Sequence[Recorded]) -> list[str]:
    """What ratios on shapes that somebody chose come to, in the newest recording of each format."""
    found: dict[str, str] = {}
    for recorded in sorted(results, key=lambda one: one.get("date", "")):
        for group in groups_of(recorded):
            if group.family == family and (pairs := fastest_pairs(group)):
                ratios = {size: ours["rate"] / theirs for size, (ours, theirs) in pairs.items()}
                found[group.title] = f"{group.title}, chosen by hand, {summed_up(ratios)}"
    return [*found.values()]
