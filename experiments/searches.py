"""`tune` beside random search: the best configuration found, against the number of trials.

    python experiments/searches.py --emit FILE.zip
        draw configurations of three rungs and emit their CUDA; needs TVM
    python experiments/searches.py FILE.zip -o FILE.json
        compile and time all of them; needs a GPU, CuPy and nvcc
    python experiments/searches.py FILE.json -o FILE.json
        search among what was timed; needs TVM and xgboost, but no GPU
    python experiments/searches.py [--from FILE.json] [--plot FILE.png]
        print, draw what was found
    python experiments/searches.py --write | --check
        write experiments/README.md from recorded results, or say whether that would change it

Every drawn configuration is timed once. A search is then a replay: it chooses a configuration, and gets the
time that was recorded. So ten searches cost a GPU no more than one pass over the configurations, and a
computer without a GPU can repeat them. Both searches choose among the drawn configurations alone. Neither
begins with the configurations that were chosen by hand.
"""

from __future__ import annotations

import argparse
from argparse import Namespace
from pathlib import Path
from typing import Sequence

from scripts import add_recorded_options, check_alone, exit_code
from search_points import emit, timed
from search_replays import replayed
from search_tables import found_table, ranking_table, save_plot, section
from writing import update

from tir_schedules.bench.plots import check_plot
from tir_schedules.console import print_line, print_table, progress
from tir_schedules.errors import BadInput
from tir_schedules.files import Json, check_folder
from tir_schedules.machines.choice import the_gpu
from tir_schedules.subjects.results import about, device_name, load_results, save_results

FOLDER = Path(__file__).parent
RECORDED = FOLDER / "results" / "searches" / "replayed.json"


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        type=Path,
        help="a .zip that --emit wrote, to be timed, or a .json of the times, to be searched",
    )
    parser.add_argument("--emit", metavar="FILE", type=Path, help="write the CUDA of all configurations")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write times or searches as JSON")
    parser.add_argument("--plot", metavar="FILE", type=Path, help="draw the searches: .png, .svg or .pdf")
    add_recorded_options(parser, RECORDED)
    return parser


def perform(options: Namespace) -> int:
    """Do what the options ask for; returns the exit code."""
    for path in filter(None, (options.output, options.plot, options.emit)):
        check_folder(path)
    if options.write or options.check:
        check_alone("--write" if options.write else "--check", options, ("file", "emit", "output", "plot"))
        rows = load_searches(options.recorded or RECORDED)["searches"]
        return update(options.readme, "searches", lambda name: section(name, rows), options.check)
    if options.emit:
        check_alone("--emit", options, ("file", "output", "plot", "recorded"))
        emitted, refused = emit(options.emit)
        advice = f"python experiments/searches.py {options.emit.name} -o times.json"
        print_line(f"{emitted} configurations emitted, {refused} refused; where the GPU is: `{advice}`")
        return 0
    if options.file:
        return measure_or_search(options)
    results = load_searches(options.recorded or RECORDED)
    show(results, options.plot)
    return 0


def measure_or_search(options: Namespace) -> int:
    check_alone("a file to be timed or searched", options, ("plot", "recorded"))
    if not options.output:
        raise BadInput("nothing says where the result goes: add -o FILE.json")
    if options.file.suffix == ".zip":
        results = timed(options.file, the_gpu("without a GPU nothing can be timed"))
    else:
        results = searched(options.file)
    save_results(results, options.output)
    print_line(f"written: {options.output}")
    return 0


def searched(path: Path) -> Json:
    """Searches among the times of a file. timed: when and on what these were taken."""
    times = load_results(path)
    source = {key: times[key] for key in ("date", "git_revision", "versions", "device")}
    with progress(None, "searching") as step:
        rows = replayed(times, step)
    return {
        "schema": 1,
        **about(f"experiments/searches.py {path.name}"),
        "timed": source,
        "searches": rows,
    }


def load_searches(path: Path) -> Json:
    """BadInput, in one line, for a file that is something else."""
    return load_results(path, "Searches", "name a JSON file that `experiments/searches.py --output` wrote")


def show(results: Json, plot: Path | None) -> None:
    """Print both tables and, where it is asked for, draw."""
    rows, where = results["searches"], device_name(results["timed"])
    if plot:
        check_plot(plot)
    for title, heads, lines in (found_table(rows), ranking_table(rows)):
        print_table(heads, lines, title)
    if plot:
        save_plot(rows, where, plot)
        print_line(f"drawn: {plot}")


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code(perform, parser(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
