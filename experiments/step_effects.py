"""The last line of each rung's docstring: its rate and that of the rung before, from recorded benchmarks.

    python experiments/step_effects.py            # rewrite the docstrings
    python experiments/step_effects.py --check    # exit code 1 when that would change a file

Both rates are of one recording: the latest of bench_*.json and articles_*.json that has both rungs. Where
there is no such recording, the docstring has no such line.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any, Sequence

from tir_schedules import ladders
from tir_schedules.bench.views import figures, short, size_of
from tir_schedules.files import write_text
from tir_schedules.ladders.known import FAMILIES, rung_names
from tir_schedules.subjects.results import device_name, load_results

RESULTS = Path(__file__).parent / "results"
LADDERS = Path(ladders.__file__).parent

SHAPES = {"sgemm": "4096x4096x4096", "hgemm": "4096x4096x4096 nt float16", "reduce": "33554432 int32"}

OTHERS = {"sgemm/warp_tiling": ("sgemm/transposed:article", "sgemm/warp_tiling:article", "2048x2048x2048")}
"""Rung -> configurations that show its step, and their shape, where defaults differ in more than that: by
default `transposed` has four times the block tile."""

LINE = re.compile(r'\n\nMeasured on an? [^\n]*(?=\n""")')


def recordings(folder: Path) -> list[dict[str, Any]]:
    """The latest first."""
    paths = [*folder.glob("bench_*.json"), *folder.glob("articles_*.json")]
    return sorted(map(load_results, paths), key=lambda one: one.get("date", ""), reverse=True)


def effects(recorded: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Rung -> the line, or "" where there is nothing to say."""
    found = {}
    for family in FAMILIES:
        before = ""
        for name in (f"{family}/{each}" for each in rung_names(family)):
            found[name] = effect(recorded, *OTHERS.get(name, (before, name, SHAPES[family])))
            before = name
    return found


def effect(recorded: Sequence[dict[str, Any]], before: str, name: str, shape: str) -> str:
    """Of the first recording that has both; before: "" for the first rung of a ladder."""
    for one in recorded:
        rows = {row["name"]: row for row in one["rows"] if (row["form"], row["shape"]) == ("schedule", shape)}
        if name not in rows or before not in ("", *rows):
            continue
        row, gpu = rows[name], device_name(one).removeprefix("NVIDIA ")
        size = " ".join([size_of(row), *shape.split()[1:]])
        said = f"Measured on an {gpu} at {size}: {figures(row['rate'])} {row['unit']}"
        if not before:
            return f"{said}."
        earlier = rows[before]["rate"]
        return f"{said}, {row['rate'] / earlier:.2f} times the {figures(earlier)} of `{short(before)}`."
    return ""


def rewritten(text: str, line: str) -> str:
    """The text of a module whose docstring ends with the line."""
    text = LINE.sub("", text, count=1)
    return text.replace('\n"""', f'\n\n{line}\n"""', 1) if line else text


def main(arguments: Sequence[str] | None = None, folder: Path = LADDERS, results: Path = RESULTS) -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit code 1 when a docstring would change")
    check, code = parser.parse_args(arguments).check, 0
    for name, line in effects(recordings(results)).items():
        path = folder / f"{name}.py"
        before = path.read_text(encoding="utf-8")
        after = rewritten(before, line)
        if before == after:
            continue
        if check:
            print(f"{path} does not say what was recorded: rewrite it", file=sys.stderr)
            code = 1
        else:
            write_text(path, after)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
