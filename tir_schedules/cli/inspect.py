"""The verb `inspect`: what can be seen without a GPU of a rung's two kernels, of a file's, and of one of them
beside another file's, or a rung's."""

from __future__ import annotations

import json
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from tir_schedules.cli.check import commented_checks, is_for, parse_comment
from tir_schedules.cli.files import (
    FILE_HELP,
    NAMED,
    OWN,
    add_file,
    check_no_file,
    file_requests,
    is_file,
    one_request,
    the_file,
)
from tir_schedules.cli.options import RUNG_HELP, Options, Verbs, add_arch
from tir_schedules.cli.problems import SIZES, add_problem, check_options, problem_of, taking
from tir_schedules.errors import BadInput
from tir_schedules.files import Json
from tir_schedules.ladders import fastest
from tir_schedules.ladders.problems import SMALL_SHAPES, workload_of
from tir_schedules.ladders.registry import FAMILIES, find_each, find_one
from tir_schedules.model.rung import StandIn
from tir_schedules.source import read_source

if TYPE_CHECKING:
    from tir_schedules.check.preparing import Request
    from tir_schedules.insight.inspection.twins import Inspection
    from tir_schedules.insight.metrics.counting import Metrics

VIEWS = {
    "lines": "each line of CUDA with what it cost",
    "conflicts": "the lines with bank conflicts alone",
    "advice": "what costs more than it would ideally, and what costs less: replayed, or tried",
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
        help="whose datasheet the roofline is from, such as rtx4090 (default: one of --arch)",
    )
    add_file(verb)
    beside = "of a file: another, FILE or FILE:KERNEL, or a rung, and the lines that make the difference"
    verb.add_argument("--beside", metavar="NAME", help=beside)
    views = verb.add_mutually_exclusive_group()
    for view, text in VIEWS.items():
        views.add_argument(f"--{view}", dest="view", action="store_const", const=view, help=text)
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(verb=inspect_verb)


def inspect_verb(options: Options) -> int:
    """Run the verb; returns the exit code: 1 when a kernel does not compile."""
    from tir_schedules.compiler.toolchain import check_arch
    from tir_schedules.console import print_error, print_line
    from tir_schedules.insight.inspection import views
    from tir_schedules.insight.inspection.twins import inspect
    from tir_schedules.insight.metrics.roofline import gpu_for
    from tir_schedules.subjects.compiling import settle_jobs

    path = the_file(options.names, "inspect")
    if path:
        return inspect_file(options, path)
    for name in options.names:
        check_no_file(options, name)
    if options.beside:
        raise BadInput(f"--beside is for files; name both rungs instead: {options.names[0]} {options.beside}")
    rungs = find_each(options.names)
    if options.view and len(rungs) > 1:
        raise BadInput(f"--{options.view} shows one rung, but {len(rungs)} are named")
    check_options(rungs, options)
    rungs = taking(rungs, options.names, options)
    check_arch(options.arch)
    gpu_for(options.arch, options.gpu)  # BadInput before anything is compiled
    jobs = [(rung, workload_of(rung, problem_of(rung.family, options))) for rung in rungs]
    jobs = settle_jobs(jobs, options.arch)
    inspections = inspect(jobs, options.arch, options.gpu)
    reasons = [fastest.reason_for(rung, workload) for rung, workload in jobs]
    if options.json:
        found = [
            as_json(inspection, options.view) | ({"why": reason} if reason else {})
            for inspection, reason in zip(inspections, reasons)
        ]
        print(json.dumps(found[0] if len(rungs) == 1 else found, indent=1))
    elif len(rungs) > 1:
        views.print_several(inspections)
    elif options.view == "advice":
        from tir_schedules.insight.advice.advising import print_advice_on_rung

        print_advice_on_rung(inspections[0])
    else:
        views.print_one(inspections[0], options.view, default_size=options.mnk is None and options.n is None)
        if reasons[0] and not isinstance(rungs[0], StandIn):
            print_line(reasons[0])
    for inspection in inspections:
        for form, reason in inspection.refused.items():
            print_error(f"{inspection.rung.id} ({form}): {reason}")
    return 0 if all(inspection.ok for inspection in inspections) else 1


