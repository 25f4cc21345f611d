"""The verb `run`: emit, compile, execute and verify rungs and their twins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Iterable, Sequence

from tir_schedules.cli.options import RUNG_HELP, Options, Verbs, add_arch, add_tuned
from tir_schedules.cli.problems import add_problems, check_options, kinds_of, problems_of, taking
from tir_schedules.errors import BadInput, printable
from tir_schedules.ladders.problems import RUN_SHAPES, Job, jobs_of, sample_kinds
from tir_schedules.ladders.registry import FAMILIES, find_each
from tir_schedules.machines.choice import CPU_ARCH, MACHINES, arch_for, choose
from tir_schedules.tuning.measure.lookup import tuned_jobs

if TYPE_CHECKING:
    from tir_schedules.model.machine import Machine
    from tir_schedules.verdicts import Outcome, Verdict


ORDERS = 2


def add_verb(verbs: Verbs) -> None:
    verb = verbs.add_parser("run", help="emit, compile, execute and verify rungs and their twins")
    verb.add_argument(
        "names", nargs="+", metavar="NAME", help=f"a ladder ({', '.join(FAMILIES)}) or {RUNG_HELP}"
    )
    add_problems(verb)
    add_arch(verb, None, f"the GPU's own; {CPU_ARCH} on the CPU machine")
    machine_help = (
        "cpu executes the compiled PTX on this computer, gpu runs on a GPU; auto takes the GPU where CuPy"
        " shows one"
    )
    verb.add_argument("--machine", choices=MACHINES, default="auto", help=f"{machine_help} (default auto)")
    orders_help = (
        f"orders in which blocks and warps take turns on the CPU machine (default {ORDERS}: as they are"
        " numbered, and in reverse; more are random)"
    )
    verb.add_argument("--orders", type=int, metavar="N", default=ORDERS, help=orders_help)
    verb.add_argument(
        "--configs", action="store_true", help="every configuration of the rungs, not only the default"
    )
    add_tuned(verb)
    source = "run this CUDA file, an edited `emit`, as the rung's kernel; it may include what is beside it"
    verb.add_argument("--source", metavar="FILE", type=Path, help=source)
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(verb=run)


def run(options: Options) -> int:
    from tir_schedules.run import run as run_rungs
    from tir_schedules.source import read_source
    from tir_schedules.subjects.compiling import runnable

    rungs = find_each(options.names, options.configs)
    if options.source and len(rungs) != 1:
        raise BadInput(f"--source runs one file as one rung, but {len(rungs)} rungs are named")
    source = read_source(options.source) if options.source else None
    check_options(rungs, options)
    rungs = taking(rungs, options.names, options)
    problems = problems_of(rungs, options)
    if options.tuned is not None and (source or options.configs):
        raise BadInput(f"--tuned chooses the configuration: leave out --{'source' if source else 'configs'}")
    machine = choose(options.machine, options.orders)
    arch = arch_for(machine, options.arch)
    if options.tuned is None:
        jobs = runnable(chosen(jobs_of(rungs, problems, RUN_SHAPES), options), arch)
    else:
        jobs = tuned_jobs(rungs, problems, options.tuned, machine, arch, whole=machine.name == "gpu")
    verdicts = run_rungs(jobs, arch, machine, source)
    if options.json:
        verdicts = list(verdicts)
        where = {"machine": machine.name, "arch": arch}
        print(json.dumps([verdict.as_json() | where for verdict in verdicts], indent=2))
    else:
        verdicts = print_verdicts(verdicts, len(jobs), machine, "source" if options.source else "schedule")
    return 0 if all(verdict.ok for verdict in verdicts) else 1


def chosen(jobs: Sequence[Job], options: Options) -> list[Job]:
    """The jobs without kinds of rungs of a ladder named as a whole, where neither all configurations nor
    kinds are asked for; a line says which ladder has more."""
    from tir_schedules.console import print_error

    found: list[Job] = []
    for family in dict.fromkeys(rung.family for rung, _ in jobs):
        own = [job for job in jobs if job[0].family == family]
        whole = (
            family in options.names and not options.configs and not any(kinds_of(family, options).values())
        )
        some = sample_kinds(own) if whole else own
        if len(some) < len(own):
            rung = own[0][0]
            print_error(
                f"{family} in {len(some)} of {len(own)} cases, most of its rungs in some of their kinds;"
                f" a rung that is named, such as {rung.id}, runs in all that it has"
            )
        found += some
    return found


def print_verdicts(verdicts: Iterable[Verdict], total: int, machine: Machine, form: str) -> list[Verdict]:
    """A table of what ran, a paragraph for each kind of fault and place, and a closing line. form: what ran,
    beside the twin."""
    from tir_schedules.console import (
        print_left_out,
        print_line,
        print_paragraph,
        print_table,
        print_whole,
        progress,
        terminal_width,
    )
    from tir_schedules.faults import WIDTH, closing, paragraphs

    seen = []
    with progress(total, "verifying") as step:
        for verdict in verdicts:
            seen.append(verdict)
            step(verdict.rung.id)
    columns = ("rung", "shape", form, "twin", "twins agree", "seconds")
    prose = {"shape": 12, "twins agree": 9}
    print_left_out(
        print_table(columns, [row(verdict) for verdict in seen], prose=prose, spare=("seconds",), keys=0)
    )
    for verdict in seen:
        for outcome in verdict.outcomes:
            if outcome.printed:
                print_line(f"{outcome.kernel} prints:")
                print_whole(printable(outcome.printed.removesuffix("\n"), "\n\t"))
    for paragraph in paragraphs(seen, min(WIDTH, terminal_width() or WIDTH)):
        print_paragraph(paragraph)
    for rung in dict.fromkeys(v.rung.id for v in seen if any(map(waits_in_ring, v.outcomes))):
        print_line(f"who waits for whom as {rung} is: tir-schedules layout {rung} --ring")
    where = "the CPU machine"
    if machine.name == "gpu":
        where = f"{machine.device_name}; races and bounds are checked by --machine cpu"
    print_line(f"{closing(seen)} on {where}")
    return seen


def waits_in_ring(outcome: Outcome) -> bool:
    """Whether threads wait in vain for mbarriers."""
    return any(one.kind == "deadlock" and "the mbarrier " in one.message for one in outcome.findings)


def row(verdict: Verdict) -> tuple[str, ...]:
    """A verdict as the cells of a table."""
    from tir_schedules.verdicts import CELLS, ERROR, FAIL

    kernels = (CELLS[outcome.word] if outcome else "-" for outcome in (verdict.schedule, verdict.twin))
    agree = {None: "-", True: "bit for bit", False: "within tolerance"}[verdict.identical]
    agree = "-" if verdict.word in (FAIL, ERROR) else "NO" if verdict.disagreement else agree
    return (verdict.rung.id, str(verdict.workload), *kernels, agree, f"{verdict.seconds:.2f}")
