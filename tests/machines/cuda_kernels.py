"""Several kernels of one CUDA text, which nvcc compiles once, each launched with its own arguments."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.kernel import Kernel


@lru_cache(maxsize=None)
def compiled(source):
    return compile_kernel(Kernel("test/kernel", source, "k", ("Y",), (1, 1, 1), (1, 1, 1), "sm_80"))


def run(source, entry, arguments=None, threads=64, grid=1, dynamic=0, **machine):
    """The outputs and the Execution of one of the kernels of a text, one of which is `k`. The last parameter
    is the output Y, of an int for each thread.

    arguments: all others, by name. machine: options of CpuMachine.
    """
    given = (arguments or {}) | {"Y": np.zeros(threads * grid, np.int32)}
    shape = ((grid, 1, 1), (threads, 1, 1))
    kernel = Kernel("test/kernel", source, entry, tuple(given), *shape, "sm_80", dynamic)
    execution = CpuMachine(**machine).run(replace(compiled(source), kernel=kernel), given, ("Y",))
    return given["Y"], execution
