"""Counting launches on a GPU beside the CPU machine's predictions: results, as files have them, and as
tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Iterator, Sequence

from tir_schedules.errors import BadInput
from tir_schedules.files import check, read_json
from tir_schedules.insight.profile.nsight import NAMES, NOISE, Comparison, comparisons, nsight_counters
from tir_schedules.provenance import device_provenance
from tir_schedules.subjects.results import about

REMEDY = "name a file that `tir-schedules profile -o` or experiments/counters_on_gpu.py wrote"


def document(command: str, source: dict[str, Any], kernels: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """A result. source: what the pack says of where it was made. kernels: an entry per launch."""
    return {**about(command), "packed": source, "device": device_provenance(), "kernels": list(kernels)}


def count_launches(entries: Sequence[dict[str, Any]], command: Sequence[str]) -> list[dict[str, Any]]:
    """Add "measured" to the entries that have "predicted", whose launches the command makes in this order;
    returns those."""
    counted = [entry for entry in entries if "predicted" in entry]
    for entry, metrics in zip(counted, nsight_counters(command, [entry["entry"] for entry in counted])):
        entry["measured"] = metrics
    return counted


def as_text(result: dict[str, Any]) -> str:
    """JSON with a line for each kernel."""
    facts = {name: value for name, value in result.items() if name != "kernels"}
    kernels = ",\n".join(json.dumps(entry) for entry in result["kernels"])
    return json.dumps(facts, indent=1)[:-2] + f',\n "kernels": [\n{kernels}\n]\n}}\n'


def read_result(path: Path) -> dict[str, Any]:
    """A recorded result with launches that were counted. BadInput, in one line, for a file that is none."""
    from tir_schedules.subjects.schemas import Counters

    result = read_json(path, REMEDY)
    check(result, Counters, f"{path} has no counters of Nsight Compute", REMEDY)
    if not counted_entries(result):
        raise BadInput(f"none of the launches in {path} was counted; {REMEDY}")
    return result


def counted_entries(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [entry for entry in result["kernels"] if "measured" in entry and "predicted" in entry]


def with_comparisons(result: dict[str, Any]) -> dict[str, Any]:
    """The result as --json prints it: every counted launch says how its counters compare."""
    kernels = []
    for entry in result["kernels"]:
        compared = comparisons(entry) if "measured" in entry and "predicted" in entry else []
        rows = [
            vars(one) | {"difference": one.difference, "unexplained": one.unexplained} for one in compared
        ]
        kernels.append(entry | ({"comparison": rows} if rows else {}))
    return {**result, "kernels": kernels}


def all_explained(result: dict[str, Any]) -> bool:
    """Whether no counter differs for no known reason."""
    return not any(one.unexplained for entry in counted_entries(result) for one in comparisons(entry))


def print_result(result: dict[str, Any], whole: bool = True) -> None:
    """What was counted beside what was predicted, what explains the differences, and a closing line.

    whole: every counter of every launch; else a line for each rung, and the counters that differ for no known
    reason.
    """
    from rich.markup import escape

    from tir_schedules.console import print_left_out, print_line, print_table

    compared = [(entry, comparisons(entry)) for entry in counted_entries(result)]
    reasons = list(dict.fromkeys(one.reason for _, ones in compared for one in ones if one.reason))
    print_line(provenance_line(result))
    if not whole:
        print_left_out(
            print_table(
                SUMMARY, [tuple(map(escape, row)) for row in summary_rows(compared)], spare=("launches",)
            )
        )
    shown = [(entry, ones if whole else [one for one in ones if one.unexplained]) for entry, ones in compared]
    rows = [tuple(map(escape, row)) for entry, ones in shown for row in entry_rows(entry, ones, reasons)]
    if rows:
        print_table(("kernel", "counter", "predicted", "measured", "difference"), rows, prose={"kernel": 20})
    for number, reason in enumerate(reasons, 1):
        print_line(f"({number}) {reason}" if whole else f"{found_of(compared, reason)}: {reason}")
    print_line(summary([one for _, ones in compared for one in ones]))
    if not whole:
        print_line(
            "known why: beyond 1 %, for a reason above; --all shows every counter, the name of a rung those"
            " of its launches"
        )


SUMMARY = ("rung", "launches", "counters", "equal", "within 1 %", "known why", "unknown")
NAMED = 3  # rungs that have a difference of one kind


def rung_of(entry: dict[str, Any]) -> str:
    """The id of an entry's rung; probes, of single accesses, are one."""
    return "single accesses" if "probe" in entry else entry["label"].split(" (")[0]


