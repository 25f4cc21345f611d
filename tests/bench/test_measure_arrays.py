"""Inputs, truth, tolerance and judgement with arrays that stay on the GPU: the fake ones refuse to meet
numpy's."""

import numpy as np
import pytest
from fake_gpu import DeviceArray, FakeMachine, Module

from tir_schedules.bench.binding import MOST_SETS, timing_buffers
from tir_schedules.model.verify import Check, checks_of, compare
from tir_schedules.workloads.drawing import Draws
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction

HALVES = [
    HalfGemm(24, 16, k, layout, wide)
    for k in (8, 5000)
    for layout in ("nt", "nn")
    for wide in ("float16", "float32")
]
HALVES += [
    HalfGemm(24, 16, k, "nt", "float32", *formats)
    for k in (9, 5000)
    for formats in (("float16", "float16"), ("bfloat16", "float32"), ("bfloat16", "bfloat16"))
]
WORKLOADS = [Gemm(5, 6, 7), *HALVES, Reduction(1000), Reduction(1000, "float32")]
XP = Module()


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_the_exact_result_passes_and_a_wrong_element_is_named(workload):
    (name,) = workload.outputs
    for check in checks_of(workload, 3, XP):
        truth, allowed = (
            check.truth[name],
            np.broadcast_to(
                getattr(check.allowed[name], "host", check.allowed[name]), check.truth[name].host.shape
            ),
        )
        given = workload.prepared(check.arguments(), (1, 1, 1))[name]
        assert isinstance(given, DeviceArray) and truth.shape == given.shape
        got = truth.astype(given.dtype)
        assert check.mismatch({name: got}) is None
        got.host.flat[-1] += np.asarray(1 + 3 * np.abs(allowed.flat[-1])).astype(got.dtype)
        mismatch = check.mismatch({name: got})
        assert (
            mismatch.count == 1
            and mismatch.flat_index(got.shape) == got.size - 1
            and mismatch.inputs == check.kind
        )
        assert mismatch.expected == float(truth.host.flat[-1]) and mismatch.allowed == float(allowed.flat[-1])


@pytest.mark.parametrize("workload", [*HALVES, Gemm(5, 6, 7)], ids=str)
def test_an_output_nobody_wrote_never_passes(workload):
    check = Check.of(workload, "real", 0, XP)
    assert (
        compare("C", check.inputs["C"], check.truth["C"], np.inf, "should be").count == check.inputs["C"].size
    )


def test_signs_and_shares_drawn_on_the_gpu_are_as_many_as_asked_for():
    draws = Draws(0, XP)
    assert np.mean(draws.signs((100, 1000), 0.5).host) == pytest.approx(0.5, rel=0.05)
    assert np.mean(draws.kept(0.1, (100, 1000)).host) == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_what_is_timed_is_random_and_fills_twice_the_cache(workload):
    machine = FakeMachine({})
    machine.l2_bytes = 1 << 16
    buffers = timing_buffers(machine, workload)
    arrays = [
        value for arguments in buffers for value in arguments.values() if isinstance(value, DeviceArray)
    ]
    assert sum(array.nbytes for array in arrays) >= 2 * machine.l2_bytes and len(buffers) >= 2
    assert len({id(array.host) for array in arrays}) == len(arrays)
    for name in workload.inputs:
        values = buffers[0][name].host
        assert len(np.unique(values)) > 0.5 * min(values.size, 2000) and np.array_equal(
            values, buffers[-1][name].host
        )
        assert values.dtype.kind == "i" or (np.abs(values).max() <= 1 and values.min() < 0 < values.max())


def test_tiny_workloads_do_not_take_millions_of_buffers():
    machine = FakeMachine({})
    machine.l2_bytes = 1 << 26
    assert len(timing_buffers(machine, Gemm(1, 1, 1))) == MOST_SETS
