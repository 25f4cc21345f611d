"""Arithmetic, bit, comparison and conversion instructions against numpy and Python integers, over edge
values."""

import numpy as np
import pytest
from ptx_kernels import BITS, NUMPY, all_pairs, all_triples, edges, run

INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")


def python(array):
    return [int(x) for x in array]


def wrapped(values, kind):
    """Python integers, or floats, as a type of so many bits."""
    bits = BITS[kind]
    return np.array([value & ((1 << bits) - 1) for value in values], f"u{bits // 8}").view(NUMPY[kind])


def assert_equal(got, expected, where=()):
    got, expected = np.asarray(got), np.asarray(expected)
    if got.dtype.kind == "f":
        same = (got == expected) & (np.signbit(got) == np.signbit(expected)) | np.isnan(got) & np.isnan(
            expected
        )
    else:
        same = got == expected
    wrong = np.flatnonzero(~same)
    assert not len(wrong), [(*(operand[k] for operand in where), got[k], expected[k]) for k in wrong[:5]]


def divide(a, b, kind):
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a, b, kind):
    return -1 if b == 0 else a - b * divide(a, b, kind)


TWO_INTEGERS = {
    "add": lambda a, b, k: a + b,
    "sub": lambda a, b, k: a - b,
    "mul.lo": lambda a, b, k: a * b,
    "mul.hi": lambda a, b, k: a * b >> BITS[k],
    "div": divide,
    "rem": remainder,
    "min": lambda a, b, k: min(a, b),
    "max": lambda a, b, k: max(a, b),
}


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("name", TWO_INTEGERS)
def test_two_integers(name, kind):
    if name == "mul.hi" and BITS[kind] == 16:
        pytest.skip("nvcc widens instead")
    a, b = all_pairs(edges(kind), edges(kind))
    expected = wrapped([TWO_INTEGERS[name](x, y, kind) for x, y in zip(python(a), python(b))], kind)
    assert_equal(run(f"{name}.{kind} {{d}}, {{a}}, {{b}};", kind, (kind, a), (kind, b)), expected, (a, b))


@pytest.mark.parametrize("kind, wide", [("u16", "u32"), ("s16", "s32"), ("u32", "u64"), ("s32", "s64")])
def test_wide_products(kind, wide):
    a, b = all_pairs(edges(kind), edges(kind))
    product = [x * y for x, y in zip(python(a), python(b))]
    assert_equal(
        run(f"mul.wide.{kind} {{d}}, {{a}}, {{b}};", wide, (kind, a), (kind, b)),
        wrapped(product, wide),
        (a, b),
    )
    c = np.resize(edges(wide), a.size)
    total = wrapped([p + x for p, x in zip(product, python(c))], wide)
    assert_equal(
        run(f"mad.wide.{kind} {{d}}, {{a}}, {{b}}, {{c}};", wide, (kind, a), (kind, b), (wide, c)), total
    )


@pytest.mark.parametrize("kind", INTEGERS)
def test_multiply_and_add(kind):
    a, b = all_pairs(edges(kind), edges(kind))
    c = np.resize(edges(kind)[::-1], a.size)
    rows = list(zip(python(a), python(b), python(c)))
    operands = ((kind, a), (kind, b), (kind, c))
    assert_equal(
        run(f"mad.lo.{kind} {{d}}, {{a}}, {{b}}, {{c}};", kind, *operands),
        wrapped([x * y + z for x, y, z in rows], kind),
    )
    if BITS[kind] == 16:
        return
    high = wrapped([(x * y >> BITS[kind]) + z for x, y, z in rows], kind)
    assert_equal(run(f"mad.hi.{kind} {{d}}, {{a}}, {{b}}, {{c}};", kind, *operands), high)


LOGIC = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


@pytest.mark.parametrize("kind", ["b16", "b32", "b64"])
@pytest.mark.parametrize("name", LOGIC)
def test_logic(name, kind):
    a, b = all_pairs(edges(kind), edges(kind))
    assert_equal(run(f"{name}.{kind} {{d}}, {{a}}, {{b}};", kind, (kind, a), (kind, b)), LOGIC[name](a, b))
    assert_equal(run(f"not.{kind} {{d}}, {{a}};", kind, (kind, a)), ~a)


