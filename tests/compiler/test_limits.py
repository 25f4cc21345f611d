"""Shapes beyond what CUDA launches or 32-bit indices reach are bad input, in one line, whoever makes the
kernel."""

import re
from functools import partial

import pytest

from tir_schedules.compiler.lower import lower, scheduled
from tir_schedules.compiler.twin import load_source, load_twin
from tir_schedules.errors import BadInput, TooLarge
from tir_schedules.ladders.registry import find
from tir_schedules.model.kernel import Kernel
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction

ARCH = "sm_80"
SOURCE = 'extern "C" __global__ void %s(float *A) {}'


def from_source(rung, workload, arch):
    return load_source(SOURCE % rung.entry, rung, workload, arch)


@pytest.mark.parametrize("make", [lower, load_twin, from_source], ids=["schedule", "twin", "source"])
@pytest.mark.parametrize(
    "name, workload, blocks",
    [
        ("sgemm/naive", Gemm(1, 65535 * 32 + 1, 1), "65536 blocks along y"),
        ("sgemm/transposed", Gemm(65535 * 128 + 1, 1, 1), "65536 blocks along y"),
        ("hgemm/wmma_naive", HalfGemm(65535 * 32 + 1, 1, 1), "65536 blocks along y"),
        (
            "hgemm/mma_multistage",
            HalfGemm(1, 65537 * 128, 1),
            "65537 blocks along z",
        ),  # a prime number: stripes of one column
    ],
    ids=lambda part: str(part) if isinstance(part, str) else None,
)
def test_a_grid_that_cuda_does_not_launch(make, name, workload, blocks):
    (rung,) = find(name)
    with pytest.raises(
        TooLarge, match=f"{re.escape(name)}.*the grid has {blocks}; CUDA allows 1 to 65535"
    ) as raised:
        make(rung, workload, ARCH)
    assert "\n" not in str(raised.value) and raised.value.exit_code == 2


@pytest.mark.parametrize("make", [lower, load_twin], ids=["schedule", "twin"])
def test_the_largest_grid_that_it_does(make):
    assert make(find("sgemm/naive")[0], Gemm(1, 65535 * 32, 1), ARCH).grid == (1, 65535, 1)
    assert make(find("sgemm/naive")[0], Gemm(2**31 - 2**16 - 1, 1, 1), ARCH).grid == (2**26 - 2**11, 1, 1)


def test_a_scheduled_function_of_such_a_grid_is_refused_too():
    with pytest.raises(TooLarge):
        scheduled(find("sgemm/naive")[0], Gemm(1, 65535 * 32 + 1, 1))


@pytest.mark.parametrize("grid", [(0, 1, 1), (-67108864, 1, 1), (2**31, 1, 1), (1, 65536, 1), (1, 1, 65536)])
def test_no_kernel_has_a_grid_that_there_is_not(grid):
    make = partial(Kernel, "k", "", "k", (), block=(1, 1, 1), arch=ARCH)
    assert make(grid=(2**31 - 1, 65535, 65535)).threads == 1
    with pytest.raises(BadInput, match="CUDA allows|takes 1 or more"):
        make(grid=grid)


@pytest.mark.parametrize(
    "name, workload",
    [
        ("reduce/vectorized", Reduction(2000000000)),
        ("reduce/cross_thread", Reduction(2000000000)),
        ("sgemm/multistage", Gemm(1, 1, 2**31 - 2**16 - 1)),
        ("hgemm/wmma_shared", HalfGemm(1, 1, 2**31 - 2**16 - 1)),
    ],
    ids=lambda part: part if isinstance(part, str) else None,
)
def test_indices_that_tvm_cannot_count_with(name, workload):
    (rung,) = find(name)
    with pytest.raises(
        TooLarge, match=f"{name}.*{workload} is too large: TVM's indices have 32 bits"
    ) as raised:
        lower(rung, workload, ARCH)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "arguments", [("reduce/vectorized", "--n", "2000000000"), ("sgemm/naive", "--mnk", "2147483646,1,1")]
)
def test_the_command_says_so_in_one_line(tool, arguments):
    code, out, err = tool("emit", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1) and "32" in err


def test_a_candidate_with_too_large_a_grid_is_refused_and_the_search_goes_on(tool, tmp_path):
    records = tmp_path / "records.jsonl"
    code, out, _ = tool(
        "tune", "sgemm/multistage", "--mnk", "16000000,1,1", "--trials", "2", "--records", str(records)
    )
    assert code == 1 and records.read_text().count("CUDA allows 1 to 65535") == 2
