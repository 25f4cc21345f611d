"""What an instruction that each lane executes for itself gives, by Python's integers and rationals.

`meaning(opcode)` tells the types of its result and operands, and a function of the operands' bits.
"""

from fractions import Fraction

from reference_bits import (
    Meaning,
    Opcode,
    bits_meaning,
    clamped,
    combining,
    is_float,
    parts_of,
    quotient,
    signed,
)
from softfloat import (
    FORMATS,
    INFINITE,
    NAN,
    absolute,
    add,
    compared,
    decode,
    divide,
    encode,
    extreme,
    multiply,
    negated,
    root,
    value,
    whole,
    width,
)

from tir_schedules.machines.cpu.ptx import BITS

INTEGER_COMPARISONS = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
WHOLE_MODES = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}


# ---- integers ---
def integer(o):
    """A function of integers, for arithmetic of one integer type."""
    bits = BITS[o.type]
    high = (lambda p: p >> bits) if o.has("hi") else lambda p: p
    forms = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: high(a * b),
        "mad": lambda a, b, c: high(a * b) + c,
        "min": min,
        "max": max,
        "div": lambda a, b: quotient(a, b) if b else -1,
        "rem": lambda a, b: a - b * quotient(a, b) if b else -1,
        "neg": lambda a: -a,
        "abs": abs,
        "sad": lambda a, b, c: c + abs(a - b),
    }
    return forms[o.name]


COUNTS = {"mad": 3, "fma": 3, "sad": 3, "neg": 1, "abs": 1, "sqrt": 1, "rcp": 1}


def integer_meaning(o):
    count, form, kind = COUNTS.get(o.name, 2), integer(o), o.type
    result = f"{kind[0]}{2 * BITS[kind]}" if o.has("wide") else kind
    kinds = [kind, kind, result if o.has("wide") else kind][:count]

    def of(*values):
        exact = form(*(signed(v, k) for v, k in zip(values, kinds)))
        if o.sat:
            exact = clamped(exact, kind)
        return max(exact, 0) if o.relu else exact

    return Meaning(result, tuple(kinds), of)


def by_halves(o, one):
    """Two parts of 16 bits, each as the opcode with the narrower type does it."""

    def of(*values):
        parts = [one.of(*(v >> shift & 0xFFFF for v in values)) for shift in (0, 16)]
        return [part if part is None or part == "any" else part & 0xFFFF for part in parts]

    return Meaning(o.type, (o.type,) * len(one.operands), of)


# ---- floats ---
def float_form(o):
    mode = o.mode
    forms = {
        "add": lambda a, b: add(a, b, mode),
        "sub": lambda a, b: add(a, negated(b), mode),
        "mul": multiply,
        "fma": lambda a, b, c: add(multiply(a, b), c, mode),
        "mad": lambda a, b, c: add(multiply(a, b), c, mode),
        "div": divide,
        "rcp": lambda a: divide((False, Fraction(1)), a),
        "sqrt": root,
        "neg": negated,
        "abs": absolute,
        "min": lambda a, b: least_or_greatest(o, a, b),
        "max": lambda a, b: least_or_greatest(o, a, b),
    }
    return forms[o.name]


def least_or_greatest(o, a, b):
    if not o.has("xorsign"):
        return extreme(a, b, o.name, o.has("NaN"))
    found = extreme(absolute(a), absolute(b), o.name, o.has("NaN"))
    signs = [x is not NAN and x[0] for x in (a, b)]
    return None if found is NAN else (found[1] if NAN in (a, b) else (signs[0] != signs[1], found[1]))


def limited(o, number):
    """.sat and .relu."""
    if o.sat:
        return (
            (False, Fraction(0))
            if number is NAN or number[0]
            else ((False, Fraction(1)) if number[1] == INFINITE or number[1] > 1 else number)
        )
    if o.relu and number is not NAN and (number[0] or number[1] == 0):
        return False, Fraction(0)
    return number


