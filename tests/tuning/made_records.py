"""Records made up for tests."""

from __future__ import annotations

from dataclasses import asdict

from tir_schedules.tuning.records.records import Database, Record
from tir_schedules.workloads.gemm import Gemm

PROVENANCE = {"versions": {"apache-tvm": "1", "nvcc": "2"}, "revision": "abc", "date": "2026-01-01T00:00:00Z"}


def record(trial: int = 0, problem=Gemm(256, 256, 64), **changes) -> Record:
    """A record of a measured candidate, each trial's of a point of its own, with other fields where asked
    for."""
    fields = {
        "rung": "sgemm/pipelined", "point": {"bm": 128, "wm": trial}, "workload": asdict(problem),
        "family": "sgemm", "arch": "sm_90",
        "device": "NVIDIA H200", "kind": "measured", "seconds": (0.5, 0.25, 1e-6), "error": "",
        "source": "f00", "trial": trial,
    }  # fmt: skip
    return Record(**{**fields, **PROVENANCE, **changes})


def filled(path, count=3) -> list[Record]:
    """Append so many records to a file."""
    made = [record(trial) for trial in range(count)]
    for one in made:
        Database(path).append(one)
    return made


def add_many(path, first: int, together) -> None:
    """Append 50 records as soon as all who share the barrier are ready to."""
    database = Database(path)
    together.wait()
    for trial in range(first, first + 50):
        database.append(record(trial, source="x" * 5000))
