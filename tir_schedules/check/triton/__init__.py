"""Triton kernels on the CPU machine: Triton compiles them without a GPU, and findings and counters name the
lines of the Python file.

Triton is an extra: `pip install 'tir_schedules[triton]'`. `check_triton` is for notebooks and pytest.
"""

from tir_schedules.check.triton.checking import check_request, check_triton, prepare_triton
from tir_schedules.check.triton.compiling import Launch, compile_triton
from tir_schedules.check.triton.functions import kernel_of, kernels_in

__all__ = [
    "Launch",
    "check_request",
    "check_triton",
    "compile_triton",
    "kernel_of",
    "kernels_in",
    "prepare_triton",
]
