"""The verb `inspect`: what can be seen without a GPU of a rung's two kernels, of a file's, and of one of them
beside another file's, or a rung's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tir_schedules.api.problems import SIZES, check_options, options_of, problem_of, shape_of
from tir_schedules.api.subjects import is_code, split_file
from tir_schedules.check.options import commented_checks, is_for, parse_comment
from tir_schedules.cli.files import (
    FILE_HELP,
    OWN,
    add_file,
    check_ending,
    check_no_file,
    file_requests,
    one_request,
    the_file,
)
from tir_schedules.cli.options import RUNG_HELP, Options, Verbs, add_arch, add_dry_run
from tir_schedules.cli.problems import add_problem
from tir_schedules.errors import BadInput
from tir_schedules.ladders.problems import SMALL_SHAPES, workload_of
from tir_schedules.ladders.registry import FAMILIES, find_one
from tir_schedules.source import read_source

if TYPE_CHECKING:
    from tir_schedules.api.inspecting import FileCosts
    from tir_schedules.check.preparing import Request
    from tir_schedules.insight.metrics.counting import Metrics
    from tir_schedules.insight.times.timed import Target

VIEWS = {
    "lines": "each line of CUDA with what it cost",
    "conflicts": "only the lines with bank conflicts",
    "advice": "accesses that cost more than necessary, and cheaper ones: replayed, or tried in a copy",
    "sass": "the two kernels' SASS side by side",
    "ptx": "the same of their PTX",
}
"""What is shown in place of the table -> help."""

SHAPED = ("mnk", "n", "layout", "accumulate")
"""Options that say the size of a rung as well."""

SIZE_NAMES = {"mnk": "MNK", "n": "N"}
"""Option for the shape of a rung -> names of sizes in `--let` that say it, too."""


def add_verb(verbs: Verbs) -> None:
    """Add the parser of `inspect` to those of the other verbs."""
    verb = verbs.add_parser(
        "inspect",
        help="registers, occupancy, bank conflicts, sectors, instructions of rungs and twins, with no GPU",
    )
    names = f"{RUNG_HELP}; several, or a ladder ({', '.join(FAMILIES)}), become one table; {FILE_HELP}"
    verb.add_argument("names", nargs="+", metavar="NAME", help=names)
    add_problem(verb, SMALL_SHAPES)
    add_arch(verb)
    verb.add_argument(
        "--gpu",
        metavar="NAME",
        help="the GPU whose datasheet gives the roofline, such as rtx4090 (default: one of --arch)",
    )
    add_file(verb)
    beside = (
        "for a file: compare with another, FILE or FILE:KERNEL, or with a rung, and show the lines that make"
        " the difference"
    )
    verb.add_argument("--beside", metavar="NAME", help=beside)
    views = verb.add_mutually_exclusive_group()
    for view, text in VIEWS.items():
        views.add_argument(f"--{view}", dest="view", action="store_const", const=view, help=text)
    verb.add_argument("--time", action="store_true", help="predict times as well, for --gpu (default h100)")
    add_dry_run(verb)
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(verb=inspect_verb)


def inspect_verb(options: Options) -> int:
    """Run the verb; returns the exit code: 1 when a kernel does not compile, or is not right."""
    from tir_schedules.api.inspecting import costs_of_rungs, jobs_to_inspect
    from tir_schedules.api.plans import plan_of_jobs, plan_of_requests
    from tir_schedules.api.results import finish
    from tir_schedules.console import print_error
    from tir_schedules.insight.times.timed import target_of

    target = target_of(options.gpu) if options.time else None
    if target:
        options.arch = target.arch_for(options.arch)
    path = the_file(options.names, "inspect")
    if path and options.dry_run:
        requests = file_requests(options, path, options.arch)
        return finish(plan_of_requests(requests, "counted on the CPU machine"), options.json, 1)
    if path:
        return finish(costs_of_file(options, path, target), options.json, 1)
    for name in options.names:
        check_ending(name)
        check_no_file(options, name)
    if options.beside:
        raise BadInput(f"--beside is for files; name both rungs instead: {options.names[0]} {options.beside}")
    asked = options_of(shape_of(options), "inspect", arch=options.arch)
    if options.dry_run:
        jobs = jobs_to_inspect(options.names, asked, options.gpu, options.view)
        plan = plan_of_jobs(jobs, options.arch, "compiled, and counted on the CPU machine")
        return finish(plan, options.json, 1)
    found = costs_of_rungs(options.names, asked, options.gpu, options.view, target)
    code = finish(found, options.json, 1)
    for refusal in found.refusals:
        print_error(refusal)
    return code


def costs_of_file(options: Options, path: Path, target: Target | None) -> FileCosts:
    """The same of a file's kernels, or of one beside another."""
    from tir_schedules.api.inspecting import BESIDE_TIME, costs_beside, costs_of_files

    if options.gpu:
        raise BadInput("--gpu is for rungs, whose roofline is known")
    if options.beside and target:
        raise BadInput(BESIDE_TIME)
    if options.beside:
        first = one_request(own_options(options, path), path, options.arch, "--beside")
        if is_code(options.beside):
            return costs_beside([first, other_request(options, options.beside)], view=options.view)
        return costs_beside([first], lambda: metrics_of_rung(options, first), options.view)
    requests = file_requests(options, path, options.arch)
    if options.view and len(requests) > 1:
        raise BadInput(f"--{options.view} shows one check, but {path} has {len(requests)}: say --kernel NAME")
    return costs_of_files(requests, options.view, target)


