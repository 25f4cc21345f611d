"""How far predicted times are from measured ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, Sequence

import numpy as np

from tir_schedules.files import Json

HEAD = ("kernels", "refused", "mean", "90 %", "worst", "bias", "Spearman")


@dataclass(frozen=True)
class Figures:
    """Of predictions beside measurements. mean, most, worst: of |predicted / measured - 1|, most: of nine in
    ten; bias: with its sign. spearman: None of fewer than three."""

    kernels: int
    refused: int
    mean: float
    most: float
    worst: float
    bias: float
    spearman: float | None

    @property
    def cells(self) -> tuple[str, ...]:
        if not self.kernels:
            return ("0", str(self.refused), *[""] * 5)
        shares = (f"{100 * each:.1f} %" for each in (self.mean, self.most, self.worst))
        order = "" if self.spearman is None else f"{self.spearman:.3f}"
        return (str(self.kernels), str(self.refused), *shares, f"{100 * self.bias:+.1f} %", order)


def ranks(values: Sequence[float]) -> np.ndarray:
    """Places in order, those of equal values shared."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return ((ends - counts + ends - 1) / 2)[place]


def spearman(some: Sequence[float], others: Sequence[float]) -> float | None:
    """Rank correlation; None of fewer than three, and where all are equal."""
    if len(some) < 3 or len(set(some)) == 1 or len(set(others)) == 1:
        return None
    return float(np.corrcoef(ranks(some), ranks(others))[0, 1])


def losses_of(predicted: Sequence[float], measured: Sequence[float], least: float) -> list[float]:
    """How much longer than `least` the first by predicted time takes, and the fastest of the first five, as
    shares of it."""
    return [time / least - 1 for time in firsts(predicted, measured)]


def firsts(predicted: Sequence[float], measured: Sequence[float]) -> list[float]:
    """The time of the first by predicted time, and of the fastest of the first five."""
    ranked = [time for _, time in sorted(zip(predicted, measured))]
    return [min(ranked[:first]) for first in (1, 5)]


def figures_of(pairs: Iterable[tuple[float | None, float]]) -> Figures:
    """predicted, None where it was refused, and measured of each kernel."""
    listed = [*pairs]
    known = [(predicted, measured) for predicted, measured in listed if predicted is not None]
    if not known:
        return Figures(0, len(listed), 0, 0, 0, 0, None)
    predicted, measured = map(np.array, zip(*known))
    errors = predicted / measured - 1
    size = np.abs(errors)
    return Figures(
        len(known), len(listed) - len(known), float(size.mean()), float(np.quantile(size, 0.9)),
        float(size.max()), float(errors.mean()), spearman(predicted.tolist(), measured.tolist()),
    )  # fmt: skip


def table(lines: Iterable[tuple[str, Figures]], title: str) -> str:
    """A line for each group, in Markdown."""
    rows = [(title, *HEAD), ("---", *["--:"] * len(HEAD)), *((name, *each.cells) for name, each in lines)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def causes(rows: Iterable[Json]) -> dict[str, int]:
    """How many kernels were refused for each reason, the most frequent first."""
    found: dict[str, int] = {}
    for row in rows:
        if reason := row.get("refused"):
            _, _, short = reason.rpartition(": ")
            found[short] = found.get(short, 0) + 1
    return dict(sorted(found.items(), key=lambda one: -one[1]))
