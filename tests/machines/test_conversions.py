"""Moves, selections, comparisons and conversions of the less usual types and registers against numpy."""

import numpy as np
import pytest
from ptx_kernels import NUMPY, all_pairs, edges, run
from test_arithmetic import AS_NUMBER, COMPARISONS, assert_equal, python, wrapped
from test_floats import from_bfloat, to_bfloat

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
HALVES = {
    "f16": (lambda x: x.view(np.uint16), lambda x: x.view(np.float16)),
    "bf16": (to_bfloat, from_bfloat),
}


@pytest.mark.parametrize("to", ["u8", "s8", "u16", "s16"])
@pytest.mark.parametrize("source", ["b32", "b64"])
def test_narrowing_conversions_extend_to_the_register(source, to):
    """The result of a narrow type fills its wider register with zeros or copies of its sign."""
    a, wide = edges(source), to[0] + "32"
    expected = wrapped(python(wrapped([x & (1 << int(to[1:])) - 1 for x in python(a)], to)), wide)
    assert_equal(run(f"cvt.{to}.u{source[1:]} {{d}}, {{a}};", wide, (source, a)), expected, (a,))


@pytest.mark.parametrize("source", ["u8", "s8", "u16", "s16"])
@pytest.mark.parametrize("to", ["u32", "s64"])
def test_conversions_read_the_low_bits_of_a_wider_register(source, to):
    a = edges("b32")
    low = wrapped([x & (1 << int(source[1:])) - 1 for x in python(a)], source)
    assert_equal(run(f"cvt.{to}.{source} {{d}}, {{a}};", to, ("b32", a)), wrapped(python(low), to), (a,))


@pytest.mark.parametrize("to", ["u8", "s8"])
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_floats_to_bytes_saturate(source, to):
    a, info = edges(source), np.iinfo(NUMPY[to])
    expected = np.clip(np.trunc(np.nan_to_num(a.astype("f8"))), info.min, info.max)
    expected[np.isnan(a)] = 0 if source == "f32" else 128 if to == "u8" else -128
    assert_equal(
        run(f"cvt.rzi.{to}.{source} {{d}}, {{a}};", to[0] + "32", (source, a)),
        expected.astype(np.int64),
        (a,),
    )


@pytest.mark.parametrize(
    "mode, function", [("rni", np.rint), ("rzi", np.trunc), ("rmi", np.floor), ("rpi", np.ceil)]
)
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_rounding_to_integral_floats(kind, mode, function):
    assert_equal(
        run(f"cvt.{mode}.{kind}.{kind} {{d}}, {{a}};", kind, (kind, edges(kind))), function(edges(kind))
    )


@pytest.mark.parametrize("mode", ["rm", "rp", "rz"])
@pytest.mark.parametrize("source", ["f64", "s32", "u32"])
def test_directed_conversions_to_single(source, mode):
    a = edges(source)
    near, exact = a.astype("f4"), a.astype("f8")
    down = np.where(near > exact, np.nextafter(near, np.float32(-np.inf)), near)
    up = np.where(near < exact, np.nextafter(near, np.float32(np.inf)), near)
    expected = {"rm": down, "rp": up, "rz": np.where(exact > 0, down, up)}[mode]
    assert_equal(run(f"cvt.{mode}.f32.{source} {{d}}, {{a}};", "f32", (source, a)), expected, (a,))


@pytest.mark.parametrize("source", ["f16", "f32", "f64"])
def test_saturating_conversions(source):
    a = edges(source)
    expected = np.where(np.isnan(a), 0, np.clip(a, 0, 1)).astype("f4") + np.float32(0)
    rounding = ".rn" if source == "f64" else ""
    assert_equal(run(f"cvt{rounding}.sat.f32.{source} {{d}}, {{a}};", "f32", (source, a)), expected, (a,))


