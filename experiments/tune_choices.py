"""What `tune --machine cpu` would choose, beside the best of a pool of configurations that a GPU has timed.

    python experiments/tune_choices.py predict              # needs TVM, xgboost and nvcc, no GPU
    python experiments/tune_choices.py pack -o pack.zip     # the pool, compiled
    tir-schedules bench pack.zip -o measured.json           # where the GPU is
    python experiments/tune_choices.py compare measured.json
    python experiments/tune_choices.py again                # predict the same pool by another model

A pool has configurations drawn from the space of a rung, and those that a search on the CPU machine puts
first. All are predicted as that search does it. An interrupted `predict` or `again` goes on where it was.
"""

from __future__ import annotations

import argparse
import math
import random
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Iterable, Sequence

from prediction_figures import figures_of
from scripts import exit_code
from search_points import ARCH, Task

from tir_schedules.errors import BadInput, CheckFailed, one_line
from tir_schedules.files import Json, read_json, write_text
from tir_schedules.processes import temporary_folder
from tir_schedules.subjects.packs import save_pack
from tir_schedules.subjects.results import about, as_text, load_results
from tir_schedules.subjects.subject import Subject
from tir_schedules.tuning.measure.evaluator import Predictor
from tir_schedules.tuning.measure.gpu_timing import compile_subject
from tir_schedules.tuning.records.database import Database
from tir_schedules.tuning.space.points import Point

FOUND = Path(__file__).parent / "results" / "searches" / "choices_h100.json"
RUNGS = ("sgemm/multistage", "hgemm/tma_store")
SHAPES, SEED = 5, 42
LEAST, MOST, STEP = (512, 512, 256), 4096, 8
"""Extents of M, N and K, and what they are multiples of."""

DRAWN, TRIALS, FIRST = 16, 12, 8
"""Configurations that are drawn; that a search tries; and of these the first, which are timed, too."""

NEAR = 1 / 1.05
"""Of the best rate: within 5 % of its time."""

WAYS = {"us": "when it was drawn", "again_us": "again"}
"""What a pool was predicted as: before its times were known, and by a later model."""

HEAD = (
    "rung", "M x N x K", "best, TFLOPS", "predicted", "first / best", "of first 5", "Spearman", "mean error"
)  # fmt: skip


def shapes() -> list[tuple[int, ...]]:
    """Drawn once: each extent is as likely in one octave as in another."""
    drawing = random.Random(SEED)

    def extent(least: int) -> int:
        return round(math.exp(drawing.uniform(math.log(least), math.log(MOST))) / STEP) * STEP

    return [tuple(map(extent, LEAST)) for _ in range(SHAPES)]


TASKS = tuple(Task(rung, shape) for rung in RUNGS for shape in shapes())


def of_task(rows: Iterable[Json], task: Task) -> list[Json]:
    return [row for row in rows if row["rung"] == task.rung and row["shape"] == str(task.workload)]


# ---- predict ---
def predict_all(options: Namespace) -> int:
    rows = read_json(FOUND, "remove it")["rows"] if FOUND.exists() else []
    for task in TASKS:
        if not of_task(rows, task):
            rows += predicted(task)
            print(task.rung, task.workload, min(map(time_of, of_task(rows, task))), "us", flush=True)
            write_text(FOUND, as_text({**about("experiments/tune_choices.py predict"), "rows": rows}))
    return 0


def predicted(task: Task) -> list[Json]:
    """The search's points and those drawn, each once: the fastest first."""
    found = {row["name"]: row for row in [*drawn(task), *searched(task)]}
    return sorted(found.values(), key=time_of)


def time_of(row: Json) -> float:
    return row.get("us", math.inf)


def drawn(task: Task) -> list[Json]:
    points = [*task.space.points(task.workload, arch_of(task))]
    chosen = random.Random(f"{SEED} {task.rung} {task.shape}").sample(points, min(DRAWN, len(points)))
    evaluator = Predictor()
    try:
        with ThreadPoolExecutor(evaluator.builders) as pool:
            return [*pool.map(partial(told, task, evaluator), chosen)]
    finally:
        evaluator.close()


def told(task: Task, evaluator: Predictor, point: Point) -> Json:
    try:
        return row_of(task, point, "drawn", us=microseconds(task, evaluator, point))
    except CheckFailed as error:
        return row_of(task, point, "drawn", refused=one_line(error))


def microseconds(task: Task, evaluator: Predictor, point: Point) -> float:
    """As `tune` predicts them."""
    found = evaluator.evaluate(task.space.rung_at(point), task.workload, arch_of(task))
    return round(1e6 * found.seconds[0], 3)


def searched(task: Task) -> list[Json]:
    """The first of what `tune --machine cpu` tries."""
    from tir_schedules.tuning.search.tuner import tune

    with temporary_folder() as folder:
        database = Database(folder / "records.jsonl")
        tuned = tune(task.space, task.workload, arch_of(task), TRIALS, database)
    first = sorted(tuned.records, key=lambda record: record.median)[:FIRST]
    return [row_of(task, one.point, "tune", us=round(1e6 * one.median, 3)) for one in first if one.seconds]


def row_of(task: Task, point: Point, source: str, **said: object) -> Json:
    return {
        "rung": task.rung,
        "shape": str(task.workload),
        "name": task.name(point),
        "from": source,
        **said,
    }


