"""Sweeps drawn: a row of panels for each table, what is predicted on the left and, where it was timed, the
rate on the right."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Sequence

from sweep_points import FORMS, Sweep
from sweep_tables import MIB, Part, Table, tables

from tir_schedules.bench.plots import SCHEDULE, TWIN, content_of, pyplot
from tir_schedules.files import write_bytes
from tir_schedules.subjects.results import device_name

Quantity = tuple[str, Callable[[Part], tuple[float, ...]]]
"""What an axis is called, and the parts of a bar, the second one paler; none where a point has no such
quantity."""


def conflicts(part: Part) -> tuple[float, ...]:
    return tuple(part.known[kind]["cost"] - part.known[kind]["ideal"] for kind in ("reads", "writes"))


PREDICTED: dict[str, Quantity] = {
    "padding": ("conflicts of reads,\nof writes (pale)", conflicts),
    "stages": ("KiB of shared memory", lambda part: (part.known["shared_bytes"] / 1024,)),
    "swizzle": (
        "MiB read per wave (model)",
        lambda part: (part.waves.mean_bytes / MIB,) if part.waves else (),
    ),
    "tile": ("sectors read", lambda part: (part.known["global_reads"]["cost"],)),
    "block": ("warp instructions", lambda part: (part.known["warp_instructions"],)),
}
MEASURED: Quantity = ("{unit}", lambda part: (part.timed["rate"],) if part.timed else ())


def save_plots(sweeps: Sequence[Sweep], results: dict[str, Any], path: Path) -> list[Path]:
    """A figure for each sweep that the results have; of several, each goes to a file with its name before the
    suffix. Returns the files."""
    shown = {sweep: found for sweep in sweeps if (found := tables(sweep, results))}
    paths = []
    for sweep, found in shown.items():
        own = f"_{sweep.name}" if len(shown) > 1 else ""
        paths.append(path.with_name(f"{path.stem}{own}{path.suffix}"))
        write_bytes(paths[-1], drawn(sweep, found, results, path.suffix.lower()[1:]))
    return paths


def drawn(sweep: Sweep, shown: Sequence[Table], results: dict[str, Any], form: str) -> bytes:
    """A figure as the content of a file of that form ("png")."""
    plt = pyplot()
    quantities = [PREDICTED[sweep.name], *([MEASURED] if results["rows"] else [])]
    size = (5.5 * len(quantities), 2.3 * len(shown) + 0.8)
    figure, rows = plt.subplots(
        len(shown), len(quantities), figsize=size, layout="constrained", squeeze=False
    )
    where = device_name(results) if results["rows"] else f"nothing timed, {results['arch']}"
    figure.suptitle(f"{sweep.name}: {where}", fontsize=12)
    for table, row in zip(shown, rows):
        for quantity, axes in zip(quantities, row):
            draw(axes, table, quantity)
    figure.legend(*rows[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return content_of(figure, form)


def draw(axes: Any, table: Table, quantity: Quantity) -> None:
    """Bars of schedule and twin for each point; none where a point cannot be."""
    name, parts_of_bar = quantity
    for index, (form, color) in enumerate(zip(FORMS, (SCHEDULE, TWIN))):
        axes.bar(0, 0, color=color, label=form)  # for the legend alone
        for place, parts in enumerate(table.points.values()):
            bottom = 0.0
            for number, height in enumerate(
                parts_of_bar(parts[index]) if "registers" in parts[index].known else ()
            ):
                axes.bar(
                    place + 0.4 * index - 0.2, height, 0.38, bottom, color=color, alpha=0.4 if number else 1
                )
                bottom += height
    for place, parts in enumerate(table.points.values()):
        if all("cannot" in part.known for part in parts):
            axes.text(place, 0, "cannot be", rotation=90, ha="center", va="bottom", fontsize=7, color="gray")
    axes.set_xlim(-0.6, len(table.points) - 0.4)
    axes.set_xticks(range(len(table.points)), [point.label.partition(",")[0] for point in table.points])
    axes.set_title(table.title, fontsize=8)
    axes.set_xlabel(table.sweep.head)
    axes.set_ylabel(name.format(unit=table.unit))