def float_meaning(o):
    form, kind = float_form(o), o.type

    def of(*values):
        found = form(*(decode(v, kind, o.ftz) for v in values))
        if found is not NAN and not isinstance(found, tuple):
            return "any"
        return encode(limited(o, found), kind, o.mode, o.ftz)

    return Meaning(kind, (kind,) * COUNTS.get(o.name, 2), of)


def arithmetic(o):
    if o.type.endswith("x2"):
        return by_halves(o, arithmetic(Opcode(o.text.replace("x2", ""))))
    return float_meaning(o) if is_float(o.type) else integer_meaning(o)


# ---- comparisons ---
def comparing(o, kind):
    def of(a, b):
        if is_float(kind):
            return compared(decode(a, kind, o.ftz), decode(b, kind, o.ftz), o.modifiers[0])
        numbers = [(x < 0, Fraction(abs(x))) for x in (signed(a, kind), signed(b, kind))]
        return compared(*numbers, INTEGER_COMPARISONS.get(o.modifiers[0], o.modifiers[0]))

    return of


def comparison(o):
    packed, one, combine = o.type.endswith("x2"), comparing(o, o.type.removesuffix("x2")), combining(o)
    operands = (o.type, o.type) + ("pred",) * bool(combine)
    shifts = (0, 16) if packed else (0,)

    def results(a, b, *p):
        found = [one(a >> shift, b >> shift) for shift in shifts]
        return [combine(x, bool(p[0])) if combine else x for x in found]

    if o.name == "setp":
        return Meaning(
            "pred pred" if packed else "pred",
            operands,
            lambda *v: sum(x << k for k, x in enumerate(results(*v))),
        )
    to = o.types[0]
    ones = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80, "f16x2": 0x3C00, "bf16x2": 0x3F80}
    yes = ones.get(to, 0xFFFF if packed else -1)
    return Meaning(
        to, operands, lambda *v: sum((yes if x else 0) << 16 * k for k, x in enumerate(results(*v)))
    )


# ---- conversions ---
def conversion(o):
    to, source = o.types
    if to in ("f16x2", "bf16x2") and source == "f32":
        one = conversion(Opcode(o.text.replace("x2", "")))
        return Meaning(to, ("f32", "f32"), lambda a, b: [one.of(b), one.of(a)])
    eights = {"e4m3x2": "e4m3", "e5m2x2": "e5m2"}
    if to in eights:

        def of(*values):
            parts = [values[1], values[0]] if source == "f32" else [values[0] & 0xFFFF, values[0] >> 16]
            kind = source.removesuffix("x2")
            numbers = [limited(o, decode(v, kind)) for v in parts]
            low, high = (0x7F if n is NAN else encode(n, eights[to], finite=True) for n in numbers)
            return high << 8 | low

        return Meaning("b16", ("f32", "f32") if source == "f32" else ("f16x2",), of)
    if source in eights:
        return Meaning(
            "f16x2",
            ("b16",),
            lambda a: [
                encode(limited(o, decode(part, eights[source])), "f16") for part in (a & 255, a >> 8 & 255)
            ],
        )
    whole_mode = next((WHOLE_MODES[m] for m in o.modifiers if m in WHOLE_MODES), None)

    def of(a):
        if not is_float(source):
            exact = signed(a, source)
            if not is_float(to):
                return clamped(exact, to) if o.sat else signed(exact, to)
            return encode(limited(o, (exact < 0, Fraction(abs(exact)))), to, o.mode)
        number = decode(a, source, o.ftz and source == "f32")
        if whole_mode and number is not NAN and number[1] != INFINITE:
            number = number[0], Fraction(whole(number[1], whole_mode, number[0]))
        if is_float(to):
            return encode(limited(o, number), to, o.mode, o.ftz and to == "f32")
        if number is NAN:
            return signed(1 << BITS[to] - 1, to) if source == "f64" or BITS[to] == 64 else 0
        far = -(1 << 200) if number[0] else 1 << 200
        return clamped(far if number[1] == INFINITE else int(value(number)), to)

    return Meaning(to, (source,), of)


