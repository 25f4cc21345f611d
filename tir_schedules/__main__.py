"""The command `tir-schedules`, also `python -m tir_schedules`."""

from tir_schedules.cli.__main__ import main

if __name__ == "__main__":
    raise SystemExit(main())
