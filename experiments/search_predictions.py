"""How well predicted time ranks the configurations of a rung: those that searches.py has timed.

    python experiments/search_predictions.py --most 24   # of each rung; needs TVM and nvcc, no GPU

Configurations are taken in the order of a hash of their names, so that more of them extend what was
predicted. Each is predicted by the simulated SM, by the formula of tuning/cost, and as `tune` does.
"""

from __future__ import annotations

import argparse
import hashlib
from argparse import Namespace
from collections import defaultdict
from pathlib import Path
from typing import Sequence

from prediction_figures import figures_of, losses_of, spearman
from scripts import exit_code
from search_points import ARCH, TASKS, Task

from tir_schedules.errors import TirSchedulesError, one_line
from tir_schedules.files import Json, read_json, write_text
from tir_schedules.subjects.results import about, as_text, load_results
from tir_schedules.tuning.building.candidate import build
from tir_schedules.tuning.cost.predictor import estimated_seconds, predicted_seconds, simulated_seconds

FOLDER = Path(__file__).parent / "results"
TIMES = FOLDER / "searches" / "times_h100.json"
FOUND = FOLDER / "predictions" / "searches_h100.json"
WAYS = {"tune": "tune_us", "simulated": "simulated_us", "formula": "formula_us"}
"""`tune` takes one or the other, see tuning/cost/predictor.py."""
HEAD = ("rung", "configurations", "by", "Spearman", "mean error", "worst", "loss of first", "of best of 5")


def predict_all(options: Namespace) -> int:
    """Predict configurations, and write each beside its time."""
    recorded = load_results(TIMES)
    found = read_json(FOUND, "remove it") if FOUND.exists() else {"rows": []}
    found = {**about("experiments/search_predictions.py"), "device": recorded["device"]} | {
        "rows": found["rows"]
    }
    done = {row["name"] for row in found["rows"]}
    drawn = {task: in_order(recorded["rows"], task)[: options.most] for task in TASKS}
    for place in range(options.most):
        for task, rows in drawn.items():
            if place < len(rows) and rows[place]["name"] not in done:
                found["rows"].append({"median_us": rows[place]["median_us"], **told(task, rows[place])})
                print(found["rows"][-1], flush=True)
                write_text(FOUND, as_text(found))
    return 0


def in_order(rows: Sequence[Json], task: Task) -> list[Json]:
    mine = (row for row in rows if row["name"].startswith(f"{task.rung}:"))
    return sorted(mine, key=lambda row: hashlib.sha256(row["name"].encode()).hexdigest())


def told(task: Task, row: Json) -> Json:
    """What both ways say of a configuration."""
    said: Json = {"name": row["name"], "shape": row["shape"]}
    try:
        candidate = build(task.space.rung_at(task.point(row["name"])), task.workload, ARCH)
        said["formula_us"] = round(1e6 * estimated_seconds(candidate), 3)
        said["tune_us"] = round(1e6 * predicted_seconds(candidate), 3)
        said["simulated_us"] = round(1e6 * simulated_seconds(candidate), 3)
    except TirSchedulesError as error:
        said["refused"] = one_line(error)
    return said


def lines(rows: Sequence[Json]) -> list[tuple[str, ...]]:
    """For each rung and way: rank correlation and error; and how much longer than the fastest the first of
    its ranking takes, and the best of its first five."""
    members: dict[str, list[Json]] = defaultdict(list)
    for row in rows:
        if WAYS["tune"] in row:
            members[row["name"].partition(":")[0]].append(row)
    found = [HEAD, ("---", "--:", "---", *["--:"] * 5)]
    for rung, each in members.items():
        for way, key in WAYS.items():
            known = [row for row in each if key in row]
            measured, predicted = ([row[name] for row in known] for name in ("median_us", key))
            figures, order = figures_of(zip(predicted, measured)), spearman(predicted, measured)
            losses = losses_of(predicted, measured, min(measured))
            found.append((
                rung, str(len(known)), way, f"{order or 0:.3f}", f"{100 * figures.mean:.1f} %",
                f"{100 * figures.worst:.1f} %", *(f"{100 * loss:.1f} %" for loss in losses),
            ))  # fmt: skip
    return found


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    top.add_argument("--most", type=int, default=24, help="of each rung (default 24)")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code(predict_all, parser(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
