"""The README's table of results: a line for each product and sum, with the fastest rung beside the vendor's
library."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from ratio_tables import with_notes

from tir_schedules.bench.tables import share
from tir_schedules.bench.views import Group, figures, groups_of, short
from tir_schedules.errors import BadInput
from tir_schedules.subjects.results import device_name

HEAD = (
    "",
    "GPU",
    "largest size",
    "fastest rung there",
    "vendor's library",
    "ratio, from the smallest size on",
)
ALIGNED = ("---", "---", "---", "---", "--:", "---")


def best(titles: str, results: Sequence[dict[str, Any]], shown: Mapping[str, tuple[str, ...]]) -> str:
    """titles: of groups, such as "sgemm; hgemm nt float16". shown: family -> sizes, as SHOWN of tables.py.
    The newest recording of a group counts. BadInput for one that was not recorded."""
    newest = sorted(results, key=lambda one: one.get("date", ""))
    found = {group.title: (group, recorded) for recorded in newest for group in groups_of(recorded)}
    lines = []
    for title in titles.split("; "):
        if title not in found:
            raise BadInput(
                f"a marker asks for results of {title!r}, but only {', '.join(found)} are recorded"
            )
        group, recorded = found[title]
        lines.append(line_of(group, device_name(recorded), shown.get(group.family, ())))
    return with_notes([HEAD, ALIGNED, *lines], []).rstrip()


def line_of(group: Group, device: str, shown: Sequence[str]) -> tuple[str, ...]:
    """The cells of a group's line."""
    sizes = [size for size in shown if size in group.sizes] or [*group.sizes]
    fastest, vendor = group.best(sizes[-1]), group.vendor_rate(sizes[-1])
    if not fastest or not vendor:
        raise BadInput(f"{group.title} has no rung beside a vendor's library at {sizes[-1]}")
    rung = f"{short(fastest['name'])}, {figures(fastest['rate'])} {group.unit}"
    ratios = ", ".join(f"{share(group, size)} at {size}" for size in sizes)
    gpu = device.removeprefix("NVIDIA ")
    return group.title, gpu, sizes[-1], rung, f"{figures(vendor)} {group.unit}", ratios
