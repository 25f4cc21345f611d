"""The table of the tuners, a line per shape, for a terminal and as Markdown; several results as one."""

from __future__ import annotations

import re
from math import exp, log
from pathlib import Path
from typing import Any, Sequence

from article_tables import NOTHING, markdown
from tuners_rules import DLIGHT, DLIGHT_RULES, METASCHEDULE

from tir_schedules.bench.tables import THROTTLED, closing_lines, limit, provenance_line, refusal
from tir_schedules.bench.views import Row, figures, rung_in, size_of
from tir_schedules.errors import BadInput
from tir_schedules.subjects.results import device_name, load_results
from tir_schedules.subjects.subject import VENDORS

FAMILIES = ("sgemm", "hgemm")
HAND, TUNED = "hand-chosen", "tuned"
SAME = ("versions", "git_revision", "policy")
PAIRS = {
    "bm": ("", ("bm", "bn", "bk")),
    "wm": ("warp ", ("wm", "wn")),
    "wmiter": ("iter ", ("wmiter", "wniter")),
    "tm": ("thread ", ("tm", "tn")),
}
"""First of the fields that are written together -> the word before them, and all of them."""


def load_tuners(path: Path) -> dict[str, Any]:
    """Read what tuners.py wrote. BadInput, in one line, for another file."""
    return load_results(path, "Tuners", "name a JSON file that `experiments/tuners.py --output` wrote")


