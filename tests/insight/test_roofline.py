"""Bounds by a GPU's datasheet, and where a kernel stands."""

from types import SimpleNamespace

import pytest

from tir_schedules.errors import BadInput
from tir_schedules.insight.metrics.roofline import GPUS, bound, find_gpu, gpu_for, roofline
from tir_schedules.model.counters import Access
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
    assert (lambda found: (found["rate"], found["unit"]))(bound(GPUS["t4"], Reduction(1 << 25))) == (
        pytest.approx(320),
        "GB/s",
    )


def test_fp32_accumulators_have_a_peak_of_their_own():
    times = [
        bound(GPUS["rtx4090"], HalfGemm(4096, 4096, 4096, "nt", kind))["least_us"]
        for kind in ("float16", "float32")
    ]
    assert times[1] == pytest.approx(2 * times[0], rel=0.01)


def test_a_gpu_without_tensor_cores_has_no_bound_for_them():
    assert bound(GPUS["gtx1080ti"], Gemm(2048, 2048, 2048))["rate"] == pytest.approx(11.3)
    with pytest.raises(BadInput, match="the GeForce GTX 1080 Ti has no tensor cores: name a later GPU"):
        bound(GPUS["gtx1080ti"], HalfGemm(64, 64, 64))


def test_a_gpu_is_found_however_it_is_spelled():
    assert find_gpu("") is find_gpu("H200") is GPUS["h200"] and find_gpu("RTX 4090") is GPUS["rtx4090"]
    with pytest.raises(BadInput, match="'h201'.*did you mean 'h200'"):
        find_gpu("h201")


def test_an_architecture_has_a_gpu_unless_one_is_named():
    assert (
        gpu_for("sm_90a") is GPUS["h200"]
        and gpu_for("sm_75") is GPUS["t4"]
        and gpu_for("sm_90", "a100") is GPUS["a100"]
    )
    with pytest.raises(BadInput, match="a GPU of sm_87; name one with --gpu"):
        gpu_for("sm_87")


def test_a_kernel_may_be_bound_by_memory_though_its_algorithm_is_not():
    """A ridge of 19.5 TFLOPS / 2039 GB/s = 9.56 flop/byte; the compulsory bytes give 42.7, the sectors of
    naive 0.06."""
    gemm = Gemm(256, 256, 256)
    sectors = 2048 * (256 * 33 + 32)
    launch = SimpleNamespace(
        access=lambda *classes: Access(cost=sectors if set(classes) >= {"global_load", "global_store"} else 0)
    )
    found = roofline(GPUS["a100"], gemm, [launch]).as_json()
    assert found["ridge"] == pytest.approx(9.564, abs=1e-3) and found["moved_bytes"] == 32 * sectors
    assert (
        found["intensity"] == pytest.approx(2 * 256**3 / (12 * 256**2))
        and found["limited_by"] == "arithmetic"
    )
    assert (
        found["moved_intensity"] == pytest.approx(2 * 256**3 / (32 * sectors))
        and found["moved_limited_by"] == "memory"
    )
