"""Results drawn with matplotlib: the ladder at its largest size, and every rung over all sizes. One figure
per family and kind; of drawn shapes one per family."""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path
from typing import Any, Callable, Sequence

from tir_schedules.bench.distribution import EDGES, Compared, bars, baseline_of, compared, counted
from tir_schedules.bench.tables import part
from tir_schedules.bench.views import Group, figures, groups_of, short
from tir_schedules.errors import BadInput, MissingTool
from tir_schedules.files import Json, write_bytes
from tir_schedules.ladders.known import ladder_of
from tir_schedules.subjects.results import device_name

SUFFIXES = (".png", ".svg", ".pdf")
SCHEDULE, TWIN, VENDOR, LIMIT = "#0072B2", "#E69F00", "#000000", "#999999"
LINES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C6D1F", "#5B4B8A")
"""Okabe and Ito's palette, which colour-blind people can tell apart, with two of their darker neighbours."""
MARKERS = "osD^vPX*"
METADATA = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""Form of a file -> what leaves out of it what differs from run to run."""
NAME, LINE = 32, 60  # characters of a name, and of one with a line to itself, that leave room to draw
LONG = 8  # characters of a size that stands level beside others


def check_plot(path: Path) -> None:
    """BadInput for a file name that no plot can have; MissingTool without matplotlib."""
    if path.suffix.lower() not in SUFFIXES:
        raise BadInput(f"--plot takes a file that ends in {', '.join(SUFFIXES)}, not {path.name!r}")
    pyplot()


def pyplot() -> Any:
    """Matplotlib without a display, drawing the same file every time."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise MissingTool(
            "plots are drawn with matplotlib, which is not installed: pip install 'tir_schedules[plot]'"
        ) from None
    matplotlib.use("Agg")
    matplotlib.rcParams.update(
        {
            "svg.hashsalt": "tir_schedules",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "font.size": 9,
        }
    )
    matplotlib.rcParams["text.parse_math"] = False  # a $ in a name is not a formula
    from matplotlib import pyplot

    return pyplot


def save_plots(results: Json, path: Path) -> list[Path]:
    """Draw every group, or of drawn shapes the ratios of every ladder; the first into `path`, of several each
    into a file with its name before the suffix. Returns the files."""
    made: dict[str, Callable[[str], bytes]] = {
        family: partial(draw_distribution, family, shapes, results)
        for family, shapes in compared(results).items()
    } or {group.title: partial(draw_figure, group, results) for group in groups_of(results) if group.cells}
    paths = []
    for title, draw in made.items():
        own = f"_{title.replace(' ', '_')}" if len(made) > 1 else ""
        paths.append(path.with_name(f"{path.stem}{own}{path.suffix}"))
        write_bytes(paths[-1], draw(path.suffix.lower()[1:]))
    return paths


def draw_figure(group: Group, results: Json, form: str) -> bytes:
    """A figure as the content of a file of that form ("png")."""
    plt = pyplot()
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(13, 0.35 * max(len(group.names), 8) + 2.2), layout="constrained"
    )
    figure.suptitle(f"{group.title} on {device_name(results)}", fontsize=12)
    draw_ladder(left, group, results["limits"])
    draw_sizes(right, group)
    return content_of(figure, form)


def draw_distribution(family: str, shapes: Sequence[Compared], results: Json, form: str) -> bytes:
    """The histogram of ratios to the fastest library, and the ratio of each drawn shape, by kind."""
    plt = pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4.5), layout="constrained")
    figure.suptitle(f"{counted(len(shapes))} drawn for {family} on {device_name(results)}", fontsize=12)
    names, counts = zip(*bars(shapes))
    left.bar_label(left.bar(range(len(names)), counts, color=SCHEDULE), padding=2, fontsize=7)
    left.set_xticks(range(len(names)), names, rotation=30, ha="right")
    left.set_ylabel("shapes")
    left.set_xlabel(f"rate / {baseline_of(family)}")
    ranked = sorted(shapes, key=lambda one: one.ratio)
    for place, kind in enumerate(dict.fromkeys(one.kind for one in shapes)):
        of_kind = [(index, one.ratio) for index, one in enumerate(ranked) if one.kind == kind]
        color, marker = LINES[place % len(LINES)], MARKERS[place % len(MARKERS)]
        right.plot(*zip(*of_kind), marker, color=color, markersize=4, label=cut(kind))
    right.axhline(1, color=VENDOR, linestyle="--", linewidth=1)
    right.set_yscale("log")
    right.minorticks_off()
    right.set_yticks(EDGES, [f"{edge:g}" for edge in EDGES])
    right.set_xlabel("shapes, lowest ratio first")
    right.set_ylabel(f"rate / {baseline_of(family)}")
    right.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=8)
    return content_of(figure, form)