def test_flushing_conversions():
    a = np.array([1e-40, -1e-40, 1.5, 2.0**-126], np.float32)
    flushed = np.array([0.0, -0.0, 1.5, 2.0**-126])
    assert_equal(run("cvt.ftz.f64.f32 {d}, {a};", "f64", ("f32", a)), flushed)
    assert_equal(run("cvt.rn.ftz.f32.f64 {d}, {a};", "f32", ("f64", a)), flushed.astype("f4"))
    assert_equal(run("cvt.rpi.ftz.s32.f32 {d}, {a};", "s32", ("f32", a)), np.ceil(flushed).astype("i4"))
    assert_equal(run(f"setp.eq.ftz.f32 p, {{a}}, 0f00000000;{AS_NUMBER}", "b32", ("f32", a)), flushed == 0)


def test_conversions_to_half_round_once():
    """A float64 just beside a tie of float16 or bfloat16, and integers that float32 cannot hold."""
    ties = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 65520, 2.0**-25])
    a = np.concatenate([ties, np.nextafter(ties, 0), np.nextafter(ties, np.inf), -ties])
    assert_equal(run("cvt.rn.f16.f64 {d}, {a};", "f16", ("f64", a)), a.astype("f2"), (a,))
    beside = np.array(
        [0x3F80, 0x3F82, 0x3F80, 0x3F81, 0x3F81, 0x3F82], np.uint16
    )  # the ties at 2**-8, below and above them
    near = np.concatenate([ties[2:4], np.nextafter(ties[2:4], 0), np.nextafter(ties[2:4], 9)])
    assert_equal(run("cvt.rn.bf16.f64 {d}, {a};", "bf16", ("f64", near)), beside, (near,))
    integers = np.array([2**30 + 2**22, 2**30 + 2**22 + 1, 3 * 2**22 + 2**30 - 1, -(2**30) - 2**22 - 1])
    expected = np.array([0x4E80, 0x4E81, 0x4E81, 0xCE81], np.uint16)
    assert_equal(run("cvt.rn.bf16.s32 {d}, {a};", "bf16", ("s32", integers)), expected, (integers,))


def test_tf32_rounds_ties_away_from_zero():
    a = np.concatenate([edges("f32"), np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, -1 - 2.0**-11])]).astype(
        np.float32
    )
    finite = np.isfinite(a) & (np.abs(a) > 1e-30) & (np.abs(a) < 1e30)
    fraction, exponent = np.frexp(a[finite].astype("f8"))
    expected = np.copysign(np.floor(np.abs(fraction) * 2**11 + 0.5), fraction) * 2.0 ** (exponent - 11)
    got = run("cvt.rna.tf32.f32 {d}, {a};", "b32", ("f32", a)).view(np.float32)
    assert_equal(got[finite], expected.astype("f4"), (a[finite],))
    assert_equal(np.isnan(got), np.isnan(a))


@pytest.mark.parametrize("name", [*COMPARISONS, *(f"{name}u" for name in COMPARISONS), "num", "nan"])
@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_comparisons_of_halves(kind, name):
    values = edges("f32" if kind == "bf16" else "f16")
    encode, decode = HALVES[kind]
    a, b = all_pairs(values, values)
    x, y = decode(encode(a)), decode(encode(b))
    unordered = np.isnan(x) | np.isnan(y)
    if name in ("num", "nan"):
        expected = unordered == (name == "nan")
    else:
        expected = COMPARISONS[name[:2]](x, y) & ~unordered | (unordered if name.endswith("u") else False)
    text = f"setp.{name}.{kind} p, {{a}}, {{b}};{AS_NUMBER}"
    assert_equal(run(text, "b32", ("b16", encode(a)), ("b16", encode(b))), expected, (a, b))


@pytest.mark.parametrize("kind", ["b16", "b32", "b64"])
def test_equality_of_bits(kind):
    a, b = all_pairs(edges(kind), edges(kind))
    for name in ("eq", "ne"):
        got = run(f"setp.{name}.{kind} p, {{a}}, {{b}};{AS_NUMBER}", "b32", (kind, a), (kind, b))
        assert_equal(got, COMPARISONS[name](a, b))


