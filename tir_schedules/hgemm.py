"""The rungs of hgemm as scripts: `python -m tir_schedules.hgemm.NAME` prints the CUDA of
ladders/hgemm/NAME.py."""

from tir_schedules.ladders.hgemm import __path__ as __path__
