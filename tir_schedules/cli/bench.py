"""The verb `bench`: its options, which of them go together, and the order in which things are written and
printed."""

from __future__ import annotations

from pathlib import Path

from tir_schedules.cli.options import (
    RUNG_HELP,
    Options,
    Verbs,
    add_dry_run,
    add_path,
    add_tuned,
    check_pack,
    check_pack_arch,
    check_pack_file,
    is_pack,
)
from tir_schedules.cli.problems import add_problems
from tir_schedules.errors import BadInput
from tir_schedules.files import Json, check_folder, print_wrote
from tir_schedules.ladders.own import is_path
from tir_schedules.ladders.registry import FAMILIES
from tir_schedules.machines.choice import CPU_ARCH
from tir_schedules.model.kernel import FIXED_TWIN
from tir_schedules.numerals import integer_for

SIZES = ("sizes", "mnk", "n", "random", "seed")
PROBLEM = (*SIZES, "layout", "accumulate", "dtype", "products", "result", "configs", "candidates", "arch")
SHOW = ("compare", "threshold", "plot", "json")
TWINS = ("run_time_sizes", "no_twins")
TAKEN = {
    "measure": (*PROBLEM, *SHOW, *TWINS, "tuned", "output", "sustained", "cold"),
    "pack": (*PROBLEM, *TWINS, "tuned", "pack"),
    "predict": (*PROBLEM, "predict", "time", "json"),
    "recorded": (*SHOW, "recorded"),
    "unpack": (*SHOW, "output", "sustained", "cold"),
}
"""What `bench` is asked to do -> the options that go with it."""

WHAT = {
    "pack": "--pack", "predict": "--predict", "recorded": "--from",
    "unpack": "a pack, which has its sizes and architecture already"
}  # fmt: skip
SPELLED = {"recorded": "from", "run_time_sizes": "run-time-sizes", "no_twins": "no-twins"}


def add_verb(verbs: Verbs) -> None:
    """Add the parser of `bench` to those of the other verbs."""
    verb = verbs.add_parser(
        "bench", help="time rungs and their twins beside cuBLAS or CUB on this computer's GPU"
    )
    names = (
        f"a ladder ({', '.join(FAMILIES)}), {RUNG_HELP}, or a .zip that --pack wrote, by you or someone you"
        " trust: it is code that runs"
    )
    verb.add_argument("names", nargs="*", metavar="NAME", help=names)
    add_problems(verb, sizes=True)
    verb.add_argument(
        "--random",
        metavar="N",
        type=integer_for("--random", 20),
        help="draw N shapes of GEMMs by --seed: squares, aligned, odd, thin, long K, of attention and"
        " MLPs; hgemm: each with one layout and format in turn",
    )
    verb.add_argument("--seed", metavar="S", type=integer_for("--seed", 7), help="of --random (default: 0)")
    verb.add_argument("--arch", help="GPU architecture to compile for (default: that of this computer's GPU)")
    verb.add_argument(
        "--configs", action="store_true", help="every configuration of the rungs, not only the default"
    )
    verb.add_argument(
        "--candidates",
        metavar="N",
        type=integer_for("--candidates", 6),
        help="of NAME/fastest: time the N kernels with the shortest estimates (default: 1)",
    )
    add_tuned(verb)
    verb.add_argument(
        "--run-time-sizes",
        action="store_true",
        help="twins take sizes as arguments (default: they are compiled for the shape, as schedules are)",
    )
    verb.add_argument("--no-twins", action="store_true", help="time only the schedules")
    verb.add_argument(
        "--sustained", action="store_true", help="without pauses: clocks as they are under constant load"
    )
    verb.add_argument(
        "--cold",
        action="store_true",
        help="also time single launches: with data not in the L2 cache, and on an idle GPU",
    )
    add_path(verb, "-o", "--output", help="write every sample and where it comes from as JSON")
    add_path(verb, "--plot", help="draw the results: .png, .svg or .pdf")
    add_path(verb, "--compare", help="compare with an earlier --output of this GPU; exit code 1 if slower")
    verb.add_argument(
        "--threshold", metavar="PERCENT", help="with --compare: what counts as a change (default 3%%)"
    )
    add_path(verb, "--from", help="show an earlier --output instead of measuring", dest="recorded")
    add_path(verb, "--pack", help="compile into a .zip to be timed on a computer without TVM and nvcc")
    verb.add_argument(
        "--predict",
        metavar="GPU",
        nargs="?",
        const="",
        help="time nothing: counters, datasheet bounds (default: h200)",
    )
    verb.add_argument(
        "--time",
        action="store_true",
        help="with --predict: also the times that `time` predicts (default: h100)",
    )
    add_dry_run(verb)
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(verb=bench)


def bench(options: Options) -> int:
    """Run the verb; returns the exit code."""
    mode = mode_of(options)
    check_together(options, mode)
    if options.dry_run:
        return plan(options, mode)
    if mode == "pack":
        return pack(options)
    if mode == "predict":
        from tir_schedules.api.benching import predicted
        from tir_schedules.api.results import finish

        return finish(predicted(options.names, options, options.predict), options.json, 1)
    return show(options, mode)


def mode_of(options: Options) -> str:
    """What is asked for: "measure", "unpack", "pack", "predict" or "recorded"."""
    named = options.predict or ""
    if named.partition("/")[0] in FAMILIES or is_path(named):  # `bench --predict sgemm`
        options.names, options.predict = [options.predict, *options.names], ""
    given = [mode for mode in ("recorded", "predict", "pack") if getattr(options, mode) is not None]
    if len(given) > 1:
        raise BadInput(f"{WHAT[given[0]]} and {WHAT[given[1]]} do not go together: leave one out")
    if bool(options.names) == ("recorded" in given):
        if options.names:
            raise BadInput(f"--from shows a whole file: leave out {' '.join(options.names)}")
        raise BadInput(
            f"bench takes a ladder ({', '.join(FAMILIES)}), rungs or a pack, such as `tir-schedules bench"
            " sgemm`"
        )
    if is_pack(options.names):
        if given:
            raise BadInput(f"{WHAT[given[0]]} takes ladders and rungs, not the pack {options.names[0]}")
        return "unpack"
    return given[0] if given else "measure"


