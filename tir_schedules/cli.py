"""The command line: parsing and printing. Each verb calls one function of the package.

Exit codes: 0 all good, 1 a check failed, 2 bad arguments or input, 3 something needed is missing; see endings.py for the others.
"""
from __future__ import annotations

if __name__ == "__main__":  # `python -m tir_schedules.cli`
    from tir_schedules.__main__ import main

    raise SystemExit(main())

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Sequence

from tir_schedules import __version__
from tir_schedules.bench.verb import add_verb as add_bench
from tir_schedules.endings import code_of, command
from tir_schedules.errors import BadInput, printable
from tir_schedules.insight.inspect_verb import add_verb as add_inspect
from tir_schedules.insight.layout_verb import add_verb as add_layout
from tir_schedules.insight.profile_verb import add_verb as add_profile
from tir_schedules.insight.trace_verb import add_verb as add_trace
from tir_schedules.machines.choice import CPU_ARCH, MACHINES, arch_for, choose
from tir_schedules.problems import add_options, check_options, workload_of, workloads_of
from tir_schedules.report.verb import add_verb as add_report
from tir_schedules.rung import FAMILIES, Rung, find_each, find_one, ladder, nearest
from tir_schedules.tuning.serving import add_verb as add_serve
from tir_schedules.tuning.tuned import add_option as add_tuned
from tir_schedules.tuning.tuned import tuned_jobs
from tir_schedules.tuning.verb import add_verb as add_tune

FORMS = {"cuda": "cuda", "ptx": "text", "sass": "text", "tir": "python"}


class Parser(argparse.ArgumentParser):
    """argparse with errors of one line."""

    def error(self, message: str):
        raise BadInput(f"{message}; see `{self.prog} --help`")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code of a command. Without arguments it is the process's own, which signals end."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    return (command if arguments is None else code_of)(lambda: perform(words), "--debug" in words)


def perform(arguments: Sequence[str]) -> int:
    """Run a verb; returns the exit code."""
    options = parser().parse_args(arguments)
    return options.verb(options)


def script(rung: Rung) -> None:
    """What a rung does when run as a script: print its CUDA. Takes the options of `tir-schedules emit`."""
    words = ["emit", rung.id, *sys.argv[1:]]
    raise SystemExit(command(lambda: perform(words), "--debug" in words))


def parser() -> Parser:
    top = Parser("tir-schedules", description="GPU kernels as ladders of TensorIR schedules, each with a hand-written CUDA twin.")
    top.add_argument("--version", action="version", version=f"tir-schedules {__version__}")
    verbs = top.add_subparsers(metavar="VERB", required=True, parser_class=Parser)
    rung_help = "a rung such as sgemm/warp_tiling, with :CONFIG for another of its configurations"

    verb = verbs.add_parser("list", help="ladders and rungs, what each adds, its article")
    verb.add_argument("family", nargs="?", help=f"one of {', '.join(FAMILIES)} (default: all)")
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(verb=list_rungs)

    verb = verbs.add_parser("emit", help="print what a rung's schedule becomes: CUDA, PTX, SASS or TIR")
    verb.add_argument("rung", help=rung_help)
    forms = verb.add_mutually_exclusive_group()
    for form in FORMS:
        forms.add_argument(f"--{form}", dest="form", action="store_const", const=form, help=f"print {form.upper()}")
    verb.add_argument("--twin", action="store_true", help="of the hand-written twin, not of the schedule")
    add_options(verb, emit=True)
    add_arch(verb)
    verb.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to FILE instead of standard output")
    verb.set_defaults(verb=emit, form="cuda")

    verb = verbs.add_parser("run", help="emit, compile, execute and verify rungs and their twins")
    verb.add_argument("names", nargs="+", metavar="NAME", help=f"a ladder ({', '.join(FAMILIES)}) or {rung_help}")
    add_options(verb, emit=False)
    add_arch(verb, None, f"the GPU's own; {CPU_ARCH} on the CPU machine")
    machine_help = "cpu executes the compiled PTX on this computer, gpu runs on a GPU; auto takes the GPU where CuPy shows one"
    verb.add_argument("--machine", choices=MACHINES, default="auto", help=f"{machine_help} (default auto)")
    verb.add_argument("--configs", action="store_true", help="every configuration of the rungs, not only the default")
    add_tuned(verb)
    source = "run this CUDA file, an edited `emit`, as the rung's kernel; it may include what is beside it"
    verb.add_argument("--source", metavar="FILE", type=Path, help=source)
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(verb=run)

    add_bench(verbs, rung_help)
    add_layout(verbs, rung_help)
    add_inspect(verbs, rung_help)
    add_profile(verbs, rung_help)
    add_trace(verbs, rung_help)
    add_report(verbs)
    add_tune(verbs)
    add_serve(verbs)

    verb = verbs.add_parser("doctor", help="what is installed, what is missing, how to get it")
    verb.add_argument("--clear-cache", action="store_true", help="remove everything compiled so far")
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(verb=doctor)
    debug_help = "show the traceback of a fault of tir-schedules itself"
    for each in (top, *verbs.choices.values()):
        each.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=debug_help)
    return top


def add_arch(verb: Parser, default: str | None = CPU_ARCH, otherwise: str = "") -> None:
    """--arch with a default, or with none and the words for what is then done."""
    verb.add_argument("--arch", default=default, help=f"GPU architecture to compile for (default {default or otherwise})")