def inspect_file(options: Options, path: Path) -> int:
    """The same of a file's kernels: 1 when one is wrong or was not run."""
    from tir_schedules.insight.files.views import check_known, print_several, print_view, view_all

    if options.gpu:
        raise BadInput("--gpu is for rungs, whose roofline is known")
    if options.beside:
        return inspect_beside(options, path)
    requests = file_requests(options, path, options.arch)
    if options.view and len(requests) > 1:
        raise BadInput(f"--{options.view} shows one check, but {path} has {len(requests)}: say --kernel NAME")
    views = list(view_all(requests))
    check_known(views)
    if options.json:
        print(json.dumps([view.as_json(options.view) for view in views], indent=1))
    elif len(views) == 1:
        print_view(views[0], options.view)
    else:
        print_several(views)
    return 0 if all(view.checked.outcome.ok for view in views) else 1


def as_json(inspection: Inspection, view: str | None) -> Json:
    """An inspection, with the code where it is asked for."""
    from tir_schedules.insight.inspection.listing import listing, opcodes

    found = inspection.as_json()
    kernels: Any = found["kernels"]
    if view in ("sass", "ptx"):
        for form in inspection.kernels:
            code = listing(inspection.own(form).binary, view)
            kernels[form][view] = {"opcodes": opcodes(code), "lines": code}
    if view == "advice":
        from tir_schedules.insight.advice.advising import advice_on_rung

        for form, advice in advice_on_rung(inspection).items():
            kernels[form]["advice"] = [one.as_json() for one in advice]
    return found


def inspect_beside(options: Options, path: Path) -> int:
    """Run a kernel of a file and what it is put next to, and show both; returns the exit code: 1 when a
    kernel is wrong or was not run."""
    from tir_schedules.console import print_line
    from tir_schedules.errors import CheckFailed
    from tir_schedules.insight.files.beside import differences, print_differences
    from tir_schedules.insight.files.views import PRINTERS, costliest, remarks, view_all

    other = options.beside
    first = one_request(own_options(options, path), path, options.arch, "--beside")
    requests = [first]
    if is_file(other):
        requests.append(other_request(options, other))
    views = list(view_all(requests))
    for view in views:
        if not view.launches:
            raise CheckFailed("; ".join(view.checked.outcome.faults))
    found = [costliest(view.launches) for view in views]
    if len(found) == 1:
        found.append(costliest(metrics_of_rung(options, first)))
    places = [PurePath(one.binary.kernel.file).name or one.binary.kernel.label for one in found]
    names = [one.binary.kernel.label for one in found]
    if names[0] == names[1]:
        names = [f"{one.binary.kernel.file}: {name}" for one, name in zip(found, names)]
    if names[0] == names[1]:
        raise BadInput(f"{names[0]} would stand beside itself: name another kernel, FILE:KERNEL, or a rung")
    places = names if places[0] == places[1] else places
    differing = differences(*found)
    if options.json:
        told = [{"name": name, **one.as_json()} for name, one in zip(names, found)]
        print(json.dumps({"launches": told, "differences": [one.as_json() for one in differing]}, indent=1))
    else:
        PRINTERS[options.view](dict(zip(names, found)))
        if not options.view:
            print_line()
            print_differences(places, differing)
        for view in views:
            for line in remarks(view):
                print_line(f"{view.checked.label}: {line}")
    return 0 if all(view.checked.outcome.ok for view in views) else 1


def own_options(options: Options, path: Path) -> Options:
    """Those for the file: the size may be for the rung alone."""
    source = read_source(path)
    usual = options.ladder or any("--as" in words for _, words in commented_checks(source.text, source.file))
    return options if usual else Options(**{**vars(options), **dict.fromkeys(SHAPED)})


def other_request(options: Options, name: str) -> Request:
    """Of FILE or FILE:KERNEL: as the comments in it say, else with the options of the command."""
    match = NAMED.fullmatch(name)
    assert match, "is_file says so"
    path, kernel = Path(match[1]), match[2]
    source = read_source(path)
    comments = [parse_comment(words, place) for place, words in commented_checks(source.text, source.file)]
    if kernel:
        comments = [own for own in comments if is_for(own, kernel)]
    given = {**vars(options), **(dict.fromkeys((*OWN, *SHAPED)) if comments else {})}
    return one_request(Options(**{**given, "kernel": kernel}), path, options.arch, "--beside")


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
