"""Two results of the same GPU side by side: what became slower or faster, and whether it is a regression."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from tir_schedules.bench.tables import label
from tir_schedules.console import print_line, print_table
from tir_schedules.errors import BadInput, shown
from tir_schedules.files import Json
from tir_schedules.numerals import percentage
from tir_schedules.subjects.results import device_name

THRESHOLD = 0.03


@dataclass(frozen=True)
class Change:
    """One row in both results. label, shape: what it is; old_us, new_us: medians; spread: the larger of both
    (a share of the median)."""

    label: str
    shape: str
    old_us: float
    new_us: float
    spread: float
    vendor: bool

    @property
    def slower(self) -> float:
        """How much longer it takes now, as a share of the time before; negative when it became faster."""
        return self.new_us / self.old_us - 1

    def regression(self, threshold: float) -> bool:
        """Slower by more than the threshold and than either run scattered. A vendor's library is not ours to
        regress."""
        return not self.vendor and self.slower > max(threshold, self.spread)

    def notable(self, threshold: float) -> bool:
        return abs(self.slower) > threshold


@dataclass(frozen=True)
class Comparison:
    """changes: one per row in both, in the order of the new results. only_old, only_new: how many rows have
    no partner."""

    changes: list[Change]
    only_old: int
    only_new: int

    def regressions(self, threshold: float) -> list[Change]:
        return [change for change in self.changes if change.regression(threshold)]


def compare(old: Json, new: Json) -> Comparison:
    """Match rows by family, name, form and shape. BadInput when the results are of different GPUs."""
    check_same_device(old, device_name(new))
    before, after = ({identity(row): row for row in results["rows"]} for results in (old, new))
    changes = [change_of(before[key], row) for key, row in after.items() if key in before]
    return Comparison(changes, len(before.keys() - after.keys()), len(after.keys() - before.keys()))


def check_same_device(old: Json, name: str) -> None:
    """BadInput when old results are of a GPU with another name."""
    if device_name(old) != name:
        raise BadInput(
            f"the results to compare with are of {device_name(old)}, these are of {name}; times of one GPU"
            " can be compared"
        )


def identity(row: Json) -> tuple[str, ...]:
    return row["family"], row["name"], row["form"], row["shape"]


def change_of(old: Json, new: Json) -> Change:
    spread = max(old["spread"], new["spread"])
    return Change(
        label(new), new["shape"], old["median_us"], new["median_us"], spread, new["form"] == "vendor"
    )


def print_comparison(comparison: Comparison, threshold: float) -> None:
    """A table of what changed by more than the threshold, and a closing line."""
    notable = [change for change in comparison.changes if change.notable(threshold)]
    if notable:
        print_table(
            ("changed", "shape", "old us", "new us", "time", ""),
            [line(change, threshold) for change in notable],
            keys=2,
        )
    unmatched = f"; {comparison.only_old} only in the old results, {comparison.only_new} only in the new"
    same = len(comparison.changes) - len(notable)
    regressions = len(comparison.regressions(threshold))
    print_line(
        f"{len(comparison.changes)} compared: {same} within {100 * threshold:.4g}%, {regressions} regressions"
        + (unmatched if comparison.only_old or comparison.only_new else "")
    )


def line(change: Change, threshold: float) -> tuple[str, ...]:
    """A change as the cells of a table."""
    verdict = "faster" if change.slower < 0 else "REGRESSION" if change.regression(threshold) else "slower"
    if verdict == "slower":
        verdict += ", the vendor's own" if change.vendor else ", within the spread"
    return (
        change.label,
        change.shape,
        f"{change.old_us:.2f}",
        f"{change.new_us:.2f}",
        f"{100 * change.slower:+.1f}%",
        verdict,
    )


def as_json(comparison: Comparison, threshold: float) -> Json:
    """The comparison with all its rows."""
    changes = [
        {**asdict(change), "slower": change.slower, "regression": change.regression(threshold)}
        for change in comparison.changes
    ]
    unmatched = {"only_old": comparison.only_old, "only_new": comparison.only_new}
    return {"threshold": threshold, **unmatched, "changes": changes}


def parse_threshold(text: str) -> float:
    """ "3%" as 0.03. BadInput for anything else."""
    try:
        return percentage(text) / 100
    except ValueError:
        raise BadInput(f"--threshold takes a percentage such as 3%, not {shown(text)}") from None
