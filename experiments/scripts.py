"""What the scripts have in common on the command line."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Callable, Sequence

from tir_schedules.cli.endings import code_of, command
from tir_schedules.errors import BadInput

README = Path(__file__).parent / "README.md"


def add_recorded_options(parser: ArgumentParser, *recorded: Path) -> None:
    """Options of a script that can show results again and write them into the README. recorded: those it
    takes when none are named."""
    names = " and ".join(path.name for path in recorded)
    parser.add_argument(
        "--from",
        dest="recorded",
        metavar="FILE",
        type=Path,
        help="show an earlier --output instead of measuring",
    )
    add_write_or_check(parser, f"rewrite the README from --from (default {names})")
    parser.add_argument(
        "--readme", metavar="FILE", type=Path, default=README, help="the README of --write and --check"
    )


def add_write_or_check(parser: ArgumentParser, what: str) -> None:
    """Options that write the README or compare with it, one of the two. what: --write does."""
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--write", action="store_true", help=what)
    either.add_argument("--check", action="store_true", help="exit code 1 when --write would change it")


def check_alone(what: str, options: Namespace, others: Sequence[str]) -> None:
    """BadInput for options that do not go with what is asked for."""
    given = [name for name in others if getattr(options, name)]
    if given:
        option = {"names": "articles or packs", "recorded": "--from"}.get(given[0], f"--{given[0]}")
        raise BadInput(f"{what} does not go with {option}: leave one out")


def exit_code(
    perform: Callable[[Namespace], int], parser: ArgumentParser, arguments: Sequence[str] | None
) -> int:
    """Of a script that performs what its options ask for; an error is one line, and signals end it.

    arguments: None for the process's own.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    parser.add_argument(
        "--debug", action="store_true", help="show the traceback of a fault of the script itself"
    )
    end = command if arguments is None else code_of
    return end(lambda: perform(parser.parse_args(words)), "--debug" in words, name="")
