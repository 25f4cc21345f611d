"""The verb `run`: emit, compile, execute and verify rungs and their twins."""

from __future__ import annotations

import sys

from tir_schedules.api.problems import shape_of
from tir_schedules.cli.options import RUNG_HELP, Options, Verbs, add_arch, add_dry_run, add_path, add_tuned
from tir_schedules.cli.problems import add_problems
from tir_schedules.ladders.registry import FAMILIES
from tir_schedules.machines.choice import CPU_ARCH, MACHINES

ORDERS = 2


def add_verb(verbs: Verbs) -> None:
    verb = verbs.add_parser("run", help="emit, compile, execute and verify rungs and their twins")
    verb.add_argument(
        "names", nargs="+", metavar="NAME", help=f"a ladder ({', '.join(FAMILIES)}) or {RUNG_HELP}"
    )
    add_problems(verb)
    add_arch(verb, None, f"the GPU's own; {CPU_ARCH} on the CPU machine")
    machine_help = (
        "cpu executes the compiled PTX on this computer, gpu runs on a GPU; auto takes the GPU if CuPy"
        " finds one"
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
    add_path(verb, "--source", help=source)
    verb.add_argument("--time", action="store_true", help="predict times on an H100 as well, as `time` does")
    add_dry_run(verb)
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(verb=run)


def run(options: Options) -> int:
    from tir_schedules.api.results import finish
    from tir_schedules.api.running import next_step, running_of
    from tir_schedules.console import afterwards, print_line

    with afterwards():
        asked = running_of(
            *options.names, arch=options.arch, machine=options.machine, orders=options.orders,
            configs=options.configs, tuned=options.tuned, source=options.source, time=options.time,
            **shape_of(options),
        )  # fmt: skip
        if options.dry_run:
            return finish(asked.plan(), options.json, 2)
        told = not options.json and not options.source and len({rung.id for rung, _ in asked.jobs}) > 1
        if told:
            print_line(asked.opening())
            print_line()
            sys.stdout.flush()
        found = asked.run()
        code = finish(found, options.json, 2)
        if told and (step := next_step(found)):
            print_line(step)
        return code
