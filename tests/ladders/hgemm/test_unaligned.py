"""hgemm/unaligned, the rung beside the ladder that copies rows as they lie: schedule and twin on rows that
start on multiples of 16, 8, 4 and 2 bytes, what lies beside a row, and faults that must be found."""

from dataclasses import replace

import numpy as np
import pytest
from layers import layers
from mutants import loaded

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_twin
from tir_schedules.errors import BadInput
from tir_schedules.ladders.fastest import fastest
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import outcome_of, run
from tir_schedules.workloads.half_gemm import HalfGemm

ARCH = "sm_80"
ROUNDED = ("float32", "float16", "float16")
BRAIN = ("float32", "bfloat16", "bfloat16")
ODD = HalfGemm(35, 77, 203, "nn", *ROUNDED)
# Odd rows of A and B in both layouts, of 4 and 8 bytes, of 16; tiles beyond C; warps along K; parts of K, the
# last with less of it.
BY_DEFAULT = [("32x32", ODD), ("16x64:splits=3", HalfGemm(17, 70, 260, "nt", *BRAIN))]
EVERY = [
    *BY_DEFAULT,
    ("64x64", HalfGemm(51, 75, 201, "nt", "float16")),
    ("64x128:splits=2", HalfGemm(51, 130, 100, "nn", *BRAIN)),
    ("16x64:splits=3", HalfGemm(5, 40, 257, "nn", "float16")),
    ("32x32", HalfGemm(100, 100, 100, "nt", "float16")),
    ("32x32", HalfGemm(33, 49, 37, "nt", *BRAIN)),
    (":bm=128,bn=64,bk=32,stages=3,warps_m=2,warps_n=2,warps_k=2", HalfGemm(140, 67, 99, "nn", "float32")),
    ("64x64", HalfGemm(1, 1, 1, "nn", "float32", "bfloat16")),
    ("64x128", HalfGemm(64, 128, 256, "nt", *ROUNDED)),
]


def rung_of(config):
    (rung,) = find("hgemm/unaligned:" + ",".join(filter(None, config.split(":"))))
    return rung


@layers("config, gemm", BY_DEFAULT, EVERY)
def test_schedule_and_twin_are_right_and_equal_bit_for_bit(config, gemm):
    (verdict,) = run([(rung_of(config), gemm)], ARCH, CpuMachine())
    assert verdict.faults == () and verdict.identical


def test_what_is_beside_an_odd_row_is_not_multiplied():
    """Copies of an odd row begin with the last element of the row before. A NaN there is in one row of C."""
    gemm = replace(ODD, accumulate="float32", output="float32")
    binary = compile_kernel(lower(rung_of("32x32"), gemm, ARCH))
    given = gemm.arguments()
    expected = gemm.matmul(given["A"].astype(np.float64), given["B"].astype(np.float64))
    given["A"][4, -1] = np.nan
    CpuMachine().run(binary, given, gemm.outputs)
    found = given["C"]
    others = np.arange(gemm.m) != 4
    assert np.isnan(found[4]).all() and np.allclose(found[others], expected[others], rtol=1e-3, atol=1)


FAULTS = {
    "no barrier": ("__syncthreads();", ""),
    "no wait": ("wait_for_rows<0>();", ""),
    "odd rows read as even": (", true, 40, true, ", ", false, 40, true, "),
    "rows read too soon": ("int before = elements_before(lane / 4, columns);", "int before = 0;"),
    "odd rows copied as even": ("elements_before(r, cols) : 0", "0 : 0"),
    "copies beyond a row": ("max(cols - from, 0)", "8"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_not_to_be_missed(fault):
    rung, (right, wrong) = rung_of("32x32,bk=64"), FAULTS[fault]
    source = lower(rung, ODD, ARCH).source
    assert right in source
    kernel = loaded(source.replace(right, wrong), rung, ODD, ARCH)
    assert outcome_of([kernel], ODD, CpuMachine(budget=1 << 20)).faults


@pytest.mark.parametrize(
    "config, reason",
    [
        ("bm=24", "bm is 24: a multiple of 16 for each of warps_m=1"),
        ("bn=48,warps_n=4", "bn is 48: a multiple of 16 for each of warps_n=4"),
        ("bk=0", "bk is 0: a multiple of 16 for each of warps_k=1, 1 or more"),
        ("warps_k=0", "bk is 32: a multiple of 16 for each of warps_k=0, 1 or more"),
        ("stages=1", "stages is 1: 2 to 16"),
        ("bm=256,bn=256", "a warp's tile is 256x64"),
        ("bk=512,warps_n=4", "stages take 1198080 bytes"),
        ("warps_k=4,bk=64,warps_n=16,bn=256", "there are 64 warps"),
    ],
)
def test_other_configurations_are_refused(config, reason):
    with pytest.raises(BadInput, match=reason):
        lower(rung_of(config), HalfGemm(64, 64, 64), ARCH)


def test_a_twin_of_run_time_sizes_takes_what_a_schedule_takes():
    gemm = HalfGemm(20, 30, 75, "nn", "float32")
    assert outcome_of([load_twin(rung_of("32x32"), gemm, ARCH)], gemm, CpuMachine()).faults == ()


@pytest.mark.parametrize(
    "shape, layout, chosen",
    [
        ((51, 10650, 8372), "nn", "unaligned"),
        ((100, 100, 100), "nt", "unaligned"),
        ((4583, 4, 7585), "nn", "unaligned:bm=128,bn=16,"),
        ((51, 10648, 8368), "nn", "split_k"),
        ((1002, 1002, 1002), "nt", "split_k"),
    ],
)
def test_it_is_chosen_where_memory_bounds(shape, layout, chosen):
    """At the first two it took 92 and 1.9 us on an H100; what was chosen before took 195 and 2.9. At the
    third it took 28 us on an H200, and split_k 59."""
    found, _ = fastest(
        "hgemm", HalfGemm(*shape, layout=layout, accumulate="float32", output="float16"), "sm_90a"
    )
    assert found.id.startswith(f"hgemm/{chosen}")
