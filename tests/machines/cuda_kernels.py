"""Several kernels of one CUDA text, which nvcc compiles once, each launched with its own arguments."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.kernel import Kernel


@lru_cache(maxsize=None)
def compiled(source, entry):
    return compile_kernel(Kernel("test/kernel", source, entry, ("Y",), (1, 1, 1), (1, 1, 1), "sm_80"))


def run(
    source, entry, arguments=None, threads=64, grid=1, dtype=np.int32, kernels="k", count=False, **machine
):
    """The outputs and the Execution of a kernel whose last parameter is the output Y, of one element for each
    thread.

    arguments: all others, by name. kernels: one that the text has, for all to be compiled by. machine:
    options of CpuMachine.
    """
    given = (arguments or {}) | {"Y": np.zeros(threads * grid, dtype)}
    kernel = Kernel("test/kernel", source, entry, tuple(given), (grid, 1, 1), (threads, 1, 1), "sm_80")
    binary = replace(compiled(source, kernels), kernel=kernel)
    execution = CpuMachine(**machine).run(binary, given, ("Y",), count=count)
    return given["Y"], execution
