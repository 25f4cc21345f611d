"""Predicted times of all rungs and twins beside those that `bench` has recorded, and how far they are apart.

    python experiments/predictions.py                       # predict all recorded times
    python experiments/predictions.py sgemm_h200 --sizes 1024,2048

No GPU is needed; prediction_tables.py writes the README. A file of results/predictions/ belongs to one of
recorded times, measured_*.json beside it or bench_*.json. Rows that the model of today has
predicted are kept, so that an interrupted run goes on where it was; with another model all are predicted
again. What is predicted is the kernel of today: `differs` marks one that is not the one measured, by its
registers and shared memory. Cycles are compared at the clock that a row was measured at, time at the clock
that the model says.
"""

from __future__ import annotations

import argparse
import re
from argparse import Namespace
from collections import defaultdict
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Iterable, Iterator, Sequence

from prediction_figures import Figures, causes, figures_of, table
from scripts import exit_code

from tir_schedules.bench.measure import resources_of
from tir_schedules.errors import BadInput, TirSchedulesError, one_line
from tir_schedules.files import Json, read_json, write_text
from tir_schedules.ladders.known import workload_class
from tir_schedules.ladders.registry import find
from tir_schedules.machines.execution import written
from tir_schedules.model.kernel import FIXED_TWIN
from tir_schedules.model.workload import Arguments, Workload
from tir_schedules.subjects.compiling import subjects_of
from tir_schedules.subjects.results import about, as_text, load_results
from tir_schedules.subjects.subject import Subject
from tir_schedules.timing.gpus import GpuTable, find_table, known_tables
from tir_schedules.timing.keeping import sources
from tir_schedules.timing.prediction import Prediction, predict
from tir_schedules.workloads.drawing import ZEROS

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"
PREDICTIONS = RESULTS / "predictions"

FORMS = {"schedule": "schedules", FIXED_TWIN: "twins"}
NEAREST = "h100"
"""The table for GPUs without one of their own."""


def recorded_files(names: Sequence[str]) -> dict[str, Path]:
    """Files of recorded times by their names; all, where none are named."""
    paths = [*sorted(PREDICTIONS.glob("measured_*.json")), *sorted(RESULTS.glob("bench_*.json"))]
    there = {path.stem.partition("_")[2]: path for path in paths}
    unknown = [name for name in names if name not in there]
    if unknown:
        raise BadInput(f"there are no recorded times {unknown[0]!r}; there are: {', '.join(there)}")
    return {name: there[name] for name in names or there}


def table_name(name: str) -> str:
    """That of the GPU that a file was recorded on, if it is shipped."""
    own = name.rpartition("_")[2].removesuffix(".json")
    return own if own in known_tables() else NEAREST


def identity(row: Json) -> tuple[str, str, str]:
    return row["name"], row["form"], row["shape"]


def extents(row: Json) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", row["shape"].partition(" ")[0])))


# ---- predict ---
def predict_all(options: Namespace) -> int:
    """Predict what is missing."""
    for name, path in recorded_files(options.names).items():
        recorded = load_results(path)
        rows = [row for row in recorded["rows"] if row["form"] in FORMS and is_asked(row, options)]
        target = PREDICTIONS / f"{name}.json"
        found = begun(target, name, path, recorded)
        done = {identity(row) for row in found["rows"]}
        left = [row for row in rows if identity(row) not in done]
        print(f"{name}: {len(left)} of {len(rows)} to be predicted", flush=True)
        for said in predicted(left, find_table(table_name(name))):
            found["rows"].append(said)
            save(found, recorded, target)
        show(name, found)
    return 0


def is_asked(row: Json, options: Namespace) -> bool:
    sized = not options.sizes or max(extents(row)) in options.sizes
    return sized and (not options.only or bool(re.search(options.only, row["name"])))


def begun(target: Path, name: str, path: Path, recorded: Json) -> Json:
    """What the same model has predicted for the same measurements, or nothing yet."""
    figures = find_table(table_name(name))
    head = {
        "recorded": {"file": path.name, "date": recorded["date"], "git_revision": recorded["git_revision"]},
        "model": sources().hex()[:16], "table": {"name": table_name(name), "profile": figures.git_revision},
    }  # fmt: skip
    if target.exists():
        before = read_json(target, "remove it")
        if all(before[key] == value for key, value in head.items()):
            return before
    command = about(f"experiments/predictions.py {name}")
    return {**command, **head, "device": recorded["device"], "rows": []}


def save(found: Json, recorded: Json, target: Path) -> None:
    """Write rows in the order in which they were measured."""
    places = {identity(row): place for place, row in enumerate(recorded["rows"])}
    found["rows"].sort(key=lambda row: places[identity(row)])
    write_text(target, as_text(found))


