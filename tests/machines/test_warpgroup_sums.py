"""Sums of wgmma that tell how many bits of an addend count, and how sums are rounded. The CPU machine adds in
float32 in the order of k; experiments/instructions_on_gpu.py holds the same launches against a GPU."""

import numpy as np
import pytest
from test_warpgroup import kernel, parts_of, signs_of, words_of
from warpgroup_kernels import BITS, RIGHT_AT, ROOM, Layout, launch

TYPES = {"f16": (10, 15), "bf16": (7, 127), "tf32": (23, 127), "e4m3": (3, 7), "e5m2": (2, 15)}
"""Bits of mantissas, and biases."""

PROBED = [
    "k16.f32.f16.f16", "k16.f32.bf16.bf16", "k8.f32.tf32.tf32", "k32.f32.e4m3.e4m3", "k32.f32.e5m2.e5m2",
    "k16.f16.f16.f16", "k32.f16.e4m3.e4m3",
]  # fmt: skip
TOP = 7
"""Factors are 2**7 at most, and the big product is 2**14."""

LARGEST = 2.0 ** (2 * TOP)
BIG, SMALL = 1, 2
FAMILIES = (
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
"""How often the addend is big and small, and what the products are by k."""

STEPS, COLUMNS = 4, 8
"""Small is 2**(14 - s), where s is eight times the row and the column."""


def bits_of(kind, exponent, sign=1):
    """Of a power of two, which may be subnormal, or too small and then 0."""
    mantissa, bias = TYPES[kind]
    shift = mantissa + exponent + bias - 1
    bits = exponent + bias << mantissa if exponent + bias > 0 else 1 << shift if shift >= 0 else 0
    return bits | (1 << BITS[kind] - 1 if sign < 0 else 0)


def value_of(kind, exponent):
    return 2.0**exponent if bits_of(kind, exponent) else 0.0


def probe(kind, depth, family):
    """Bits of A and B, C, and the exact sums; rows from STEPS on are 0."""
    (big, small), terms = FAMILIES[family]
    a, b = np.zeros((64, depth), np.uint64), np.zeros((COLUMNS, depth), np.uint64)
    for k, term in terms.items():
        left, right = (0, 0) if abs(term) == BIG else (8, 1)
        a[:STEPS, k % depth] = [bits_of(kind, TOP - left * row, term) for row in range(STEPS)]
        b[:, k % depth] = [bits_of(kind, TOP - right * column) for column in range(COLUMNS)]
    c, sums = np.zeros((64, COLUMNS)), np.zeros((64, COLUMNS))
    for row, column in np.ndindex(STEPS, COLUMNS):
        little = value_of(kind, TOP - 8 * row) * value_of(kind, TOP - column)
        c[row, column] = big * LARGEST + small * 2.0 ** (2 * TOP - 8 * row - column)
        sums[row, column] = c[row, column] + sum(
            np.sign(term) * (LARGEST if abs(term) == BIG else little) for term in terms.values()
        )
    return a, b, c, sums


def product_of(types, columns, a, b, c):
    """Y of one product, as it is told and as words."""
    opcode = f"wgmma.mma_async.sync.aligned.m64n{columns}{types}"
    _, result, kind, _ = parts_of(opcode)
    left, right = Layout(kind, 64, 0, False, 0), Layout(kind, columns, 0, False, RIGHT_AT)
    memory = np.zeros(ROOM, np.uint8)
    left.put(memory, a), right.put(memory, b)
    text = kernel(opcode, f"mov.b64 l, {left.descriptor};", right.descriptor, signs_of(opcode, kind))
    words = words_of(result, c)
    assert launch(text, {"X": memory, "Y": words}, ("Y",), given=("Y",)).findings == ()
    return words.view(np.float32 if result == "f32" else np.float16).astype(float)


def fragment_of(types, matrix):
    """Numbers as they lie in the sums of a type."""
    result = types.split(".")[1]
    return words_of(result, matrix).view(np.float32 if result == "f32" else np.float16).astype(float)


@pytest.mark.parametrize("family", range(len(FAMILIES)))
@pytest.mark.parametrize("types", PROBED)
def test_sums_that_tell(types, family):
    kind = types.split(".")[2]
    a, b, c, sums = probe(kind, 256 // BITS[kind], family)
    got, exact = product_of(types, COLUMNS, a, b, c), fragment_of(types, sums)
    last = LARGEST * 2.0 ** (-23 if ".f32." in types else -10)
    np.testing.assert_allclose(
        got, exact, rtol=0, atol=4 * last
    )  # infinite in float16, where it is too large


@pytest.mark.parametrize("types", PROBED)
def test_sums_of_random_numbers(types):
    """Of a few orders of magnitude."""
    kind = types.split(".")[2]
    depth, rng = 256 // BITS[kind], np.random.default_rng(7)
    mantissa, bias = TYPES[kind]
    parts = np.full((2, 64, depth), 0)
    parts |= rng.integers(0, 2, parts.shape) << BITS[kind] - 1
    parts |= rng.integers(bias - 4, bias + 3, parts.shape) << mantissa
    parts |= rng.integers(0, 1 << mantissa, parts.shape) & (~0x1FFF if kind == "tf32" else ~0)
    exponents, fractions = parts >> mantissa & 2 * bias + 1, parts & (1 << mantissa) - 1
    numbers = (1 + fractions / 2**mantissa) * 2.0 ** (exponents - bias)
    numbers *= np.where(parts >> BITS[kind] - 1 & 1, -1, 1)
    c = rng.standard_normal((64, COLUMNS)).astype(np.float16).astype(float)
    got = product_of(types, COLUMNS, parts[0], parts[1, :COLUMNS], c)
    exact = fragment_of(types, c + numbers[0] @ numbers[1, :COLUMNS].T)
    assert np.abs(got - exact).max() <= np.abs(exact).max() * 2.0 ** (-20 if ".f32." in types else -9)
