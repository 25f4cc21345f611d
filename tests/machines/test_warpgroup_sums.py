"""Sums of wgmma of which what is cut off, or how it is rounded, can be told. The CPU machine adds in float32 in
the order of k; experiments/instructions_on_gpu.py holds the same launches against a GPU, which adds otherwise."""

import re

import numpy as np
import pytest
from test_warpgroup import GROUP, kernel, parts_of, signs_of, words_of
from warpgroup_kernels import BITS, RIGHT_AT, ROOM, Layout, entry, launch, product

TYPES = {
    "f16": (5, 10, 15), "bf16": (8, 7, 127), "tf32": (8, 23, 127), "e4m3": (4, 3, 7), "e5m2": (5, 2, 15),
}  # fmt: skip
"""Bits of exponents and mantissas, and biases."""

PROBED = [
    "k16.f32.f16.f16", "k16.f32.bf16.bf16", "k8.f32.tf32.tf32", "k32.f32.e4m3.e4m3", "k32.f32.e5m2.e5m2",
    "k16.f16.f16.f16", "k32.f16.e4m3.e4m3",
]  # fmt: skip
TOP = 7
"""The largest factor is 2**7 and the largest product 2**14, the big one."""

BIG, SMALL = 1, 2
FAMILIES = (
    # addend (big, small), then what stands at which k: k -> big or small, with a sign
    ((0, 0), {0: BIG, 1: SMALL}),
    ((0, 0), {0: BIG, 1: -SMALL}),
    ((0, 0), {0: BIG, 1: -BIG, 2: SMALL}),
    ((0, 0), {0: BIG, 1: SMALL, 2: SMALL}),
    ((1, 0), {0: SMALL}),
    ((1, 0), {0: -SMALL}),
    ((1, 0), {0: -BIG, 1: SMALL}),
    ((0, 1), {0: BIG, 1: -BIG}),
    ((-1, 0), {0: -SMALL}),
    ((0, 0), {0: -BIG, 1: SMALL}),
    ((0, 0), {0: BIG, 3: SMALL, -1: -BIG}),
    ((0, 0), {0: BIG, 1: SMALL, 2: SMALL, 3: SMALL}),
    ((0, 0), {0: BIG, 1: SMALL, -1: SMALL}),
    ((1, 0), {0: SMALL, 1: SMALL, 2: SMALL, 3: SMALL}),
    ((0, 1), {0: BIG}),
    ((1, 0), {-1: SMALL, -2: SMALL}),
)
STEPS, COLUMNS = 4, 8
"""Small is 2**(14 - s), where s is eight times the step and the column."""


def bits_of(kind, exponent, sign=1):
    """Of a power of two, which may be subnormal or too small and then 0."""
    _, mantissa, bias = TYPES[kind]
    if exponent + bias > 0:
        bits = exponent + bias << mantissa
    else:
        shift = mantissa + exponent + bias - 1
        bits = 1 << shift if shift >= 0 else 0
    return bits | (1 << BITS[kind] - 1 if sign < 0 else 0)


def probe(kind, depth):
    """Bits of A and B, and C."""
    a, b = np.zeros((64, depth), np.uint64), np.zeros((COLUMNS, depth), np.uint64)
    c = np.zeros((64, COLUMNS))
    for row in range(64):
        family, step = divmod(row, STEPS)
        (big, small), terms = FAMILIES[family]
        for column in range(COLUMNS):
            c[row, column] = big * 2.0 ** (2 * TOP) + small * 2.0 ** (2 * TOP - 8 * step - column)
        for k, term in terms.items():
            exponent = TOP if abs(term) == BIG else TOP - 8 * step
            a[row, k % depth] = bits_of(kind, exponent, term)
    return a, b, c


