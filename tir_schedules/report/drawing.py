"""Matplotlib's figures as SVG in a page: in the page's colours, light and dark, and with its font."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Callable

from markupsafe import Markup

from tir_schedules.bench.plots import LIMIT, LINES, VENDOR, pyplot

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
}


def figure_of(height: int, draw: Callable[[Axes], None], name: str, label: str) -> Markup:
    """An <svg> that `draw(axes)` draws on one pair of axes.

    height: px. name: unique on the page, for its ids. label: what it shows, for screen readers.
    MissingTool without matplotlib.
    """
    plt = pyplot()
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(WIDTH / 72, height / 72), layout="constrained")
        draw(axes)
        for text in figure.findobj(lambda artist: hasattr(artist, "set_fontsize")):
            text.set_fontsize(max(TEXT, text.get_fontsize()))
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
        plt.close(figure)
    return embedded(buffer.getvalue(), name, label)


def embedded(svg: str, name: str, label: str) -> Markup:
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