def list_rungs(options) -> int:
    if options.family and options.family not in FAMILIES:
        raise BadInput(f"there is no ladder {options.family!r}{nearest(options.family, FAMILIES)}; there is {', '.join(FAMILIES)}")
    families = [options.family] if options.family else FAMILIES
    if options.json:
        print(json.dumps([describe(rung) for family in families for rung in ladder(family)], indent=2))
        return 0
    from tir_schedules.console import print_left_out, print_table

    columns, left_out = ("rung", "what it adds", "article", "shapes", "configurations"), []
    prose = {"what it adds": 28, "article": 10, "shapes": 30, "configurations": 20}
    for family in families:
        rows = [(r.id, r.summary, r.article, r.shapes, " ".join(r.configs)) for r in ladder(family)]
        left_out += print_table(columns, rows, prose=prose, spare=("configurations", "shapes", "article"), keys=0)
    print_left_out(left_out)
    return 0


def describe(rung: Rung) -> dict[str, Any]:
    """A rung as JSON has it."""
    configs = {"": rung.config, **rung.configs}
    return {
        "id": rung.id,
        "summary": rung.summary,
        "article": rung.article,
        "shapes": rung.shapes,
        "min_arch": f"sm_{rung.min_arch}",
        "configs": {name: vars(config) for name, config in configs.items()},
        "flawed": rung.flawed,
    }


def emit(options) -> int:
    from tir_schedules.emit import emit_text, write_text

    rung = find_one(options.rung, "emit")
    check_options([rung], options)
    workload = workload_of(rung, options)
    text = emit_text(rung, workload, options.arch, options.form, options.twin)
    if options.output:
        write_text(options.output, text)
    else:
        from tir_schedules.console import print_source

        print_source(text, FORMS[options.form])
    return 0


def run(options) -> int:
    from tir_schedules.emit import read_source
    from tir_schedules.run import run as run_rungs

    rungs = find_each(options.names, options.configs)
    if options.source and len(rungs) != 1:
        raise BadInput(f"--source runs one file as one rung, but {len(rungs)} rungs are named")
    source = read_source(options.source) if options.source else None
    check_options(rungs, options)
    if options.tuned is not None and (source or options.configs):
        raise BadInput(f"--tuned chooses the configuration: leave out --{'source' if source else 'configs'}")
    machine = choose(options.machine)
    arch = arch_for(machine, options.arch)
    if options.tuned is None:
        jobs = [(rung, workload) for rung in rungs for workload in workloads_of(rung, options)]
    else:
        jobs = tuned_jobs(rungs, options, machine, arch, workloads_of, whole=machine.name == "gpu")
    folder = str(options.source.absolute().parent) if options.source else ""
    verdicts = run_rungs(jobs, arch, machine, source, printable(options.source or ""), folder)
    if options.json:
        verdicts = list(verdicts)
        print(json.dumps([verdict.as_json() | {"machine": machine.name, "arch": arch} for verdict in verdicts], indent=2))
    else:
        verdicts = print_verdicts(verdicts, len(jobs), machine, "source" if options.source else "schedule")
    return 0 if all(verdict.ok for verdict in verdicts) else 1


def print_verdicts(verdicts, total: int, machine, form: str) -> list:
    """A table of what ran, a paragraph for each kind of fault and place, and a closing line. form: what ran, beside the twin."""
    from tir_schedules.console import print_left_out, print_line, print_paragraph, print_table, progress, terminal_width
    from tir_schedules.faults import WIDTH, closing, paragraphs

    seen = []
    with progress(total, "verifying") as step:
        for verdict in verdicts:
            seen.append(verdict)
            step(verdict.rung.id)
    columns, prose = ("rung", "shape", form, "twin", "twins agree", "seconds"), {"shape": 12, "twins agree": 9}
    print_left_out(print_table(columns, [row(verdict) for verdict in seen], prose=prose, spare=("seconds",), keys=0))
    for paragraph in paragraphs(seen, min(WIDTH, terminal_width() or WIDTH)):
        print_paragraph(paragraph)
    where = "the CPU machine"
    if machine.name == "gpu":
        where = f"{machine.device_name}; races and bounds are checked by --machine cpu"
    print_line(f"{closing(seen)} on {where}")
    return seen


def row(verdict) -> tuple[str, ...]:
    """A verdict as the cells of a table."""
    from tir_schedules.faults import CELLS, FAILED, WRONG

    kernels = (CELLS[outcome.word] if outcome else "-" for outcome in (verdict.schedule, verdict.twin))
    agree = {None: "-", True: "bit for bit", False: "within tolerance"}[verdict.identical]
    agree = "-" if verdict.word in (WRONG, FAILED) else "NO" if verdict.disagreement else agree
    return (verdict.rung.id, str(verdict.workload), *kernels, agree, f"{verdict.seconds:.2f}")


def doctor(options) -> int:
    from tir_schedules.doctor import clear_cache, diagnose

    if options.clear_cache:
        clear_cache()
    items = diagnose()
    if options.json:
        print(json.dumps([vars(item) for item in items], indent=2))
    else:
        from rich.markup import escape

        from tir_schedules.console import print_table

        rows = [tuple(map(escape, (i.name, i.status, i.detail, i.remedy))) for i in items]
        print_table(("what", "status", "detail", "remedy"), rows, prose={"detail": 30, "remedy": 20}, keys=0)
    return 3 if any(item.status == "missing" for item in items) else 0
