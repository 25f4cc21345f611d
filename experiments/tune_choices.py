"""What `tune --machine cpu` would choose, beside the best of a pool of configurations that a GPU has timed.

    python experiments/tune_choices.py search               # needs TVM, xgboost and nvcc, no GPU
    python experiments/tune_choices.py pack -o pack.zip     # the pool, compiled
    tir-schedules bench pack.zip -o measured.json           # where the GPU is
    python experiments/tune_choices.py compare measured.json
    python experiments/tune_choices.py predict              # those that were drawn, too
    python experiments/tune_choices.py again                # predict the same pool by another model

A pool has configurations drawn from the space of a rung, and those that a search on the CPU machine puts
first. All are predicted as that search does it. What was interrupted goes on where it was.
`--gpu` before the step names the GPU that times the pool, because each has a file of its own.
"""

from __future__ import annotations

import argparse
import math
import random
from argparse import Namespace
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Iterable, Sequence

from prediction_figures import figures_of, firsts
from scripts import exit_code
from search_points import ARCH, Task

from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.files import Json, read_json, write_text
from tir_schedules.processes import temporary_folder
from tir_schedules.subjects.packs import save_pack
from tir_schedules.subjects.results import about, as_text, load_results
from tir_schedules.subjects.subject import Subject
from tir_schedules.tuning.building.workers import builders_for
from tir_schedules.tuning.measure.evaluator import Predictor
from tir_schedules.tuning.measure.gpu_timing import compile_subject
from tir_schedules.tuning.records.database import Database
from tir_schedules.tuning.space.points import Point

FOLDER = Path(__file__).parent / "results" / "searches"
GPUS = ("h200", "h100")
RUNGS = ("sgemm/multistage", "hgemm/tma_store")
SHAPES, SEED = 5, 42
LEAST, MOST, STEP = (512, 512, 256), 4096, 8
"""Extents of M, N and K, and what they are multiples of."""

DRAWN, TRIALS, FIRST = 64, 24, 16
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


# ---- search ---
def found_at(gpu: str) -> Path:
    """What is known of the pools that a GPU times."""
    return FOLDER / f"choices_{gpu}.json"


def search_all(options: Namespace) -> int:
    path = found_at(options.gpu)
    rows = read_json(path, "remove it")["rows"] if path.exists() else []
    for task in TASKS:
        if not of_task(rows, task):
            found = {row["name"]: row for row in [*drawn(task), *searched(task)]}
            rows += sorted(found.values(), key=time_of)
            print(task.rung, task.workload, min(map(time_of, of_task(rows, task))), "us", flush=True)
            write_text(path, as_text({**about("experiments/tune_choices.py search"), "rows": rows}))
    return 0


def time_of(row: Json) -> float:
    return row.get("us", math.inf)


def drawn(task: Task) -> list[Json]:
    points = [*task.space.points(task.workload, arch_of(task))]
    chosen = random.Random(f"{SEED} {task.rung} {task.shape}").sample(points, min(DRAWN, len(points)))
    return [row_of(task, point, "drawn") for point in chosen]


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


# ---- predict ---
def predict_timed(options: Namespace) -> int:
    """Predict what was timed by the model as it is: what was drawn, or all again."""
    way, when = ("again_us", "again") if options.name == "again" else ("us", "predicted")
    path = found_at(options.gpu)
    found = read_json(path, "`search` writes it")
    evaluator = Predictor()
    try:
        for task in TASKS:
            known = [row for row in of_task(found["rows"], task) if "median_us" in row]
            pool = [row for row in known if options.anew or way not in row]
            points = [task.point(row["name"]) for row in pool]
            with ThreadPoolExecutor(evaluator.builders) as several:
                for row, us in zip(pool, several.map(partial(microseconds, task, evaluator), points)):
                    row[way] = us
            write_text(path, as_text({**found, when: about(f"experiments/tune_choices.py {options.name}")}))
    finally:
        evaluator.close()
    return show(found["rows"])


# ---- pack ---
def pack(options: Namespace) -> int:
    """Compile the pools."""
    rows = read_json(found_at(options.gpu), "`search` writes it")["rows"]
    jobs = [(task, row) for task in TASKS for row in of_task(rows, task)]
    with ProcessPoolExecutor(builders_for()) as several:
        subjects = [one for one in several.map(compiled, *zip(*jobs)) if one]
    save_pack(subjects, {**about("experiments/tune_choices.py pack"), "arch": ARCH}, options.output)
    print(f"{len(subjects)} configurations: `tir-schedules bench {options.output.name} -o measured.json`")
    return 0


