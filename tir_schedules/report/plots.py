"""The plots of a report: a ladder at its largest size, its rungs over all sizes, and the roofline of the GPU;
as SVG in the page's colours, light and dark, and with its font."""

from __future__ import annotations

import io
import re
from math import log10
from typing import TYPE_CHECKING, Callable

from markupsafe import Markup

from tir_schedules.bench.plots import LIMIT, LINES, TWIN, VENDOR, draw_ladder, draw_sizes, label_rates, pyplot
from tir_schedules.bench.views import Group, short
from tir_schedules.report.recorded import Document
from tir_schedules.report.roofs import Point, Roofs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 360
"""Width of a figure in px, that of a phone; a page shows it no smaller."""

TEXT = 11  # px
GRID = "#b0b0b0"  # matplotlib's own
COLORS = {VENDOR: "currentColor", LIMIT: "var(--quiet)", GRID: "var(--line)"} | {
    color: f"var(--c{number})" for number, color in enumerate(LINES, 1)
}
"""Colours of the benchmark's plots -> those of the page's style."""

STYLE = {
    "svg.fonttype": "none",
    "font.size": TEXT,
    "axes.titlesize": TEXT + 1,
    "axes.titlelocation": "left",
    "axes.linewidth": 0.6,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
}


def figure_of(height: int, draw: Callable[[Axes], None], name: str, label: str) -> Markup:
    """An <svg> that `draw(axes)` draws on one pair of axes.

    height: px. name: unique on the page, for its ids. label: what it shows, for screen readers.
    MissingTool without matplotlib.
    """
    plt = pyplot()
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(WIDTH / 72, height / 72), layout="constrained")
        draw(axes)
        for text in figure.findobj(lambda artist: hasattr(artist, "set_fontsize")):
            text.set_fontsize(max(TEXT, text.get_fontsize()))
        buffer = io.StringIO()
        # savefig would draw it twice.
        FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None})
        plt.close(figure)
    return embed_svg(buffer.getvalue(), name, label)


def embed_svg(svg: str, name: str, label: str) -> Markup:
    """A file of matplotlib, which escapes its texts, as an element of a page: with ids of its own, and the
    page's font and colours."""
    name = re.sub(r"[^\w-]", "-", name)
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg[svg.index("<svg") :], flags=re.S)
    start = Markup('<svg role="img" aria-label="{}" fill="currentColor" viewBox').format(label)
    svg = re.sub(r"<svg [^>]*?viewBox", lambda _: start, svg, count=1, flags=re.S)
    svg = re.sub(r' version="1.1"|  xmlns\S*|\s*<!--.*?-->', "", svg, flags=re.S)
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    svg = re.sub(
        r"font: (bold )?([\d.]+)px [^;\"]*",
        lambda font: f"font-size: {font[2]}px" + "; font-weight: bold" * bool(font[1]),
        svg,
    )
    for color, name in COLORS.items():
        svg = re.sub(f"(fill|stroke): {color}", rf"\1: {name}", svg, flags=re.I)
    return Markup(svg)


ROW = 31  # px per rung of a ladder
CLOSE = 2.2  # decades of an axis that has labels between powers of ten
BESIDE = 26  # letters of a name that another fits beside in a legend
NEAR = 0.3  # decades of intensity, or half as many of the rate


def ladder_svg(group: Group, document: Document, name: str) -> Markup:
    """Bars of schedule and twin per rung at the largest size."""
    height = ROW * max(len(group.names), 4)

    def draw(axes: Axes) -> None:
        draw_ladder(axes, group, document["limits"])
        legend_below(axes, 40 / height)

    return figure_of(height + 120, draw, name, f"rates of {group.title} at {group.sizes[-1]}")


def sizes_svg(group: Group, name: str) -> Markup:
    """Rate of every schedule over size."""
    columns = 2 if max(map(len, map(short, group.names))) <= BESIDE else 1
    lines = (len(group.names) + columns) // columns

    def draw(axes: Axes) -> None:
        draw_sizes(axes, group)
        legend_below(axes, 0.17, columns)

    return figure_of(300 + 17 * lines, draw, name, f"rates of {group.title} over size")


def legend_below(axes: Axes, gap: float, columns: int = 2) -> None:
    """The axes' legend, below them. gap: share of their height."""
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.4, -gap),
        ncols=columns,
        frameon=False,
        columnspacing=1,
        handlelength=1.6,
    )


def roofline_svg(roofs: Roofs, rungs: list[Point], best: list[Point], name: str) -> Markup:
    """The roofline: rungs by the bytes that their accesses ask for, the best schedule of each size by the
    compulsory bytes."""

    def draw(axes: Axes) -> None:
        points = [*rungs, *best]
        low, high = min(point.intensity for point in points) / 4, max(point.intensity for point in points) * 4
        line = [low, *([roofs.ridge] if low < roofs.ridge < high else []), high]
        axes.plot(
            line, [roofs.limit(intensity) for intensity in line], color=VENDOR, linewidth=1.2, label="roof"
        )
        axes.plot(
            [p.intensity for p in rungs],
            [p.rate for p in rungs],
            "o",
            color=LINES[0],
            markersize=5,
            label="rung" if rungs else None,
        )
        for at, numbers in clusters(rungs):
            axes.annotate(
                number_ranges(numbers),
                (at.intensity, at.rate),
                xytext=(-6, 1),
                textcoords="offset points",
                ha="right",
            )
        axes.plot(
            [p.intensity for p in best],
            [p.rate for p in best],
            "D",
            color=TWIN,
            markersize=5,
            label="best schedule of a size",
        )
        axes.set(
            xscale="log",
            yscale="log",
            xlabel="arithmetic intensity (flop/byte)",
            ylabel="TFLOPS",
            title="roofline",
        )
        for axis, (least, most) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            label_rates(axis, least, most)
            if decades(least, most) > CLOSE:
                axis.set_minor_formatter("")
        axes.grid(which="major", linewidth=0.3)
        legend_below(axes, 0.17)

    return figure_of(330, draw, name, "roofline")


def clusters(points: list[Point]) -> list[tuple[Point, list[int]]]:
    """Points so close to each other that they share a label: one of them, and the numbers of all, from 1."""
    found: list[tuple[Point, list[int]]] = []
    for number, point in enumerate(points, 1):
        near = (
            numbers
            for at, numbers in found
            if max(decades(at.intensity, point.intensity), 2 * decades(at.rate, point.rate)) < NEAR
        )
        numbers = next(near, None)
        if numbers is None:
            found.append((point, [number]))
        else:
            numbers.append(number)
    return found


def number_ranges(numbers: list[int]) -> str:
    """ "3–9" of numbers that follow each other, "3,5" of others."""
    first, last = numbers[0], numbers[-1]
    return (
        f"{first}–{last}"
        if len(numbers) > 2 and last - first == len(numbers) - 1
        else ",".join(map(str, numbers))
    )


def decades(one: float, another: float) -> float:
    return abs(log10(one / another))
