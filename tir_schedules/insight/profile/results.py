"""Results of `profile`: counters of a GPU beside those that the CPU machine predicts. They are read from
files, and printed with a line for each rung or with every counter of every launch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Iterator, Mapping, Sequence, cast

from rich.markup import escape

from tir_schedules.console import print_left_out, print_line, print_table
from tir_schedules.errors import BadInput
from tir_schedules.files import Json, check, read_json
from tir_schedules.insight.profile.nsight import NAMES, NOISE, Comparison, Entry, comparisons, nsight_counters
from tir_schedules.ladders.registry import current
from tir_schedules.provenance import device_provenance, join_known
from tir_schedules.subjects.results import about

REMEDY = "name a file that `tir-schedules profile -o` or experiments/counters_on_gpu.py wrote"

Result = Json
"""JSON of subjects/schemas: what `about` says, "packed", "device", "kernels" (entries)."""


def document(command: str, source: Mapping[str, object], kernels: Sequence[Entry] = ()) -> Result:
    """A result. source: what the pack says of where it was made. kernels: an entry per launch."""
    return {**about(command), "packed": source, "device": device_provenance(), "kernels": list(kernels)}


def count_launches(entries: Sequence[Entry], command: Sequence[str], more: Sequence[str] = ()) -> list[Entry]:
    """Count the launches that have "predicted", add "measured" to their entries, and return these. The
    command makes the launches in this order. more: see `nsight_counters`."""
    watched = [entry for entry in entries if "predicted" in entry]
    kernels = [entry["entry"] for entry in watched]
    for entry, metrics in zip(watched, nsight_counters(command, kernels, more)):
        entry["measured"] = metrics
    return watched


def as_text(result: Result) -> str:
    """JSON with a line for each kernel."""
    facts = {name: value for name, value in result.items() if name != "kernels"}
    kernels = ",\n".join(json.dumps(entry) for entry in result["kernels"])
    return json.dumps(facts, indent=1)[:-2] + f',\n "kernels": [\n{kernels}\n]\n}}\n'


def read_result(path: Path) -> Result:
    """A recorded result with counted launches. BadInput, in one line, for another file."""
    from tir_schedules.subjects.schemas import Counters

    result = read_json(path, REMEDY)
    check(result, Counters, f"{path} has no counters of Nsight Compute", REMEDY)
    if not measured_entries(result):
        raise BadInput(f"none of the launches in {path} was counted; {REMEDY}")
    return current(result)


def measured_entries(result: Result) -> list[Entry]:
    return [entry for entry in result["kernels"] if is_measured(entry)]


def is_measured(entry: Entry) -> bool:
    return "measured" in entry and "predicted" in entry


def add_comparisons(result: Result) -> Result:
    """The result as --json prints it: every measured launch has a "comparison" for each metric."""
    kernels = []
    for entry in cast(list[Entry], result["kernels"]):
        rows = [
            vars(one) | {"difference": one.difference, "unexplained": one.unexplained}
            for one in (comparisons(entry) if is_measured(entry) else [])
        ]
        kernels.append({**entry, **({"comparison": rows} if rows else {})})
    return {**result, "kernels": kernels}


def all_explained(result: Result) -> bool:
    """Whether every difference has a reason."""
    return not any(one.unexplained for entry in measured_entries(result) for one in comparisons(entry))


Compared = Sequence[tuple[Entry, Sequence[Comparison]]]
"""Launches with the comparisons of their metrics."""

SUMMARY = ("rung", "launches", "counters", "equal", "within 1 %", "explained", "unexplained")
NAMED = 3  # rungs that a reason's line names


def print_result(result: Result, whole: bool) -> None:
    """Measured beside predicted, the reasons for differences, and a closing line.

    whole: every counter of every launch; else a line for each rung, and the unexplained counters.
    """
    compared = [(entry, comparisons(entry)) for entry in measured_entries(result)]
    reasons = list(dict.fromkeys(one.reason for _, ones in compared for one in ones if one.reason))
    print_line(provenance_line(result))
    if not whole:
        rows = [tuple(map(escape, row)) for row in summary_rows(compared)]
        print_left_out(print_table(SUMMARY, rows, spare=("launches",)))
    shown = [(entry, ones if whole else [one for one in ones if one.unexplained]) for entry, ones in compared]
    rows = [tuple(map(escape, row)) for entry, ones in shown for row in entry_rows(entry, ones, reasons)]
    if rows:
        print_table(("kernel", "counter", "predicted", "measured", "difference"), rows, prose={"kernel": 20})
    for number, reason in enumerate(reasons, 1):
        print_line(f"({number}) {reason}" if whole else f"{extent_of(compared, reason)}: {reason}")
    print_line(summary([one for _, ones in compared for one in ones]))
    if not whole:
        print_line(
            "explained: differs by more than 1 %, for a reason above; --all shows every counter, and the"
            " name of a rung those of its launches"
        )


def rung_of(entry: Entry) -> str:
    """The id of an entry's rung; probes, which are single accesses, count as one."""
    return "single accesses" if "probe" in entry else entry["label"].split(" (")[0]


