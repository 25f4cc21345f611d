"""Floating-point instructions against numpy: every format, directed rounding, conversions, approximations."""

from fractions import Fraction

import numpy as np
import pytest
from ptx_kernels import BITS, NUMPY, all_pairs, all_triples, edges, run
from test_arithmetic import assert_equal, wrapped

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")


def smaller(a, b):
    """A NaN loses against a number, and -0 is less than +0."""
    both_zero = (a == 0) & (b == 0)
    return np.where(both_zero, np.where(np.signbit(a), a, b), np.fmin(a, b))


TWO = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": smaller,
    "max": lambda a, b: -smaller(-a, -b),
}
ROUNDED = {"add": "add.rn", "sub": "sub.rn", "mul": "mul.rn"}


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
@pytest.mark.parametrize("name", TWO)
def test_two_operands(name, kind):
    a, b = all_pairs(edges(kind), edges(kind))
    got = run(f"{ROUNDED.get(name, name)}.{kind} {{d}}, {{a}}, {{b}};", kind, (kind, a), (kind, b))
    assert_equal(got, TWO[name](a, b), (a, b))


@pytest.mark.parametrize("name", TWO)
def test_two_halves_at_once(name):
    a, b = all_pairs(edges("f16"), edges("f16"))
    a2, b2 = (np.stack([array, array[::-1]], 1).copy().view(np.uint32).ravel() for array in (a, b))
    got = run(f"{ROUNDED.get(name, name)}.f16x2 {{d}}, {{a}}, {{b}};", "f16x2", ("f16x2", a2), ("f16x2", b2))
    got = got.view(np.float16).reshape(-1, 2)
    for column, (x, y) in enumerate(((a, b), (a[::-1], b[::-1]))):
        assert_equal(got[:, column], TWO[name](x, y), (x, y))


def exact_fma(a, b, c, kind):
    """a * b + c rounded once, to nearest even, by rational arithmetic; None when not finite."""
    if not np.isfinite([a, b, c]).all():
        return None
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    bits, least = {"f16": (11, -24), "f32": (24, -149), "f64": (53, -1074), "bf16": (8, -133)}[kind]
    if exact == 0:
        return None
    exponent = max(abs(exact).numerator.bit_length() - exact.denominator.bit_length() - bits, least)
    for shift in (-1, 0, 1):  # the unit of the last place
        unit = Fraction(2) ** max(exponent + shift, least)
        if abs(exact) / unit < 2**bits:
            break
    quotient = exact / unit
    whole = quotient.numerator // quotient.denominator
    rest = quotient - whole
    whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
    with np.errstate(over="ignore"):
        try:
            return np.array(float(whole * unit)).astype("f4" if kind == "bf16" else NUMPY[kind])
        except OverflowError:
            return None


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_fused_multiply_and_add_rounds_once(kind):
    rng = np.random.default_rng(1)
    a, b, c = all_triples(
        *(np.concatenate([edges(kind)[:16], rng.standard_normal(8)]).astype(NUMPY[kind]) for _ in range(3))
    )
    c = np.where(rng.random(c.size) < 0.5, c, -(a.astype("f8") * b).astype(NUMPY[kind]))  # cancellation
    got = run(f"fma.rn.{kind} {{d}}, {{a}}, {{b}}, {{c}};", kind, (kind, a), (kind, b), (kind, c))
    expected = [exact_fma(x, y, z, kind) for x, y, z in zip(a, b, c)]
    known = [k for k, value in enumerate(expected) if value is not None]
    assert len(known) > 5000
    got_known = got[known] + 0  # the sign of a zero is not told
    assert_equal(got_known, np.array([expected[k] for k in known]) + 0, (a[known], b[known], c[known]))
    special = ~np.isfinite(a) | ~np.isfinite(b) | ~np.isfinite(c)
    assert_equal(got[special], (a.astype(np.longdouble) * b + c)[special].astype(NUMPY[kind]))


def to_bfloat(x):
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), 0x7FFF, rounded).astype(np.uint16)


