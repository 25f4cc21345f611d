"""The command `tir-schedules`, also `python -m tir_schedules`: signals are heeded before anything slow is imported."""
from __future__ import annotations

import sys

from tir_schedules.endings import command


def main() -> int:
    """Run the command with the process's arguments; returns the exit code."""

    def perform() -> int:
        from tir_schedules.cli import perform

        return perform(sys.argv[1:])

    return command(perform, "--debug" in sys.argv)


if __name__ == "__main__":
    raise SystemExit(main())