@pytest.mark.parametrize(
    "name, kind",
    [("shl", "b16"), ("shl", "b32"), ("shl", "b64"), *(("shr", kind) for kind in INTEGERS), ("shr", "b32")],
)
def test_shifts_by_any_amount(name, kind):
    amounts = np.array([0, 1, 5, 15, 16, 17, 31, 32, 33, 63, 64, 200, 2**31], np.uint32)
    a, b = all_pairs(edges(kind), amounts)
    expected = [x << min(y, 64) if name == "shl" else x >> min(y, 64) for x, y in zip(python(a), python(b))]
    assert_equal(
        run(f"{name}.{kind} {{d}}, {{a}}, {{b}};", kind, (kind, a), ("u32", b)),
        wrapped(expected, kind),
        (a, b),
    )


@pytest.mark.parametrize("direction", "lr")
@pytest.mark.parametrize("mode", ["wrap", "clamp"])
def test_funnel_shift(direction, mode):
    a, b, c = all_triples(edges("u32")[:12], edges("u32")[:12], [0, 1, 31, 32, 33, 40, 2**31])
    expected = []
    for low, high, amount in zip(python(a), python(b), python(c)):
        amount = amount & 31 if mode == "wrap" else min(amount, 32)
        both = high << 32 | low
        expected.append((both << amount) >> 32 if direction == "l" else both >> amount)
    got = run(
        f"shf.{direction}.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}};", "b32", ("b32", a), ("b32", b), ("u32", c)
    )
    assert_equal(got, wrapped(expected, "b32"), (a, b, c))


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_bit_fields(kind):
    a, b, c = all_triples(edges(kind)[:24], [0, 1, 5, 31, 32, 40, 255], [0, 1, 8, 31, 32, 64, 255])
    bits, expected = BITS[kind], []
    for value, start, length in zip(python(a), python(b), python(c)):
        pattern = value & ((1 << bits) - 1)
        field = pattern >> start & ((1 << length) - 1)
        top = min(start + length - 1, bits - 1)
        negative = kind[0] == "s" and length and pattern >> top & 1
        kept = max(0, min(length, bits - start))
        expected.append(field | -1 << kept if negative else field)
    got = run(f"bfe.{kind} {{d}}, {{a}}, {{b}}, {{c}};", kind, (kind, a), ("u32", b), ("u32", c))
    assert_equal(got, wrapped(expected, kind), (a, b, c))
    if kind[0] == "u":
        into = np.resize(edges(kind)[::-1], a.size)
        expected = []
        for value, base, start, length in zip(python(a), python(into), python(b), python(c)):
            mask = ((1 << length) - 1) << start & ((1 << bits) - 1)
            expected.append(value << start & mask | base & ~mask)
        kind_b = f"b{bits}"
        got = run(
            f"bfi.{kind_b} {{d}}, {{a}}, {{b}}, {{c}}, {{e}};",
            kind_b,
            (kind_b, a),
            (kind_b, into),
            ("u32", b),
            ("u32", c),
        )
        assert_equal(got, wrapped(expected, kind_b), (a, into, b, c))


def test_permute():
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(0, 2**32, 500, dtype=np.uint32) for _ in range(3))
    expected = []
    for x, y, selector in zip(python(a), python(b), python(c)):
        source = (y << 32 | x).to_bytes(8, "little")
        picks = [selector >> 4 * k & 15 for k in range(4)]
        chosen = [(255 if source[p & 7] & 128 else 0) if p & 8 else source[p & 7] for p in picks]
        expected.append(int.from_bytes(bytes(chosen), "little"))
    assert_equal(
        run("prmt.b32 {d}, {a}, {b}, {c};", "b32", ("b32", a), ("b32", b), ("b32", c)),
        wrapped(expected, "b32"),
    )