def right_of(kind, depth, terms):
    """B: 2**7 where a term is big, and 2**(7 - column) where it is small."""
    b = np.zeros((COLUMNS, depth), np.uint64)
    for column in range(COLUMNS):
        for k, term in terms.items():
            b[column, k % depth] = bits_of(kind, TOP if abs(term) == BIG else TOP - column)
    return b


def expected_of(kind, depth, family):
    """The exact sums of a family, as float64."""
    (big, small), terms = FAMILIES[family]
    rows = []
    for step in range(STEPS):
        little = [value_of(kind, TOP - 8 * step) * value_of(kind, TOP - column) for column in range(COLUMNS)]
        rows.append(
            [
                big * 2.0 ** (2 * TOP)
                + small * 2.0 ** (2 * TOP - 8 * step - column)
                + sum(
                    np.sign(t) * (2.0 ** (2 * TOP) if abs(t) == BIG else little[column])
                    for t in terms.values()
                )
                for column in range(COLUMNS)
            ]
        )
    return np.array(rows)


def value_of(kind, exponent):
    return 2.0**exponent if bits_of(kind, exponent) else 0.0


@pytest.mark.parametrize("family", range(len(FAMILIES)))
@pytest.mark.parametrize("types", PROBED)
def test_sums_that_tell(types, family):
    """Rows 0 to 3 of a product have the steps."""
    opcode = f"wgmma.mma_async.sync.aligned.m64n{COLUMNS}{types}"
    _, result, kind, _ = parts_of(opcode)
    depth = 256 // BITS[kind]
    a, _, c = probe(kind, depth)
    own = slice(STEPS * family, STEPS * family + STEPS)
    rows, sums = np.zeros_like(a), np.zeros_like(c)
    rows[:STEPS], sums[:STEPS] = a[own], c[own]
    left, right = Layout(kind, 64, 0, False, 0), Layout(kind, COLUMNS, 0, False, RIGHT_AT)
    memory = np.zeros(ROOM, np.uint8)
    left.put(memory, rows), right.put(memory, right_of(kind, depth, FAMILIES[family][1]))
    text = kernel(opcode, f"mov.b64 l, {left.descriptor};", right.descriptor, signs_of(opcode, kind))
    words = words_of(result, sums)
    assert launch(text, {"X": memory, "Y": words}, ("Y",), given=("Y",)).findings == ()
    exact = np.zeros_like(sums)
    exact[:STEPS] = expected_of(kind, depth, family)
    got = words.view(np.float32 if result == "f32" else np.float16).astype(float)
    told = words_of("f32", exact).view(np.float32) if result == "f32" else None
    if told is not None:
        assert np.abs(got - told).max() <= 2.0 ** (2 * TOP - 20)


@pytest.mark.parametrize("types", PROBED)
def test_sums_of_random_numbers(types):
    """float32 sums of 1 and more digits: within half of what the last bit kept may be worth."""
    opcode = f"wgmma.mma_async.sync.aligned.m64n64{types}"
    _, result, kind, _ = parts_of(opcode)
    depth, rng = 256 // BITS[kind], np.random.default_rng(7)
    exponent, mantissa, bias = TYPES[kind]
    a, b = (
        (rng.integers(0, 2, (n, depth)) << BITS[kind] - 1)
        | (rng.integers(bias - 4, bias + 3, (n, depth)) << mantissa)
        | (rng.integers(0, 1 << mantissa, (n, depth)) & ~(0x1FFF if kind == "tf32" else 0))
        for n in (64, 64)
    )
    left, right = Layout(kind, 64, 0, False, 0), Layout(kind, 64, 0, False, RIGHT_AT)
    memory = np.zeros(ROOM, np.uint8)
    left.put(memory, a), right.put(memory, b)
    text = kernel(opcode, f"mov.b64 l, {left.descriptor};", right.descriptor, signs_of(opcode, kind))
    words = words_of(result, rng.standard_normal((64, 64)))
    assert launch(text, {"X": memory, "Y": words}, ("Y",), given=("Y",)).findings == ()
    assert words.any()
