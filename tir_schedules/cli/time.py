"""The verb `time`: how long rungs and their twins, or the kernels of a file, take on a GPU, predicted without
one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tir_schedules.api.problems import options_of, shape_of
from tir_schedules.cli.files import FILE_HELP, add_file, check_ending, check_no_file, file_requests, the_file
from tir_schedules.cli.options import RUNG_HELP, Options, Verbs, add_arch, add_dry_run, add_path
from tir_schedules.cli.problems import add_problem
from tir_schedules.files import check_page
from tir_schedules.ladders.problems import TIME_SHAPES
from tir_schedules.ladders.registry import FAMILIES

if TYPE_CHECKING:
    from tir_schedules.api.timing import TimeReport


def add_verb(verbs: Verbs) -> None:
    """Add the parser of `time` to those of the other verbs."""
    verb = verbs.add_parser(
        "time", help="how long kernels take on a GPU and what they wait for, predicted with no GPU"
    )
    names = f"{RUNG_HELP}; several, or a ladder ({', '.join(FAMILIES)}), become one table; {FILE_HELP}"
    verb.add_argument("names", nargs="+", metavar="NAME", help=names)
    add_problem(verb, TIME_SHAPES)
    add_arch(verb, None, "all that the GPU has")
    verb.add_argument("--gpu", metavar="NAME", help="the GPU whose figures are taken (default h100)")
    verb.add_argument(
        "--mhz",
        metavar="N",
        help="the clock of the SMs, or `maximum` (default: the maximum, lowered as measured where tensor"
        " cores are busy)",
    )
    add_file(verb)
    add_path(verb, "--html", help="write a page: a timeline of a block's warps, and what each line waits for")
    add_dry_run(verb)
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(verb=time_verb)


def time_verb(options: Options) -> int:
    """Run the verb; returns the exit code: 1 when no kernel was predicted."""
    from tir_schedules.api.plans import plan_of_jobs, plan_of_requests
    from tir_schedules.api.results import finish
    from tir_schedules.api.timing import jobs_to_time, times_of_files, times_of_rungs
    from tir_schedules.insight.times.timed import target_of

    target = target_of(options.gpu, options.mhz)
    arch = target.arch_for(options.arch)
    note = f"one block executed on the CPU machine, and simulated as on {target.table.device}"
    if options.html:
        check_page(options.html)
    path = the_file(options.names, "time")
    if path:
        requests = file_requests(options, path, arch)
        if options.dry_run:
            return finish(plan_of_requests(requests, note), options.json, 1)
        return shown(times_of_files(requests, target, bool(options.html)), options)
    for name in options.names:
        check_ending(name)
        check_no_file(options, name)
    asked = options_of(shape_of(options), "time", arch=arch)
    if options.dry_run:
        return finish(plan_of_jobs(jobs_to_time(options.names, asked), arch, note), options.json, 1)
    return shown(times_of_rungs(options.names, asked, target, bool(options.html)), options)


def shown(found: TimeReport, options: Options) -> int:
    """Written and printed; returns the exit code."""
    from tir_schedules.api.results import finish
    from tir_schedules.pages.folder import write_page

    if options.html:
        write_page(options.html, found.page())
        if not options.json:
            return 0 if found.ok else 1
    return finish(found, options.json, 1)
