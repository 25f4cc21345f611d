"""The verb `tune`: its options, the searches it runs or shows, and what is printed of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tir_schedules import interrupts
from tir_schedules.api.problems import OPTIONS, problem_of
from tir_schedules.cli.options import Options, Verbs, add_dry_run, add_path
from tir_schedules.cli.problems import add_problem
from tir_schedules.errors import BadInput
from tir_schedules.files import check_folder, print_wrote
from tir_schedules.ladders.problems import EMIT_SHAPES
from tir_schedules.ladders.registry import FAMILIES
from tir_schedules.machines.choice import CPU_ARCH, MACHINES
from tir_schedules.numerals import integer_for

if TYPE_CHECKING:
    from tir_schedules.api.tuning import Searches
    from tir_schedules.tuning.records.searches import Search
    from tir_schedules.tuning.space.points import Space

TRIALS = 64
SHAPES = EMIT_SHAPES


def add_verb(verbs: Verbs) -> None:
    """Add the parser of `tune` to those of the other verbs."""
    verb = verbs.add_parser(
        "tune", help="search the configurations of a rung for the fastest on one shape and one GPU"
    )
    name_help = (
        f"{' or '.join(FAMILIES)}, its best rungs one after another, or one rung, such as sgemm/multistage,"
        " or ./my_rung.py that has values to try"
    )
    verb.add_argument("name", nargs="?", metavar="NAME", help=name_help)
    trials_help = (
        f"configurations to try of each rung, with --resume earlier ones among them (default {TRIALS})"
    )
    verb.add_argument(
        "--trials", metavar="N", type=integer_for("--trials", TRIALS), default=TRIALS, help=trials_help
    )
    add_problem(verb, SHAPES)
    verb.add_argument(
        "--arch", help=f"GPU architecture to compile for (default the GPU's own; {CPU_ARCH} without one)"
    )
    machine_help = "gpu measures, cpu predicts; auto takes the GPU if CuPy finds one"
    verb.add_argument("--machine", choices=MACHINES, default="auto", help=f"{machine_help} (default auto)")
    verb.add_argument(
        "--seed", metavar="N", type=integer_for("--seed", 1), default=0, help="of the search (default 0)"
    )
    add_path(verb, "--records", help="where every result is kept at once (default: a file of your own)")
    verb.add_argument("--resume", action="store_true", help="go on with a search that has results in FILE")
    verb.add_argument(
        "--show",
        action="store_true",
        help="do not search; show the records in FILE, or yours and those of the package",
    )
    add_path(verb, "--export", help="with --show: copy the best record of each search into a new file")
    add_path(verb, "--plot", help="draw each search: .png, .svg or .pdf")
    verb.add_argument(
        "--on",
        metavar="HOST",
        action="append",
        help="measure on a computer that ssh reaches, its Python after a colon if it is not python3; several"
        " --on share a search",
    )
    add_dry_run(verb)
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(verb=tune)


def tune(options: Options) -> int:
    """Run the verb; returns the exit code: 1 when a search finds nothing that is right, that of an
    interrupted command after Ctrl-C."""
    check_together(options)
    from tir_schedules.api.results import finish
    from tir_schedules.api.tuning import plan_of_search, search, spaces_of
    from tir_schedules.console import print_error
    from tir_schedules.tuning.records.database import own_records

    spaces = spaces_of(options)
    if options.show:
        return show(options, spaces)
    options.records = options.records or own_records()
    if options.dry_run:
        return finish(plan_of_search(options, spaces), options.json, 1)
    found = search(options, spaces)
    if found.interrupted:
        interrupts.told()
        print_error(
            f"interrupted after {found.new} trials, all of them in {options.records}; --resume goes on"
        )
    code = report(options, found)
    return interrupts.exit_code() if found.interrupted else code


def check_together(options: Options) -> None:
    """BadInput for values that cannot be and options that do not go together; MissingTool for --plot without
    matplotlib."""
    from tir_schedules.tuning.search.tuner import check_numbers

    if not options.show and not options.name:
        names = f"{', '.join(FAMILIES)} or a rung, such as `tir-schedules tune sgemm/multistage`"
        raise BadInput(f"tune takes {names}; --show shows what is recorded")
    check_numbers(options.trials, options.seed)
    if options.show and (options.resume or options.on):
        raise BadInput(
            f"--{'resume' if options.resume else 'on'} does not go with --show, which searches nothing:"
            " leave one out"
        )
    if options.on and options.machine != "auto":
        raise BadInput("--machine does not go with --on: its hosts have a GPU or not, leave one out")
    if options.export and not options.show:
        raise BadInput("--export goes with --show: it copies what FILE has")
    if options.export and options.export.exists():
        raise BadInput(f"{options.export} exists: name a file that does not")
    for path in (options.records, options.plot, options.export):
        if path:
            check_folder(path)
    if options.export and options.records and options.export.resolve() == options.records.resolve():
        raise BadInput(f"--export and --records are the same file {options.export}: name another")
    if options.plot:
        from tir_schedules.bench.plots import check_plot

        check_plot(options.plot)


def show(options: Options, spaces: list[Space]) -> int:
    """Show the searches of a file, or of your own and those shipped; those of NAME and of the shape that is
    asked for."""
    from tir_schedules.api.tuning import Searches
    from tir_schedules.tuning.records.database import SHIPPED, Database, own_records
    from tir_schedules.tuning.records.searches import searches_of

    if options.records and not options.records.exists():
        advice = "`tir-schedules tune sgemm` makes some, --records names another file"
        raise BadInput(f"there are no records in {options.records} yet: {advice}")
    shipped = [] if options.records else sorted(SHIPPED.glob("*.jsonl"))
    paths = [path for path in (options.records or own_records(), *shipped) if path.exists()]
    wanted, found = {space.rung.id for space in spaces}, []
    for path in paths:
        searches = searches_of(Database(path).records(), path in shipped)
        found += [search for search in searches if search.rung in wanted and is_asked_for(search, options)]
    if not found:
        files = " and ".join(map(str, paths)) or f"{own_records()}, which is not there,"
        raise BadInput(
            f"{files} has no records of {options.name or 'any rung that can be tuned'} that fit the options"
        )
    if options.export:
        best = Database(options.export)
        for search in found:
            if search.best:
                best.append(search.best)
        print_wrote(options.export)
    return report(options, Searches(tuple(found), tuple(paths), ok=all(one.best for one in found)))


def is_asked_for(search: Search, options: Options) -> bool:
    """Whether a search is of the shape, kind and architecture that the options name, if they name any."""
    first = search.records[0]
    given = {name for names in OPTIONS.values() for name in names if getattr(options, name) is not None}
    if given - set(OPTIONS[first.family]) or options.arch not in (None, first.arch):
        return False
    return problem_of(first.family, options).includes(first.problem)


def report(options: Options, found: Searches) -> int:
    """Print and draw searches that have records; returns the exit code."""
    from tir_schedules.api.results import finish
    from tir_schedules.tuning.records.searches import save_plots

    if options.plot:
        found = replace(found, drawn=tuple(save_plots(found.searches, options.plot)))
    return finish(found, options.json, 1)
