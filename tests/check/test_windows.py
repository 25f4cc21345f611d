"""Convolutions and pooling in `--expect`, against sums over indices and with their bounds."""

from itertools import product

import numpy as np
import pytest

from tir_schedules.check.expecting import operand
from tir_schedules.check.expressions import evaluate
from tir_schedules.check.functions import FUNCTIONS, functions_of
from tir_schedules.check.types import plain, rounding_of, spread
from tir_schedules.errors import BadInput

draw = np.random.default_rng(7)
SHAPES = {
    "x": (2, 4, 5, 7),
    "w": (6, 2, 3, 2),
    "t": (4, 3, 3, 2),
    "bias": (6,),
    "r": (2, 4, 9),
    "k": (4, 1, 3),
}
ARRAYS = {name: draw.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}
x, w, t, bias, r, k = ARRAYS.values()


def by_indices(x, w, stride, padding, dilation, groups, out, scatters):
    """Every product of an element and a weight, added where torch's definition has it."""
    found, channels, outputs = np.zeros(out), x.shape[1] // groups, out[1] // groups
    for n, group, c, o in product(range(len(x)), range(groups), range(channels), range(outputs)):
        source, target = group * channels + c, group * outputs + o
        weights = w[source, o] if scatters else w[target, c]
        small, large = (x.shape[2:], out[2:]) if scatters else (out[2:], x.shape[2:])
        for at, tap in product(np.ndindex(small), np.ndindex(weights.shape)):
            there = tuple(a * s - p + d * b for a, s, p, d, b in zip(at, stride, padding, dilation, tap))
            if all(0 <= one < most for one, most in zip(there, large)):
                to, of = (there, at) if scatters else (at, there)
                found[(n, target, *to)] += float(x[(n, source, *of)]) * float(weights[tap])
    return found


def pooled(x, size, stride, padding, fill):
    """The windows of an array's last two axes, along the last axis."""
    wide = np.pad(x.astype(float), ((0, 0), (0, 0), *((p, p) for p in padding)), constant_values=fill)
    views = np.lib.stride_tricks.sliding_window_view(wide, size, axis=(2, 3))
    return views[:, :, :: stride[0], :: stride[1]].reshape(
        *views[:, :, :: stride[0], :: stride[1]].shape[:4], -1
    )


inside = pooled(np.ones_like(x), (3, 2), (2, 1), (1, 1), 0).sum(-1)
SAID = {
    "F.conv2d(x, w, bias, stride=(2, 1), padding=(1, 2), dilation=(1, 3), groups=2)": by_indices(
        x, w, (2, 1), (1, 2), (1, 3), 2, (2, 6, 3, 8), False
    ) + bias[:, None, None],
    "conv1d(r, k, padding=1, groups=4)": by_indices(r, k, (1,), (1,), (1,), 4, (2, 4, 9), False),
    "F.conv_transpose2d(x, t, None, (2, 3), (1, 0), (1, 2), 2, (1, 2))": by_indices(
        x, t, (2, 3), (1, 0), (1, 2), 2, (2, 6, 10, 23), True
    ),
    "F.conv3d(x[:, :, None], w[:, :, None], groups=2)[:, :, 0]": by_indices(
        x, w, (1, 1), (0, 0), (1, 1), 2, (2, 6, 3, 6), False
    ),
    "F.max_pool2d(x, (3, 2), (2, 1), 1)": pooled(x, (3, 2), (2, 1), (1, 1), -np.inf).max(-1),
    "F.avg_pool2d(x, (3, 2), (2, 1), padding=1)": pooled(x, (3, 2), (2, 1), (1, 1), 0).mean(-1),
    "F.avg_pool2d(x, (3, 2), (2, 1), 1, count_include_pad=False)":
        pooled(x, (3, 2), (2, 1), (1, 1), 0).sum(-1) / inside,
    "F.max_pool1d(r, 3, dilation=2)": np.stack([r[..., 0:5], r[..., 2:7], r[..., 4:9]]).max(0)[..., ::3],
    "F.linear(x[0, 0], w.reshape(12, 6)[:6, :1] + x[1, 1, :1])": x[0, 0].astype(float)
    @ (w.reshape(12, 6)[:6, :1].astype(float) + x[1, 1, :1]).T,
}  # fmt: skip


@pytest.mark.parametrize("text", SAID)
def test_windows_as_torch_defines_them(text):
    right, rounding = SAID[text], rounding_of("f32")
    given = {name: operand(value, rounding, False) for name, value in ARRAYS.items()}
    bounded = evaluate(text, given, functions_of(rounding), "it is")
    exact = evaluate(text, {name: each.astype(float) for name, each in ARRAYS.items()}, FUNCTIONS, "it is")
    for found in (plain(bounded), exact):
        assert found.shape == right.shape
        np.testing.assert_allclose(found, right, rtol=1e-6, atol=1e-12)
    error = spread(bounded)
    assert np.all(error < 1e-5 * (1 + abs(right))) and (np.any(error > 0) or "max" in text)


def test_whole_numbers_are_convolved_without_an_error():
    rounding = rounding_of("f32")
    given = {name: operand(np.rint(value), rounding, False) for name, value in ARRAYS.items()}
    for text in ("conv2d(x, w, groups=2)", "conv_transpose2d(x, t)", "max_pool2d(x, 2)"):
        assert not np.any(evaluate(text, given, functions_of(rounding), "it is").error)


@pytest.mark.parametrize(
    "text, told",
    [
        ("conv2d(x, w)", "x has 4 channels, and w of 1 groups is for 2"),
        ("conv2d(r, w)", "it takes x and w with 4 axes"),
        ("conv2d(x, w, padding='same')", "padding is a whole number from 0 on, or 2 of them"),
        ("conv1d(r, k, stride=0, groups=4)", "stride is a whole number from 1 on"),
        ("max_pool2d(x, 9)", "a window is larger than the array with its padding"),
        ("avg_pool2d(x, 2, padding=2)", "padding is at most half of kernel_size"),
        ("max_pool2d(x, 2, ceil_mode=1)", "got an unexpected keyword argument 'ceil_mode'"),
    ],
)
def test_windows_that_are_not_taken(text, told):
    with pytest.raises(BadInput) as error:
        evaluate(text, ARRAYS, FUNCTIONS, "it is")
    assert told in str(error.value) and "\n" not in str(error.value)
