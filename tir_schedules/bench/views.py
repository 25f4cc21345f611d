"""Rows of results arranged for tables and plots: groups that may be compared, and how sizes, rates and names
are written."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Iterable

from tir_schedules.files import Json
from tir_schedules.ladders.registry import rung_names
from tir_schedules.model.kernel import FIXED_TWIN
from tir_schedules.numerals import power

Row = Json


@dataclass(frozen=True)
class Group:
    """Rows of one family and kind ("nt float16", "int32"): what belongs into one table or one figure.

    sizes: labels in ascending order of work. names: rungs in the order of the ladder. vendors: "cuBLAS",
    "cuBLASLt", "CUB", those that there are.
    cells: (name, form, size) -> row. refused: the same for what was not timed.
    """

    family: str
    kind: str
    unit: str
    sizes: tuple[str, ...]
    names: tuple[str, ...]
    vendors: tuple[str, ...]
    cells: dict[tuple[str, str, str], Row]
    refused: dict[tuple[str, str, str], Row]

    @property
    def title(self) -> str:
        return f"{self.family} {self.kind}".strip()

    def rate(self, name: str, form: str, size: str) -> float | None:
        """Rate of a cell, None where there is none."""
        row = self.cells.get((name, form, size))
        return row["rate"] if row else None

    @property
    def baseline(self) -> str:
        """What rungs are held against: "CUB", "best of cuBLAS", or nothing."""
        return f"best of {self.vendors[0]}" if len(self.vendors) > 1 else "".join(self.vendors)

    def vendor_rate(self, size: str) -> float | None:
        """Rate of the baseline: of the faster where the vendor has several."""
        rates = [self.rate(vendor, "vendor", size) for vendor in self.vendors]
        return max((rate for rate in rates if rate), default=None)

    @cached_property
    def twin(self) -> str:
        """The form of the twins that schedules are compared with: those compiled for the shape, where there
        are some."""
        fixed = any(form == FIXED_TWIN for _, form, _ in (*self.cells, *self.refused))
        return FIXED_TWIN if fixed else "twin"

    def twin_ratio(self, name: str, size: str) -> float | None:
        """Rate of the schedule over that of its twin, None unless both were timed."""
        schedule, twin = self.rate(name, "schedule", size), self.rate(name, self.twin, size)
        return schedule / twin if schedule and twin else None

    def best(self, size: str) -> Row | None:
        """The fastest rung at a size, schedule or twin."""
        rows = [row for (_, form, at), row in self.cells.items() if at == size and form != "vendor"]
        return max(rows, key=lambda row: row["rate"], default=None)


def groups_of(results: Json) -> list[Group]:
    """The groups of a results file in the order in which they appear."""
    found: dict[tuple[str, str], tuple[list[Row], list[Row]]] = {}
    for index, rows in enumerate((results["rows"], results["refused"])):
        for row in rows:
            found.setdefault((row["family"], kind_of(row)), ([], []))[index].append(row)
    return [group_of(family, kind, *rows) for (family, kind), rows in found.items()]


def group_of(family: str, kind: str, rows: list[Row], refused: list[Row]) -> Group:
    everything = [*rows, *refused]
    work = {size_of(row): (prod(extents_of(row)), extents_of(row)) for row in everything}
    vendors = sorted({row["name"] for row in everything if row["form"] == "vendor"})
    return Group(
        family,
        kind,
        rows[0]["unit"] if rows else "",
        tuple(sorted(work, key=work.__getitem__)),
        sort_by_ladder(family, [row["name"] for row in everything if row["form"] != "vendor"]),
        tuple(vendors),
        {(row["name"], row["form"], size_of(row)): row for row in rows},
        {(row["name"], row["form"], size_of(row)): row for row in refused},
    )


def sort_by_ladder(family: str, names: Iterable[str]) -> tuple[str, ...]:
    """Each name once, as rungs build on each other; what the ladder does not know comes last."""
    ladder = rung_names(family)
    place = {name: number for number, name in enumerate(ladder)}
    return tuple(sorted(dict.fromkeys(names), key=lambda name: place.get(rung_in(name), len(ladder))))


def kind_of(row: Row) -> str:
    """What a shape says besides its extents: "nt float16" of "64x64x64 nt float16"."""
    return row["shape"].partition(" ")[2]


def size_of(row: Row) -> str:
    """The extents of a shape as people write them: "4096" for a cube, "2^25" for a power of two."""
    extents = extents_of(row)
    return power(extents[0]) if len(set(extents)) == 1 else "x".join(map(str, extents))


def extents_of(row: Row) -> tuple[int, ...]:
    """(M, N, K) or (N,) of a shape."""
    return tuple(int(extent) for extent in row["shape"].split(" ")[0].split("x"))


def short(name: str) -> str:
    """A rung's id without its family: "warp_tiling:128x128"."""
    return name.partition("/")[2] or name


def rung_in(name: str) -> str:
    """The rung alone, without its family and configuration: "warp_tiling"."""
    return short(name).partition(":")[0]


def figures(rate: float) -> str:
    """A rate with three significant digits, never in scientific notation."""
    digits = 0 if rate >= 100 else 1 if rate >= 10 else 2 if rate >= 1 else 3
    return f"{rate:.{digits}f}"


def spans(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """(size, what) pairs in order, with neighbours of the same `what` drawn together: ("512..8192",
    "vectorized")."""
    spanned: list[list[str]] = []
    for size, what in pairs:
        if spanned and spanned[-1][2] == what:
            spanned[-1][1] = size
        else:
            spanned.append([size, size, what])
    return [(first if first == last else f"{first}..{last}", what) for first, last, what in spanned]