@pytest.mark.parametrize(
    "kind", ["b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"]
)
def test_selection(kind):
    a, b = all_pairs(edges(kind), edges(kind))
    chooser = np.arange(a.size) % 3
    text = f"setp.eq.u32 p, {{c}}, 0; selp.{kind} {{d}}, {{a}}, {{b}}, p;"
    assert_equal(run(text, kind, (kind, a), (kind, b), ("u32", chooser)), np.where(chooser == 0, a, b))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("name, function", [("neg", np.negative), ("abs", np.abs)])
def test_signs_of_packed_halves(name, function, kind):
    encode, decode = HALVES[kind]
    a = edges("f32" if kind == "bf16" else "f16")
    a = encode(a[: a.size // 2 * 2])
    got = run(f"{name}.{kind}x2 {{d}}, {{a}};", "b32", ("b32", a.view(np.uint32)))
    assert_equal(decode(got.view(np.uint16)), function(decode(a)))
    got = run(f"{name}.{kind} {{d}}, {{a}};", "b16", ("b16", a))
    assert_equal(decode(got), function(decode(a)))


@pytest.mark.parametrize("name, function", [("ex2", np.exp2), ("tanh", np.tanh)])
def test_approximations_of_halves(name, function):
    a = edges("f16")
    got = run(f"{name}.approx.f16 {{d}}, {{a}};", "f16", ("f16", a))
    np.testing.assert_allclose(got, function(a.astype("f8")).astype("f2"), rtol=2e-3, atol=1e-7)
    ftz, b = ".ftz" if name == "ex2" else "", to_bfloat(edges("f32"))
    got = from_bfloat(run(f"{name}.approx{ftz}.bf16 {{d}}, {{a}};", "bf16", ("bf16", b)))
    np.testing.assert_allclose(
        got, from_bfloat(to_bfloat(function(from_bfloat(b).astype("f8")))), rtol=1e-2, atol=1e-37
    )


@pytest.mark.parametrize("name", ["div.approx", "div.full", "div.approx.ftz"])
def test_approximate_division(name):
    values = np.array([1, -3, 0.1, 7e5, 2.0**-20, 0, np.inf, np.nan], np.float32)
    a, b = all_pairs(values, values)
    got = run(f"{name}.f32 {{d}}, {{a}}, {{b}};", "f32", ("f32", a), ("f32", b))
    np.testing.assert_allclose(got, a / b, rtol=3e-7)


def test_rsqrt_of_doubles():
    a = np.abs(edges("f64"))
    got = run("rsqrt.approx.f64 {d}, {a};", "f64", ("f64", a))
    np.testing.assert_allclose(got, 1 / np.sqrt(a), rtol=1e-14)


@pytest.mark.parametrize("value", [0, 1, -1])
def test_constant_predicates(value):
    """nvcc writes true as -1."""
    a = np.arange(2)
    text = f"setp.ne.u32 q, {{a}}, 0; mov.pred p, {value}; xor.pred p, p, q;{AS_NUMBER}"
    assert_equal(run(text, "b32", ("u32", a)), (value != 0) ^ a)
    assert_equal(
        run(f"mov.pred q, {value}; not.pred p, q;{AS_NUMBER}", "b32", ("u32", a)), np.full(2, value == 0)
    )


def test_packing_of_four():
    a = edges("b64")
    text = ".reg .b16 h<4>; mov.b64 {{h0, h1, h2, h3}}, {a}; mov.b64 {d}, {{h3, h2, h1, h0}};"
    assert_equal(
        run(text, "b64", ("b64", a)), a.view(np.uint16).reshape(-1, 4)[:, ::-1].copy().view(np.uint64).ravel()
    )
