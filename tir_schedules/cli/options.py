"""Options that several verbs have, and the parser that all are made with."""

from __future__ import annotations

import argparse
from typing import TypeAlias

from tir_schedules.errors import BadInput
from tir_schedules.machines.choice import CPU_ARCH

Options = argparse.Namespace
"""The options of a verb, as argparse has them. They go no further than this folder."""

RUNG_HELP = (
    "a rung such as sgemm/warp_tiling or ./my_rung.py, with :CONFIG for another of its configurations, or"
    " :FIELD=VALUE,... or :CONFIG,FIELD=VALUE,... for one of yours"
)


class Parser(argparse.ArgumentParser):
    """argparse with errors of one line."""

    def error(self, message: str):
        raise BadInput(f"{message}; see `{self.prog} --help`")


Verbs: TypeAlias = "argparse._SubParsersAction[Parser]"
"""What a verb adds its parser to."""


def add_arch(verb: Parser, default: str | None = CPU_ARCH, otherwise: str = "") -> None:
    """--arch with a default, or with none and the words for what is then done."""
    verb.add_argument(
        "--arch", default=default, help=f"GPU architecture to compile for (default {default or otherwise})"
    )


def add_tuned(verb: Parser) -> None:
    """--tuned [FILE], empty without a FILE."""
    what = "in the configuration of the best record of exactly this shape and GPU, in FILE"
    verb.add_argument(
        "--tuned",
        metavar="FILE",
        nargs="?",
        const="",
        help=f"{what}, else in your own records, else in those shipped",
    )
