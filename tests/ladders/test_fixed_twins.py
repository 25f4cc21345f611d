"""Twins compiled for one shape, as schedules are: right, and deaf to the sizes they are given."""

import re

import pytest
from layers import layers

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_fixed_twin
from tir_schedules.ladders.registry import FAMILIES, ladder
from tir_schedules.machines.choice import CPU_ARCH
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import launches, outcome_of
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction
from tir_schedules.workloads.split_gemm import FORMS, SplitGemm

ARCH = CPU_ARCH
RAGGED = {"sgemm": Gemm(130, 68, 44), "hgemm": HalfGemm(130, 72, 88), "reduce": Reduction(5003)}
OF_PARTS = {name: SplitGemm(130, 68, 44, name) for name in FORMS}
ALL = [rung for family in FAMILIES for rung in ladder(family)]


def ragged(rung):
    """A workload of what the rung multiplies."""
    return OF_PARTS.get(getattr(rung.config, "products", ""), RAGGED[rung.family])


@layers("rung", [ladder(family)[-1] for family in FAMILIES], ALL)
def test_a_twin_compiled_for_the_shape_is_right_and_reads_no_size(rung):
    workload = ragged(rung)
    kernels = launches(load_fixed_twin, rung, workload, rung.arch or ARCH)
    for kernel in kernels:
        places = [kernel.params.index(name) for name in "MNK" if name in kernel.params]
        sizes = [f"{kernel.entry}_param_{place}]" for place in places]
        assert sizes and not [size for size in sizes if size in compile_kernel(kernel).ptx]
    assert outcome_of(kernels, workload, CpuMachine()).faults == ()


@pytest.mark.parametrize("rung", ALL, ids=lambda rung: rung.id)
def test_each_launch_has_its_own_sizes(rung):
    kernels = launches(load_fixed_twin, rung, ragged(rung), rung.arch or ARCH)
    sizes = [dict(re.findall(r"^#define SIZE_(\w) (\d+)$", kernel.source, re.M)) for kernel in kernels]
    if rung.family == "reduce":
        left = [5003, *(kernel.grid[0] for kernel in kernels[:-1])]
        assert sizes == [{"N": str(count)} for count in left]
    else:
        assert sizes == [dict(zip("MNK", map(str, RAGGED[rung.family].shape)))] * len(kernels)
    assert all("fix_sizes<" in kernel.source for kernel in kernels if kernel.entry == rung.entry)
