"""The command line: the parser of all verbs. Each verb has a file of its own and calls one function of the
package.

Exit codes: 0 all good, 1 a check failed, 2 bad arguments or input, 3 something needed is missing; see
endings.py for the others.
"""

from __future__ import annotations

import argparse
import sys
from typing import Sequence

from tir_schedules.cli import (
    bench,
    book,
    check,
    doctor,
    emit,
    inspect,
    layout,
    learn,
    new,
    profile,
    report,
    run,
    time,
    trace,
    tune,
)
from tir_schedules.cli import list as list_rungs
from tir_schedules.cli.endings import code_of, command
from tir_schedules.cli.options import Parser
from tir_schedules.version import VERSION

VERBS = (
    list_rungs,
    emit,
    run,
    check,
    bench,
    layout,
    inspect,
    time,
    profile,
    trace,
    report,
    tune,
    learn,
    book,
    new,
    doctor,
)
"""In the order of the help. Each has add_verb, which adds its parser."""

DESCRIPTION = "GPU kernels as ladders of TensorIR schedules, each with a hand-written CUDA twin."


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code of a command. Without arguments it is the process's own, which signals end."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    return (command if arguments is None else code_of)(lambda: perform(words), "--debug" in words)


def perform(arguments: Sequence[str]) -> int:
    """Run a verb; returns the exit code."""
    options = parser().parse_args(arguments)
    return options.verb(options)


def parser() -> Parser:
    top = Parser("tir-schedules", description=DESCRIPTION)
    top.add_argument("--version", action="version", version=f"tir-schedules {VERSION}")
    verbs = top.add_subparsers(metavar="VERB", required=True, parser_class=Parser)
    for verb in VERBS:
        verb.add_verb(verbs)
    debug_help = "show the traceback of a fault of tir-schedules itself"
    for each in (top, *verbs.choices.values()):
        each.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=debug_help)
    return top
