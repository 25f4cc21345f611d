"""Tables of ratios: many shapes, each beside the fastest of the vendor's libraries, from one run or several;
and kernels timed with pauses and without."""

from __future__ import annotations

from statistics import geometric_mean
from typing import Any, Iterable

from tir_schedules.bench.tables import provenance_line
from tir_schedules.bench.views import Group, figures, short
from tir_schedules.errors import BadInput
from tir_schedules.subjects.results import device_name

Recording = tuple[Group, dict[str, Any]]
AGREE = 0.02
"""Of a ratio, within which two runs agree."""


def by_shape(recordings: list[Recording], shown: tuple[str, ...]) -> str:
    """A line for each shape: the fastest of the rungs, by the schedule each has there by default, beside the
    fastest of the vendor's libraries; and the ratio of each earlier run."""
    found = [(*each, pairs) for each in recordings if (pairs := fastest_pairs(each[0]))]
    if not found:
        raise BadInput("shapes need a schedule and one of the vendor's libraries: none was timed")
    (group, _, _), *further = found
    pairs = [each for _, _, each in found]
    ratios = [{size: ours["rate"] / theirs for size, (ours, theirs) in each.items()} for each in pairs]
    extents = "M x N x K" if group.unit == "TFLOPS" else "N"
    head = [", ".join(filter(None, (extents, group.kind))), "schedule", group.unit, "vendor", "ratio"]
    lines = [[*head, *("another run" for _ in further)], ["---", "---", *["--:"] * (3 + len(further))]]
    for size, (ours, theirs) in pairs[0].items():
        cells = [size, short(ours["name"]), figures(ours["rate"]), figures(theirs)]
        lines.append([*cells, *(f"{each[size]:.2f}x" if size in each else "" for each in ratios)])
    notes = [f"{gpu(each)}, {provenance_line(each)}." for _, each, _ in found]
    notes += [f"{summed_up(each)}." for each in ratios]
    notes += [agreement(ratios[0], each) for each in ratios[1:] if ratios[0].keys() & each.keys()]
    return with_notes(lines, notes)


def with_notes(lines: Iterable[Iterable[str]], notes: Iterable[str]) -> str:
    """A table in Markdown, and what is to be said of it below. lines: cells, of the headings and of the rule,
    too."""
    return "\n".join([*(f"| {' | '.join(cells)} |" for cells in lines), "", *(f"- {note}" for note in notes)])


def fastest_pairs(group: Group) -> dict[str, tuple[dict[str, Any], float]]:
    """By size, the row of the fastest schedule, and the rate of the fastest of the vendor's libraries."""
    found = {}
    for size in group.sizes:
        rows = [group.cells.get((name, "schedule", size)) for name in group.names]
        ours = max((row for row in rows if row), key=lambda row: row["rate"], default=None)
        theirs = group.vendor_rate(size)
        if ours and theirs:
            found[size] = ours, theirs
    return found


def gpu(recorded: dict[str, Any]) -> str:
    """Its name, and the beginning of its UUID where that is known: two runs may be of two GPUs."""
    number = str((recorded.get("device") or {}).get("uuid") or "")
    return device_name(recorded) + (f" {number[:12]}" if number else "")


def summed_up(ratios: dict[str, float]) -> str:
    mean, least = geometric_mean(ratios.values()), min(ratios, key=lambda size: ratios[size])
    below = sum(ratio < 1 for ratio in ratios.values())
    lowest = f"lowest {ratios[least]:.2f}x (at {least}), {below} below 1x"
    return f"{len(ratios)} shapes: {mean:.3f}x in the geometric mean, {lowest}"


def agreement(ratios: dict[str, float], other: dict[str, float]) -> str:
    """How far two runs are from each other."""
    apart = {size: abs(other[size] / ratio - 1) for size, ratio in ratios.items() if size in other}
    agree, most = sum(each <= AGREE for each in apart.values()), max(apart, key=lambda size: apart[size])
    farthest = f"farthest apart are {ratios[most]:.3f}x and {other[most]:.3f}x at {most}"
    return f"Both runs: {agree} of {len(apart)} ratios agree within {AGREE:.0%}; {farthest}."


def with_and_without_pauses(recordings: list[Recording], shown: tuple[str, ...]) -> str:
    """A line for each kernel: its rate, clock and power where each sample follows a pause, and where none
    does."""
    title = recordings[0][0].title
    runs = {each["policy"].get("sustained") is True: (group, each) for group, each in reversed(recordings)}
    if len(runs) < 2:
        raise BadInput(f"pauses of {title} need a recording with `bench --sustained` and one without")
    (paused, recorded), (sustained, unpaused) = runs[False], runs[True]
    if device_name(recorded) != device_name(unpaused):
        raise BadInput(f"pauses of {title} are of a {device_name(recorded)} and a {device_name(unpaused)}")
    both = [
        (f"{name}, {size}", row, sustained.cells[name, form, size])
        for (name, form, size), row in paused.cells.items()
        if (name, form, size) in sustained.cells
    ]
    if not both:
        raise BadInput(f"pauses of {title}: no kernel was timed with pauses and without")
    head = (
        f"{paused.title}, {paused.unit}",
        "with pauses",
        "MHz",
        "W",
        "without",
        "MHz",
        "W",
        "without / with",
    )
    lines = [head, ("---", *["--:"] * 7)]
    for label, row, other in both:
        lines.append((short(label), *measured(row), *measured(other), f"{other['rate'] / row['rate']:.2f}x"))
    return with_notes(lines, [f"{gpu(recorded)}, {provenance_line(recorded)}."])


def measured(row: dict[str, Any]) -> tuple[str, str, str]:
    """Rate, clock of the SMs by their own count of cycles, power; "-" for what was not read."""
    clock, power = (row.get(name) for name in ("clock_mhz", "power_w"))
    asked = [f"{value:.0f}" if isinstance(value, (int, float)) else "-" for value in (clock, power)]
    return figures(row["rate"]), asked[0], asked[1]