def compiled(task: Task, row: Json) -> Subject | None:
    """None where the compiler refuses it."""
    rung = task.space.rung_at(task.point(row["name"]))
    try:
        return replace(compile_subject(rung, task.workload, arch_of(task)), name=row["name"])
    except CheckFailed:
        return None


# ---- compare ---
def compare(options: Namespace) -> int:
    """Write each time beside its prediction, and print the table."""
    path = found_at(options.gpu)
    found, measured = read_json(path, "`search` writes it"), load_results(options.measured)
    times = {(row["name"], row["shape"]): row["median_us"] for row in measured["rows"]}
    if not any((row["name"], row["shape"]) in times for row in found["rows"]):
        raise BadInput(f"{options.measured} has no time of what was predicted: name that of the pack")
    for row in found["rows"]:
        if (time := times.get((row["name"], row["shape"]))) is not None:
            row["median_us"] = time
    when = {key: measured[key] for key in ("date", "policy", "device")}
    write_text(path, as_text({**found, "device": measured["device"], "measured": when}))
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


def best_of(rows: Iterable[Json], task: Task) -> float:
    """Microseconds of the fastest configuration that was timed."""
    return min(row["median_us"] for row in of_task(rows, task) if "median_us" in row)


def shares(pool: Sequence[Json], best: float, way: str = "us") -> tuple[float, float]:
    """The rate of the predicted first, and of the best of the first five, over that of the best."""
    first, of_five = firsts(*([row[key] for row in pool] for key in (way, "median_us")))
    return best / first, best / of_five


def lines(rows: Sequence[Json]) -> list[tuple[str, ...]]:
    found = [HEAD, ("---", "---", "--:", "---", *["--:"] * 4)]
    for task, (way, called) in product(TASKS, WAYS.items()):
        if not (pool := timed(rows, task, way)):
            continue
        best = best_of(rows, task)
        figures = figures_of((row[way], row["median_us"]) for row in pool)
        first, five = (f"{share:.3f}" for share in shares(pool, best, way))
        found.append((
            task.rung, str(task.workload).partition(" ")[0], f"{task.workload.flops / best / 1e6:.3g}",
            called, first, five, f"{figures.spearman or 0:.3f}", f"{100 * figures.mean:.1f} %",
        ))  # fmt: skip
    return found


def summary(rows: Sequence[Json]) -> list[str]:
    """How often what the predicted time picks is near the best, for each rung."""
    said = []
    for rung, (way, called) in product(RUNGS, WAYS.items()):
        found = [
            shares(pool, best_of(rows, task), way)
            for task in TASKS
            if task.rung == rung and (pool := timed(rows, task, way))
        ]
        if not found:
            continue
        first, five = zip(*found)
        near = [sum(share >= NEAR for share in each) for each in (first, five)]
        said.append(
            f"{rung}, predicted {called}: within 5 % of the best are the first at {near[0]} of {len(first)}"
            f" shapes (lowest {min(first):.3f}), the best of the first five at {near[1]} (lowest"
            f" {min(five):.3f})."
        )
    return said


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    top.add_argument(
        "--gpu", choices=GPUS, default=GPUS[0], help="that times the pool (default: %(default)s)"
    )
    steps = top.add_subparsers(required=True, metavar="STEP")
    steps.add_parser("search", help="draw, and search without a GPU").set_defaults(step=search_all)
    packing = steps.add_parser("pack", help="compile for a computer with a GPU")
    packing.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.zip")
    packing.set_defaults(step=pack)
    for name, says in (
        ("predict", "predict what was drawn and timed"),
        ("again", "predict the pool by the model as it is"),
    ):
        later = steps.add_parser(name, help=says)
        later.add_argument("--anew", action="store_true", help="what this step has predicted before, too")
        later.set_defaults(step=predict_timed, name=name)
    comparing = steps.add_parser("compare", help="record what `bench` wrote, and print the table")
    comparing.add_argument("measured", type=Path, metavar="FILE.json")
    comparing.set_defaults(step=compare)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code(lambda options: options.step(options), parser(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
