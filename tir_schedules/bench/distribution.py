"""Ratios to the fastest of the vendor's libraries over shapes that a seed has drawn: mean, lowest, how many
are below what, and what another configuration would have taken.

One schedule counts at each shape: what NAME/fastest chose there, or the fastest where several were asked for,
by name or as candidates.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from math import ceil
from statistics import fmean, geometric_mean, median
from typing import Iterable, Sequence

from tir_schedules.bench.views import kind_of, short
from tir_schedules.files import Json
from tir_schedules.subjects.subject import vendors_of

EQUAL, NEAR = 1.0, 0.97
"""Ratios below which shapes are counted."""
EDGES = (0.8, 0.9, NEAR, EQUAL, 1.03, 1.1, 1.25, 1.5, 2.0)
"""Edges of the bars of the histogram."""
SHOWN = 10
"""Shapes of the lowest ratios that a table has."""

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""Headings and lines."""


@dataclass(frozen=True)
class Compared:
    """A drawn shape that was timed. kind: "thin". shape: with formats, as results have it. name: of the
    schedule that counts. ratio: its rate to that of the fastest library. chosen: the schedule that a model
    chose; if no model chose, `name`. best: of the schedules that were timed, the fastest. regret: how much
    more time the chosen one takes, 0.02 for 2 %. errors: of estimates of all schedules, in the same way."""

    kind: str
    shape: str
    name: str
    ratio: float
    chosen: str
    best: str
    regret: float
    errors: tuple[float, ...] = ()


def drawing_of(results: Json) -> Json | None:
    """What results say of drawn shapes, also of those in a pack; None where the shapes were chosen."""
    return results.get("drawn") or (results.get("packed") or {}).get("drawn")


def compared(results: Json) -> dict[str, list[Compared]]:
    """Ladder -> its drawn shapes that were timed beside one of the vendor's libraries."""
    drawing = drawing_of(results)
    if not drawing:
        return {}
    drawing = drawing | {name: by_extents(drawing.get(name, {})) for name in ("kinds", "chosen", "estimated")}
    rows: dict[tuple[str, str], list[Json]] = {}
    for row in results["rows"]:
        if (extents := extents_of(row["shape"])) in drawing["kinds"]:
            rows.setdefault((row["family"], extents), []).append(row)
    found: dict[str, list[Compared]] = {}
    for (family, extents), timed in rows.items():
        one = compared_at(extents, timed, drawing)
        if one:
            found.setdefault(family, []).append(one)
    return found


def extents_of(shape: str) -> str:
    """Of "64x64x64 bf16x6": "64x64x64". Each drawn shape has other extents. What follows them may be that of
    a rung, where the drawn shape leaves it open."""
    return shape.partition(" ")[0]


def by_extents(found: Json) -> Json:
    return {extents_of(shape): value for shape, value in found.items()}


def compared_at(extents: str, rows: Sequence[Json], drawing: Json) -> Compared | None:
    """The comparison at a shape from its rows; None if the schedule that counts or the libraries were not
    timed. drawing: by extents."""
    ours = {row["name"]: row["rate"] for row in rows if row["form"] == "schedule"}
    shapes = {row["name"]: row["shape"] for row in rows}
    theirs = [row["rate"] for row in rows if row["form"] == "vendor"]
    best = max(ours, key=ours.__getitem__, default="")
    chosen = drawing["chosen"].get(extents, best)
    several = candidates_of(drawing) > 1
    if several and chosen not in ours:
        chosen = best
    if chosen not in ours or not theirs:
        return None
    estimated = drawing["estimated"].get(extents, {})
    times = {row["name"]: row["median_us"] for row in rows if row["form"] == "schedule"}
    off = tuple(abs(estimated[name] / time - 1) for name, time in times.items() if name in estimated)
    counts = best if several else chosen
    ratio, regret = ours[counts] / max(theirs), ours[best] / ours[chosen] - 1
    return Compared(drawing["kinds"][extents], shapes[counts], counts, ratio, chosen, best, regret, off)


def candidates_of(drawing: Json) -> int:
    """How many candidates were asked for at each shape."""
    return drawing.get("candidates", 1)


def baseline_of(family: str) -> str:
    """What the ratios of a ladder are to: "best of cuBLAS"."""
    vendor, *others = vendors_of(family)
    return f"best of {vendor}" if others else vendor


def sentences(family: str, shapes: Sequence[Compared], drawing: Json) -> list[str]:
    """What the ratios and regrets of a ladder come to."""
    left_out, candidates = drawing["shapes"] - len(shapes), candidates_of(drawing)
    of = f"the fastest of up to {candidates} candidates at each is " if candidates > 1 else ""
    lines = [
        f"{family}: {counted(len(shapes))} drawn by seed {drawing['seed']}"
        f"{f' ({left_out} not timed)' if left_out else ''}: {of}{summed_up(family, shapes)}"
    ]
    if candidates > 1:
        alone = summed_up(family, [*map(as_chosen, shapes)])
        lines.append(f"what is chosen of {family} without timing at the same shapes: {alone}")
    rule = "the candidates" if candidates > 1 else drawing.get("rule")
    return lines + ([regrets(shapes, rule)] if rule else []) + errors(shapes)


