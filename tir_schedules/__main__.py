"""The command `tir-schedules`, also `python -m tir_schedules`: signals are heeded before anything slow is
imported."""

from __future__ import annotations

# The built-in half of `signal`, which takes longer to import than a signal takes to come.
import _signal  # pyright: ignore[reportMissingImports]
import os

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:  # until `command` has it
    _signal.signal(_signal.SIGINT, lambda number, frame: os._exit(128 + number))

import sys

from tir_schedules.cli.endings import command


def main() -> int:
    """Run the command with the process's arguments; returns the exit code."""

    def perform() -> int:
        from tir_schedules.cli.main import perform

        return perform(sys.argv[1:])

    return command(perform, "--debug" in sys.argv)


if __name__ == "__main__":
    raise SystemExit(main())
