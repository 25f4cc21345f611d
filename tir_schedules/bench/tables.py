"""Results as tables for a terminal or a pipe: a line per rung, a column per size, schedule and twin in one
cell."""

from __future__ import annotations

from math import exp, log
from pathlib import Path
from statistics import median
from typing import Sequence

from rich.markup import escape

from tir_schedules.bench.distribution import Compared, compared, drawing_of, sentences, tables_of
from tir_schedules.bench.views import Group, Row, figures, groups_of, short, spans
from tir_schedules.console import print_line, print_table
from tir_schedules.files import Json
from tir_schedules.model.kernel import FIXED_TWIN
from tir_schedules.provenance import join_known
from tir_schedules.subjects.results import device_name

THROTTLED = "*"
IN_RESULT = (1, 4)
"""cuBLASLt's numbers of reductions of parts of k in C's format: in its place, or in the workspace."""


def print_results(results: Json) -> None:
    """A table per family and kind, a summary of each, and what must be known to read them."""
    print_line(f"{device_name(results)}: {provenance_line(results)}")
    for group in groups_of(results):
        print_line()
        print_table(
            escape_cells((f"{group.title}, {group.unit}", *group.sizes)), map(escape_cells, table(group))
        )
        for line in summary(group):
            print_line(line)
        if singles(group):
            print_line()
            head = f"{group.title}, us of a single launch: cold, first"
            print_table(escape_cells((head, *group.sizes)), map(escape_cells, singles(group)))
    for family, shapes in compared(results).items():
        print_line()
        print_distribution(family, shapes, drawing_of(results) or {})
    print_line()
    for line in closing_lines(results):
        print_line(line)


def print_distribution(family: str, shapes: Sequence[Compared], drawing: Json) -> None:
    """Print tables of the ratios of drawn shapes, and a summary of them."""
    for head, lines in tables_of(family, shapes):
        print_table(escape_cells(head), map(escape_cells, lines))
        print_line()
    for line in sentences(family, shapes, drawing):
        print_line(line)


def escape_cells(cells: tuple[str, ...]) -> tuple[str, ...]:
    """Cells as text, whatever brackets they hold."""
    return tuple(map(escape, cells))


def provenance_line(results: Json) -> str:
    """Driver, clocks met, CUDA, TVM, revision and date, those that are known."""
    device, compiled = results.get("device") or {}, results.get("packed") or results
    versions = compiled.get("versions", {})
    clocks = [clock for row in results["rows"] for clock in row.get("sm_mhz") or ()]
    parts = {
        "driver": device.get("driver_version"),
        "SM clock": f"{min(clocks)} to {max(clocks)} MHz" if clocks else "",
        "CUDA": versions.get("nvcc"),
        "TVM": versions.get("apache-tvm"),
        "revision": (compiled.get("git_revision") or "")[:12],
        "": (results.get("date") or "")[:10],
    }
    return join_known(parts)


def table(group: Group) -> list[tuple[str, ...]]:
    """Lines of a table: a rung each, then the vendor's libraries, and how the best rung compares with the
    fastest of them."""
    lines = [(short(name), *(cell(group, name, size) for size in group.sizes)) for name in group.names]
    lines += [
        (vendor, *(part(group, vendor, "vendor", size) for size in group.sizes)) for vendor in group.vendors
    ]
    if group.vendors:
        lines.append((f"best rung / {group.baseline}", *(share(group, size) for size in group.sizes)))
    return lines


def cell(group: Group, name: str, size: str) -> str:
    """ "36.2 (1.01x)": the schedule's rate, and schedule / twin."""
    schedule, twin = (part(group, name, form, size) for form in ("schedule", group.twin))
    ratio = group.twin_ratio(name, size)
    if ratio:
        mark = THROTTLED if THROTTLED in schedule + twin else ""
        return f"{schedule.rstrip(THROTTLED)}{mark} ({ratio:.2f}x)"
    return f"{schedule} (twin {twin})" if twin else schedule


def part(group: Group, name: str, form: str, size: str) -> str:
    """A rate, marked when the GPU throttled; "refused"; or nothing when it was not asked for."""
    row = group.cells.get((name, form, size))
    if row:
        return figures(row["rate"]) + (THROTTLED if row.get("throttled") else "")
    return "refused" if (name, form, size) in group.refused else ""


def share(group: Group, size: str) -> str:
    """Rate of the fastest rung over that of the baseline."""
    best, vendor = group.best(size), group.vendor_rate(size)
    return f"{best['rate'] / vendor:.2f}x" if best and vendor else ""


def singles(group: Group) -> list[tuple[str, ...]]:
    """Lines of a table of single launches, of the schedules and the vendor's libraries; none where they were
    not timed."""
    lines = [(name, "schedule") for name in group.names] + [(name, "vendor") for name in group.vendors]
    rows = [(name, [group.cells.get((name, form, size), {}) for size in group.sizes]) for name, form in lines]
    return [(short(name), *map(single, found)) for name, found in rows if any(map(single, found))]


def single(row: Row) -> str:
    """ "4.2, 15.1": medians of a single launch, with a cold L2 cache and on an idle GPU."""
    return ", ".join(figures(median(row[name])) for name in ("cold_us", "first_us") if name in row)


