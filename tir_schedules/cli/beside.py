"""`inspect FILE --beside NAME`: a kernel of a file next to another file's, or a rung's."""

from __future__ import annotations

import json
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from tir_schedules.check.comments import blocks
from tir_schedules.cli.check import is_for, parsed
from tir_schedules.cli.files import NAMED, OWN, is_file, one_request
from tir_schedules.cli.options import Options
from tir_schedules.cli.problems import SIZES, check_options, problem_of
from tir_schedules.errors import BadInput
from tir_schedules.ladders.problems import workload_of
from tir_schedules.ladders.registry import find_one
from tir_schedules.source import read_source

if TYPE_CHECKING:
    from tir_schedules.check.preparing import Request
    from tir_schedules.insight.metrics.counting import Metrics

SHAPED = ("mnk", "n", "layout", "accumulate")
"""Options that say the size of a rung as well."""

SIZE_NAMES = {"mnk": "MNK", "n": "N"}
"""Option for the shape of a rung -> names of sizes in `--let` that say it, too."""


def beside(options: Options, path: Path) -> int:
    """Run both, and show them; returns the exit code: 1 when a kernel is wrong or was not run."""
    from tir_schedules.console import print_line
    from tir_schedules.errors import CheckFailed
    from tir_schedules.insight.files.beside import differences, print_differences
    from tir_schedules.insight.files.views import PRINTERS, costliest, said, viewed

    other = options.beside
    first = one_request(own_options(options, path), path, options.arch, "--beside")
    requests = [first]
    if is_file(other):
        requests.append(other_request(options, other))
    views = list(viewed(requests))
    for view in views:
        if not view.launches:
            raise CheckFailed("; ".join(view.checked.outcome.faults))
    found = [costliest(view.launches) for view in views]
    if len(found) == 1:
        found.append(costliest(of_rung(options, first)))
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
            for line in said(view):
                print_line(f"{view.checked.label}: {line}")
    return 0 if all(view.checked.outcome.ok for view in views) else 1


def own_options(options: Options, path: Path) -> Options:
    """Those for the file: the size may be for the rung alone."""
    source = read_source(path)
    usual = options.ladder or any("--as" in words for _, words in blocks(source.text, source.file))
    return options if usual else Options(**{**vars(options), **dict.fromkeys(SHAPED)})


def other_request(options: Options, name: str) -> Request:
    """Of FILE or FILE:KERNEL: as the comments in it say, else with the options of the command."""
    match = NAMED.fullmatch(name)
    assert match, "is_file says so"
    path, kernel = Path(match[1]), match[2]
    source = read_source(path)
    comments = [parsed(words, place) for place, words in blocks(source.text, source.file)]
    if kernel:
        comments = [own for own in comments if is_for(own, kernel)]
    given = {**vars(options), **(dict.fromkeys((*OWN, *SHAPED)) if comments else {})}
    return one_request(Options(**{**given, "kernel": kernel}), path, options.arch, "--beside")


def of_rung(options: Options, request: Request) -> list[Metrics]:
    """A rung's twin, or its schedule where it has none, on the size that is said, or that the file has."""
    from tir_schedules.compiler.lower import lower
    from tir_schedules.compiler.nvcc import compile_kernel
    from tir_schedules.compiler.toolchain import check_arch
    from tir_schedules.compiler.twin import load_twin
    from tir_schedules.insight.metrics.counting import metrics_of
    from tir_schedules.insight.metrics.rungs import check_size
    from tir_schedules.run import launches
    from tir_schedules.subjects.compiling import settled

    rung = find_one(options.beside, "--beside")
    size = SIZES[rung.family]
    known = [request.sizes.get(name) for name in SIZE_NAMES.get(size, "?")]
    given = dict(vars(options))
    if given[size] is None and all(isinstance(one, int) for one in known):
        given[size] = tuple(known) if size == "mnk" else known[0]
    check_options([rung], Options(**given))
    check_arch(options.arch)
    workload = workload_of(rung, problem_of(rung.family, Options(**given)))
    ((rung, workload),) = settled([(rung, workload)], options.arch)
    check_size(rung, workload)
    made = launches(load_twin if rung.twinned else lower, rung, workload, options.arch)
    return metrics_of([compile_kernel(kernel) for kernel in made], workload)
