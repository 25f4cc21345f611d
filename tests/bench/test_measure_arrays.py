"""Inputs, truth, tolerance and judgement with arrays that stay on the GPU: the fake ones refuse to meet numpy's."""
import numpy as np
import pytest
from fake_gpu import DeviceArray, FakeMachine, Module

from tir_schedules.bench.products import MOST_SETS, timing_buffers
from tir_schedules.verify import compare
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import EXACT, HalfGemm
from tir_schedules.workloads.reduction import Reduction

HALVES = [HalfGemm(24, 16, k, layout, wide) for k in (8, 5000) for layout in ("nt", "nn") for wide in ("float16", "float32")]
WORKLOADS = [Gemm(5, 6, 7), *HALVES, Reduction(1000), Reduction(1000, "float32")]
XP = Module()


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_the_exact_result_passes_and_a_wrong_element_is_named(workload):
    arguments = workload.arguments(3, XP)
    (name,) = workload.outputs
    truth, allowed = workload.truth(arguments)[name], workload.tolerance(arguments)[name]
    given = workload.prepared(arguments, (1, 1, 1))[name]
    assert isinstance(given, DeviceArray) and truth.shape == given.shape == allowed.shape
    got = truth.astype(given.dtype)
    assert compare(name, got, truth, allowed, "should be") is None
    got.host.flat[-1] += np.asarray(1000 * (1 + np.abs(allowed.host.flat[-1]))).astype(got.dtype)
    mismatch = compare(name, got, truth, allowed, "should be")
    assert mismatch.count == 1 and mismatch.flat_index(got.shape) == got.size - 1
    assert mismatch.expected == float(truth.host.flat[-1]) and mismatch.allowed == float(allowed.host.flat[-1])


@pytest.mark.parametrize("workload", [*HALVES, Gemm(5, 6, 7)], ids=str)
def test_an_output_nobody_wrote_never_passes(workload):
    arguments = workload.arguments(0, XP)
    assert compare("C", arguments["C"], workload.truth(arguments)["C"], np.inf, "should be").count == arguments["C"].size


@pytest.mark.parametrize("workload", [workload for workload in HALVES if workload.accumulate == "float16"], ids=str)
def test_float16_sums_are_exact_with_inputs_drawn_on_the_gpu(workload):
    arguments = workload.arguments(0, XP)
    a, b = (np.abs(arguments[name].host) for name in "AB")
    assert 0 < workload.product(a, b).max() <= EXACT
    assert not workload.tolerance(arguments)["C"].host.any()


def test_signs_drawn_on_the_gpu_are_as_many_as_asked_for():
    drawn = HalfGemm(100, 8, 8192).arguments(0, XP)["A"].host
    share = (EXACT / 2 / 8192) ** 0.5
    assert set(np.unique(drawn)) == {-1, 0, 1}
    assert np.mean(drawn == 1) == pytest.approx(share / 2, rel=0.05) and np.mean(drawn == -1) == pytest.approx(share / 2, rel=0.05)


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_what_is_timed_is_random_and_fills_twice_the_cache(workload):
    machine = FakeMachine({})
    machine.l2_bytes = 1 << 16
    buffers = timing_buffers(machine, workload)
    arrays = [value for arguments in buffers for value in arguments.values() if isinstance(value, DeviceArray)]
    assert sum(array.nbytes for array in arrays) >= 2 * machine.l2_bytes and len(buffers) >= 2
    assert len({id(array.host) for array in arrays}) == len(arrays)
    for name in workload.inputs:
        values = buffers[0][name].host
        assert len(np.unique(values)) > 0.5 * min(values.size, 2000) and np.array_equal(values, buffers[-1][name].host)
        assert values.dtype.kind == "i" or (np.abs(values).max() <= 1 and values.min() < 0 < values.max())


def test_tiny_workloads_do_not_take_millions_of_buffers():
    machine = FakeMachine({})
    machine.l2_bytes = 1 << 26
    assert len(timing_buffers(machine, Gemm(1, 1, 1))) == MOST_SETS
