"""Results of `profile`, as files have them: what a GPU counted beside what the CPU machine predicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Mapping, Sequence, cast

from tir_schedules.errors import BadInput
from tir_schedules.files import Json, check, read_json
from tir_schedules.insight.profile.nsight import Entry, comparisons, nsight_counters
from tir_schedules.ladders.registry import current
from tir_schedules.provenance import device_provenance
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
    """A recorded result with counted launches. BadInput, in one line, for a file that is none."""
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


def with_comparisons(result: Result) -> Result:
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