def from_bfloat(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def test_bfloat():
    a, b = all_pairs(edges("f32"), edges("f32"))
    x, y = to_bfloat(a), to_bfloat(b)
    assert_equal(run("cvt.rn.bf16.f32 {d}, {a};", "bf16", ("f32", a)), x, (a,))
    assert_equal(run("cvt.f32.bf16 {d}, {a};", "f32", ("bf16", x)), from_bfloat(x))
    both = run("cvt.rn.bf16x2.f32 {d}, {a}, {b};", "b32", ("f32", a), ("f32", b))
    assert_equal(both, x.astype(np.uint32) << 16 | y)


@pytest.mark.parametrize("packed", [False, True], ids=["bf16", "bf16x2"])
def test_bfloat_fma_rounds_once(packed):
    """Also where a float64 sum would lose the addend that breaks a tie."""
    values = np.concatenate(
        [edges("f32")[:18], [1.0625, -1.0625, 1.1875], 2.0 ** np.array([-100, -8, 60, -133])]
    )
    values = from_bfloat(to_bfloat(values))
    a, b, c = all_triples(values, values, values)
    known = [
        k
        for k, exact in enumerate(exact_fma(x, y, z, "bf16") for x, y, z in zip(a, b, c))
        if exact is not None
    ]
    a, b, c = a[known], b[known], c[known]
    bits, expected = (
        [to_bfloat(x) for x in (a, b, c)],
        [exact_fma(x, y, z, "bf16") for x, y, z in zip(a, b, c)],
    )
    kind = "bf16"
    if packed:
        bits, kind = [np.stack([x, x[::-1]], 1).copy().view(np.uint32).ravel() for x in bits], "bf16x2"
    got = run(f"fma.rn.{kind} {{d}}, {{a}}, {{b}}, {{c}};", kind, *((kind, x) for x in bits))
    got = got.view(np.uint16).reshape(len(a), -1)
    assert_equal(from_bfloat(got[:, 0]) + 0, np.array(expected) + 0, (a, b, c))
    assert not packed or (got[:, 0] == got[::-1, 1]).all()


def floor_of(exact):
    """The greatest float32 that is at most an exact number."""
    largest = np.finfo("f4").max
    below = np.float32(min(max(float(exact), -float(largest)), float(largest)))
    while np.isfinite(below) and Fraction(float(below)) > exact:
        below = np.nextafter(below, np.float32(-np.inf))
    while below < largest and Fraction(float(np.nextafter(below, np.float32(np.inf)))) <= exact:
        below = np.nextafter(below, np.float32(np.inf))
    return below


def directed(exact, mode):
    if mode == "rp" or mode == "rz" and exact < 0:
        return -floor_of(-exact)
    return floor_of(exact)


DIRECTED = {
    "add": ("{a}, {b}", lambda a, b: (a, b)),
    "sub": ("{a}, {b}", lambda a, b: (a, -b)),
    "mul": ("{a}, {b}", lambda a, b: (a * b,)),
    "fma": ("{a}, {b}, {a}", lambda a, b: (a * b, a)),
}


@pytest.mark.parametrize("mode", ["rm", "rp", "rz"])
@pytest.mark.parametrize("name", DIRECTED)
def test_directed_rounding(name, mode):
    values = np.concatenate(
        [edges("f32")[:16], [-(2.0**-60), 2.0**-30, 1 + 2.0**-23, 2.0**-149, 1e20]]
    ).astype(np.float32)
    a, b = all_pairs(values, values)
    operands, terms = DIRECTED[name]
    expected = []
    for x, y in zip(a, b):
        total = sum(terms(Fraction(float(x)), Fraction(float(y))))
        zeros = terms(
            x.astype("f8"), y.astype("f8")
        )  # where their signs differ, the sum is -0 only when rounding down
        negative = all(np.signbit(zeros)) if mode != "rm" else any(np.signbit(zeros))
        expected.append(directed(total, mode) if total else np.float32(-0.0 if negative else 0))
    got = run(f"{name}.{mode}.f32 {{d}}, {operands};", "f32", ("f32", a), ("f32", b))
    assert_equal(got, np.array(expected, np.float32), (a, b))


def test_flushing_and_saturation():
    a = edges("f32")
    flushed = np.where(np.abs(a) < np.finfo("f4").tiny, np.copysign(np.float32(0), a), a)
    assert_equal(
        run("add.rn.ftz.f32 {d}, {a}, {b};", "f32", ("f32", a), ("f32", np.full_like(a, -0.0))),
        flushed + np.float32(-0.0),
    )
    saturated = np.where(np.isnan(a), 0, np.clip(a, 0, 1)).astype("f4")
    assert_equal(run("mul.rn.sat.f32 {d}, {a}, 0f3F800000;", "f32", ("f32", a)) + 0, saturated + 0)


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_signs(kind):
    a = edges(kind)
    assert_equal(run(f"neg.{kind} {{d}}, {{a}};", kind, (kind, a)), -a)
    assert_equal(run(f"abs.{kind} {{d}}, {{a}};", kind, (kind, a)), np.abs(a))
    if kind != "f16":
        x, y = all_pairs(a, a)
        assert_equal(
            run(f"copysign.{kind} {{d}}, {{a}}, {{b}};", kind, (kind, x), (kind, y)), np.copysign(y, x)
        )


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_division_and_root(kind):
    a, b = all_pairs(edges(kind), edges(kind))
    assert_equal(run(f"div.rn.{kind} {{d}}, {{a}}, {{b}};", kind, (kind, a), (kind, b)), a / b)
    assert_equal(run(f"sqrt.rn.{kind} {{d}}, {{a}};", kind, (kind, a)), np.sqrt(a))
    assert_equal(run(f"rcp.rn.{kind} {{d}}, {{a}};", kind, (kind, a)), (1 / a).astype(NUMPY[kind]))


APPROXIMATE = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sqrt": np.sqrt,
    "rcp": lambda x: 1 / x,
}


