"""The smallest fault a kernel can have, one term of its longest sum lost or counted twice, is seen; so is one that integers hide.

Kernels are twins with one place changed, executed by the CPU machine and judged as `tir-schedules run` judges them.
"""
from dataclasses import dataclass
from typing import Any

import pytest

from tir_schedules.compiler.twin import load_source, read_twin
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import outcome_of
from tir_schedules.rung import find_one
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction

ARCH = "sm_80"


@dataclass(frozen=True)
class Fault:
    """A twin in which `old` is `new`. inputs: the kind that shows it."""

    rung: str
    workload: Any
    what: str
    old: str
    new: str
    inputs: str = "exact"

    def __str__(self) -> str:
        return f"{self.rung} {self.workload}: {self.what}"


TILE = "copy_tile<BM, BK>(tile_a, A, block_row, k0, M, K);"
PRODUCT = "acc += A[m * K + k] * B[k * N + n];"
STORE = "Y[blockIdx.x] = total;"
LONG = Reduction(1 << 22, "float32")

FAULTS = [
    Fault("sgemm/naive", Gemm(8, 8, 40000), "the last term lost", "k < K;", "k < K - 1;"),
    Fault("sgemm/naive", Gemm(8, 8, 40000), "one element lacks its last term", PRODUCT, f"if (m + n < 14 || k < K - 1) {PRODUCT}"),
    Fault("sgemm/naive", Gemm(1, 1, 65536), "the first term twice", "float acc = 0.0f;", "float acc = A[m * K] * B[n];"),
    Fault("sgemm/naive", Gemm(8, 8, 300), "terms of A rounded to an integer", "A[m * K + k] *", "rintf(A[m * K + k]) *", "reals"),
    Fault("hgemm/wmma_naive", HalfGemm(64, 64, 16384, "nt", "float32"), "the last 16 of K lost", "NT ? col * K : col), NT ? K : N, K);",
          "NT ? col * K : col), NT ? K : N, K - 16);"),
    Fault("hgemm/wmma_naive", HalfGemm(20, 5, 16383, "nn", "float32"), "the last term lost", TILE, TILE.replace("M, K)", "M, K - 1)")),
    Fault("hgemm/wmma_naive", HalfGemm(3, 5, 65535), "the last term lost", TILE, TILE.replace("M, K)", "M, K - 1)")),
    Fault("reduce/vectorized", LONG, "stores 0", STORE, "Y[blockIdx.x] = 0;"),
    Fault("reduce/vectorized", LONG, "the first term lost", "DTYPE total = sums.x", "if (blockIdx.x + threadIdx.x == 0) sums.x -= X[0];\n"
          "    DTYPE total = sums.x"),
    Fault("reduce/vectorized", LONG, "a sum kept in 16 bits", STORE, "Y[blockIdx.x] = __uint_as_float(__float_as_uint(total) & 0xffff0000);"),
    Fault("reduce/vectorized", Reduction(1 << 20), "the last term lost", "DTYPE total = sums.x", "if (blockIdx.x + threadIdx.x == 0) sums.x "
          "-= X[N - 1];\n    DTYPE total = sums.x"),
]  # fmt: skip


def outcome(rung, workload, source):
    kernels, left = [load_source(source, rung, workload, ARCH)], workload
    while (left := left.rest(kernels[-1].grid)) is not None:
        kernels.append(load_source(read_twin(rung, left), rung, left, ARCH))
    return outcome_of(kernels, workload, CpuMachine())


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_it_is_wrong_and_the_same_kernel_without_it_is_right(fault):
    rung = find_one(fault.rung, "test")
    source = read_twin(rung, fault.workload)
    assert source.count(fault.old) == 1
    wrong = outcome(rung, fault.workload, source.replace(fault.old, fault.new))
    assert any(f"with {fault.inputs} inputs" in line for line in wrong.faults), wrong.faults
    assert len(wrong.outputs) == 1 + (fault.inputs == "reals")
    assert outcome(rung, fault.workload, source).faults == ()
