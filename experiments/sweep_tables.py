"""The tables of a sweep: for a terminal, and as Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Iterable

from article_tables import NOTHING, markdown
from sweep_points import FORMS, Point, Series, Sweep, find_sweep
from sweep_waves import Waves, waves

from tir_schedules.bench.tables import THROTTLED, closing_lines, limit, provenance_line, refusal
from tir_schedules.bench.views import figures, size_of
from tir_schedules.insight.metrics.roofline import GPU_OF, gpu_for
from tir_schedules.subjects.results import device_name
from tir_schedules.subjects.subject import VENDORS, rate_of

MIB = 1 << 20


@dataclass(frozen=True)
class Part:
    """What is known of a point as schedule or as twin, on one workload. known: its row of "points"; timed:
    its row of "rows"; both empty where there is none. multiprocessors: of the GPU, 0 where that is not
    known."""

    point: Point
    workload: Any
    known: dict[str, Any]
    timed: dict[str, Any]
    multiprocessors: int

    @property
    def blocks(self) -> int:
        """That an SM holds at once."""
        return self.known["occupancy"]["blocks"]

    @property
    def waves(self) -> Waves | None:
        together = self.blocks * self.multiprocessors
        return waves(self.point.rung, self.workload, together) if together else None


Column = tuple[str, Callable[[Part], str]]
RESOURCES: tuple[Column, ...] = (
    ("shared bytes", lambda part: f"{part.known['shared_bytes']:,}"),
    ("blocks", lambda part: str(part.blocks)),
    (
        "registers",
        lambda part: f"{part.known['registers']}{' (spills)' if part.known['spill_bytes'] else ''}",
    ),
)
TIMES: tuple[Column, ...] = (
    (
        "us",
        lambda part: (
            figures(part.timed["median_us"]) + (THROTTLED if part.timed.get("throttled") else "")
            if part.timed
            else ""
        ),
    ),
    ("{unit}", lambda part: figures(part.timed["rate"]) if part.timed else ""),
)


def wavefronts(kind: str) -> Callable[[Part], str]:
    return lambda part: f"{part.known[kind]['cost']:,}"


def conflicts(kind: str) -> Callable[[Part], str]:
    return lambda part: f"{part.known[kind]['cost'] - part.known[kind]['ideal']:,}"


COLUMNS: dict[str, tuple[Column, ...]] = {
    "padding": (
        *RESOURCES,
        ("read wavefronts", wavefronts("reads")), ("conflicts", conflicts("reads")),
        ("write wavefronts", wavefronts("writes")), ("conflicts", conflicts("writes")),
    ),
    "stages": RESOURCES,
    "swizzle": (
        *RESOURCES[1:],
        ("waves", lambda part: str(part.waves.count) if part.waves else "?"),
        ("MiB read per wave", lambda part: figures(part.waves.mean_bytes / MIB) if part.waves else "?"),
    ),
    "tile": (
        *RESOURCES,
        ("warps / SM", lambda part: str(part.known["occupancy"]["warps"])),
        ("sectors read", lambda part: f"{part.known['global_reads']['cost']:,}"),
        ("of each block", lambda part: f"{part.known['block_sectors']:,}"),
        ("ratio", lambda part: f"{part.known['global_reads']['cost'] / part.known['block_sectors']:.2f}x"),
    ),
    "block": (
        *RESOURCES,
        ("warp instructions", lambda part: f"{part.known['warp_instructions']:,}"),
        ("barriers", lambda part: f"{part.known['barriers']:,}"),
        ("wavefronts", lambda part: f"{part.known['reads']['cost'] + part.known['writes']['cost']:,}"),
    ),
}  # fmt: skip
"""Sweep -> the columns of its tables before those of times."""
NOTES = {
    "padding": (
        "wavefronts and conflicts: of shared memory, counted by the CPU machine for {counted}; a conflict is"
        " a wavefront beyond the necessary ones; writes include cp.async, whose count is a model"
    ),
    "tile": (
        "sectors read: all that warps ask the L1 cache for, counted by the CPU machine for {counted}; of each"
        " block: what the tiles need, once for each block; ratio: how often a block asks for a sector, which"
        " L1 may serve again if it still holds it"
    ),
    "block": (
        "warp instructions, barriers and wavefronts of shared memory: of all launches, counted by the CPU"
        " machine for {counted}; a barrier and a __syncwarp count once for each warp"
    ),
    "swizzle": (
        "waves, MiB per wave: a model, not a measurement: {multiprocessors} SMs hold their blocks at once, in"
        " the order of their number; MiB: the mean size of the tiles of A and B of a wave, each once"
    ),
}
HOW = "schedule / twin where they differ; blocks: that an SM holds at once"


class Table:
    """One series on one workload."""

    def __init__(self, sweep: Sweep, series: Series, workload: Any, results: dict[str, Any]) -> None:
        self.sweep, self.series, self.workload, self.results = sweep, series, workload, results
        known = {(row["name"], row["form"], row["shape"]): row for row in results["points"]}
        timed = {(row["name"], row["form"], row["shape"]): row for row in results["rows"]}
        self.library = VENDORS[series.rung.partition("/")[0]]
        self.of_library = timed.get((self.library, "vendor", str(workload)))
        count = multiprocessors(results)

        def part(point: Point, form: str) -> Part:
            name = point.rung.id
            facts, times = (
                known.get((name, form, str(series.timed[0]))),
                timed.get((name, form, str(workload))),
            )
            return Part(point, workload, facts or {}, times or {}, count)

        self.points = {point: tuple(part(point, form) for form in FORMS) for point in series.points()}

    @property
    def is_empty(self) -> bool:
        return not any(part.known for parts in self.points.values() for part in parts)

    @property
    def timed(self) -> bool:
        return any(part.timed for parts in self.points.values() for part in parts)

    @property
    def unit(self) -> str:
        """Of rates."""
        return rate_of(self.series.rung.partition("/")[0], self.workload, 1.0)[1]

    @property
    def title(self) -> str:
        """Rung, kind and size."""
        size = (
            f" at {size_of({'shape': str(self.workload)})}"
            if self.timed or len(self.series.timed) > 1
            else ""
        )
        return f"{self.series.title}{size}, {self.results['arch']}"

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*COLUMNS[self.sweep.name], *(TIMES if self.timed else ()))

    @property
    def heads(self) -> tuple[str, ...]:
        return (self.sweep.head, *(head.format(unit=self.unit) for head, _ in self.columns))

    @property
    def lines(self) -> list[tuple[str, ...]]:
        """A line per point: what cannot be is said in its first cell, and why in `remarks`."""
        found = []
        for point, parts in self.points.items():
            if any("registers" in part.known for part in parts):
                found.append((point.label, *(cell(parts, text) for _, text in self.columns)))
            else:
                word = "cannot be" if any("cannot" in part.known for part in parts) else "refused"
                found.append((point.label, word, *("" for _ in self.columns[1:])))
        return found

    @property
    def remarks(self) -> list[str]:
        """Which points cannot be and why, which take the shortest time, and how long the vendor's library
        takes."""
        reasons: dict[str, list[str]] = {}
        for point, parts in self.points.items():
            given = [part.known.get("cannot", "") for part in parts]
            for form, reason in zip(FORMS, given):
                who = point.label if given[0] == given[1] else f"{point.label} ({form})"
                if reason and who not in reasons.setdefault(reason, []):
                    reasons[reason].append(who)
        found = [f"cannot be: {', '.join(points)}: {reason}" for reason, points in reasons.items()]
        if self.timed:
            found.append(
                "shortest time: " + ", ".join(filter(None, map(self.shortest_time, range(len(FORMS)))))
            )
        if self.of_library:
            found.append(
                f"{self.library}: {figures(self.of_library['median_us'])} us,"
                f" {figures(self.of_library['rate'])} {self.unit}"
            )
        return found

    def shortest_time(self, form: int) -> str:
        """ "8 (schedule)"; nothing where no point of the form was timed."""
        timed = [
            (parts[form].timed["median_us"], point.label)
            for point, parts in self.points.items()
            if parts[form].timed
        ]
        return f"{min(timed)[1]} ({FORMS[form]})" if timed else ""


def cell(parts: tuple[Part, ...], text: Callable[[Part], str]) -> str:
    """The schedule's text and that of its twin, or one where they agree; "-" for a form that cannot be or was
    not timed."""
    schedule, twin = (text(part) if "registers" in part.known else "" for part in parts)
    return schedule if schedule == twin else f"{schedule or '-'} / {twin or '-'}"


def multiprocessors(results: dict[str, Any]) -> int:
    """Of the GPU that was measured, else of a GPU of the architecture; 0 where none is known."""
    known = results["arch"].rstrip("af") in GPU_OF
    return results["device"].get("multiprocessors") or (
        gpu_for(results["arch"]).multiprocessors if known else 0
    )


def tables(sweep: Sweep, results: dict[str, Any]) -> list[Table]:
    """Of those series that the results have; a table for each workload where what is known depends on it or
    was timed."""
    found = []
    for series in sweep.series:
        workloads = series.timed if results["rows"] or not series.counted else series.timed[:1]
        found += [Table(sweep, series, workload, results) for workload in workloads]
    return [table for table in found if not table.is_empty]


def notes_of(sweep: Sweep, shown: list[Table], results: dict[str, Any]) -> list[str]:
    """How to read the tables of a sweep, and where they come from."""
    counted = ", ".join(dict.fromkeys(str(table.series.counted) for table in shown))
    facts = {"counted": counted, "multiprocessors": multiprocessors(results) or "an unknown number of"}
    found = [
        f"{sweep.head}: {sweep.about}",
        HOW,
        *([NOTES[sweep.name].format(**facts)] if sweep.name in NOTES else []),
    ]
    shown_names = {
        (name, str(table.workload))
        for table in shown
        for name in (table.library, *(point.rung.id for point in table.points))
    }
    own = {
        key: [row for row in results[key] if (row["name"], row["shape"]) in shown_names]
        for key in ("rows", "refused")
    }
    part = {**results, **own}
    if part["rows"]:
        found.append(f"{device_name(part)}, {provenance_line(part)}")
        found += [f"limits: {'; '.join(map(limit, part['limits']))}"] if part["limits"] else []
        found += [line for line in closing_lines(part) if line.startswith(THROTTLED)]
    else:
        found.append(f"nothing is timed: compiled for {results['arch']}, {provenance_line(part)}")
    return found + list(map(refusal, part["refused"]))


def section(name: str, recorded: Iterable[dict[str, Any]]) -> str:
    """A sweep's tables as Markdown, from the first results that have it, or a line that says that none
    have."""
    sweep = find_sweep(name)
    results = next((results for results in recorded if tables(sweep, results)), None)
    if not results:
        return NOTHING
    shown = tables(sweep, results)
    parts = [
        part
        for table in shown
        for part in (f"{table.title}:", markdown(table.heads, table.lines), bullets(table.remarks))
    ]
    parts.append(bullets(notes_of(sweep, shown, results)))
    return "\n\n".join(filter(None, parts)).replace(THROTTLED, f"\\{THROTTLED}")


def bullets(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