def predicted(rows: Sequence[Json], figures: GpuTable) -> Iterator[Json]:
    """A row for each, those of one workload after another."""
    for _, group in groupby(
        sorted(rows, key=lambda row: (extents(row), row["shape"])), lambda row: row["shape"]
    ):
        listed = [*group]
        workload = workload_class(listed[0]["family"])(**listed[0]["workload"])
        given = workload.arguments(kind=ZEROS)
        for names, one in groupby(sorted(listed, key=lambda row: row["name"]), lambda row: row["name"]):
            measured = {row["form"]: row for row in one}
            try:
                subjects = compiled(names, workload, next(iter(measured.values()))["arch"])
            except TirSchedulesError as error:
                subjects = {}
                reason = one_line(error)
            else:
                reason = "it cannot be compiled"
            for form, row in measured.items():
                subject = subjects.get(form)
                said = told(subject, given, figures, row) if subject else {"refused": reason}
                if subject and differs(subject, row):
                    said |= {"differs": True}
                print(*identity(row), row["median_us"], said.get("us", said.get("refused")), flush=True)
                kept = {key: row[key] for key in ("name", "form", "shape", "median_us", "clock_mhz")}
                yield kept | said


def compiled(name: str, workload: Workload, arch: str) -> dict[str, Subject]:
    """A rung's kernels by form."""
    (rung,) = find(name)
    subjects, _ = subjects_of([(rung, workload)], arch, twin=FIXED_TWIN)
    return {subject.form: subject for subject in subjects if subject.binaries}


def differs(subject: Subject, row: Json) -> bool:
    """Whether a kernel has other registers or shared memory than the one measured, and so has changed.
    One that has as many may have changed, too."""
    return any(row[name] != value for name, value in resources_of(subject).items())


def launched(subject: Subject, given: Arguments) -> tuple[list[Arguments], list[str]]:
    """Arguments of each launch, and the names of what is written. A launch sees its arrays as they are at the
    start."""
    arguments = []
    for binary in subject.binaries:
        given = binary.kernel.prepared(subject.workload, given)
        arguments.append(given)
    names = written(subject.workload, [binary.kernel for binary in subject.binaries])
    return arguments, [*dict.fromkeys(name for of_launch in names for name in of_launch)]


def told(subject: Subject, given: Arguments, figures: GpuTable, row: Json) -> Json:
    """What the model says of a kernel. us: at the clock of the row; own_us: at that of the model."""
    try:
        found = predict(
            subject.binaries, *launched(subject, given), figures, row["clock_mhz"],
            overlap=row.get("overlaps", False),
        )  # fmt: skip
    except TirSchedulesError as error:
        return {"refused": one_line(error)}
    bounds = [f"{one.beyond.bound}/{one.beyond.level}" for one in found.launches]
    own = Prediction(found.launches, figures.mhz)
    us = {"us": round(found.microseconds, 3), "own_us": round(own.microseconds, 3)}
    return us | {"cycles": round(found.cycles), "beyond_l1": bounds}


# ---- figures ---
def base(row: Json) -> str:
    """The rung without its configuration."""
    return row["name"].partition(":")[0]


def groups(rows: Sequence[Json]) -> Iterator[tuple[str, list[Json]]]:
    """All, by form, and by shape."""
    yield "all", [*rows]
    for form, name in FORMS.items():
        yield name, [row for row in rows if row["form"] == form]
    shapes: dict[str, list[Json]] = defaultdict(list)
    for row in sorted(rows, key=extents):
        shapes[row["shape"]].append(row)
    for shape, members in shapes.items():
        yield shape.replace("x", " x "), members


def of_rows(rows: Iterable[Json], which: str = "us") -> Figures:
    return figures_of([(row.get(which), row["median_us"]) for row in rows])


def within_rungs(rows: Iterable[Json]) -> Figures:
    """Of the configurations of a rung on one shape, the rank correlation in the mean over rungs and shapes
    with three or more."""
    members: dict[tuple[str, ...], list[Json]] = defaultdict(list)
    for row in rows:
        if "refused" not in row:
            members[base(row), row["form"], row["shape"]].append(row)
    several = [each for each in members.values() if len(each) > 2]
    every = [one for each in several for one in each]
    found = of_rows(every)
    orders = [order for each in several if (order := of_rows(each).spearman) is not None]
    return replace(found, spearman=sum(orders) / len(orders) if orders else None)


def lines(rows: Sequence[Json]) -> list[tuple[str, Figures]]:
    found = [(name, of_rows(members)) for name, members in groups(rows)]
    configurations = within_rungs(rows)
    if configurations.kernels:
        found.append(("configurations of one rung", configurations))
    return [*found, ("all, in time", of_rows(rows, "own_us"))]


def show(name: str, found: Json) -> None:
    print(f"\n{name}\n{table(lines(found['rows']), 'in cycles')}")
    for reason, count in causes(found["rows"]).items():
        print(f"refused {count}: {reason}")


def sizes(text: str) -> frozenset[int]:
    return frozenset(map(int, text.split(",")))


def parser() -> argparse.ArgumentParser:
    one = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    one.add_argument("names", nargs="*", metavar="NAME", help="such as sgemm_h200 (default: all)")
    one.add_argument("--sizes", type=sizes, metavar="N,N", help="only shapes whose largest extent is one")
    one.add_argument("--only", metavar="TEXT", help="only rungs whose name has this, a regular expression")
    return one


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code(predict_all, parser(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
