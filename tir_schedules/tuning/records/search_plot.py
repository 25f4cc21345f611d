"""Searches as plots: every trial and the best so far."""

from __future__ import annotations

import io
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Sequence

from tir_schedules.bench.plots import LIMIT, METADATA, SCHEDULE, TWIN, VENDOR, label_rates, pyplot
from tir_schedules.files import write_bytes
from tir_schedules.tuning.records.record import MEASURED
from tir_schedules.tuning.records.searches import Search

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def save_plots(searches: Sequence[Search], path: Path) -> list[Path]:
    """Draw every search; returns the files: `path` for one, for several its name with that of the search."""
    several, paths = len(searches) > 1, []
    for search in searches:
        paths.append(path.with_name(f"{path.stem}_{search.stem}{path.suffix}") if several else path)
        write_bytes(paths[-1], drawn_as(search, path.suffix.lower()[1:]))
    return paths


def drawn_as(search: Search, form: str) -> bytes:
    """A plot as the content of a file of that form ("png")."""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    draw_trials(axes, search)
    axes.set_title(search.title)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=form, dpi=130, metadata=METADATA[form])
    plt.close(figure)
    return buffer.getvalue()


def draw_trials(axes: Axes, search: Search) -> None:
    """Microseconds over trials: filled points are measured, hollow ones predicted; a line for the best so
    far.

    Crosses on top are refused candidates.
    """
    micros = [record.median * 1e6 for record in search.records]
    kind = search.records[0].kind
    timed = [place for place, record in enumerate(search.records) if not record.error]
    if timed:
        filled = SCHEDULE if kind == MEASURED else "none"
        heights = [micros[place] for place in timed]
        axes.scatter(timed, heights, s=22, facecolors=filled, edgecolors=SCHEDULE, label=kind)
        so_far, since = list(accumulate(micros, min)), timed[0]
        places = range(since, len(search))
        axes.step(places, so_far[since:], where="post", color=TWIN, linewidth=1.5, label="best so far")
        axes.axhline(so_far[-1], color=VENDOR, linewidth=0.6, linestyle=":", label=f"{so_far[-1]:.4g} us")
        axes.set_yscale("log")
        label_rates(axes.yaxis, *axes.get_ylim())
    refused = [place for place, record in enumerate(search.records) if record.error]
    if refused:
        above = {"clip_on": False, "transform": axes.get_xaxis_transform()}
        heights = [1.02] * len(refused)
        axes.scatter(refused, heights, marker="x", s=22, color=LIMIT, label="refused", **above)
    axes.set_xlabel("trial")
    axes.set_ylabel("us")
    axes.set_xlim(-0.5, len(search) - 0.5)
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=4)
