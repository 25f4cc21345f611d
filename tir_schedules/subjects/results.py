"""Results of a benchmark as a JSON file: what was timed, on what, and every sample."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

from tir_schedules.errors import BadInput, TirSchedulesError, shown
from tir_schedules.files import Json, check, read_json, write_text
from tir_schedules.ladders.registry import current
from tir_schedules.provenance import device_provenance, git_revision, software_versions
from tir_schedules.subjects.subject import Row

SCHEMA = 1
REMEDY = "name a JSON file that `bench --output` wrote"
ONE_PER_LINE = ("limits", "rows", "refused", "points")


class Measured(Protocol):
    """What a measurement knows, see bench.measure.Measurement."""

    rows: list[Row]
    refused: list[Row]
    limits: list[Json]
    device: Json
    notes: list[str]


def about(command: str) -> Json:
    """Command, date (UTC), versions and git revision of this computer, as results and packs have them."""
    date = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "command": command,
        "date": date,
        "versions": {**software_versions(), **nvcc_version()},
        "git_revision": git_revision(),
    }


def nvcc_version() -> dict[str, str]:
    """Version of the nvcc in use; nothing on a computer without."""
    try:
        from tir_schedules.compiler.toolchain import find_toolchain

        return {"nvcc": find_toolchain().version}
    except (TirSchedulesError, ImportError):
        return {}


def document(
    source: Json,
    measurement: Measured,
    policy: Json,
    refused: list[Row],
    packed: Json | None = None,
) -> Json:
    """The content of a results file.

    source: what `about` says of this computer. measurement: has device, limits, rows, refused and notes.
    refused: rows of what could not even be compiled. packed: what `about` said on the computer that made the
    pack, where there was one.
    """
    measured = {
        "policy": policy,
        "limits": measurement.limits,
        "rows": measurement.rows,
        "refused": [*refused, *measurement.refused],
    }
    packing = {"packed": packed} if packed else {}
    notes = {"notes": measurement.notes} if measurement.notes else {}
    device = device_facts(measurement.device)
    return {"schema": SCHEMA, **source, **packing, "device": device, **measured, **notes}


def device_facts(seen: Json) -> Json:
    """What was seen of the GPU while measuring, and what nvidia-smi says where it speaks of the same one."""
    known = device_provenance()
    return {**known, **seen} if known.get("name") == seen.get("name") else seen


def as_text(results: Json) -> str:
    """JSON with one line per row, so that two files can be compared line by line."""
    parts = []
    for key, value in results.items():
        if key in ONE_PER_LINE and value:
            lines = ",\n".join(f"  {json.dumps(row)}" for row in value)
            parts.append(f"{json.dumps(key)}: [\n{lines}\n ]")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{\n " + ",\n ".join(parts) + "\n}\n"


def save_results(results: Json, path: Path) -> None:
    """Write a results file, whole or not at all."""
    write_text(path, as_text(results))


def load_results(path: Path, schema: str = "Results", remedy: str = REMEDY) -> Json:
    """Read a results file. schema: which of schemas.py it is to fit. remedy: which file would be right.
    BadInput, in one line with the place, for a file that does not fit."""
    return check_results(read_json(path, remedy), path, schema, remedy)


def check_results(results: Any, path: Path, schema: str, remedy: str = REMEDY) -> Json:
    """What was read of a file, if it is results; BadInput as `load_results` has it."""
    from tir_schedules.subjects import schemas

    if not isinstance(results, dict) or "schema" not in results:
        raise BadInput(f"{path} has no schema and so is not a results file; {remedy}")
    if type(results["schema"]) is not int or results["schema"] != SCHEMA:
        raise BadInput(
            f"{path} has results of schema {shown(results['schema'])}; this version reads schema {SCHEMA}:"
            " measure again"
        )
    check(results, getattr(schemas, schema), f"{path} is not a results file", remedy)
    return current(results)


def device_name(results: Json) -> str:
    """ "NVIDIA H200", or "unknown GPU"."""
    return results["device"].get("name", "unknown GPU")