def test_three_input_logic_by_every_table():
    """Thread k executes table k; the operands hold each combination of three bits four times, in an order of
    its own."""
    patterns = np.stack([np.random.default_rng(k).permutation(np.arange(32) % 8) for k in range(256)])
    a, b, c = (((patterns >> bit & 1) << np.arange(32)).sum(1).astype(np.uint32) for bit in (2, 1, 0))
    text = "".join(
        f"setp.eq.u32 p, t, {k}; @p lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {k};\n" for k in range(256)
    )
    expected = ((np.arange(256)[:, None] >> patterns & 1) << np.arange(32)).sum(1).astype(np.uint32)
    assert_equal(run(text, "b32", ("b32", a), ("b32", b), ("b32", c)), expected)


def highest(value, bits):
    return value.bit_length() - 1 if value > 0 else 0xFFFFFFFF


@pytest.mark.parametrize("kind", ["b32", "b64"])
def test_counting_bits(kind):
    a, bits = edges(kind), BITS[kind]
    assert_equal(run(f"popc.{kind} {{d}}, {{a}};", "u32", (kind, a)), [bin(x).count("1") for x in python(a)])
    assert_equal(
        run(f"clz.{kind} {{d}}, {{a}};", "u32", (kind, a)), [bits - x.bit_length() for x in python(a)]
    )


def test_finding_and_reversing_bits():
    a, signed = edges("u32"), edges("s32")
    assert_equal(run("brev.b32 {d}, {a};", "b32", ("b32", a)), [int(f"{x:032b}"[::-1], 2) for x in python(a)])
    assert_equal(run("bfind.u32 {d}, {a};", "u32", ("u32", a)), [highest(x, 32) for x in python(a)])
    expected = [highest(x if x >= 0 else ~x, 32) for x in python(signed)]
    assert_equal(run("bfind.s32 {d}, {a};", "u32", ("s32", signed)), expected)
    shift = [31 - highest(x, 32) if x else 0xFFFFFFFF for x in python(a)]
    assert_equal(run("bfind.shiftamt.u32 {d}, {a};", "u32", ("u32", a)), shift)


@pytest.mark.parametrize("kinds", ["u32.u32", "s32.s32", "u32.s32", "s32.u32"])
def test_dot_products_of_bytes(kinds):
    a, b = all_pairs(edges("u32"), edges("u32"))
    c = np.resize(edges("s32"), a.size)
    views = ["i1" if kind[0] == "s" else "u1" for kind in kinds.split(".")]
    products = a.view(views[0]).reshape(-1, 4).astype(np.int64) * b.view(views[1]).reshape(-1, 4)
    expected = wrapped([int(p) + int(x) for p, x in zip(products.sum(1), c)], "s32")
    assert_equal(
        run(f"dp4a.{kinds} {{d}}, {{a}}, {{b}}, {{c}};", "s32", ("b32", a), ("b32", b), ("s32", c)), expected
    )


@pytest.mark.parametrize("kind", ["s16", "s32", "s64"])
def test_signs_of_integers(kind):
    a = edges(kind)
    assert_equal(run(f"neg.{kind} {{d}}, {{a}};", kind, (kind, a)), wrapped([-x for x in python(a)], kind))
    assert_equal(
        run(f"abs.{kind} {{d}}, {{a}};", kind, (kind, a)), wrapped([abs(x) for x in python(a)], kind)
    )


COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
UNSIGNED_NAMES = {"lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal}
AS_NUMBER = " selp.b32 {d}, 1, 0, p;"


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64", "f32", "f64", "f16"])
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name, kind):
    a, b = all_pairs(edges(kind), edges(kind))
    got = run(f"setp.{name}.{kind} p, {{a}}, {{b}};{AS_NUMBER}", "b32", (kind, a), (kind, b))
    ordered = ~(np.isnan(a) | np.isnan(b)) if kind[0] == "f" else True
    assert_equal(got, COMPARISONS[name](a, b) & ordered, (a, b))
    if kind[0] == "f":
        got = run(f"setp.{name}u.{kind} p, {{a}}, {{b}};{AS_NUMBER}", "b32", (kind, a), (kind, b))
        assert_equal(got, COMPARISONS[name](a, b) | ~ordered, (a, b))


