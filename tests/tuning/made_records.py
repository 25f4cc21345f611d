"""Records made up for tests."""

from __future__ import annotations

from dataclasses import asdict

from tir_schedules.model.workload import Workload
from tir_schedules.tuning.records.database import Database
from tir_schedules.tuning.records.record import Record
from tir_schedules.workloads.gemm import Gemm

PROVENANCE = {"versions": {"apache-tvm": "1", "nvcc": "2"}, "revision": "abc", "date": "2026-01-01T00:00:00Z"}


def record(trial: int = 0, problem: Workload = Gemm(256, 256, 64), **changes) -> Record:
    """A record of a measured candidate, each trial at a point of its own. changes: other fields."""
    fields = {
        "rung": "sgemm/pipelined",
        "point": {"bm": 128, "wm": trial},
        "workload": asdict(problem),
        "family": "sgemm",
        "arch": "sm_90",
        "device": "NVIDIA H200",
        "kind": "measured",
        "seconds": (0.5, 0.25, 1e-6),
        "error": "",
        "source": "f00",
        "trial": trial,
    }
    return Record(**{**fields, **PROVENANCE, **changes})


def predicted(trial: int, problem: Workload, rung: str = "sgemm/multistage") -> Record:
    """A record of a predicted candidate; the second trial is refused, the others are ever faster."""
    result = (
        {"error": "too many registers", "seconds": ()} if trial == 1 else {"seconds": (1e-3 / (trial + 1),)}
    )
    made = {
        "rung": rung,
        "family": rung.split("/")[0],
        "point": {"bm": 64, "bn": trial},
        "kind": "predicted",
        "device": "CPU machine",
        "arch": "sm_90",
    }
    return record(trial, problem, **made, **result)


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