def merged(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Documents as one; of a shape that several have, the rows of the last one alone.

    BadInput where device, versions or policy differ.
    """
    first = documents[0]
    for other in documents[1:]:
        unequal = [key for key in SAME if other.get(key) != first.get(key)] + ["device"] * (
            device_name(other) != device_name(first)
        )
        if unequal:
            raise BadInput(
                f"results that differ in {', '.join(unequal)} do not belong into one table: measure again"
            )
    parts: dict[str, list] = {
        "limits": list({row["name"]: row for document in documents for row in document["limits"]}.values())
    }
    owner = {
        task_of(row): number
        for number, document in enumerate(documents)
        for row in (*document["rows"], *document["refused"])
    }
    for key in ("rows", "refused", "points"):
        rows = [(number, row) for number, document in enumerate(documents) for row in document[key]]
        parts[key] = [row for number, row in rows if owner.get(task_of(row), number) == number]
    commands = dict.fromkeys(document["command"] for document in documents)
    return (
        first
        | {"command": "; ".join(commands), "date": max(document.get("date", "") for document in documents)}
        | parts
    )


def task_of(row: Row) -> tuple[str, str]:
    return row["family"], row["shape"]


class Task:
    """What is known of one family on one shape."""

    def __init__(self, family: str, shape: str, results: dict[str, Any]):
        self.family, self.shape = family, shape
        own = {
            key: [row for row in results[key] if task_of(row) == (family, shape)]
            for key in ("rows", "refused", "points")
        }
        self.rows = {row["name"]: row for row in own["rows"]}
        self.refused, self.points = own["refused"], own["points"]

    def point(self, role: str) -> Row | None:
        """The point of a role; of several the one that is fastest."""
        points = [point for point in self.points if point["role"] == role]
        return max(points, key=lambda point: self.rate(point["name"]) or 0, default=None)

    def rate(self, name: str) -> float | None:
        row = self.rows.get(name)
        return row["rate"] if row else None

    def rate_of(self, role: str) -> float | None:
        point = self.point(role)
        return self.rate(point["name"]) if point else None

    @property
    def ratio(self) -> float | None:
        """Rate of the tuned kernel over that of the hand-chosen one; None unless both were timed."""
        tuned, hand = self.rate_of(TUNED), self.rate_of(HAND)
        return tuned / hand if tuned and hand else None

    def cell(self, name: str) -> str:
        """A rate, marked when the GPU throttled; "refused", or nothing when it was not asked for."""
        row = self.rows.get(name)
        if row:
            return figures(row["rate"]) + (THROTTLED if row.get("throttled") else "")
        return "refused" if any(row["name"] == name for row in self.refused) else ""

    def described(self, role: str) -> tuple[str, str]:
        """Rung and configuration, and rate, of the hand-chosen or the tuned kernel."""
        point = self.point(role)
        return (described(point), self.cell(point["name"])) if point else ("", "")

    def line(self) -> tuple[str, ...]:
        found = self.point(METASCHEDULE)
        refused = sum(each["count"] for each in found["refused"]) if found else 0
        trials = (f"{found['trials']}" + (f", {refused} refused" if refused else "")) if found else ""
        ratio = f"{self.ratio:.2f}x" if self.ratio else ""
        others = (self.cell(DLIGHT), self.cell(METASCHEDULE), trials, self.cell(VENDORS[self.family]))
        return (size_of({"shape": self.shape}), *self.described(HAND), *self.described(TUNED), ratio, *others)

    def notes(self) -> list[str]:
        """What dlight took, where that is not its first rule, and what was refused in the search."""
        size, found, dlight = size_of({"shape": self.shape}), self.point(METASCHEDULE), self.point(DLIGHT)
        first = DLIGHT_RULES[self.family][0]
        notes = []
        if dlight and dlight["rule"] != first:
            notes.append(f"{DLIGHT} on {size}: {first} does not take it, {dlight['rule']} does.")
        if found and found["refused"]:
            listed = [
                f"{each['count']} {each['kind']} ({first_error(each['reason'])})" for each in found["refused"]
            ]
            notes.append(f"Refused in the search of {METASCHEDULE} on {size}: {', '.join(listed)}.")
        return notes


def first_error(reason: str) -> str:
    """Of what nvcc says, its first error."""
    first = re.split(r" \S+\.cu\(\d+\): error", reason.partition(".cu(")[2])[0]
    return first.partition("error: ")[2] or reason


def described(point: Row) -> str:
    """ "multistage 128x128x16, warp 64x32, stages 4": the rung and its configuration."""
    config, parts = point["config"], []
    together = {name for _, names in PAIRS.values() for name in names}
    for name, value in config.items():
        before, names = PAIRS.get(name, ("", ()))
        if names:
            parts.append(before + "x".join(str(config[each]) for each in names))
        elif name not in together:
            parts.append(f"{name} {value}")
    return f"{rung_in(point['name'])} {', '.join(parts)}"


def tasks_of(family: str, results: dict[str, Any]) -> list[Task]:
    """Shapes of a family in the order they were measured."""
    shapes = dict.fromkeys(
        row["shape"] for row in (*results["rows"], *results["refused"]) if row["family"] == family
    )
    return [Task(family, shape, results) for shape in shapes]


def table(family: str, results: dict[str, Any]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headings and a line per shape."""
    kinds = dict.fromkeys(task.shape.partition(" ")[2] for task in tasks_of(family, results))
    title = " ".join(filter(None, (family, *kinds)))
    heads = (
        f"{title}, TFLOPS",
        "hand-chosen",
        "its rate",
        "tuned",
        "its rate",
        "tuned / hand-chosen",
        DLIGHT,
        METASCHEDULE,
        "its trials",
    )
    return (*heads, VENDORS[family]), [task.line() for task in tasks_of(family, results)]


def notes_of(family: str, results: dict[str, Any]) -> list[str]:
    """What must be known to read the table."""
    tasks = tasks_of(family, results)
    own = results | {
        key: [row for row in results[key] if row["family"] == family] for key in ("rows", "refused")
    }
    found = [f"{device_name(results)}, {provenance_line(own)}."]
    found += [f"Limits: {'; '.join(map(limit, results['limits']))}."] if results["limits"] else []
    ratios = [task.ratio for task in tasks if task.ratio]
    if ratios:
        mean = exp(sum(map(log, ratios)) / len(ratios))
        found.append(f"Tuned / hand-chosen: {mean:.3f}x in the geometric mean, lowest {min(ratios):.3f}x.")
    searches = [found["search_s"] for found in (task.point(METASCHEDULE) for task in tasks) if found]
    if searches:
        found.append(f"A search of {METASCHEDULE} took {min(searches):.0f} to {max(searches):.0f} s.")
    found += [note for task in tasks for note in task.notes()]
    marks = [line for line in closing_lines(own) if line.startswith(THROTTLED)]
    return found + marks + list(map(refusal, own["refused"]))


def section(name: str, results: dict[str, Any] | None) -> str:
    """A family's table as Markdown, or a line that says that nothing is recorded."""
    if name not in FAMILIES:
        raise BadInput(f"there is no table of {name!r}; there are {', '.join(FAMILIES)}")
    if not results or not tasks_of(name, results):
        return NOTHING
    notes = "\n".join(f"- {note}" for note in notes_of(name, results))
    return f"{markdown(*table(name, results))}\n\n{notes}".replace(THROTTLED, f"\\{THROTTLED}")