def check_together(options: Options, mode: str) -> None:
    """BadInput for options that do not go with what is asked for, and for files that cannot be written
    later."""
    for name in sorted({name for names in TAKEN.values() for name in names} - set(TAKEN[mode])):
        if getattr(options, name) not in (None, False):
            raise BadInput(
                f"--{SPELLED.get(name, name)} does not go with {WHAT.get(mode, 'measuring')}: leave it out"
            )
    if options.sizes and (options.mnk or options.n):
        raise BadInput(f"--sizes and --{'mnk' if options.mnk else 'n'} both say sizes: leave one out")
    if options.tuned is not None and options.configs:
        raise BadInput(
            "--tuned chooses the configuration, and times it beside the one chosen by hand: leave out"
            " --configs"
        )
    if options.threshold and not options.compare:
        raise BadInput("--threshold goes with --compare: name the results to compare with")
    for path in filter(None, (options.output, options.plot)):
        check_folder(path)
    check_pack_file(options.pack)


def plan(options: Options, mode: str) -> int:
    """Print what would be timed; no GPU is looked for."""
    from tir_schedules.api.benching import jobs_of
    from tir_schedules.api.plans import plan_of_jobs
    from tir_schedules.api.results import finish

    if mode in ("recorded", "unpack"):
        raise BadInput(f"--dry-run does not go with {WHAT[mode]}: it has no plan but what is in it")
    arch = options.arch or CPU_ARCH
    what = {"pack": f"compiled into {options.pack}", "predict": "counted on the CPU machine, nothing timed"}
    timed = "timed on this computer's GPU, beside the vendor's library"
    own = "" if options.arch else f"; arch is the GPU's own, shown for {CPU_ARCH}"
    note = f"{what.get(mode, timed)}{own if mode == 'measure' else ''}"
    jobs = jobs_of(options.names, options)
    if mode == "pack":
        check_pack_arch(options.arch)
        check_pack(rung for rung, _ in jobs)
    return finish(plan_of_jobs(jobs, arch, note), options.json, 1)


def pack(options: Options) -> int:
    from tir_schedules.api.benching import drawn_note, jobs_of
    from tir_schedules.bench.session import pack_jobs
    from tir_schedules.bench.tables import print_packed

    arch, path = check_pack_arch(options.arch), options.pack
    jobs = jobs_of(options.names, options)
    check_pack(rung for rung, _ in jobs)
    drawn = drawn_note(options, jobs, arch)
    subjects, refused = pack_jobs(jobs, arch, path, command_of(options), twin_of(options), drawn)
    kernels = len({binary.cubin for subject in subjects for binary in subject.binaries})
    packed = f"{len(subjects)} subjects, {kernels} kernels for {arch}" if kernels else ""
    return print_packed(packed, "bench", path, refused)


def show(options: Options, mode: str) -> int:
    """Measure or read results; write, print, draw and compare them, in this order."""
    from tir_schedules.bench import compare, plots, tables
    from tir_schedules.subjects import results

    threshold = compare.parse_threshold(options.threshold) if options.threshold else compare.THRESHOLD
    baseline = results.load_results(options.compare) if options.compare else None
    if options.plot:
        plots.check_plot(options.plot)
    if mode == "recorded":
        found = results.load_results(options.recorded)
    else:
        found = measure_asked(options, mode, baseline)
    if options.output:
        results.save_results(found, options.output)
        print_wrote(options.output)
    comparison = compare.compare(baseline, found) if baseline else None
    if options.json:
        addition = {"comparison": compare.as_json(comparison, threshold)} if comparison else {}
        print(results.as_text({**found, **addition}), end="")
    else:
        tables.print_results(found)
        if comparison:
            compare.print_comparison(comparison, threshold)
    if options.plot:
        drawn = plots.save_plots(found, options.plot)
        for path in drawn:
            print_wrote(path)
    regressed = comparison is not None and bool(comparison.regressions(threshold))
    return 1 if found["refused"] or regressed else 0


def measure_asked(options: Options, mode: str, baseline: Json | None) -> Json:
    """What is timed on this computer's GPU: the jobs of the options, or those of a pack."""
    from tir_schedules.api.benching import measured
    from tir_schedules.bench import session

    policy, command = session.Policy(sustained=options.sustained, cold=options.cold), command_of(options)
    if mode == "unpack":
        return session.measure_pack(Path(options.names[0]), command, policy, baseline)
    return measured(
        options.names, options, policy, twin_of(options), command,
        lambda machine: session.check_baseline(machine, baseline),
    ).results  # fmt: skip


def twin_of(options: Options) -> str:
    """The form of twins that is asked for."""
    return "twin" if options.run_time_sizes else FIXED_TWIN


def command_of(options: Options) -> str:
    """The command as it can be typed again, without what only says where results go."""
    words = ["bench", *options.names]
    for name in (*PROBLEM, *TWINS, "tuned", "sustained", "cold"):
        value = getattr(options, name)
        if value is True or value == "":
            words.append(f"--{SPELLED.get(name, name)}")
        elif name in ("mnk", "n"):
            words += [f"--{name} {item if name == 'n' else ','.join(map(str, item))}" for item in value or ()]
        elif value:
            words.append(f"--{name} {','.join(map(str, value)) if name == 'sizes' else value}")
    return " ".join(words)