def summary(group: Group) -> list[str]:
    """Which rung is fastest at which size, and how the schedules compare with their twins."""
    best = [(size, group.best(size)) for size in group.sizes]
    named = [(size, f"{short(row['name'])} ({row['form']})") for size, row in best if row]
    lines = ["fastest: " + "; ".join(f"{name} at {size}" for size, name in spans(named))] if named else []
    ratios = {(name, size): group.twin_ratio(name, size) for name in group.names for size in group.sizes}
    ratios = {key: ratio for key, ratio in ratios.items() if ratio}
    if ratios:
        mean = exp(sum(map(log, ratios.values())) / len(ratios))
        (name, size), lowest = min(ratios.items(), key=lambda item: item[1])
        lines.append(
            f"schedule / {twin_name(group.twin)}: {mean:.3f}x in the geometric mean, lowest {lowest:.3f}x"
            f" ({short(name)} at {size})"
        )
    return lines + [line for vendor in group.vendors for line in choices(group, vendor)]


def choices(group: Group, vendor: str) -> list[str]:
    """ "cuBLASLt: candidate 1 of 8 at 1024": which of a library's candidates was the fastest; nothing where
    it chose itself."""
    details = [
        (size, group.cells.get((vendor, "vendor", size), {}).get("vendor_detail")) for size in group.sizes
    ]
    named = [(size, candidate(detail, detail["chosen"])) for size, detail in details if detail]
    return [f"{vendor}: " + "; ".join(f"{name} at {size}" for size, name in spans(named))] if named else []


def candidate(detail: Json, index: int) -> str:
    return f"candidate {index + 1} of {len(detail['candidates'])}"


def closing_lines(results: Json) -> list[str]:
    """Limits of the GPU, how to read a cell, what the marks mean, and why something was refused."""
    lines = []
    if results["limits"]:
        lines.append("limits of this GPU: " + "; ".join(map(limit, results["limits"])))
    twins = {row["form"] for row in results["rows"]} & {"twin", FIXED_TWIN}
    if twins:
        lines.append("a cell has the schedule's rate; in brackets, schedule / twin")
    if FIXED_TWIN in twins:
        lines.append(f"{twin_name(FIXED_TWIN)}: compiled for the shape, as the schedule is")
    if any("first_us" in row for row in results["rows"]):
        lines.append("cold: its data not in the L2 cache; first: from the call to its end, after an idle GPU")
    lines += clock_range(results["rows"])
    throttled = [row for row in results["rows"] if row.get("throttled")]
    if throttled:
        reasons = ", ".join(sorted({reason for row in throttled for reason in row["throttled"]}))
        lines.append(
            f"{THROTTLED} the GPU lowered its clock while this was timed: {reasons}{clocks(throttled)}"
        )
    lines += [line for row in results["rows"] for line in refused_candidates(row)]
    return lines + list(results.get("notes", ())) + list(map(refusal, results["refused"]))


def twin_name(form: str) -> str:
    """ "twin", or "(twin, sizes fixed)"."""
    return form if form == "twin" else f"({form})"


def refusal(row: Row) -> str:
    """Why something was not timed, in one line."""
    return f"refused: {label(row)} on {row['shape']}: {row['reason']}"


def print_packed(kernels: str, verb: str, path: Path, refused: Sequence[Row]) -> int:
    """Say what a pack holds, nothing where nothing compiled, and what was refused; returns the exit code."""
    if kernels:
        advice = f"copy {path} to where the GPU is and run `tir-schedules {verb} {path.name}`"
        print_line(f"packed {kernels}: {advice}")
    else:
        print_line(f"nothing compiled: {path} is not written")
    for row in refused:
        print_line(refusal(row))
    return 1 if refused else 0


def refused_candidates(row: Row) -> list[str]:
    """Why candidates of a library were not timed, a line for each."""
    detail = row.get("vendor_detail") or {}
    return [
        f"refused: {label(row)}, {candidate(detail, index)}, on {row['shape']}: {one['refused']}"
        f"{rounding(one)}"
        for index, one in enumerate(detail.get("candidates", ()))
        if "refused" in one
    ]


def rounding(one: Json) -> str:
    """Why a candidate that splits k can be wrong where C has 16 bits."""
    parts = one.get("reduction") in IN_RESULT and one["split_k"] > 1
    return "; it adds parts of k in C's format" if parts else ""


def limit(row: Row) -> str:
    """ "fp32 peak 66.9 TFLOPS at 1980 MHz"."""
    clock = f" at {row['sm_mhz']} MHz" if isinstance(row.get("sm_mhz"), (int, float)) else ""
    return f"{row['name']} {figures(row['rate'])} {row['unit']}{clock}"


def clock_range(rows: list[Row]) -> list[str]:
    """The lowest and highest clock of the SMs in a row's samples, where cycles were counted."""
    counted = sorted((row["clock_mhz"], label(row), row["shape"]) for row in rows if row.get("clock_mhz"))
    if not counted:
        return []
    lowest, highest = counted[0], counted[-1]
    what = f"{lowest[0]:.0f} MHz ({lowest[1]} on {lowest[2]}) to {highest[0]:.0f} MHz"
    return [f"clock of the SMs within samples, by their own count of cycles: {what}"]


def clocks(rows: list[Row]) -> str:
    """The lowest clock met in rows, where clocks are known."""
    lowest = [row["sm_mhz"][0] for row in rows if row.get("sm_mhz")]
    return f" (down to {min(lowest)} MHz)" if lowest else ""


def label(row: Row) -> str:
    """How messages name a row: "sgemm/naive (schedule)", "cuBLAS"."""
    return row["name"] if row["form"] == "vendor" else f"{row['name']} ({row['form']})"
