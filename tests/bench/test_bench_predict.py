"""What is said of rungs without a GPU."""
import json

import pytest

from tir_schedules import cli
from tir_schedules.bench.predict import GPUS, bound, find_gpu
from tir_schedules.errors import BadInput
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction


@pytest.mark.parametrize(
    "workload, microseconds, limited",
    [
        (Gemm(4096, 4096, 4096), 2 * 4096**3 / 66.9e12 * 1e6, "arithmetic"),
        (Gemm(4096, 4096, 1), 4 * (4096**2 + 8192) / 4800e9 * 1e6, "memory"),
        (HalfGemm(4096, 4096, 4096), 2 * 4096**3 / 989e12 * 1e6, "arithmetic"),
        (Reduction(1 << 25), 4 * 2**25 / 4800e9 * 1e6, "memory"),
    ],
)
def test_a_bound_is_the_slower_of_arithmetic_and_memory(workload, microseconds, limited):
    found = bound(GPUS["h200"], workload)
    assert found["least_us"] == pytest.approx(microseconds) and found["limited_by"] == limited


def test_a_bound_is_in_the_unit_of_the_family():
    assert bound(GPUS["h200"], Gemm(4096, 4096, 4096))["rate"] == pytest.approx(66.9)
    assert (lambda found: (found["rate"], found["unit"]))(bound(GPUS["t4"], Reduction(1 << 25))) == (pytest.approx(320), "GB/s")


def test_fp32_sums_have_a_peak_of_their_own():
    times = [bound(GPUS["rtx4090"], HalfGemm(4096, 4096, 4096, "nt", kind))["least_us"] for kind in ("float16", "float32")]
    assert times[1] == pytest.approx(2 * times[0], rel=0.01)


def test_a_gpu_is_found_however_it_is_spelled():
    assert find_gpu("") is find_gpu("H200") is GPUS["h200"] and find_gpu("RTX 4090") is GPUS["rtx4090"]
    with pytest.raises(BadInput, match="'h201'.*did you mean 'h200'"):
        find_gpu("h201")


def predicted(capsys, *arguments):
    assert cli.main(["bench", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_counters_are_of_both_kernels_at_a_size_the_cpu_machine_takes(capsys):
    found = predicted(capsys, "sgemm/naive", "--sizes", "4096", "--predict")
    assert [(row["form"], row["shape"]) for row in found["kernels"]] == [("schedule", "256x256x256"), ("twin", "256x256x256")]
    for row in found["kernels"]:
        # Each warp reads 32 rows of A, a sector each, and one element of B, for every k; and stores 32 rows of C.
        warps = 256 * 256 // 32
        assert row["global_sectors"] == warps * (256 * 33 + 32) and row["global_bytes"] == 32 * row["global_sectors"]
        assert row["shared_bytes"] == row["shared_wavefronts"] == 0 and row["registers"] > 0
    assert [row["shape"] for row in found["bounds"]] == ["4096x4096x4096"] and found["timed"] is False


def test_bank_conflicts_of_a_rung_show(capsys):
    rows = predicted(capsys, "reduce/interleaved", "reduce/sequential", "--predict")["kernels"]
    ratios = {row["name"]: row["shared_wavefronts"] / row["shared_wavefronts_ideal"] for row in rows}
    assert ratios["reduce/sequential"] == 1 and ratios["reduce/interleaved"] > 3


def test_what_is_printed_says_that_nothing_was_timed(capsys):
    assert cli.main(["bench", "--predict", "sgemm/naive", "--sizes", "1024"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("nothing is timed here") and "H200 SXM, datasheet: 66.9 TFLOPS" in out and "32.10" in out