def own_options(options: Options, path: Path) -> Options:
    """Those for the file: the size may be for the rung alone."""
    source = read_source(path)
    usual = options.ladder or any("--as" in words for _, words in commented_checks(source.text, source.file))
    return options if usual else Options(**{**vars(options), **dict.fromkeys(SHAPED)})


def other_request(options: Options, name: str) -> Request:
    """Of FILE or FILE:KERNEL: as the comments in it say, else with the options of the command."""
    place, kernel = split_file(name)
    path = Path(place)
    source = read_source(path)
    comments = [parse_comment(words, place) for place, words in commented_checks(source.text, source.file)]
    if kernel:
        comments = [own for own in comments if is_for(own, kernel)]
    given = {**vars(options), **(dict.fromkeys((*OWN, *SHAPED)) if comments else {})}
    own = Options(**{**given, "kernel": kernel or None})
    return one_request(own, path, options.arch, "--beside", f"--beside {place}:KERNEL")


def metrics_of_rung(options: Options, request: Request) -> list[Metrics]:
    """A rung's twin, or its schedule where it has none, on the size that is said, or that the file has."""
    from tir_schedules.compiler.lower import lower
    from tir_schedules.compiler.nvcc import compile_kernel
    from tir_schedules.compiler.toolchain import check_arch
    from tir_schedules.compiler.twin import load_twin
    from tir_schedules.insight.metrics.counting import metrics_of
    from tir_schedules.insight.metrics.rungs import check_size
    from tir_schedules.run import launches
    from tir_schedules.subjects.compiling import settle_jobs

    rung = find_one(options.beside, "--beside")
    size = SIZES[rung.family]
    known = [request.sizes.get(name) for name in SIZE_NAMES.get(size, "?")]
    given = dict(vars(options))
    if given[size] is None and all(isinstance(one, int) for one in known):
        given[size] = tuple(known) if size == "mnk" else known[0]
    check_options([rung], Options(**given))
    check_arch(options.arch)
    workload = workload_of(rung, problem_of(rung.family, Options(**given)))
    ((rung, workload),) = settle_jobs([(rung, workload)], options.arch)
    check_size(rung, workload)
    made = launches(load_twin if rung.twinned else lower, rung, workload, options.arch)
    return metrics_of([compile_kernel(kernel) for kernel in made], workload)
