"""Results of a benchmark as a JSON file: what was timed, on what, and every sample."""
from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tir_schedules.emit import write_text
from tir_schedules.errors import BadInput, TirSchedulesError
from tir_schedules.provenance import device_provenance, git_revision, software_versions
from tir_schedules.rung import FAMILIES

SCHEMA = 1
KEYS = {"command": str, "device": dict, "versions": dict, "policy": dict, "limits": list, "rows": list, "refused": list}
ROW_KEYS = {
    "family": str, "name": str, "form": str, "shape": str, "workload": dict, "samples_us": list, "median_us": (int, float),
    "spread": (int, float), "rate": (int, float), "unit": str,
}  # fmt: skip
REFUSED_KEYS = dict.fromkeys(("family", "name", "form", "shape", "reason"), str)
LIMIT_KEYS = {"name": str, "rate": (int, float), "unit": str}
SHAPE = re.compile(r"\d+(x\d+x\d+)?( [^\n]+)?")
REMEDY = "name a JSON file that `bench --output` wrote"
ONE_PER_LINE = ("limits", "rows", "refused", "points")


def about(command: str) -> dict[str, Any]:
    """Command, date (UTC), versions and git revision of this computer, as results and packs have them."""
    date = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"command": command, "date": date, "versions": {**software_versions(), **nvcc_version()}, "git_revision": git_revision()}


def nvcc_version() -> dict[str, str]:
    """Version of the nvcc in use; nothing on a computer without."""
    try:
        from tir_schedules.compiler.toolchain import find_toolchain

        return {"nvcc": find_toolchain().version}
    except (TirSchedulesError, ImportError):
        return {}


def document(
    source: dict[str, Any], measurement: Any, policy: dict[str, Any], refused: list[dict], packed: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The content of a results file.

    source: what `about` says of this computer. measurement: has device, limits, rows and refused. refused: rows of what could not
    even be compiled. packed: what `about` said on the computer that made the pack, where there was one.
    """
    measured = {"policy": policy, "limits": measurement.limits, "rows": measurement.rows, "refused": [*refused, *measurement.refused]}
    packing = {"packed": packed} if packed else {}
    return {"schema": SCHEMA, **source, **packing, "device": device_facts(measurement.device), **measured}


def device_facts(seen: dict[str, Any]) -> dict[str, Any]:
    """What was seen of the GPU while measuring, and what nvidia-smi says where it speaks of the same one."""
    known = device_provenance()
    return {**known, **seen} if known.get("name") == seen.get("name") else seen


def as_text(results: dict[str, Any]) -> str:
    """JSON with one line per row, so that two files can be compared line by line."""
    parts = []
    for key, value in results.items():
        if key in ONE_PER_LINE and value:
            lines = ",\n".join(f"  {json.dumps(row)}" for row in value)
            parts.append(f"{json.dumps(key)}: [\n{lines}\n ]")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{\n " + ",\n ".join(parts) + "\n}\n"


def save_results(results: dict[str, Any], path: Path) -> None:
    """Write a results file, whole or not at all."""
    write_text(path, as_text(results))


def load_results(path: Path) -> dict[str, Any]:
    """Read a results file. BadInput, in one line, for a file that is none."""
    try:
        results = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}; {REMEDY}") from None
    except ValueError as error:
        raise BadInput(f"{path} is not JSON ({error}); {REMEDY}") from None
    if not isinstance(results, dict) or "schema" not in results:
        raise BadInput(f"{path} has no schema and so is no results file; {REMEDY}")
    if results["schema"] != SCHEMA:
        raise BadInput(f"{path} has results of schema {results['schema']!r}; this version reads schema {SCHEMA}: measure again")
    check(results, KEYS, path, "the file")
    for key, keys in (("rows", ROW_KEYS), ("refused", REFUSED_KEYS), ("limits", LIMIT_KEYS)):
        for number, row in enumerate(results[key], 1):
            check(row, keys, path, f"{key} {number}")
            if "family" in keys and row["family"] not in FAMILIES:
                raise BadInput(f"{path} has results of {row['family']!r}; this version knows {', '.join(FAMILIES)}")
            if "shape" in keys and not SHAPE.fullmatch(row["shape"]):
                raise BadInput(f"{path} is no results file: {key} {number} has the shape {row['shape']!r}; {REMEDY}")
            if "samples_us" in keys and not (row["samples_us"] and row["median_us"] > 0 and row["rate"] > 0):
                raise BadInput(f"{path} is no results file: {key} {number} has no samples, or no positive time and rate; {REMEDY}")
    return results


def check(part: Any, keys: dict[str, Any], path: Path, where: str) -> None:
    """BadInput when a part of a results file lacks a key or has another type of value for it."""
    for key, kind in keys.items():
        if not isinstance(part, dict) or not isinstance(part.get(key), kind):
            raise BadInput(f"{path} is no results file: {where} has no proper {key!r}; {REMEDY}")


def device_name(results: dict[str, Any]) -> str:
    """ "NVIDIA H200", or "unknown GPU"."""
    return results["device"].get("name", "unknown GPU")
