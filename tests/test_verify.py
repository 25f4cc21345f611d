"""The judge itself: what passes, what never passes, and which element is named."""

import numpy as np
import pytest

from tir_schedules.model.verify import Check, checks_of, compare
from tir_schedules.workloads.drawing import EXACT, REALS
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction

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


def test_what_is_not_finite_is_no_truth():
    got = np.zeros((2, 2), np.float32)
    assert compare("C", got, np.full((2, 2), np.inf), np.inf, "should be").count == 4


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


def rounded(check):
    """The truth as the output's format holds it."""
    (name,) = check.truth
    kind = check.inputs[name].dtype if name in check.inputs else check.workload.dtype
    return {name: check.truth[name].astype(kind)}


def test_truth_rounded_once_passes():
    for check in checks_of(Gemm(33, 17, 65)):
        assert check.mismatch(rounded(check)) is None


def test_unwritten_output_fails():
    for check in checks_of(Gemm(4, 4, 4)):
        assert check.mismatch(check.arguments()).count == 16


def test_outputs_of_one_kernel_are_not_those_of_the_next():
    check = next(checks_of(Gemm(2, 2, 2)))
    check.arguments()["C"][:] = 7
    assert np.isnan(check.arguments()["C"]).all()


HALVES = ("float16", "bfloat16")
# The longest in use: what `bench` times by default, and beyond.
LONGEST = [
    Gemm(8, 8, 8192),
    Gemm(8, 8, 40000),
    *(HalfGemm(8, 8, k, "nt", wide) for k in (8192, 65536) for wide in ("float16", "float32")),
    *(HalfGemm(8, 8, k, "nt", "float32", dtype, dtype) for k in (8192, 65536) for dtype in HALVES),
    HalfGemm(8, 8, 8192, "nt", "float32", "bfloat16"),
    Reduction(1 << 20),
    Reduction(1 << 22, "float32"),
    pytest.param(Reduction(1 << 25, "float32"), marks=pytest.mark.slow),
]
TERMS = {"first": 0, "last": -1}


@pytest.mark.parametrize("which", TERMS)
@pytest.mark.parametrize("workload", LONGEST, ids=str)
def test_one_term_lost_or_doubled_shows_at_the_longest_sum(workload, which):
    """Only one element of the output may show it, whichever that is."""
    k, shown = TERMS[which], False
    for check in checks_of(workload):
        if check.kind != EXACT:
            continue
        (name,) = check.truth
        if name == "Y":
            term = check.inputs["X"][k : k + 1 or None].astype(np.int64)
        else:
            a, b = (check.inputs[name].astype(np.float64) for name in "AB")
            term = np.outer(a[:, k], b[:, k] if workload.__class__ is HalfGemm else b[k])
        for faulty in (check.truth[name] - term, check.truth[name] + term):
            with np.errstate(over="ignore"):
                found = check.mismatch({name: faulty.astype(rounded(check)[name].dtype)})
            assert found is None or found.count == np.count_nonzero(term)
            shown |= found is not None
    assert shown


@pytest.mark.parametrize("workload", LONGEST, ids=str)
def test_a_kernel_that_stores_0_is_wrong_with_all_inputs(workload):
    for check in checks_of(workload):
        (name,) = check.truth
        assert check.mismatch({name: np.zeros_like(rounded(check)[name])}) is not None


def rounded_to(bits, array):
    """float32 with fewer bits of significand."""
    fraction, exponent = np.frexp(array)
    return np.ldexp(np.rint(np.ldexp(fraction, bits)), exponent - bits).astype(np.float32)


@pytest.mark.parametrize("k", [16, 1024, 65536])
def test_operands_rounded_to_tf32_show_with_exact_inputs(k):
    check = next(checks_of(Gemm(8, 8, k)))
    a, b = (rounded_to(11, check.inputs[name]) for name in "AB")
    assert check.mismatch({"C": (a.astype(np.float64) @ b).astype(np.float32)}) is not None


@pytest.mark.parametrize(
    "fault", [np.rint, np.abs, lambda x: x.astype(np.float16).astype(np.float32), lambda x: rounded_to(8, x)]
)
def test_what_integers_would_hide_shows_with_reals(fault):
    check = next(check for check in checks_of(Gemm(8, 8, 64)) if check.kind == REALS)
    with np.errstate(over="ignore", invalid="ignore"):
        a, b = (fault(check.inputs[name]) for name in "AB")
        assert check.mismatch({"C": a @ b}) is not None


@pytest.mark.parametrize("k", [1, 7, 256, 4096])
def test_float32_sums_in_any_order_pass(k):
    for check in checks_of(Gemm(8, 8, k)):
        products = check.inputs["A"][:, :, None] * check.inputs["B"][None]
        for order in (np.arange(k), np.arange(k)[::-1], np.argsort(np.random.default_rng(0).random(k))):
            total = np.zeros((8, 8), np.float32)
            for i in order:
                total += products[:, i]
            assert check.mismatch({"C": total}) is None


@pytest.mark.parametrize("n", [3, 1000, 1 << 20])
def test_one_thread_that_sums_all_of_a_float32_array_passes(n):
    for check in checks_of(Reduction(n, "float32")):
        assert check.mismatch({"Y": np.cumsum(check.inputs["X"], dtype=np.float32)[-1:]}) is None