def as_chosen(one: Compared) -> Compared:
    """The comparison of what was chosen, where another schedule counts."""
    return replace(one, name=one.chosen, ratio=one.ratio / (1 + one.regret))


def counted(shapes: int) -> str:
    return f"{shapes} shape{'s' * (shapes != 1)}"


def summed_up(family: str, shapes: Sequence[Compared]) -> str:
    """ "1.190x the best of cuBLAS in the geometric mean, lowest 0.762x (at 3000x3000x3000 nt float16), 5
    below 1x, 2 below 0.97x"."""
    mean, least = geometric_mean(one.ratio for one in shapes), min(shapes, key=lambda one: one.ratio)
    below = f"{less(shapes, EQUAL)} below {EQUAL:.0f}x, {less(shapes, NEAR)} below {NEAR}x"
    times = f"{mean:.3f}x the {baseline_of(family)} in the geometric mean"
    return f"{times}, lowest {least.ratio:.3f}x (at {least.shape}), {below}"


def less(shapes: Sequence[Compared], ratio: float) -> int:
    return sum(one.ratio < ratio for one in shapes)


def regrets(shapes: Sequence[Compared], rule: str) -> str:
    """How much longer what was chosen takes than the best that was timed. rule: what was timed."""
    worst, mean = max(shapes, key=lambda one: one.regret), fmean(one.regret for one in shapes)
    names = f"{short(worst.chosen)} chosen, {short(worst.best)} best"
    return f"regret: mean {mean:.1%}, worst {worst.regret:.1%} (at {worst.shape}: {names}); timed were {rule}"


def errors(shapes: Sequence[Compared]) -> list[str]:
    """How far estimates are from what was measured; nothing where results have none of the former."""
    off = [error for one in shapes for error in one.errors]
    most = f"{median(off):.1%} in the median, {max(off):.0%} at most" if off else ""
    return [f"estimates of {len(off)} schedules are off by {most}"] if off else []


def tables_of(family: str, shapes: Sequence[Compared]) -> list[Table]:
    """By kind and format, the histogram, the shapes with the lowest ratios and those with a regret."""
    tables = [groups_table(family, shapes), histogram(family, shapes), lowest(family, shapes)]
    return tables + ([regret_table(shapes)] if any(one.regret for one in shapes) else [])


def groups_table(family: str, shapes: Sequence[Compared]) -> Table:
    """A line for each kind, for each format and layout where there are several, and for all."""
    groups: dict[str, list[Compared]] = {}
    for labels in (lambda one: one.kind, lambda one: kind_of({"shape": one.shape}), lambda one: "all"):
        for one in shapes:
            groups.setdefault(labels(one), []).append(one)
    head = (family, "shapes", "geometric mean", f"below {EQUAL:.0f}x", f"below {NEAR}x", "lowest")
    return head, [(name, *group_cells(group)) for name, group in groups.items() if name]


def group_cells(shapes: Sequence[Compared]) -> Iterable[str]:
    ratios = [one.ratio for one in shapes]
    return (
        str(len(shapes)),
        f"{geometric_mean(ratios):.2f}x",
        str(less(shapes, EQUAL)),
        str(less(shapes, NEAR)),
        f"{min(ratios):.3f}x",
    )


def bars(shapes: Sequence[Compared]) -> list[tuple[str, int]]:
    """How many shapes have a ratio between two EDGES. A ratio that equals an edge counts above it."""
    counts = [0] * (len(EDGES) + 1)
    for one in shapes:
        counts[bisect_right(EDGES, one.ratio)] += 1
    between = [f"{low:.2f}x to {high:.2f}x" for low, high in zip(EDGES, EDGES[1:])]
    names = [f"below {EDGES[0]:.2f}x", *between, f"{EDGES[-1]:.2f}x and above"]
    return list(zip(names, counts))


def histogram(family: str, shapes: Sequence[Compared]) -> Table:
    """A bar has a sign for each shape; of more than 40 in one, for each share of the largest."""
    found = bars(shapes)
    scale = min(1, 40 / max(count for _, count in found))
    lines = [(name, str(count), "#" * ceil(count * scale)) for name, count in found]
    return (f"rate / {baseline_of(family)}", "shapes", ""), lines


def lowest(family: str, shapes: Sequence[Compared]) -> Table:
    ranked = sorted(shapes, key=lambda one: one.ratio)[:SHOWN]
    head = (f"lowest, rate / {baseline_of(family)}", "kind", "schedule", "ratio")
    return head, [(one.shape, one.kind, short(one.name), f"{one.ratio:.3f}x") for one in ranked]


def regret_table(shapes: Sequence[Compared]) -> Table:
    """Where the choice lost most."""
    ranked = sorted(shapes, key=lambda one: -one.regret)[:SHOWN]
    head = ("largest regret", "kind", "chosen", "best", "regret")
    return head, [
        (one.shape, one.kind, short(one.chosen), short(one.best), f"{one.regret:.1%}") for one in ranked
    ]
