"""The former name of `mma_xor_swizzle`, for `python -m tir_schedules.hgemm.mma_permuted`."""

from tir_schedules.ladders.hgemm.mma_xor_swizzle import RUNG
from tir_schedules.model.rung import run_as_script

if __name__ == "__main__":
    run_as_script(RUNG)
