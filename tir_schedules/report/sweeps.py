"""Recorded sweeps of one field of a rung's configuration: time, bank conflicts and shared memory at each
value."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tir_schedules.bench.plots import LINE, LINES, MARKERS, cut
from tir_schedules.bench.views import Row, short
from tir_schedules.report.plots import figure_of, legend_below
from tir_schedules.report.recorded import Document

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes

VARIED = re.compile(r"(?P<rung>.+?)[:,](?P<field>\w+)=(?P<value>\d+)$")
"""How a sweep names a point: "hgemm/wmma_padded:article_004,padding=8"."""

FIELDS = {
    "padding": "padding",
    "stages": "pipeline stages",
    "threadblock_swizzle": "threadblock swizzle",
}
"""Field of a configuration -> its name."""

AXES = {
    "padding": "padding, elements after a row",
    "block": "block, threads",
    "threadblock swizzle": "threadblock swizzle, columns of blocks",
}
"""Name of a field -> what an axis says, where that is more."""


@dataclass
class Series:
    """One kernel along one field. times: value -> median in us. points: value -> what is recorded of it
    without a GPU."""

    recorded_field: str
    rung: str
    form: str
    shape: str
    times: dict[int, float] = field(default_factory=dict)
    points: dict[int, Row] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the field."""
        return FIELDS.get(self.recorded_field, self.recorded_field)

    @property
    def axis(self) -> str:
        """What an axis of the field says."""
        return AXES.get(self.name, self.name)

    @property
    def title(self) -> str:
        return f"{short(self.rung)} on {self.shape}"

    @property
    def values(self) -> list[int]:
        return sorted({*self.times, *self.points})


def series_of(documents: tuple[Document, ...]) -> dict[str, list[Series]]:
    """Name of a field -> its series in the order in which they were recorded; the last recorded values
    count."""
    found: dict[tuple[str, str, str, str], Series] = {}
    for document in documents:
        for row in (*document["rows"], *document.get("points", ())):
            match = VARIED.fullmatch(row["name"])
            if match:
                key = (match["field"], match["rung"], row["form"], row["shape"])
                one = found.setdefault(key, Series(*key))
                if "median_us" in row:
                    one.times[int(match["value"])] = row["median_us"]
                else:
                    one.points[int(match["value"])] = row
    names = dict.fromkeys(one.name for one in found.values())
    return {name: [one for one in found.values() if one.name == name] for name in names}


def times_svg(series: list[Series], name: str) -> Markup | str:
    """Time of each schedule over the value, as a multiple of its best; empty without recorded times."""
    timed = [one for one in series if one.form == "schedule" and len(one.times) > 1]
    if not timed:
        return ""

    def draw(axes: Axes) -> None:
        values = sorted({value for one in timed for value in one.times})
        for number, one in enumerate(timed):
            best, at = min(one.times.values()), sorted(one.times)
            places, ratios = [values.index(value) for value in at], [one.times[value] / best for value in at]
            axes.plot(
                places,
                ratios,
                color=LINES[number % 8],
                marker=MARKERS[number % 8],
                markersize=4,
                linewidth=1.2,
                label=cut(one.title, LINE),
            )
        axes.set_xticks(range(len(values)), list(map(str, values)))
        axes.set(xlabel=series[0].axis, ylabel="time / best of the line", title=title)
        axes.grid(axis="y", linewidth=0.3)
        legend_below(axes, 0.2, columns=1)

    title = f"time over {series[0].name}"
    return figure_of(280 + 18 * len(timed), draw, name, title)
