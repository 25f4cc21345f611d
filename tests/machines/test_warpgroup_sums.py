"""Sums of wgmma that tell how many bits of an addend count, and how sums are rounded, against a model of them
in numpy; experiments/instructions_on_gpu.py holds the same launches against a GPU."""

import hashlib

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


# ---- the model ---
KEPT = {"f16": 25, "bf16": 25, "tf32": 25, "e4m3": 13, "e5m2": 13}
"""Bits of an addend that count, behind the leading one of the largest."""

NOTHING = -9999


def numbers_of(kind, patterns):
    """Values, and the exponents that the hardware sees: subnormal numbers have the least one."""
    mantissa, bias = TYPES[kind]
    patterns = patterns.astype(np.int64) & (~0x1FFF if kind == "tf32" else ~0)
    field, fraction = patterns >> mantissa & 2 * bias + 1, patterns & (1 << mantissa) - 1
    exponents = np.maximum(field, 1) - bias
    values = (fraction + np.where(field, 1 << mantissa, 0)) * 2.0 ** (exponents - mantissa)
    special = np.where(fraction, np.nan, np.inf)
    if kind == "e4m3":
        values = np.where((field == 15) & (fraction == 7), np.nan, values)
    else:
        values = np.where(field == 2 * bias + 1, special, values)
    return np.where(patterns >> BITS[kind] - 1 & 1, -values, values), exponents


def cut(values, digits, lowest):
    """Towards zero, to digits behind the leading one."""
    unit = 2.0 ** (np.maximum(np.frexp(values)[1] - 1, lowest) - digits)
    return np.trunc(values / unit) * unit


def summed(types, a, b, c):
    """C + A B: all terms aligned to the largest, whose exponent is the sum of its factors', and cut."""
    _, result, kind, _ = types.split(".")
    (left, of_left), (right, of_right) = numbers_of(kind, a), numbers_of(kind, b)
    kept, lowest, digits = KEPT[kind], -126 if result == "f32" else -14, min(KEPT[kind], 23)
    with np.errstate(all="ignore"):
        products = left[:, None] * right[None]
        exponents = np.where(products != 0, of_left[:, None] + of_right[None], NOTHING)
        of_c = np.where(c != 0, np.maximum(np.frexp(c)[1] - 1, lowest), NOTHING)
        most = np.maximum(exponents.max(2), of_c)
        unit = 2.0 ** np.where(most == NOTHING, 0.0, most - kept)
        exact = (np.trunc(products / unit[..., None]).sum(2) + np.trunc(c / unit)) * unit
        plain = products.sum(2) + c
        if result == "f16":
            return np.where(np.isfinite(plain), exact, plain).astype(np.float16).astype(float)
        sums = np.where(np.abs(exact) < 2.0**128, cut(exact, digits, lowest), np.sign(exact) * np.inf)
        return np.where(np.isfinite(plain), sums, plain)


def of_matrix(fragment):
    """(thread, register) -> (row, column)."""
    numbers, found, thread = fragment.reshape(128, -1), np.zeros((64, COLUMNS)), np.arange(128)
    for e in range(4):
        found[thread // 32 * 16 + thread % 32 // 4 + 8 * (e // 2), thread % 4 * 2 + e % 2] = numbers[:, e]
    return found


@pytest.mark.parametrize("family", range(len(FAMILIES)))
@pytest.mark.parametrize("types", PROBED)
def test_sums_that_tell(types, family):
    kind = types.split(".")[2]
    a, b, c, _ = probe(kind, 256 // BITS[kind], family)
    got = of_matrix(product_of(types, COLUMNS, a, b, c))
    np.testing.assert_array_equal(got, summed(types, a, b, c))


OF_AN_H200 = {
    "k16.f32.f16.f16": "91dbd7421e69c7ab",
    "k16.f32.bf16.bf16": "2218d93dccedd848",
    "k8.f32.tf32.tf32": "a313bb41406e793d",
    "k32.f32.e4m3.e4m3": "2ca547b9143802f6",
    "k32.f32.e5m2.e5m2": "9cffb8c026d201fe",
    "k16.f16.f16.f16": "50a1dd2fe86b6d14",
    "k32.f16.e4m3.e4m3": "85265be5cbb590c3",
}
"""Digests of what an H200 made of the random numbers, as float32 or float16 by rows."""


def random_numbers(kind):
    """Of a few orders of magnitude: bits of A and B, and C."""
    depth, rng = 256 // BITS[kind], np.random.default_rng(7)
    mantissa, bias = TYPES[kind]
    parts = np.full((2, 64, depth), 0)
    parts |= rng.integers(0, 2, parts.shape) << BITS[kind] - 1
    parts |= rng.integers(bias - 4, bias + 3, parts.shape) << mantissa
    parts |= rng.integers(0, 1 << mantissa, parts.shape) & (~0x1FFF if kind == "tf32" else ~0)
    return parts[0], parts[1, :COLUMNS], rng.standard_normal((64, COLUMNS)).astype(np.float16).astype(float)


@pytest.mark.parametrize("types", PROBED)
def test_sums_of_random_numbers(types):
    a, b, c = random_numbers(types.split(".")[2])
    got = of_matrix(product_of(types, COLUMNS, a, b, c))
    np.testing.assert_array_equal(got, summed(types, a, b, c))
    form = np.float32 if ".f32." in types else np.float16
    assert hashlib.sha256(got.astype(form).tobytes()).hexdigest()[:16] == OF_AN_H200[types]


def extremes(kind, result, which):
    """Few terms, among subnormal, infinite and largest numbers: bits of A and B, and C."""
    mantissa, bias = TYPES[kind]
    depth, rng = 256 // BITS[kind], np.random.default_rng(11)
    whole = (1 << BITS[kind]) - 1 & (~0x1FFF if kind == "tf32" else ~0)
    a = rng.integers(0, whole + 1, (64, depth)) & whole
    b = rng.integers(0, whole + 1, (COLUMNS, depth)) & whole
    form, bits = (np.float32, np.uint32) if result == "f32" else (np.float16, np.uint16)
    c = rng.integers(0, np.iinfo(bits).max, (64, COLUMNS)).astype(bits).view(form)
    with np.errstate(invalid="ignore"):
        c = c.astype(float)
    top = 2 * bias + 1
    if which == "any":
        a *= rng.random(a.shape) < 0.1
        return a, b, c
    fraction = (1 << mantissa) - 1 & whole
    sign = 1 << BITS[kind] - 1
    near = {"subnormal": (0, 2), "zero": (0, 2), "largest": (top - 4, top)}[which]
    a = a & (fraction | sign) | rng.integers(*near, a.shape) << mantissa
    other = (top - 6, top - 1) if which != "largest" else (top - 4, top)
    b = b & (fraction | sign) | rng.integers(*other, b.shape) << mantissa
    a *= rng.random(a.shape) < (0.1 if which != "zero" else 0.02)
    if kind == "e4m3" or which != "largest":
        c = (1 + rng.random(c.shape)) * 2.0 ** rng.integers(-13, 3, c.shape) * rng.choice([-1, 1], c.shape)
        c = c.astype(form).astype(float)
    return a, b, c


@pytest.mark.parametrize("which", ["any", "subnormal", "zero", "largest"])
@pytest.mark.parametrize("types", PROBED)
def test_sums_of_extremes(types, which):
    _, result, kind, _ = types.split(".")
    a, b, c = extremes(kind, result, which)
    got = of_matrix(product_of(types, COLUMNS, a, b, c))
    np.testing.assert_array_equal(got, summed(types, a, b, c))
