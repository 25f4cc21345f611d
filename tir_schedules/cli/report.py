"""The verb `report`: its options and what it prints."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tir_schedules.cli.options import Options, Verbs, add_path
from tir_schedules.errors import BadInput
from tir_schedules.files import check_page

DEFAULT = Path("report.html")


def add_verb(verbs: Verbs) -> None:
    """Add the parser of `report` to those of the other verbs."""
    verb = verbs.add_parser(
        "report",
        help="one HTML page: ladders, plots, rooflines, bank conflicts; from recorded results, without a GPU",
    )
    add_path(verb, "-o", "--output", help=f"the page (default {DEFAULT})", default=DEFAULT)
    results = (
        "folders and files that `bench -o` and the scripts of experiments/ wrote (default:"
        " experiments/results of a checkout)"
    )
    verb.add_argument("--results", metavar="PATH", type=Path, nargs="+", help=results)
    verb.add_argument(
        "--quick", action="store_true", help="compile and execute nothing: only recorded results"
    )
    verb.add_argument(
        "--time",
        action="store_true",
        help="predict as well how long kernels take on an H100, and what warps wait for; some minutes",
    )
    verb.set_defaults(verb=report)


def report(options: Options) -> int:
    """Run the verb; returns the exit code, 1 when a kernel could not be executed or the CPU machine
    objects."""
    from tir_schedules.bench.plots import pyplot
    from tir_schedules.console import print_line
    from tir_schedules.insight.times.timed import target_of
    from tir_schedules.pages.folder import write_page
    from tir_schedules.report.page import draw_times, ladders_of, page_of
    from tir_schedules.report.recorded import find_recorded

    started = time.monotonic()
    check_page(options.output)
    if options.time and options.quick:
        raise BadInput("--quick executes nothing, and --time does: leave one out")
    pyplot()
    found = find_recorded(options.results)
    with ThreadPoolExecutor(1) as aside:  # compilers and the CPU machine leave room for it
        drawn = aside.submit(draw_times, found)
        ladders, faults = ladders_of(found, options.quick, target_of() if options.time else None)
        page = page_of(found, ladders, faults, options.quick, drawn.result())
    write_page(options.output, page, tell=False)
    print_line(
        f"wrote {options.output}, {len(page.encode()) / 1e6:.1f} MB, in {time.monotonic() - started:.0f} s;"
        " open it in a browser"
    )
    for fault in faults:
        print_line(fault)
    return 1 if faults else 0