def content_of(figure: Any, form: str) -> bytes:
    """A figure, which is closed, as the content of a file of that form ("png")."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=form, dpi=130, metadata=METADATA[form])
    pyplot().close(figure)
    return buffer.getvalue()


def draw_ladder(axes: Any, group: Group, limits: list[Json]) -> None:
    """Bars of schedule and twin per rung at the largest size, first rung on top; lines for the vendor's
    library and the limit."""
    size = group.sizes[-1]
    for form, offset, color in (("schedule", -0.2, SCHEDULE), (group.twin, 0.2, TWIN)):
        rates = [group.rate(name, form, size) or 0 for name in group.names]
        texts = [part(group, name, form, size) for name in group.names]
        places = [index + offset for index in range(len(group.names))]
        bars = axes.barh(places, rates, height=0.38, color=color, label=form)
        axes.bar_label(bars, texts, padding=2, fontsize=7)
    vendor = group.vendor_rate(size)
    if vendor:
        axes.axvline(
            vendor,
            color=VENDOR,
            linestyle="--",
            linewidth=1,
            label=f"{cut(group.baseline)} {figures(vendor)}",
        )
    for limit in limits:
        if limit["name"] == ladder_of(group.family).limit:
            axes.axvline(
                limit["rate"],
                color=LIMIT,
                linestyle=":",
                linewidth=1.5,
                label=f"{limit['name']} {figures(limit['rate'])}",
            )
    axes.set_yticks(range(len(group.names)), [cut(short(name)) for name in group.names])
    axes.invert_yaxis()
    axes.set_xlabel(group.unit)
    axes.set_title(f"the ladder at {size}")
    axes.margins(x=0.1)
    named = sorted(
        zip(*axes.get_legend_handles_labels()), key=lambda pair: pair[1] not in ("schedule", group.twin)
    )
    axes.legend(*zip(*named), loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=4, frameon=False)


def cut(name: str, most: int = NAME) -> str:
    """A name without its end, where it would leave no room for what is drawn."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def draw_sizes(axes: Any, group: Group) -> None:
    """Rate of every schedule over size, and the vendor's library as a dashed line."""
    places = range(len(group.sizes))
    for index, name in enumerate(group.names):
        rates = [group.rate(name, "schedule", size) for size in group.sizes]
        color, marker = LINES[index % len(LINES)], MARKERS[index % len(MARKERS)]
        dashes = "-" if index < len(LINES) else "-."
        axes.plot(
            places,
            nans(rates),
            dashes,
            color=color,
            marker=marker,
            markersize=4,
            linewidth=1.2,
            label=cut(short(name)),
        )
    if group.vendors:
        axes.plot(
            places,
            nans([group.vendor_rate(size) for size in group.sizes]),
            "--",
            color=VENDOR,
            linewidth=1.2,
            label=cut(group.baseline),
        )
    axes.set_yscale("log")
    label_rates(axes.yaxis, *axes.get_ylim())
    axes.set_xticks(places, group.sizes, rotation=20 if max(map(len, group.sizes)) > LONG else 0)
    axes.set_xlabel(ladder_of(group.family).axis)
    axes.set_ylabel(group.unit)
    axes.set_title("schedules over size")
    axes.grid(axis="y", which="both", linewidth=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=8)


def label_rates(axis: Any, least: float, most: float) -> None:
    """Label a logarithmic axis that goes from `least` to `most`: as `rate_on_axis`, or every tick where it
    has less than a power of ten."""
    written = rate_on_axis if most >= 10 * least else "{x:g}"
    axis.set_major_formatter(written)
    axis.set_minor_formatter(written)


def rate_on_axis(rate: float, position: int | None) -> str:
    """Labels of a logarithmic axis: 1, 2 and 5 of each power of ten."""
    return f"{rate:g}" if f"{rate:.0e}"[0] in "125" else ""


def nans(rates: list[float | None]) -> list[float]:
    """Gaps in a line where there is no rate."""
    return [float("nan") if rate is None else rate for rate in rates]
