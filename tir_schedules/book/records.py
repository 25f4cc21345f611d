"""Recorded figures by key: what chapters show beside their code, and what prose looks up.

They are files of experiments/results. An installed package does not have them; then chapters have no measured
times, and say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any, Iterator, Sequence

from tir_schedules.bench.views import Group, figures
from tir_schedules.errors import BadInput
from tir_schedules.files import Json, read_json
from tir_schedules.ladders.known import FAMILIES
from tir_schedules.report.agreement import Agreement, agreement_of
from tir_schedules.report.recorded import DEFAULT_FOLDER, REMEDY, Document, Recorded, find_recorded, origin
from tir_schedules.subjects.results import device_name

ABSENT = (
    "Recorded results are not installed with the package, so chapters show no measured times. A checkout of"
    " the repository has them; `tir-schedules book --results FOLDER` takes yours."
)

SPLIT = "split_precision/rungs_*.json"
"""Benchmarks of rungs whose float32 is split for tensor cores; chapters show them as well."""

VENDORS = {"best of cuBLAS": "the faster of cuBLAS and cuBLASLt"}
"""Baseline of a benchmark -> what a chapter calls it."""

MOST_SIZES = 6


@dataclass(frozen=True)
class Gain:
    """What a rung gained. title: of the recording, such as "sgemm". sizes: labels. rows: name and cells.
    origin: device, versions and date."""

    title: str
    unit: str
    sizes: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]
    origin: str

    @property
    def sizes_heads(self) -> list[str]:
        return [f"{size}#" for size in self.sizes]


@dataclass(frozen=True)
class Predicted:
    """A time as it was predicted, and measured. error: of the prediction, in percent of what was measured."""

    form: str
    shape: str
    measured: str
    predicted: str
    error: str


@dataclass(frozen=True)
class Records:
    """folder: of recorded files. found: results of benchmarks and counters. of_book: whether they are those
    of the repository, which the book's prose is about."""

    folder: Path
    found: Recorded
    of_book: bool = True

    # ---- for chapters
    def gains(self, name: str, before: Sequence[str]) -> Iterator[Gain]:
        """Gains in every recorded kind of a ladder that has the rung. before: the rungs below it, the nearest
        last."""
        for title in self.found.recordings:
            found = self.best(title, name)
            if not found:
                continue
            group, document = found
            below = [one for one in before if any(key[0] == one for key in group.cells)][-1:]
            sizes = shown_sizes(group, name)
            ours = [group.rate(name, "schedule", size) for size in sizes]
            others = {f"rate / that of {one}": [group.rate(one, "schedule", size) for size in sizes]
                      for one in below}  # fmt: skip
            others[f"rate / that of {VENDORS.get(group.baseline, group.baseline)}"] = [
                group.vendor_rate(size) for size in sizes
            ]
            rows = [("this rung", [*map(rate_cell, ours)])]
            rows += [("its twin", [rate_cell(group.rate(name, group.twin, size)) for size in sizes])]
            rows += [(said, [*map(quotient, ours, theirs)]) for said, theirs in others.items()]
            rows = [row for row in rows if any(row[1])]
            yield Gain(title, group.unit, sizes, rows, origin(document))

    def predicted(self, name: str) -> list[Predicted]:
        """Predicted times of a rung beside measured ones."""
        family = name.partition("/")[0]
        rows = self.predictions.get(family, {}).get("rows", ())
        return [
            Predicted(
                row["form"].partition(",")[0], row["shape"], f"{row['median_us']:,.1f}", f"{row['us']:,.1f}",
                f"{100 * (row['us'] / row['median_us'] - 1):+.1f}",
            )
            for row in rows
            if row["name"] == name and row.get("us")
        ]  # fmt: skip

    def predicted_on(self, name: str) -> str:
        return self.predictions[name.partition("/")[0]]["device"]["name"]

    @cached_property
    def predictions(self) -> dict[str, Json]:
        """Predictions of each ladder that has some: those of an H100 if there are several, because all rungs
        were timed on one."""
        paths = {
            family: path for family in FAMILIES
            for path in sorted((self.folder / "predictions").glob(f"{family}_*.json"), reverse=True)
        }  # fmt: skip
        return {family: read_object(path) for family, path in paths.items()}

    @cached_property
    def agreement(self) -> Agreement:
        return agreement_of(self.found.counters)

    def best(self, title: str, *names: str) -> tuple[Group, Document] | None:
        """Among the recordings that have the rungs, the one with most usual sizes of the first rung, and
        among those the one with most rungs."""
        able = [
            one for one in self.found.recordings.get(title, ())
            if all(any(key[:2] == (name, "schedule") for key in one[0].cells) for name in names)
        ]  # fmt: skip
        return max(able, key=lambda one: len(usual_sizes(one[0], names[0])), default=None)

    # ---- for prose
    def recorded(self, title: str, size: str, *names: str) -> tuple[Group, list[float]]:
        """Rates of rungs in one recording. BadInput where there is none."""
        found = self.best(title, *names)
        rates = [found[0].rate(name, "schedule", size) for name in names] if found else [None]
        if not found or None in rates:
            raise BadInput(f"nothing is recorded of {' and '.join(names)} at {size} in {title!r}")
        return found[0], [rate for rate in rates if rate]

    def rate(self, title: str, name: str, size: str) -> str:
        """ "12.6 TFLOPS"."""
        group, (rate,) = self.recorded(title, size, name)
        return f"{figures(rate)} {group.unit}"

    def gain(self, title: str, name: str, before: str, size: str) -> str:
        """ "2.60": the rate of a rung over that of another."""
        _, (ours, theirs) = self.recorded(title, size, name, before)
        return f"{ours / theirs:.2f}"

    def device(self, title: str, name: str) -> str:
        """The GPU that a rung was measured on."""
        found = self.best(title, name)
        if not found:
            raise BadInput(f"nothing is recorded of {name} in {title!r}")
        return device_name(found[1])

    def error(self, family: str) -> str:
        """The median of the errors of predicted times, in percent, without their signs."""
        if family not in self.predictions:
            raise BadInput(f"no predicted time of {family} is recorded")
        rows = self.predictions[family]["rows"]
        return f"{median(abs(row['us'] / row['median_us'] - 1) * 100 for row in rows if row.get('us')):.0f}"

    def count(self, what: str) -> str:
        """The number of launches whose counters were compared. what: "launches" counts all of them, and
        "equal" those whose counters are all as predicted."""
        found = {"launches": len(self.agreement.launches), "equal": self.agreement.equal}
        return f"{found[what]:,}"