def of_one_rung(result: dict[str, Any]) -> bool:
    """Whether all launches that were counted are of one rung, or there are none."""
    return len({rung_of(entry) for entry in counted_entries(result)}) < 2


def summary_rows(
    compared: Sequence[tuple[dict[str, Any], Sequence[Comparison]]],
) -> Iterator[tuple[str, ...]]:
    """A line for each rung: launches, and how its counters compare."""
    for name in dict.fromkeys(rung_of(entry) for entry, _ in compared):
        own = [ones for entry, ones in compared if rung_of(entry) == name]
        yield (
            name,
            *(
                f"{count:,}" if count else "-"
                for count in (len(own), *tally([one for ones in own for one in ones]))
            ),
        )


def found_of(compared: Sequence[tuple[dict[str, Any], Sequence[Comparison]]], reason: str) -> str:
    """What one reason explains: how many counters, of which rungs, and by how much they differ."""
    found = [
        (rung_of(entry), abs(one.difference))
        for entry, ones in compared
        for one in ones
        if one.reason == reason
    ]
    names = list(dict.fromkeys(name for name, _ in found))
    others = f" and {len(names) - NAMED} others" if len(names) > NAMED else ""
    return (
        f"known why, {len(found)} of {', '.join(names[:NAMED])}{others}, by at most"
        f" {100 * max(size for _, size in found):.3g} %"
    )


def entry_rows(
    entry: dict[str, Any], compared: Sequence[Comparison], reasons: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """Rows of one launch: all counters that are not zero; of a single access only those that differ."""
    name = title(entry)
    for one in compared:
        if one.predicted == one.measured and ("probe" in entry or not one.measured):
            continue
        yield (
            name,
            NAMES[one.metric],
            f"{one.predicted:,}",
            f"{one.measured:,.0f}",
            difference(one, reasons),
        )
        name = ""


def title(entry: dict[str, Any]) -> str:
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
    """How many counters are not zero, and of these: as predicted, within the noise, beyond it for a known
    reason, and for none."""
    everything = [one for one in compared if one.predicted or one.measured]
    equal = sum(one.predicted == one.measured for one in everything)
    explained = sum(bool(one.reason) for one in everything)
    unexplained = sum(one.unexplained for one in everything)
    return len(everything), equal, len(everything) - equal - explained - unexplained, explained, unexplained


def summary(compared: Sequence[Comparison]) -> str:
    counters, equal, within, explained, unexplained = tally(compared)
    return (
        f"of {counters} counters {equal} are exactly as predicted, {within} within {100 * NOISE:g} %,"
        f" {explained} differ by more for a known reason, {unexplained} for none"
    )


def provenance_line(result: dict[str, Any]) -> str:
    """GPU, driver, CUDA, revision and date, those that are known."""
    device, compiled = result.get("device") or {}, result.get("packed") or result
    parts = {
        "": device.get("name", "unknown GPU"),
        "driver ": device.get("driver_version"),
        "CUDA ": (
            (compiled.get("versions") or {}).get("nvcc")
            or (compiled.get("versions") or {}).get("nvidia-cuda-nvcc")
        ),
        "revision ": (compiled.get("git_revision") or "")[:12],
        "measured ": (result.get("date") or "")[:10],
    }
    return ", ".join(f"{name}{value}" for name, value in parts.items() if value)
