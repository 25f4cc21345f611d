"""The algorithm: sizes, inputs, truth, work."""
import numpy as np
import pytest

from tir_schedules.errors import BadInput
from tir_schedules.workloads.gemm import Gemm


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
