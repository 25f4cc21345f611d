"""Recorded sweeps: one field of a rung's configuration takes one value after another; time, conflicts and
shared memory at each."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from tir_schedules.bench.plots import LINES, MARKERS
from tir_schedules.bench.views import short
from tir_schedules.report.drawing import figure_of
from tir_schedules.report.plots import legend_below
from tir_schedules.report.recorded import Document

VARIED = re.compile(r"(?P<rung>.+?)[:,](?P<field>\w+)=(?P<value>\d+)$")
"""How a sweep names a point: "hgemm/wmma_padded:padded,skew=8"."""

AXES = {
    "skew": "skew, elements that pad a row", "stages": "stages, tiles in shared memory at a time",
    "stripe": "stripe, columns of blocks"
}  # fmt: skip
"""Field of a configuration -> what it counts."""

Row = dict[str, Any]


@dataclass
class Series:
    """One kernel along one field. times: value -> median in us. points: value -> what is known of it without
    a GPU, if recorded."""

    field: str
    rung: str
    form: str
    shape: str
    times: dict[int, float] = field(default_factory=dict)
    points: dict[int, Row] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"{short(self.rung)} on {self.shape}"

    @property
    def values(self) -> list[int]:
        return sorted({*self.times, *self.points})


def series_of(documents: tuple[Document, ...]) -> dict[str, list[Series]]:
    """Field -> its series in the order in which they were recorded; what was recorded last counts."""
    found: dict[tuple[str, ...], Series] = {}
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
    fields = dict.fromkeys(key[0] for key in found)
    return {name: [one for one in found.values() if one.field == name] for name in fields}


def times_svg(series: list[Series], name: str) -> str:
    """Time of each schedule over the value, as a multiple of its best; nothing where no times were
    recorded."""
    timed = [one for one in series if one.form == "schedule" and len(one.times) > 1]
    if not timed:
        return ""

    def draw(axes: Any) -> None:
        values = sorted({value for one in timed for value in one.times})
        for number, one in enumerate(timed):
            least = min(one.times.values())
            at = sorted(one.times)
            places, ratios = [values.index(value) for value in at], [one.times[value] / least for value in at]
            axes.plot(
                places,
                ratios,
                color=LINES[number % 8],
                marker=MARKERS[number % 8],
                markersize=4,
                linewidth=1.2,
                label=one.title,
            )
        axes.set_xticks(range(len(values)), values)
        name_of_axis = AXES.get(series[0].field, series[0].field)
        axes.set(xlabel=name_of_axis, ylabel="time / best of the line", title=f"time over {series[0].field}")
        axes.grid(axis="y", linewidth=0.3)
        legend_below(axes, 0.2, columns=1)

    return figure_of(280 + 18 * len(timed), draw, name, f"time over {series[0].field}")
