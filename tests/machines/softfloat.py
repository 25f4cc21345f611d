"""Floating-point numbers as rationals: what every format holds, and rounding to it in each direction."""

from fractions import Fraction
from math import isqrt

FORMATS = {
    "f16": (5, 10), "bf16": (8, 7), "tf32": (8, 10), "f32": (8, 23), "f64": (11, 52),
    "e4m3": (4, 3), "e5m2": (5, 2),
}  # fmt: skip
"""Bits of the exponent and of the mantissa."""

INFINITE = "infinite"
NAN = None
"""A number is NAN or a pair: whether it is negative, and its size, a Fraction or INFINITE."""


def is_format(kind):
    return kind in FORMATS


def width(kind):
    return {"tf32": 32}.get(kind, 1 + sum(FORMATS[kind]))


def decode(bits, kind, ftz=False):
    exponent_bits, mantissa_bits = FORMATS[kind]
    if kind == "tf32":
        bits >>= 13
    negative = bool(bits >> exponent_bits + mantissa_bits & 1)
    exponent, mantissa = bits >> mantissa_bits & (1 << exponent_bits) - 1, bits & (1 << mantissa_bits) - 1
    bias = (1 << exponent_bits - 1) - 1
    if kind == "e4m3" and bits & 0x7F == 0x7F:
        return NAN
    if exponent == (1 << exponent_bits) - 1 and kind != "e4m3":
        return NAN if mantissa else (negative, INFINITE)
    if exponent == 0:
        return negative, Fraction(0) if ftz else Fraction(mantissa) * Fraction(2) ** (
            1 - bias - mantissa_bits
        )
    return negative, Fraction(mantissa + (1 << mantissa_bits)) * Fraction(2) ** (
        exponent - bias - mantissa_bits
    )


def largest(kind):
    return {"e4m3": 0x7E, "e5m2": 0x7B, "f16": 0x7BFF, "bf16": 0x7F7F, "tf32": 0x7F7FE000, "f32": 0x7F7FFFFF,
            "f64": 0x7FEFFFFFFFFFFFFF}[kind]  # fmt: skip


def whole(size, mode, negative):
    """A Fraction as an integer: mode rn, rna, rz, rm or rp."""
    floor = size.numerator // size.denominator
    rest = size - floor
    if mode in ("rn", "rna"):
        up = rest > Fraction(1, 2) or rest == Fraction(1, 2) and (mode == "rna" or floor % 2 == 1)
    else:
        up = rest > 0 and mode == ("rm" if negative else "rp")
    return floor + up


def encode(number, kind, mode="rn", ftz=False, finite=False):
    """Bits of a number; None for a NaN. finite: too large becomes the largest."""
    if number is NAN:
        return None
    exponent_bits, mantissa_bits = FORMATS[kind]
    negative, size = number
    sign = int(negative) << width(kind) - 1
    shift = 13 if kind == "tf32" else 0
    infinity = ((1 << exponent_bits) - 1) << mantissa_bits + shift
    if size == INFINITE:
        return sign | (largest(kind) if finite else infinity)
    least = 2 - (1 << exponent_bits - 1)
    exponent = least
    if size > 0:
        exponent = size.numerator.bit_length() - size.denominator.bit_length()
        exponent -= Fraction(2) ** exponent > size
    exponent = max(exponent, least)
    steps = whole(size / Fraction(2) ** (exponent - mantissa_bits), mode, negative)
    pattern = ((exponent - least) << mantissa_bits) + steps << shift
    if pattern > largest(kind):
        away = mode in ("rn", "rna") or mode == ("rm" if negative else "rp")
        pattern = infinity if away and not finite else largest(kind)
    if ftz and pattern >> mantissa_bits + shift == 0:
        pattern = 0
    return sign | pattern


def negated(x):
    return x if x is NAN else (not x[0], x[1])


def absolute(x):
    return x if x is NAN else (False, x[1])


def value(x):
    """A finite number with its sign."""
    return -x[1] if x[0] else x[1]


def add(x, y, mode="rn"):
    if NAN in (x, y):
        return NAN
    if INFINITE in (x[1], y[1]):
        both = x[1] == y[1]
        return NAN if both and x[0] != y[0] else x if x[1] == INFINITE else y
    total = value(x) + value(y)
    if total == 0:
        return (x[0] if x[0] == y[0] else mode == "rm", Fraction(0))
    return total < 0, abs(total)


def multiply(x, y):
    if NAN in (x, y):
        return NAN
    negative = x[0] != y[0]
    if INFINITE in (x[1], y[1]):
        return NAN if 0 in (x[1], y[1]) else (negative, INFINITE)
    return negative, x[1] * y[1]


def divide(x, y):
    if NAN in (x, y) or x[1] == y[1] and x[1] in (0, INFINITE):
        return NAN
    negative = x[0] != y[0]
    if x[1] == INFINITE or y[1] == 0:
        return negative, INFINITE
    return negative, Fraction(0) if y[1] == INFINITE else x[1] / y[1]


def root(x):
    if x is NAN or x[0] and x[1] != 0:
        return NAN
    if x[1] in (0, INFINITE):
        return x
    scaled = x[1].numerator << 3000
    found = isqrt(scaled // x[1].denominator)
    exact = found * found * x[1].denominator == scaled
    return False, Fraction(2 * found + (not exact), 2) / Fraction(2) ** 1500


def is_less(x, y):
    """Of two numbers, neither NAN; -0 equals 0."""
    key = {True: -1, False: 1}
    a, b = (key[n[0]] if n[1] == INFINITE else 0 for n in (x, y))
    return a < b if a or b else value(x) < value(y)


def extreme(x, y, name, nan):
    """A NaN loses unless `nan`; -0 is less than 0."""
    if NAN in (x, y):
        return NAN if nan else y if x is NAN else x
    if is_less(x, y) or not is_less(y, x) and x[0]:
        return x if name == "min" else y
    return y if name == "min" else x


def compared(x, y, name):
    """setp's comparisons."""
    if name in ("num", "nan"):
        return (NAN in (x, y)) == (name == "nan")
    if NAN in (x, y):
        return len(name) == 3
    less, more = is_less(x, y), is_less(y, x)
    return {
        "eq": not less and not more,
        "ne": less or more,
        "lt": less,
        "le": not more,
        "gt": more,
        "ge": not less,
    }[name[:2]]