@pytest.mark.parametrize("name", APPROXIMATE)
def test_approximations(name):
    a = np.concatenate([edges("f32"), np.linspace(-5, 5, 200)]).astype(np.float32)
    got = run(f"{name}.approx.f32 {{d}}, {{a}};", "f32", ("f32", a))
    np.testing.assert_allclose(got, APPROXIMATE[name](a.astype("f8")).astype("f4"), rtol=4e-7, atol=1e-37)


INTEGER_ROUNDING = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@pytest.mark.parametrize("mode", INTEGER_ROUNDING)
@pytest.mark.parametrize("to", ["s32", "u32", "s64", "u64", "s16", "u16"])
@pytest.mark.parametrize("kind", ["f32", "f64", "f16"])
def test_floats_to_integers_saturate(kind, to, mode):
    a = edges(kind)
    info, rounded = np.iinfo(NUMPY[to]), INTEGER_ROUNDING[mode](a.astype("f8"))
    nan = wrapped([1 << (BITS[to] - 1)], to)[0] if kind == "f64" or BITS[to] == 64 else 0
    expected = [nan if np.isnan(x) else info.max if x >= info.max else int(max(x, info.min)) for x in rounded]
    assert_equal(
        run(f"cvt.{mode}.{to}.{kind} {{d}}, {{a}};", to, (kind, a)), np.array(expected, NUMPY[to]), (a,)
    )


@pytest.mark.parametrize("kind", ["s32", "u32", "s64", "u64", "u16"])
@pytest.mark.parametrize("to", ["f32", "f64", "f16"])
def test_integers_to_floats(kind, to):
    a = edges(kind)
    if to == "f16":
        a = a[(a < 60000) & (a > -60000)] if a.dtype.kind == "i" else a[a < 60000]
    assert_equal(run(f"cvt.rn.{to}.{kind} {{d}}, {{a}};", to, (kind, a)), a.astype(NUMPY[to]), (a,))


def test_between_floats():
    wide, single, half = edges("f64"), edges("f32"), edges("f16")
    assert_equal(run("cvt.rn.f32.f64 {d}, {a};", "f32", ("f64", wide)), wide.astype("f4"))
    assert_equal(run("cvt.f64.f32 {d}, {a};", "f64", ("f32", single)), single.astype("f8"))
    assert_equal(run("cvt.f32.f16 {d}, {a};", "f32", ("f16", half)), half.astype("f4"))
    ties = np.array([1 + 2**-11, 1 + 3 * 2**-11, 65519.9, 65520, 2**-25, 1.5 * 2**-24, 2**-26], np.float32)
    values = np.concatenate([single, ties, -ties])
    assert_equal(run("cvt.rn.f16.f32 {d}, {a};", "f16", ("f32", values)), values.astype("f2"), (values,))
    pairs = run("cvt.rn.f16x2.f32 {d}, {a}, {b};", "b32", ("f32", values), ("f32", values[::-1]))
    expected = values.astype("f2").view("u2").astype("u4") << 16 | values[::-1].astype("f2").view("u2")
    nan = np.isnan(values) | np.isnan(values[::-1])
    assert_equal(pairs[~nan], expected[~nan])
    assert_equal(run("cvt.rmi.f32.f32 {d}, {a};", "f32", ("f32", single)), np.floor(single))
    down = run("cvt.rm.f32.f64 {d}, {a};", "f32", ("f64", wide))
    finite = np.abs(wide) < 1e30
    assert (down[finite] <= wide[finite]).all() and (
        np.nextafter(down[finite], np.float32(np.inf)) > wide[finite]
    ).all()


def test_constants():
    assert run("add.f32 {d}, {a}, 0f3F800000;", "f32", ("f32", np.array([1.5], "f4")))[0] == 2.5
    assert run("add.f64 {d}, {a}, 0d3FF0000000000000;", "f64", ("f64", np.array([1.5])))[0] == 2.5
    assert run("add.s32 {d}, {a}, -7;", "s32", ("s32", np.array([5], "i4")))[0] == -2
    assert BITS["f16x2"] == 32
