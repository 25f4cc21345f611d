"""The tables of the README about predicted times, from results/predictions/.

    python experiments/prediction_tables.py            # rewrite them
    python experiments/prediction_tables.py --check    # exit code 1 when that would change the README

`<!-- predicted: sgemm_h100 -->` has the figures of predictions.py, `<!-- unseen: h100 -->` those of
unseen_kernels.py, `<!-- stalls: h100 -->` those of stalls_on_gpu.py, `<!-- ranked: searches_h100 -->` those
of search_predictions.py, `<!-- choices: choices_h100 -->` those of tune_choices.py, and
`<!-- forms: forms_sgemm_h200 -->` those of predictions.py by shape.
"""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections import defaultdict
from pathlib import Path
from typing import Sequence

import predictions
import search_predictions
import stall_tables
import tune_choices
from prediction_figures import causes, figures_of, losses_of, spearman, table
from ratio_tables import gpu, with_notes
from scripts import README, exit_code
from writing import update

from tir_schedules.bench.tables import provenance_line
from tir_schedules.files import Json, read_json


def recorded(name: str) -> Json:
    return read_json(predictions.PREDICTIONS / f"{name}.json", "predict it first")


def notes(found: Json, rows: Sequence[Json]) -> list[str]:
    """What it was measured on and predicted with, and what was refused."""
    text = [
        f"Measured on an {gpu(found)}. Predicted: {provenance_line({**found, 'device': {}, 'rows': []})}."
    ]
    if others := sum("differs" in row for row in rows):
        text.append(
            f"{others} kernels have other registers or shared memory than those that were measured: they have"
            " changed since."
        )
    return text + [f"Refused {count}: {reason}." for reason, count in causes(rows).items()]


def noted(lines: str, found: Json, rows: Sequence[Json]) -> str:
    return "\n".join([lines, "", *(f"- {note}" for note in notes(found, rows))])


def predicted(name: str) -> str:
    found = recorded(name)
    rows = found["rows"]
    return noted(table(predictions.lines(rows), f"{name}, in cycles"), found, rows)


def unseen(name: str) -> str:
    """By family: the first prediction, and the latest of the half that may be looked at and the other."""
    found = recorded(f"unseen_{name}")
    parts = []
    for called, about in found["predicted"].items():
        known = [row for row in found["rows"] if called in row["predicted"]]
        rows = [{**row, **row["predicted"][called]} for row in known]
        families: dict[str, list[Json]] = defaultdict(list)
        for row in rows:
            for group in ("all", f"{row['half']} half", row["family"]):
                families[group].append(row)
        order = sorted(families, key=lambda one: (one != "all", not one.endswith(" half")))
        lines = [(one, predictions.of_rows(families[one])) for one in order]
        parts.append(noted(table(lines, f"{called} prediction"), {**about, "device": found["device"]}, rows))
    return "\n\n".join(parts)


def stalls(name: str) -> str:
    found = recorded(f"stalls_{name}")
    rows = found["rows"]
    lines = with_notes(stall_tables.lines(rows), notes(found, rows))
    return with_notes(stall_tables.by_state(rows), []) + "\n" + lines


def ranked(name: str) -> str:
    found = recorded(name)
    return with_notes(search_predictions.lines(found["rows"]), notes(found, found["rows"]))


def choices(name: str) -> str:
    found = read_json(tune_choices.FOLDER / f"{name}.json", "predict and compare first")
    rows = found["rows"]
    said = [*tune_choices.summary(rows), *notes(found, rows)]
    return with_notes(tune_choices.lines(rows), said)


def forms(name: str) -> str:
    """How well predicted times rank the configurations of each shape, and what the one that is ranked first
    costs beside the fastest that was measured."""
    found = recorded(name)
    shapes: dict[str, list[Json]] = defaultdict(list)
    for row in found["rows"]:
        shapes[row["shape"]].append(row)
    lines, losses = [FORMS_HEAD, ("---", *["--:"] * 6)], []
    for shape, rows in shapes.items():
        known = [row for row in rows if "us" in row]
        predicted, measured = ([row[key] for row in known] for key in ("us", "median_us"))
        least = min(row["median_us"] for row in rows)
        loss, of_five = losses_of(predicted, measured, least)
        losses.append(loss)
        figures, order = figures_of(zip(predicted, measured)), spearman(predicted, measured) or 0
        lines.append((
            shape, str(len(rows)), f"{least:.1f}", f"{100 * figures.mean:.1f} %", f"{order:.2f}",
            f"{100 * loss:.1f} %", f"{100 * of_five:.1f} %",
        ))  # fmt: skip
    near = sum(loss <= 0.05 for loss in losses)
    said = f"The first is within 5 % of the fastest at {near} of {len(losses)} shapes."
    return with_notes(lines, [said, *notes(found, found["rows"])])


FORMS_HEAD = (
    "shape", "configurations", "fastest, us", "mean error", "Spearman", "loss of first", "of best of 5"
)  # fmt: skip

SECTIONS = {
    "predicted": predicted, "unseen": unseen, "stalls": stalls, "ranked": ranked, "choices": choices,
    "forms": forms,
}  # fmt: skip


def write(options: Namespace) -> int:
    return max(update(options.readme, kind, does, options.check) for kind, does in SECTIONS.items())


def parser() -> argparse.ArgumentParser:
    one = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    one.add_argument(
        "--check", action="store_true", help="change nothing; exit code 1 where it is out of date"
    )
    one.add_argument("--readme", type=Path, default=README, metavar="FILE", help="default: this folder's")
    return one


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code(write, parser(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