@pytest.mark.parametrize("k", [1, 40, 300])
def test_float16_sums_that_cut_off_pass(k):
    for check in checks_of(HalfGemm(8, 8, k, "nn")):
        a, b = (check.inputs[name].astype(np.float64) for name in "AB")
        total = np.zeros((8, 8))
        for i in range(k):
            fraction, exponent = np.frexp(total + np.outer(a[:, i], b[i]))
            total = np.ldexp(np.trunc(np.ldexp(fraction, 11)), exponent - 11)
        assert check.mismatch({"C": total.astype(np.float16)}) is None


def to_bits(bits, array):
    """float64 rounded to the nearest with so many bits of significand."""
    fraction, exponent = np.frexp(array)
    return np.ldexp(np.rint(np.ldexp(fraction, bits)), exponent - bits)


def cut_off(bits, array):
    """float64 without the bits below."""
    fraction, exponent = np.frexp(array)
    return np.ldexp(np.trunc(np.ldexp(fraction, bits)), exponent - bits)


def products(check, change=lambda operand: operand):
    """Terms of C by k, of operands that are changed before."""
    a, b = (change(check.inputs[name].astype(np.float64)) for name in "AB")
    return (np.outer(a[:, k], b[k]) for k in range(check.workload.k))


def sums(check, terms, kept=lambda total: cut_off(24, total), rounds=lambda total: total):
    """C of terms added up one after another. kept: a sum as an accumulator holds it; rounds: what is done to
    the last one before it is rounded to the format of C."""
    total = np.zeros((check.workload.m, check.workload.n))
    with np.errstate(over="ignore", invalid="ignore"):
        for term in terms:
            total = kept(total + term)
        return {"C": rounds(total).astype(np.float32).astype(check.inputs["C"].dtype)}


@pytest.mark.parametrize("k", [1, 40, 301])
@pytest.mark.parametrize("output", ["float32", "bfloat16", "float16"])
def test_float32_sums_that_cut_off_and_are_rounded_once_pass(k, output):
    dtype = "float16" if output == "float16" else "bfloat16"
    for check in checks_of(HalfGemm(16, 16, k, "nn", "float32", dtype, output)):
        assert check.mismatch(sums(check, products(check))) is None


FORMAT_FAULTS = {
    "float16, operands of bfloat16": lambda check: sums(check, products(check, lambda x: to_bits(8, x))),
    "bfloat16, operands of fewer bits": lambda check: sums(check, products(check, lambda x: to_bits(7, x))),
    "float16, sums of float16": lambda check: sums(check, products(check), in_float16),
    "bfloat16, sums of float16": lambda check: sums(check, products(check), in_float16),
    "bfloat16, sums of bfloat16": lambda check: sums(check, products(check), lambda x: to_bits(8, x)),
    "float16, C rounded twice": lambda check: sums(check, products(check), rounds=lambda x: to_bits(12, x)),
    "bfloat16, C rounded twice": lambda check: sums(check, products(check), rounds=lambda x: to_bits(11, x)),
    "float16, C of bfloat16": lambda check: sums(check, products(check), rounds=lambda x: to_bits(8, x)),
    "float16, C cut off": lambda check: sums(check, products(check), rounds=lambda x: cut_off(11, x)),
    "bfloat16, C cut off": lambda check: sums(check, products(check), rounds=lambda x: cut_off(8, x)),
    "float16, a term missing": lambda check: sums(check, list(products(check))[:-1]),
    "bfloat16, a term missing": lambda check: sums(check, list(products(check))[:-1]),
    "bfloat16, the range of float16": lambda check: sums(check, products(check, in_float16)),
}
"""What kernels do wrong -> their C. First the format of A and B, which is that of C, too."""


def in_float16(array):
    with np.errstate(over="ignore"):
        return array.astype(np.float16).astype(np.float64)


@pytest.mark.parametrize("k", [16, 64])
@pytest.mark.parametrize("fault", FORMAT_FAULTS)
def test_wrong_formats_show_where_c_is_rounded(fault, k):
    dtype = fault.partition(",")[0]
    checks = checks_of(HalfGemm(64, 64, k, "nn", "float32", dtype, dtype))
    assert any(check.mismatch(FORMAT_FAULTS[fault](check)) for check in checks)


@pytest.mark.parametrize("fault", ["sums of float16", "a term missing", "the range of float16"])
def test_wrong_formats_show_where_c_of_bfloat16_is_not_rounded(fault):
    checks = checks_of(HalfGemm(16, 16, 64, "nn", "float32", "bfloat16"))
    assert any(check.mismatch(FORMAT_FAULTS[f"bfloat16, {fault}"](check)) for check in checks)


def test_twins_may_differ_by_the_sum_of_their_tolerances_only():
    check = Check.of(Gemm(2, 2, 16), REALS, 0)
    outputs, limit = rounded(check), 2 * check.allowed["C"]
    near, far = (outputs["C"].astype(np.float64) + factor * limit for factor in (0.9, 1.5))
    assert check.disagreement(outputs, {"C": near.astype(np.float32)}) is None
    assert check.disagreement(outputs, {"C": far.astype(np.float32)}) is not None
