"""Recorded times, to stand beside predicted ones: those of the GPU that is asked for, else of another one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator

from tir_schedules.files import Json, read_json
from tir_schedules.report.recorded import DEFAULT_FOLDER, REMEDY

NAMES = (
    "bench_*.json", "rungs_*.json", "shapes_*.json", "articles_*.json", "predictions/measured_*.json"
)  # fmt: skip
"""Files with times as `bench` has them; sweeps and searches are of other forms of kernels."""


@dataclass(frozen=True)
class RecordedTime:
    """gpu: as its driver calls it. microseconds: the median of samples. mhz: of the SM while they ran, None
    where that was not seen."""

    gpu: str
    microseconds: float
    mhz: float | None
    date: str


Key = tuple[str, str, str]
"""Name, form and shape of a row."""


def recorded_times(gpu: str, folder: Path = DEFAULT_FOLDER) -> dict[Key, RecordedTime]:
    """What the files of a checkout have, the latest of each kernel; nothing in an installed package. gpu:
    whose times come before those of others."""
    found: dict[Key, RecordedTime] = {}
    for document in sorted(documents(folder), key=lambda one: (is_of(one, gpu), one["date"])):
        device = document["device"]["name"]
        for row in document["rows"]:
            key = row["name"], row["form"], row["shape"]
            found[key] = RecordedTime(device, row["median_us"], row.get("clock_mhz"), document["date"])
    return found


def is_of(document: Json, gpu: str) -> bool:
    return document["device"]["name"] == gpu


def documents(folder: Path) -> Iterator[Json]:
    for pattern in NAMES:
        for path in sorted(folder.glob(pattern)):
            content: Any = read_json(path, REMEDY)
            if isinstance(content, dict) and "device" in content and not content["policy"]["sustained"]:
                yield content
