"""What cp.async costs when some lanes fill with zeros: wavefronts that Nsight Compute's source page shows for
each copy on an H200.

Copies under the predicate register P0 are left out: for those the tool shows what a warp that only fills with
zeros costs.
"""

import numpy as np
import pytest

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.kernel import Kernel

SOURCE = """\
extern "C" __global__ void copy(const int* __restrict__ targets, const int* __restrict__ sources,
                                const int* __restrict__ reads, const char* __restrict__ X,
                                unsigned* __restrict__ Y) {
    __shared__ __align__(128) char tile[16384];
    const unsigned target = (unsigned)__cvta_generic_to_shared(tile + targets[threadIdx.x]);
    asm volatile("cp.async.MODE.shared.global [%0], [%1], BYTES, %2;" ::"r"(target),
                 "l"(X + sources[threadIdx.x]), "r"(reads[threadIdx.x] ? BYTES : 0) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    Y[threadIdx.x] = *(unsigned*)(tile + targets[threadIdx.x]);
}
"""
L = np.arange(32)
ROWS, LINES = L // 4 * 512 + L % 4 * 16, L // 8 * 512 + L % 8 * 16
PLACES = {
    (16, "padded"): (L // 4 * 80 + L % 4 * 16, ROWS),
    (16, "permuted"): (L // 4 * 64 + (L % 4 ^ L // 8 % 4) * 16, ROWS),
    (16, "straight"): (L * 16, L * 16),
    (16, "padded lines"): (L // 8 * 144 + L % 8 * 16, LINES),
    (8, "every second"): (L * 16, L * 8),
    (4, "every second"): (L * 8, L * 4),
    (4, "columns"): (L % 16 * 144 + L // 16 * 4, L // 16 * 1024 + L % 16 * 4),
}
READS = {
    "all": L >= 0,
    "none": L < 0,
    "half": L < 16,
    "odd": L % 2 == 1,
    "odd rows": L // 4 % 2 == 1,
    "one": L == 5,
    "odd quarters": L // 8 % 2 == 1,
    "first quarter": L < 8,
}
MEASURED = {
    (16, "padded"): (15, 8, 18, 22, 18, 9, 18, 13),
    (16, "permuted"): (8, 4, 10, 16, 8, 5, 10, 7),
    (16, "straight"): (4, 4, 6, 8, 8, 5, 6, 5),
    (16, "padded lines"): (10, 4, 8, 11, 13, 5, 11, 5),
    (8, "every second"): (4, 4, 4, 4, 4, 4, 4, 4),
    (4, "every second"): (2, 2, 2, 2, 2, 2, 2, 2),
    (4, "columns"): (3, 2, 2, 3, 3, 2, 3, 2),
}


@pytest.mark.parametrize("size, name", PLACES)
def test_wavefronts_are_those_the_gpu_counted(size, name):
    source = SOURCE.replace("BYTES", str(size)).replace("MODE", "cg" if size == 16 else "ca")
    params = ("targets", "sources", "reads", "X", "Y")
    binary = compile_kernel(Kernel(f"copy {size}", source, "copy", params, (1, 1, 1), (32, 1, 1), "sm_90"))
    targets, sources = (places.astype(np.int32) for places in PLACES[size, name])
    found = []
    for reads in READS.values():
        arrays = {"targets": targets, "sources": sources, "reads": reads.astype(np.int32)}
        arguments = {**arrays, "X": np.zeros(8192, np.int8), "Y": np.zeros(32, np.uint32)}
        execution = CpuMachine().run(binary, arguments, ("Y",), count=True)
        assert not execution.findings
        found.append(execution.counters.accesses["shared_cp_async"].cost)
    assert tuple(found) == MEASURED[size, name]
