"""The clock: asked for, the maximum, or held down by busy tensor cores."""

from types import SimpleNamespace

import numpy as np
import pytest

from tir_schedules.errors import BadInput
from tir_schedules.timing.clocks import asked_clock, clock_for, products_of, tensor_share
from tir_schedules.timing.gpus import find_table

TABLE = find_table("h100")


@pytest.mark.parametrize("asked", [0, 99, 10_001, -1, "x", "", "19.5", float("nan"), True, [1980]])
def test_what_is_no_clock_is_refused(asked):
    with pytest.raises(BadInput, match="it takes MHz from 100 to 10000 such as 1980, or 'maximum'"):
        asked_clock(asked)


def test_what_is_one_is_taken():
    assert [asked_clock(one) for one in (None, "maximum", "1500", 1500)] == [None, "maximum", 1500.0, 1500.0]


def test_tensor_cores_hold_the_clock_down_by_the_share_of_their_peak():
    assert clock_for(None, TABLE, 0).mhz == TABLE.mhz
    assert clock_for(None, TABLE, 1).mhz == TABLE.loaded_mhz == pytest.approx(1597.05, abs=0.1)
    half = clock_for(None, TABLE, 0.5)
    assert half.mhz == pytest.approx((TABLE.mhz + TABLE.loaded_mhz) / 2) and "50 % of their peak" in half.why


def test_a_clock_that_is_asked_for_stays():
    assert clock_for("maximum", TABLE, 1).mhz == TABLE.mhz
    assert clock_for(1500.0, TABLE, 1).mhz == 1500
    unknown = TABLE.model_copy(update={"loaded_mhz": None})
    assert clock_for(None, unknown, 1).mhz == TABLE.mhz and "not known" in clock_for(None, unknown, 1).why


def instruction(text):
    name, *modifiers = text.split(".")
    return SimpleNamespace(name=name, modifiers=tuple(modifiers))


def test_the_share_counts_multiply_adds():
    texts = ("HMMA.16816.F32", "HMMA.1688.F32.TF32", "HGMMA.64x256x16.F32", "FFMA", "IMMA.16832.S8.S8")
    code = [instruction(text) for text in texts]
    assert [products_of(one) for one in code] == [2048, 1024, 64 * 256 * 16 / 4, 0, 0]
    issued = np.array([0, 0, 8, 99, 0])  # two products of a warpgroup, in the 256 cycles that these take
    assert tensor_share(code, issued, 256, TABLE) == 1 and tensor_share(code, issued, 512, TABLE) == 0.5
