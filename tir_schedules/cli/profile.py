"""The verb `profile`: Nsight Compute's counters beside those that the CPU machine predicts."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Sequence

from tir_schedules.api.problems import check_options, problem_of, taking
from tir_schedules.api.subjects import is_code
from tir_schedules.cli.files import (
    FILE_HELP,
    add_file,
    check_no_file,
    one_request,
    the_file,
    words_of,
)
from tir_schedules.cli.options import (
    RUNG_HELP,
    Options,
    Verbs,
    add_path,
    check_pack,
    check_pack_arch,
    check_pack_file,
    is_pack,
)
from tir_schedules.cli.problems import add_problem
from tir_schedules.errors import BadInput
from tir_schedules.files import Json, check_folder, write_output
from tir_schedules.ladders.problems import SMALL_SHAPES, Job, workload_of
from tir_schedules.ladders.registry import FAMILIES, find, find_each
from tir_schedules.machines.choice import CPU_ARCH, arch_for

PROBLEM = ("mnk", "layout", "accumulate", "dtype", "products", "result", "n")
TAKEN = {
    "count": (*PROBLEM, "arch", "output", "all"),
    "pack": (*PROBLEM, "arch", "pack"),
    "unpack": ("output", "all"),
    "recorded": ("recorded", "all"),
    "file": ("mnk", "layout", "accumulate", "n", "arch", "output", "all"),
}
"""What `profile` is asked to do -> the options that go with it, besides --json."""

WHAT = {
    "count": "counting",
    "pack": "--pack",
    "unpack": "a pack, which has its sizes and architecture already",
    "recorded": "--from",
    "file": "a file",
}
SPELLED = {"recorded": "from"}


def add_verb(verbs: Verbs) -> None:
    """Add the parser of `profile` to those of the other verbs."""
    verb = verbs.add_parser(
        "profile",
        help="Nsight Compute's counters of rungs and twins on this computer's GPU beside the predicted ones",
    )
    names = (
        f"a ladder ({', '.join(FAMILIES)}), {RUNG_HELP}, or a .zip that --pack wrote, by you or someone you"
        f" trust: it is code that runs; {FILE_HELP}"
    )
    verb.add_argument("names", nargs="*", metavar="NAME", help=names)
    add_problem(verb, SMALL_SHAPES)
    verb.add_argument("--arch", help="GPU architecture to compile for (default: that of this computer's GPU)")
    add_path(verb, "-o", "--output", help="write the counters and where they come from as JSON")
    add_path(verb, "--pack", help="compile and predict, into a .zip for a computer without TVM and nvcc")
    add_path(verb, "--from", help="show an earlier --output, all or the NAMEs, with no GPU", dest="recorded")
    all_help = (
        "every counter of every launch. This is the default for rungs; for ladders and packs the default is a"
        " line per rung"
    )
    verb.add_argument("--all", action="store_true", default=None, help=all_help)
    verb.add_argument("--json", action="store_true", help="print JSON")
    add_file(verb)
    verb.set_defaults(verb=profile)


def profile(options: Options) -> int:
    """Run the verb; returns the exit code: 1 when a kernel is refused or wrong, or a counter differs for no
    known reason."""
    mode = mode_of(options)
    check_together(options, mode)
    if mode == "file":
        return show(options, count_file(options))
    for name in options.names:
        check_no_file(options, name)
    if mode == "pack":
        return pack(options)
    if mode == "recorded":
        return show(options, select_result(options))
    return show(options, *count_here(options, mode))


def mode_of(options: Options) -> str:
    """What is asked for: a key of TAKEN."""
    if options.recorded and options.pack:
        raise BadInput("--from and --pack do not go together: leave one out")
    if options.recorded:
        return "recorded"
    if not options.names:
        raise BadInput(
            f"profile takes a ladder ({', '.join(FAMILIES)}), rungs or a pack, such as `tir-schedules profile"
            " sgemm/vectorized`"
        )
    if the_file(options.names, "profile"):
        return "file"
    if is_pack(options.names):
        if options.pack:
            raise BadInput(f"--pack takes ladders and rungs, not the pack {options.names[0]}")
        return "unpack"
    return "pack" if options.pack else "count"


def check_together(options: Options, mode: str) -> None:
    """BadInput for options that do not go with what is asked for, and for files that cannot be written
    later."""
    for name in sorted({name for names in TAKEN.values() for name in names} - set(TAKEN[mode])):
        if getattr(options, name) is not None:
            raise BadInput(f"--{SPELLED.get(name, name)} does not go with {WHAT[mode]}: leave it out")
    if options.output:
        check_folder(options.output)
    check_pack_file(options.pack)
    if mode == "pack":
        check_pack_arch(options.arch)


def pack(options: Options) -> int:
    """Compile and predict for another computer."""
    from tir_schedules.bench.tables import print_packed
    from tir_schedules.insight.profile.session import pack_jobs

    arch = check_pack_arch(options.arch)
    jobs = jobs_of(options)
    check_pack(rung for rung, _ in jobs)
    launches, refused = pack_jobs(jobs, arch, options.pack, command_of(options))
    packed = f"{launches} launches for {arch}, with predicted counters" if launches else ""
    return print_packed(packed, "profile", options.pack, refused)


def jobs_of(options: Options) -> list[Job]:
    """Rungs and workloads. BadInput for names and options that do not fit."""
    rungs = find_each(options.names)
    check_options(rungs, options)
    return [
        (rung, workload_of(rung, problem_of(rung.family, options)))
        for rung in taking(rungs, options.names, options)
    ]


def count_here(options: Options, mode: str) -> tuple[Json, list[str]]:
    """The document of counting on this computer's GPU, written where that is asked for; and what was refused
    or is wrong, a line each."""
    from tir_schedules.insight.profile import session
    from tir_schedules.insight.profile.cases import load_cases
    from tir_schedules.insight.profile.results import as_text

    path, command = Path(options.names[0]), command_of(options)
    jobs = [] if mode == "unpack" else jobs_of(options)  # bad names and files show before a GPU is looked for
    if mode == "unpack":
        load_cases(path)
    machine = session.gpu_machine()
    session.check_profiler()
    if mode == "unpack":
        result, faults = session.profile_pack(machine, path, command)
    else:
        result, faults = session.profile_jobs(machine, jobs, arch_for(machine, options.arch), command)
    if options.output:
        write_output(options.output, as_text(result))
    return result, faults


def count_file(options: Options) -> Json:
    """The same of a file."""
    from tir_schedules.insight.files.views import profile_file
    from tir_schedules.insight.profile import session
    from tir_schedules.insight.profile.results import as_text

    path = Path(options.names[0])
    one_request(options, path, options.arch or CPU_ARCH, "profile")  # bad options show first
    machine = session.gpu_machine()
    session.check_profiler()
    arch = arch_for(machine, options.arch)
    request = one_request(options, path, arch, "profile")
    words = words_of(Options(**{**vars(options), "arch": arch}), path)
    result = profile_file(machine, request, words, shlex.join(["profile", *words]))
    if options.output:
        write_output(options.output, as_text(result))
    return result


def select_result(options: Options) -> Json:
    """A recorded result, of the rungs that are named. BadInput when it has none of them."""
    from tir_schedules.insight.profile.results import read_result

    result = read_result(options.recorded)
    if not options.names:
        return result
    kernels = [
        entry for entry in result["kernels"] if entry["label"].split(" (")[0] in wanted_ids(options.names)
    ]
    if not any("measured" in entry for entry in kernels):
        raise BadInput(
            f"{options.recorded} has no counters of {' or '.join(options.names)}; without a name all it has"
            " is shown"
        )
    return {**result, "kernels": kernels}


def wanted_ids(names: list[str]) -> set[str]:
    """Ids of all that is named; a ladder stands for every configuration of its rungs."""
    return {
        rung.id
        for name in names
        for base in find(name)
        for rung in (base.variants(flawed=True) if name in FAMILIES else [base])
    }


def show(options: Options, result: Json, faults: Sequence[str] = ()) -> int:
    """Print a result and what is wrong besides; returns the exit code."""
    from tir_schedules.console import print_error
    from tir_schedules.insight.profile.results import (
        add_comparisons,
        all_explained,
        is_of_one_rung,
        print_result,
    )

    if options.json:
        print(json.dumps(add_comparisons(result), indent=1))
    else:
        named = options.names and all(
            is_code(name) or ("/" in name and not name.endswith(".zip")) for name in options.names
        )
        print_result(result, whole=bool(options.all or named) or is_of_one_rung(result))
    for fault in faults:
        print_error(fault)
    return 0 if all_explained(result) and not faults else 1


def command_of(options: Options) -> str:
    """The command as it can be typed again, without what only says where results go."""
    words = ["profile", *options.names]
    for name in (*PROBLEM, "arch"):
        value = getattr(options, name)
        if value is not None:
            words.append(f"--{name} {','.join(map(str, value)) if name == 'mnk' else value}")
    return " ".join(words)