def is_of_one_rung(result: Result) -> bool:
    """Whether all measured launches are of one rung, or there are none."""
    return len({rung_of(entry) for entry in measured_entries(result)}) < 2


def summary_rows(compared: Compared) -> Iterator[tuple[str, ...]]:
    """A line for each rung: launches, and how its counters compare."""
    for name in dict.fromkeys(rung_of(entry) for entry, _ in compared):
        own = [ones for entry, ones in compared if rung_of(entry) == name]
        counts = (len(own), *tally([one for ones in own for one in ones]))
        yield (name, *(f"{count:,}" if count else "-" for count in counts))


def extent_of(compared: Compared, reason: str) -> str:
    """What a reason explains: how many counters, of which rungs, and the largest difference."""
    found = [
        (rung_of(entry), abs(one.difference))
        for entry, ones in compared
        for one in ones
        if one.reason == reason
    ]
    names = list(dict.fromkeys(name for name, _ in found))
    others = f" and {len(names) - NAMED} others" if len(names) > NAMED else ""
    largest = 100 * max(size for _, size in found)
    return f"explained, {len(found)} of {', '.join(names[:NAMED])}{others}, by at most {largest:.3g} %"


def entry_rows(
    entry: Entry, compared: Sequence[Comparison], reasons: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """Rows of one launch: all counters that are not zero; of a single access only those that differ."""
    name = title(entry)
    for one in compared:
        if one.predicted == one.measured and ("probe" in entry or not one.measured):
            continue
        numbers = (f"{one.predicted:,}", f"{one.measured:,.0f}", difference(one, reasons))
        yield (name, NAMES[one.metric], *numbers)
        name = ""


def title(entry: Entry) -> str:
    """ "sgemm/naive (tir) on 256,256,256", with the number of the launch where there are several."""
    workload = entry.get("workload") or {}
    shape = ",".join(map(str, workload.values()))
    launch = f", launch {entry['launch'] + 1}" if "launch" in entry else ""
    return entry.get("probe") or entry["label"] + (f" on {shape}" if shape else "") + launch


def difference(one: Comparison, reasons: Sequence[str]) -> str:
    if one.predicted == one.measured:
        return "0"
    mark = f" ({reasons.index(one.reason) + 1})" if one.reason else " UNEXPLAINED" if one.unexplained else ""
    return f"{100 * one.difference:+.2f} %{mark}"


def tally(compared: Sequence[Comparison]) -> tuple[int, int, int, int, int]:
    """How many counters are not zero, and of these: equal, within the noise, explained, unexplained."""
    everything = [one for one in compared if one.predicted or one.measured]
    equal = sum(one.predicted == one.measured for one in everything)
    explained = sum(bool(one.reason) for one in everything)
    unexplained = sum(one.unexplained for one in everything)
    return len(everything), equal, len(everything) - equal - explained - unexplained, explained, unexplained


def summary(compared: Sequence[Comparison]) -> str:
    counters, equal, within, explained, unexplained = tally(compared)
    return (
        f"of {counters} counters {equal} are exactly as predicted, {within} within {100 * NOISE:g} %;"
        f" {explained} differ by more and are explained, {unexplained} are unexplained"
    )


def provenance_line(result: Result) -> str:
    """GPU, driver, CUDA, revision and date, where they are known."""
    device, compiled = result.get("device") or {}, result.get("packed") or result
    versions = compiled.get("versions") or {}
    parts = {
        "": device.get("name", "unknown GPU"),
        "driver": device.get("driver_version"),
        "CUDA": versions.get("nvcc") or versions.get("nvidia-cuda-nvcc"),
        "revision": (compiled.get("git_revision") or "")[:12],
        "measured": (result.get("date") or "")[:10],
    }
    return join_known(parts)