def arch_of(task: Task) -> str:
    return task.space.rung.arch_for(ARCH)


def predict_again(options: Namespace) -> int:
    """Predict what was timed by the model as it is."""
    found = read_json(FOUND, "`predict` writes it")
    evaluator = Predictor()
    try:
        for task in TASKS:
            pool = [row for row in timed(found["rows"], task) if options.anew or "again_us" not in row]
            points = [task.point(row["name"]) for row in pool]
            with ThreadPoolExecutor(evaluator.builders) as several:
                for row, us in zip(pool, several.map(partial(microseconds, task, evaluator), points)):
                    row["again_us"] = us
            write_text(FOUND, as_text({**found, "again": about("experiments/tune_choices.py again")}))
    finally:
        evaluator.close()
    return show(found["rows"])


# ---- pack ---
def pack(options: Namespace) -> int:
    """Compile what was predicted."""
    rows = read_json(FOUND, "`predict` writes it")["rows"]
    subjects = [compiled(task, row) for task in TASKS for row in of_task(rows, task) if "us" in row]
    save_pack(subjects, {**about("experiments/tune_choices.py pack"), "arch": ARCH}, options.output)
    print(f"{len(subjects)} configurations: `tir-schedules bench {options.output.name} -o measured.json`")
    return 0


def compiled(task: Task, row: Json) -> Subject:
    rung = task.space.rung_at(task.point(row["name"]))
    return replace(compile_subject(rung, task.workload, arch_of(task)), name=row["name"])


# ---- compare ---
def compare(options: Namespace) -> int:
    """Write each time beside its prediction, and print the table."""
    found, measured = read_json(FOUND, "`predict` writes it"), load_results(options.measured)
    times = {(row["name"], row["shape"]): row["median_us"] for row in measured["rows"]}
    if not any((row["name"], row["shape"]) in times for row in found["rows"]):
        raise BadInput(f"{options.measured} has no time of what was predicted: name that of the pack")
    for row in found["rows"]:
        if (time := times.get((row["name"], row["shape"]))) is not None:
            row["median_us"] = time
    when = {key: measured[key] for key in ("date", "policy", "device")}
    write_text(FOUND, as_text({**found, "device": measured["device"], "measured": when}))
    return show(found["rows"])


def show(rows: Sequence[Json]) -> int:
    for line in lines(rows):
        print(*line, sep="\t")
    print(*summary(rows), sep="\n")
    return 0


def timed(rows: Iterable[Json], task: Task, way: str = "us") -> list[Json]:
    """The fastest by prediction first."""
    known = (row for row in of_task(rows, task) if way in row and "median_us" in row)
    return sorted(known, key=lambda row: row[way])


def shares(pool: Sequence[Json]) -> tuple[float, float]:
    """The rate of the predicted first, and of the best of the first five, over that of the best."""
    measured = [row["median_us"] for row in pool]
    return min(measured) / measured[0], min(measured) / min(measured[:5])


def lines(rows: Sequence[Json]) -> list[tuple[str, ...]]:
    found = [HEAD, ("---", "---", "--:", "---", *["--:"] * 4)]
    for task, (way, called) in product(TASKS, WAYS.items()):
        if not (pool := timed(rows, task, way)):
            continue
        best = min(row["median_us"] for row in pool)
        figures = figures_of((row[way], row["median_us"]) for row in pool)
        first, five = (f"{share:.3f}" for share in shares(pool))
        found.append((
            task.rung, str(task.workload).partition(" ")[0], f"{task.workload.flops / best / 1e6:.3g}",
            called, first, five, f"{figures.spearman or 0:.3f}", f"{100 * figures.mean:.1f} %",
        ))  # fmt: skip
    return found


def summary(rows: Sequence[Json]) -> list[str]:
    """How often what the predicted time picks is near the best, for each rung."""
    said = []
    for rung, (way, called) in product(RUNGS, WAYS.items()):
        pools = [pool for task in TASKS if task.rung == rung and (pool := timed(rows, task, way))]
        if not pools:
            continue
        first, five = zip(*map(shares, pools))
        near = [sum(share >= NEAR for share in each) for each in (first, five)]
        said.append(
            f"{rung}, predicted {called}: within 5 % of the best are the first at {near[0]} of {len(first)}"
            f" shapes (lowest {min(first):.3f}), the best of the first five at {near[1]} (lowest"
            f" {min(five):.3f})."
        )
    return said


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    steps = top.add_subparsers(required=True, metavar="STEP")
    steps.add_parser("predict", help="draw, search and predict").set_defaults(step=predict_all)
    packing = steps.add_parser("pack", help="compile for a computer with a GPU")
    packing.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.zip")
    packing.set_defaults(step=pack)
    anew = steps.add_parser("again", help="predict the pool by the model as it is")
    anew.add_argument("--anew", action="store_true", help="those that were predicted again, too")
    anew.set_defaults(step=predict_again)
    comparing = steps.add_parser("compare", help="record what `bench` wrote, and print the table")
    comparing.add_argument("measured", type=Path, metavar="FILE.json")
    comparing.set_defaults(step=compare)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code(lambda options: options.step(options), parser(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