def rate_cell(rate: float | None) -> str:
    return figures(rate) if rate else ""


def quotient(ours: float | None, theirs: float | None) -> str:
    return f"{ours / theirs:.2f}" if ours and theirs else ""


def usual_sizes(group: Group, name: str) -> list[str]:
    """Sizes of a rung that are cubes or powers of two, as tables have them."""
    return [size for size in group.sizes if "x" not in size and group.rate(name, "schedule", size)]


def shown_sizes(group: Group, name: str) -> list[str]:
    """The usual sizes, or the first few others where a rung has no usual ones."""
    others = [size for size in group.sizes if group.rate(name, "schedule", size)]
    return usual_sizes(group, name) or others[:MOST_SIZES]


def read_object(path: Path) -> Json:
    content: Any = read_json(path, REMEDY)
    if not isinstance(content, dict) or "rows" not in content:
        raise BadInput(f"{path} has no predicted times")
    return content


def find_records(folder: Path | None) -> Records | None:
    """The recorded files of a folder; None where none is named and the package was installed without them.
    BadInput for a folder without results."""
    if folder is None and not DEFAULT_FOLDER.is_dir():
        return None
    if folder is not None and not folder.is_dir():
        raise BadInput(f"--results {folder}: there is no such folder")
    paths = [folder] if folder else [DEFAULT_FOLDER, *sorted(DEFAULT_FOLDER.glob(SPLIT))]
    return Records(folder or DEFAULT_FOLDER, find_recorded(paths), folder is None)