@pytest.mark.parametrize("name", UNSIGNED_NAMES)
def test_unsigned_comparisons_by_their_other_names(name):
    a, b = all_pairs(edges("u32"), edges("u32"))
    assert_equal(
        run(f"setp.{name}.u32 p, {{a}}, {{b}};{AS_NUMBER}", "b32", ("u32", a), ("u32", b)),
        UNSIGNED_NAMES[name](a, b),
    )


def test_nan_and_number():
    a, b = all_pairs(edges("f32"), edges("f32"))
    nan = np.isnan(a) | np.isnan(b)
    for name, expected in (("nan", nan), ("num", ~nan)):
        assert_equal(
            run(f"setp.{name}.f32 p, {{a}}, {{b}};{AS_NUMBER}", "b32", ("f32", a), ("f32", b)), expected
        )
    x = edges("f32")
    tests = {
        "finite": np.isfinite(x),
        "infinite": np.isinf(x),
        "notanumber": np.isnan(x),
        "number": ~np.isnan(x),
    }
    for name, expected in tests.items():
        assert_equal(run(f"testp.{name}.f32 p, {{a}};{AS_NUMBER}", "b32", ("f32", x)), expected)


@pytest.mark.parametrize("combine", ["and", "or", "xor"])
def test_comparison_combined_with_a_predicate(combine):
    a, b = all_pairs(edges("s32"), edges("s32"))
    first, second = a < b, a == b
    operation = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[combine]
    text = f"setp.eq.s32 q, {{a}}, {{b}}; setp.lt.{combine}.s32 p, {{a}}, {{b}}, q;{AS_NUMBER}"
    assert_equal(run(text, "b32", ("s32", a), ("s32", b)), operation(first, second))
    text = text.replace(", q;", ", !q;")
    assert_equal(run(text, "b32", ("s32", a), ("s32", b)), operation(first, ~second))
    pair = f"setp.lt.s32 q|p, {{a}}, {{b}};{AS_NUMBER}"
    assert_equal(run(pair, "b32", ("s32", a), ("s32", b)), ~first)


def test_logic_of_predicates():
    a, b = all_pairs(np.arange(2), np.arange(2))
    read = "setp.ne.u32 p, {a}, 0; setp.ne.u32 q, {b}, 0; "
    for name, operation in LOGIC.items():
        assert_equal(
            run(f"{read}{name}.pred p, p, q;{AS_NUMBER}", "b32", ("u32", a), ("u32", b)), operation(a, b)
        )
    assert_equal(run(f"{read}not.pred p, q;{AS_NUMBER}", "b32", ("u32", a), ("u32", b)), 1 - b)


def test_guarded_instructions_leave_the_others_alone():
    a, b = all_pairs(edges("s32"), edges("s32"))
    text = "setp.lt.s32 p, {a}, {b}; mov.b32 {d}, 5; @p add.s32 {d}, {a}, {b}; @!p mov.b32 {d}, 4;"
    expected = np.where(a < b, wrapped([x + y for x, y in zip(python(a), python(b))], "s32"), 4)
    assert_equal(run(text, "s32", ("s32", a), ("s32", b)), expected)


@pytest.mark.parametrize("source", ["u8", "s8", *INTEGERS])
@pytest.mark.parametrize("to", INTEGERS)
def test_conversions_between_integers(source, to):
    a = edges(source)
    assert_equal(run(f"cvt.{to}.{source} {{d}}, {{a}};", to, (source, a)), wrapped(python(a), to), (a,))


def test_moves_pack_and_unpack():
    a, b = all_pairs(edges("b32"), edges("b32"))
    packed = run("mov.b64 {d}, {{{a}, {b}}};", "b64", ("b32", a), ("b32", b))
    assert_equal(packed, b.astype(np.uint64) << 32 | a)
    assert_equal(
        run(".reg .b32 lo, hi; mov.b64 {{lo, hi}}, {a}; mov.b32 {d}, hi;", "b32", ("b64", packed)), b
    )
    assert_equal(run(".reg .b32 lo; mov.b64 {{lo, _}}, {a}; mov.b32 {d}, lo;", "b32", ("b64", packed)), a)
    assert_equal(run("mov.b32 {d}, {a};", "f32", ("b32", a)), a.view(np.float32))
