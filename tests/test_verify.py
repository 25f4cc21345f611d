"""The judge itself: what passes, what never passes, and which element is named."""
import numpy as np
import pytest

from tir_schedules.verify import compare, compare_with_truth, compare_with_twin
from tir_schedules.workloads.gemm import Gemm

EXPECTED = np.arange(12, dtype=np.float64).reshape(3, 4)


def judged(got, allowed=1e-6):
    return compare("C", np.asarray(got, np.float32), EXPECTED, allowed, "should be")


def test_equal_passes():
    assert judged(EXPECTED) is None


def test_error_up_to_the_tolerance_passes_and_beyond_fails():
    got = EXPECTED.copy()
    got[1, 2] += 0.5
    assert judged(got, allowed=0.5) is None
    assert judged(got, allowed=0.499).index == (1, 2)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_finite_never_passes(value):
    got = EXPECTED.copy()
    got[2, 3] = value
    mismatch = judged(got, allowed=np.inf)
    assert mismatch.index == (2, 3) and mismatch.count == 1


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_not_finite_never_passes_even_when_expected(value):
    both = np.full((2, 2), value, np.float32)
    assert compare("C", both, both, np.inf, "should be").count == 4


def test_nan_tolerance_passes_nothing():
    assert judged(EXPECTED, allowed=np.nan).count == 12


def test_worst_element_is_named_by_excess_over_its_own_tolerance():
    got, allowed = EXPECTED.copy(), np.full(EXPECTED.shape, 1e-6)
    got[0, 1] += 5
    allowed[0, 1] = 4.9
    got[2, 0] += 1
    mismatch = judged(got, allowed)
    assert mismatch.index == (2, 0) and mismatch.count == 2
    assert str(mismatch).startswith("C[2, 0] is 9, should be 8: off by 1")


def test_shapes_must_agree():
    with pytest.raises(ValueError, match="shape"):
        judged(EXPECTED[:2])


def exact(gemm):
    arguments = gemm.arguments()
    return arguments, {"C": gemm.truth(arguments)["C"].astype(np.float32)}


def test_truth_rounded_once_passes():
    gemm = Gemm(33, 17, 65)
    arguments, outputs = exact(gemm)
    assert compare_with_truth(gemm, arguments, outputs) is None


def test_unwritten_output_fails():
    gemm = Gemm(4, 4, 4)
    arguments = gemm.arguments()
    assert compare_with_truth(gemm, arguments, {"C": arguments["C"]}).count == 16


@pytest.mark.parametrize("k", [1, 7, 256, 4096])
def test_one_product_dropped_from_k_fails(k):
    gemm = Gemm(8, 8, k)
    arguments, outputs = exact(gemm)
    short = arguments["A"][:, :-1].astype(np.float64) @ arguments["B"][:-1].astype(np.float64)
    assert compare_with_truth(gemm, arguments, {"C": short.astype(np.float32)}) is not None


@pytest.mark.parametrize("k", [1, 7, 256, 4096])
def test_float32_sums_in_any_order_pass(k):
    gemm = Gemm(8, 8, k)
    arguments = gemm.arguments()
    products = arguments["A"][:, :, None] * arguments["B"][None]
    for order in (np.arange(k), np.arange(k)[::-1]):
        total = np.zeros((8, 8), np.float32)
        for i in order:
            total += products[:, i]
        assert compare_with_truth(gemm, arguments, {"C": total}) is None


def test_twins_may_differ_by_the_sum_of_their_tolerances_only():
    gemm = Gemm(2, 2, 16)
    arguments, outputs = exact(gemm)
    limit = 2 * gemm.tolerance(arguments)["C"]
    near, far = (outputs["C"].astype(np.float64) + factor * limit for factor in (0.9, 1.5))
    assert compare_with_twin(gemm, arguments, outputs, {"C": near.astype(np.float32)}) is None
    assert compare_with_twin(gemm, arguments, outputs, {"C": far.astype(np.float32)}) is not None
