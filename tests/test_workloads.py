"""The algorithm: sizes, inputs, truth, work."""
import numpy as np
import pytest

from tir_schedules.errors import BadInput
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import EXACT, HalfGemm


@pytest.mark.parametrize("shape", [(0, 1, 1), (1, -3, 1), (1, 1, 0)])
def test_sizes_below_one_are_refused(shape):
    with pytest.raises(BadInput, match="at least 1"):
        Gemm(*shape)


def test_matrices_beyond_32_bit_indices_are_refused():
    with pytest.raises(BadInput, match="2\\*\\*31"):
        Gemm(1 << 16, 1 << 15, 1)


def test_inputs_are_reproducible_and_the_output_is_poisoned():
    gemm = Gemm(3, 5, 7)
    first, again, other = gemm.arguments(), gemm.arguments(), gemm.arguments(seed=1)
    assert np.array_equal(first["A"], again["A"]) and not np.array_equal(first["A"], other["A"])
    assert np.isnan(first["C"]).all() and first["C"].shape == (3, 5)
    assert (first["M"], first["N"], first["K"]) == (3, 5, 7)


def test_truth_is_the_product():
    gemm = Gemm(2, 3, 4)
    arguments = gemm.arguments()
    by_hand = sum(float(arguments["A"][1, i]) * float(arguments["B"][i, 2]) for i in range(4))
    assert gemm.truth(arguments)["C"][1, 2] == pytest.approx(by_hand, rel=1e-15)


def test_work():
    gemm = Gemm(2, 3, 4)
    assert gemm.flops == 48 and gemm.bytes == 4 * (8 + 12 + 6)


@pytest.mark.parametrize("kind", [("tn", "float16"), ("nt", "bfloat16")])
def test_kinds_of_half_products_that_do_not_exist_are_refused(kind):
    with pytest.raises(BadInput, match="it can be"):
        HalfGemm(1, 1, 1, *kind)


@pytest.mark.parametrize("layout", ["nt", "nn"])
@pytest.mark.parametrize("k", [1, 5, 128, 2048, 2049, 8192])
def test_float16_sums_of_the_inputs_are_exact_in_any_order(layout, k):
    """Integers, of which no sum can exceed what float16 holds exactly: so the tolerance is 0."""
    gemm = HalfGemm(40, 50, k, layout, "float16")
    arguments = gemm.arguments()
    a, b = (np.abs(arguments[name]) for name in "AB")
    assert gemm.product(a, b).max() <= EXACT and gemm.product(a, b).any()
    assert np.array_equal(gemm.truth(arguments)["C"], np.rint(gemm.truth(arguments)["C"]))
    assert not gemm.tolerance(arguments)["C"].any()


def test_layouts_hold_the_same_product():
    nt, nn = (HalfGemm(4, 6, 8, layout, "float32") for layout in ("nt", "nn"))
    arguments = nt.arguments()
    assert arguments["B"].shape == (6, 8)
    assert np.array_equal(nt.truth(arguments)["C"], nn.truth(arguments | {"B": arguments["B"].T})["C"])


def test_what_16_byte_accesses_can_take():
    assert HalfGemm(3, 8, 16).aligned
    assert not HalfGemm(8, 8, 12).aligned and not HalfGemm(8, 12, 8).aligned
    assert HalfGemm(3, 8, 16).macros == {}
    assert HalfGemm(3, 9, 16, "nn", "float32").macros == {"NT": 0, "ACC": "float", "ALIGNED": 0}


def test_tolerance_of_real_numbers_grows_with_the_sum():
    gemm = HalfGemm(2, 2, 100, "nt", "float32")
    arguments = gemm.arguments()
    magnitude = gemm.product(np.abs(arguments["A"]), np.abs(arguments["B"]))
    assert gemm.tolerance(arguments)["C"] == pytest.approx(101 * 2**-23 * magnitude, rel=1e-4)
    assert gemm.bytes == 2 * (200 + 200) + 4 * 4
