"""What a pack of kernels from elsewhere says of the numbers that launches pass."""

import json

import numpy as np
import pytest
import unseen_kernels


@pytest.mark.parametrize("value", [np.float32(1.5), np.int64(-7), np.uint8(200), np.void(b"\0<")])
def test_numbers_come_back_from_json_bit_by_bit(value):
    kind, text = json.loads(json.dumps([value.dtype.str, unseen_kernels.text_of(value)]))
    found = unseen_kernels.number_of(kind, text)
    assert found.dtype == value.dtype and found.tobytes() == value.tobytes()


def test_a_gpu_takes_the_bits_of_a_structure():
    given = unseen_kernels.Arrays({"alpha": np.void(b"\0<"), "n": np.int32(3)}, ())
    assert given.arguments(xp=object()) == {"alpha": 0x3C00, "n": 3}
    assert given.arguments()["alpha"].tobytes() == b"\0<"
