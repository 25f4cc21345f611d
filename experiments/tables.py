"""The result tables of the READMEs, written from recorded benchmarks.

    tir-schedules bench sgemm -o experiments/results/bench_sgemm_h200.json    # on a GPU
    python experiments/tables.py            # rewrite the tables
    python experiments/tables.py --check    # exit code 1 when that would change a file

A table stands between `<!-- results: sgemm -->` and `<!-- end -->`; the name is that of a family, or of one
of its kinds such as "hgemm nt float16". Where several files bench_*.json hold it, the one measured last
counts. `<!-- tuned: sgemm -->` is the same for tuned_*.json, which `tir-schedules bench --tuned` wrote.
`<!-- shapes: sgemm -->` has a line for each shape of shapes_*.json, see many_shapes.py,
`<!-- drawn: sgemm -->` how the ratios of drawn_*.json are distributed, `<!-- regret: sgemm -->` what the
choice of a configuration lost in regret_*.json, `<!-- headline: sgemm hgemm -->` a line for each, see
drawn_tables.py,
`<!-- best: sgemm; reduce int32 -->` a line for each, see best_tables.py,
`<!-- rungs: hgemm -->` all rungs of each shape of rungs_*.json, see rung_tables.py, and
`<!-- pauses: sgemm -->` a line for each kernel of pauses_*.json, see ratio_tables.py.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, Sequence

import best_tables
import drawn_tables
from ratio_tables import Recording, by_shape, with_and_without_pauses
from rung_tables import every_rung
from writing import update

from tir_schedules.bench.tables import THROTTLED, closing_lines, limit, provenance_line, summary, table
from tir_schedules.bench.views import groups_of
from tir_schedules.errors import BadInput, TirSchedulesError
from tir_schedules.subjects.results import device_name, load_results

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "experiments/README.md", "experiments/RESULTS.md", "tir_schedules/tuning/README.md")
READMES = tuple(ROOT / page for page in PAGES)
"""The files that have markers."""

SHOWN = {"sgemm": ("1024", "2048", "4096", "8192"), "hgemm": ("1024", "2048", "4096", "8192")}
"""Family -> the sizes that its table of results shows. All, where none of these was measured."""

FILES = {
    "results": "bench_*.json",
    "tuned": "tuned_*.json",
    "shapes": "shapes_*.json",
    "rungs": "rungs_*.json",
    "pauses": "pauses_*.json",
}
"""What a marker begins with -> the files with its results."""

DRAWN_FILES = ("drawn_*.json", "regret_*.json", FILES["shapes"])
"""With ratios on drawn shapes, with configurations beside what is chosen there, and with chosen shapes."""

Draw = Callable[[list[Recording], tuple[str, ...]], str]
"""The table of a group of rows, from all recordings of it, the latest first, with those of its sizes that are
to be shown."""

DRAWN: dict[str, Draw] = {"shapes": by_shape, "rungs": every_rung, "pauses": with_and_without_pauses}
"""What draws the tables of a marker; of others `markdown`."""


def section(
    name: str,
    results: list[dict[str, Any]],
    shown: dict[str, tuple[str, ...]] = SHOWN,
    draw: Draw | None = None,
) -> str:
    """Tables of a family, or of one of its kinds. shown: as SHOWN. draw: `markdown`, if nothing is said.
    BadInput where nothing was recorded."""
    found: dict[str, list[Recording]] = {}
    for recorded in sorted(results, key=lambda recorded: recorded.get("date", ""), reverse=True):
        for group in groups_of(recorded):
            if name in (group.family, group.title):
                found.setdefault(group.title, []).append((group, recorded))
    if not found:
        raise BadInput(f"a marker asks for results of {name!r}, but none are recorded")
    draw = draw or markdown
    return "\n\n".join(
        draw(recordings, shown.get(recordings[0][0].family, ())) for recordings in found.values()
    )


def markdown(recordings: list[Recording], shown: tuple[str, ...]) -> str:
    """One table of the latest recording, what it summarizes to, and where it comes from."""
    group, recorded = recordings[0]
    group = replace(group, sizes=tuple(size for size in shown if size in group.sizes) or group.sizes)
    head = (f"{group.title}, {group.unit}", *group.sizes)
    lines = [head, ("---",) + ("--:",) * len(group.sizes), *table(group)]
    rows = [f"| {' | '.join(cells)} |".replace(THROTTLED, f"\\{THROTTLED}") for cells in lines]
    limits = "; ".join(map(limit, recorded["limits"]))
    notes = [
        f"{device_name(recorded)}, {provenance_line(recorded)}.",
        f"Limits: {limits}." if limits else "",
        *summary(group),
    ]
    marks = any(THROTTLED in cell for cells in lines for cell in cells)
    notes += [line for line in closing_lines(recorded) if line.startswith(THROTTLED)] if marks else []
    notes = [f"- {note}".replace(THROTTLED, f"\\{THROTTLED}") for note in notes if note]
    return "\n".join([*rows, "", *notes])


def recorded_in(folder: Path, files: str) -> list[dict[str, Any]]:
    """Every file of the folder whose name is as `files` says; others are left alone."""
    return [load_results(path) for path in sorted(folder.glob(files))]


def update_all(readmes: Sequence[Path], folder: Path, check: bool) -> int:
    """Rewrite all tables; returns the exit code."""
    codes = []
    drawn, regretted, chosen = (recorded_in(folder, files) for files in DRAWN_FILES)
    for marker, text_of in {
        "drawn": partial(drawn_tables.distribution, results=drawn),
        "regret": partial(drawn_tables.regret, results=regretted),
        "best": partial(best_tables.best, results=recorded_in(folder, FILES["results"]), shown=SHOWN),
        "headline": partial(drawn_tables.headline, drawn=drawn, chosen=chosen),
    }.items():
        codes += [update(readme, marker, text_of, check) for readme in readmes]
    for marker, files in FILES.items():
        results, shown = recorded_in(folder, files), SHOWN if marker == "results" else {}
        sections = partial(section, results=results, shown=shown, draw=DRAWN.get(marker))
        codes += [update(readme, marker, sections, check) for readme in readmes]
    return max(codes)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument(
        "--check",
        action="store_true",
        help="change nothing; exit code 1 when a README is not what the results say",
    )
    parser.add_argument(
        "--readme", type=Path, nargs="+", default=READMES, metavar="FILE", help="default: those with markers"
    )
    parser.add_argument("--results", type=Path, default=ROOT / "experiments" / "results")
    options = parser.parse_args(arguments)
    try:
        return update_all(options.readme, options.results, options.check)
    except TirSchedulesError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    raise SystemExit(main())
