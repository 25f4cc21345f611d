"""The rungs of reduce as scripts: `python -m tir_schedules.reduce.NAME` prints the CUDA of
ladders/reduce/NAME.py."""

from tir_schedules.ladders.reduce import __path__ as __path__