def packing(o):
    to, bits = o.types[0], BITS[o.types[0]]

    def of(a, b, c=0):
        low, high = (clamped(signed(x, "s32"), to) & (1 << bits) - 1 for x in (b, a))
        return low | high << bits | (c & 0xFFFF) << 16 if bits == 8 else low | high << bits

    return Meaning("b32", ("s32", "s32", "b32")[: 3 if bits == 8 else 2], of)


# ---- the rest ---
def dotted(o):
    first, second = o.types
    size, start = (8, 0) if o.name == "dp4a" else (16, 2 * o.has("hi"))

    def of(a, b, c):
        return signed(c, "s32") + sum(
            x * y for x, y in zip(parts_of(a, size, first[0]), parts_of(b, 8, second[0])[start:])
        )

    return Meaning("b32", ("b32",) * 3, of)


def short_products(o):
    def of(a, b, c=0):
        a, b = (x & 0xFFFFFF for x in (a, b))
        if o.type == "s32":
            a, b = (x - (1 << 24) if x >> 23 else x for x in (a, b))
        exact = a * b >> 16 if o.has("hi") else a * b
        exact = signed(exact, o.type) + signed(c, o.type)
        return clamped(exact, "s32") if o.sat else exact

    return Meaning(o.type, (o.type,) * (3 if o.name == "mad24" else 2), of)


def differences(o):
    size = 32 // int(o.name[-1])

    def of(a, b, c):
        found = [abs(x - y) for x, y in zip(parts_of(a, size, o.type[0]), parts_of(b, size, o.type[0]))]
        return c + sum(found) if o.has("add") else sum(x << size * k for k, x in enumerate(found))

    return Meaning("u32", ("u32",) * 3, of)


def properties(o):
    def of(a):
        number, least = decode(a, o.type), Fraction(2) ** (2 - (1 << FORMATS[o.type][0] - 1))
        finite = number is not NAN and number[1] != INFINITE
        return {
            "finite": finite, "infinite": number is not NAN and not finite, "number": number is not NAN,
            "notanumber": number is NAN, "normal": finite and not 0 < number[1] < least,
            "subnormal": finite and 0 < number[1] < least,
        }[o.modifiers[0]]  # fmt: skip

    return Meaning("pred", (o.type,), of)


def copied_sign(a, b, bits):
    top = 1 << bits - 1
    return a & top | b & ~top


def chosen(o):
    kind = o.types[0]
    if o.name == "selp":
        return Meaning(kind, (kind, kind, "pred"), lambda a, b, p: a if p else b)

    def of(a, b, c):
        if o.type == "s32":
            return a if signed(c, "s32") >= 0 else b
        c = decode(c, "f32", o.ftz)
        return b if c is NAN or c[0] and c[1] != 0 else a

    return Meaning(kind, (kind, kind, o.type), of)


def meaning(text):
    """None where this file does not know it: carries, moves and approximations have tests of their own."""
    o = Opcode(text)
    if o.has("approx") or o.has("full") or o.has("cc") or o.name in ("addc", "subc", "madc"):
        return None
    if o.name in ("mov", "cvta", "isspacep"):
        return None
    if o.name in ("setp", "set"):
        return comparison(o)
    if o.name == "cvt":
        return packing(o) if o.has("pack") else conversion(o)
    if o.name in ("selp", "slct"):
        return chosen(o)
    if o.name == "testp":
        return properties(o)
    if o.name == "copysign":
        return Meaning(o.type, (o.type,) * 2, lambda a, b: copied_sign(a, b, width(o.type)))
    if o.name in ("dp4a", "dp2a"):
        return dotted(o)
    if o.name in ("mul24", "mad24"):
        return short_products(o)
    if o.name.startswith("vabsdiff"):
        return differences(o)
    if o.name in COUNTS or o.name in ("add", "sub", "mul", "min", "max", "div", "rem"):
        return arithmetic(o)
    return bits_meaning(o)
