"""The rungs of sgemm as scripts: `python -m tir_schedules.sgemm.NAME` prints the CUDA of
ladders/sgemm/NAME.py."""

from tir_schedules.ladders.sgemm import __path__ as __path__
