"""Padding, stages, swizzle, block and tile size, one value after another: conflicts, sectors, times.

    python experiments/sweeps.py [padding stages swizzle block tile] [-o FILE.json]
        count, and measure times where there is a GPU; needs TVM and nvcc
    python experiments/sweeps.py [padding ...] --pack FILE.zip --arch sm_90
        compile and count for another computer's GPU
    python experiments/sweeps.py FILE.zip [-o FILE.json]
        measure there; needs a GPU and CuPy
    python experiments/sweeps.py [padding ...] --from FILE.json [--plot F.png]
        print, draw what was recorded
    python experiments/sweeps.py --write | --check
        write experiments/README.md from recorded results, or say whether that would change it

Kernels are verified and timed as by `tir-schedules bench`, and FILE.json is what its --output writes, with a
row for each point besides.
"""

from __future__ import annotations

import argparse
from argparse import Namespace
from pathlib import Path
from typing import Any, Sequence

from scripts import add_recorded_options, check_alone, exit_code
from sweep_plots import save_plots
from sweep_points import SWEEPS, Sweep, find_sweep
from sweep_results import load_sweeps, pack, results_here, results_of_pack
from sweep_tables import notes_of, section, tables
from writing import update

from tir_schedules.bench.plots import check_plot
from tir_schedules.bench.tables import escape_cells, refusal
from tir_schedules.cli.options import check_pack_file, is_pack
from tir_schedules.console import print_line, print_table
from tir_schedules.errors import BadInput
from tir_schedules.files import check_folder
from tir_schedules.machines.choice import choose
from tir_schedules.subjects.results import as_text, save_results

FOLDER = Path(__file__).parent
RECORDED = tuple(FOLDER / "results" / f"{name}_h200.json" for name in ("sweeps", "sweeps_tiles"))
"""Padding, stages and threadblock swizzle; block and tile size."""


def show(sweeps: Sequence[Sweep], results: dict[str, Any]) -> None:
    """Print the tables of those sweeps that the results have."""
    for sweep in sweeps:
        shown = tables(sweep, results)
        for table in shown:
            print_table(escape_cells(table.heads), map(escape_cells, table.lines), table.title)
            for remark in table.remarks:
                print_line(remark)
            print_line()
        for note in (*notes_of(sweep, shown, results), "") if shown else ():
            print_line(note)


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"sweeps ({', '.join(SWEEPS)}; default: all), or a .zip that --pack wrote",
    )
    parser.add_argument(
        "--arch", help="GPU architecture to compile for (default: that of this computer's GPU, else sm_80)"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        help="write all points and samples and where they come from as JSON",
    )
    parser.add_argument("--json", action="store_true", help="print that JSON instead of tables")
    parser.add_argument("--plot", metavar="FILE", type=Path, help="draw the sweeps: .png, .svg or .pdf")
    parser.add_argument(
        "--pack",
        metavar="FILE",
        type=Path,
        help="compile and count into a .zip for a computer without TVM and nvcc",
    )
    add_recorded_options(parser, *RECORDED)
    return parser


def perform(options: Namespace) -> int:
    """Do what the options ask for; returns the exit code."""
    if options.write or options.check:
        return write(options)
    packed = is_pack(options.names)
    sweeps = list(dict.fromkeys(map(find_sweep, () if packed else options.names))) or list(SWEEPS.values())
    if packed:
        check_alone("a pack to be timed", options, ("pack", "recorded", "arch"))
    if options.recorded:
        check_alone("--from", options, ("pack", "arch"))
    for path in filter(None, (options.output, options.plot)):
        check_folder(path)
    check_pack_file(options.pack)
    if options.pack:
        check_alone("--pack", options, ("output", "json", "plot"))
        line, refused = pack(sweeps, options.arch, options.pack)
        print_line(line)
        for row in refused:
            print_line(refusal(row))
        return 1 if refused else 0
    if options.plot:
        check_plot(options.plot)
    return hand_over(sweeps, results_for(sweeps, options, packed), options)


def write(options: Namespace) -> int:
    """The sections of the README."""
    what = "--write" if options.write else "--check"
    if options.names:
        raise BadInput(f"{what} is about all sections of the README: leave out {' '.join(options.names)}")
    check_alone(what, options, ("output", "json", "plot", "pack", "arch"))
    paths = [options.recorded] if options.recorded else filter(Path.exists, RECORDED)
    results = [load_sweeps(path) for path in paths]
    return update(options.readme, "sweep", lambda name: section(name, results), options.check)


def results_for(sweeps: Sequence[Sweep], options: Namespace, packed: bool) -> dict[str, Any]:
    if options.recorded:
        return load_sweeps(options.recorded)
    return (
        results_of_pack(Path(options.names[0]))
        if packed
        else results_here(sweeps, choose("auto"), options.arch)
    )


def hand_over(sweeps: Sequence[Sweep], results: dict[str, Any], options: Namespace) -> int:
    """Write, print and draw results; returns the exit code."""
    if options.output:
        save_results(results, options.output)
    if options.json:
        print(as_text(results), end="")
    else:
        show(sweeps, results)
    drawn = save_plots(sweeps, results, options.plot) if options.plot else []
    if drawn and not options.json:
        print_line("drawn: " + ", ".join(map(str, drawn)))
    return 1 if results["refused"] else 0


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code(perform, parser(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
