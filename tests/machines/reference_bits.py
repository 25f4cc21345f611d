"""What bit operations give, by Python's integers; and what a reference says of any instruction."""

from typing import NamedTuple

from softfloat import FORMATS

from tir_schedules.machines.cpu.ptx import BITS


class Meaning(NamedTuple):
    """result: its type, "pred" for a predicate, two for a pair of predicates. operands: types.
    of: bits of the operands -> bits of the result, None for any NaN. tail: operands that are literals."""

    result: str
    operands: tuple
    of: object
    tail: str = ""


class Opcode:
    def __init__(self, text):
        self.text, (self.name, *self.modifiers) = text, text.split(".")
        self.types = [part for part in self.modifiers if part in BITS]
        self.type = self.types[-1] if self.types else ""
        self.mode = next((m for m in self.modifiers if m in ("rn", "rna", "rz", "rm", "rp")), "rn")
        self.ftz, self.sat, self.relu = (self.has(name) for name in ("ftz", "sat", "relu"))

    def has(self, modifier):
        return modifier in self.modifiers


def is_float(kind):
    return kind in FORMATS


def signed(bits, kind):
    bits &= (1 << BITS[kind]) - 1
    return bits - (1 << BITS[kind]) if kind[0] == "s" and bits >> BITS[kind] - 1 else bits


def clamped(x, kind):
    low = -(1 << BITS[kind] - 1) if kind[0] == "s" else 0
    return max(low, min(x, low + (1 << BITS[kind]) - 1))


def quotient(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def combining(o):
    for name, function in (
        ("and", lambda x, p: x & p),
        ("or", lambda x, p: x | p),
        ("xor", lambda x, p: x ^ p),
    ):
        if o.has(name):
            return function
    return None


LOGIC = {"and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b}


def parts_of(word, bits, kind):
    return [signed(word >> k, f"{kind}{bits}") for k in range(0, 32, bits)]


def nth_bit(mask, base, n):
    base, n = signed(base, "s32"), signed(n, "s32")
    if n == 0:
        return base if 0 <= base < 32 and mask >> base & 1 else -1
    places = range(base, 32) if n > 0 else range(base, -1, -1)
    found = [k for k in places if 0 <= k < 32 and mask >> k & 1] if base >= 0 or n < 0 else []
    return found[abs(n) - 1] if abs(n) <= len(found) else -1


def bits_meaning(o):
    name, kind, bits = o.name, o.type, BITS[o.type]
    full = (1 << bits) - 1
    if name in LOGIC:
        return Meaning(kind, (kind, kind), LOGIC[name])
    if name == "not":
        return Meaning(kind, (kind,), lambda a: a ^ full)
    if name == "cnot":
        return Meaning(kind, (kind,), lambda a: int(a == 0))
    if name == "shl":
        return Meaning(kind, (kind, "u32"), lambda a, n: a << min(n, 64))
    if name == "shr":
        return Meaning(kind, (kind, "u32"), lambda a, n: signed(a, kind) >> min(n, 64))
    if name == "shf":

        def shifted(a, b, n):
            n = n & 31 if o.has("wrap") else min(n, 32)
            return (b << 32 | a) << n >> 32 if o.has("l") else (b << 32 | a) >> n

        return Meaning("b32", ("b32", "b32", "u32"), shifted)

    def bound(n):
        return min(n, 64) if bits == 64 else n & 255

    if name == "bfe":

        def field(a, start, length):
            start, length = bound(start), bound(length)
            low = a >> start & (1 << length) - 1
            top = min(start + length - 1, bits - 1)
            negative = kind[0] == "s" and length and a >> top & 1
            return low | -1 << max(0, min(length, bits - start)) if negative else low

        return Meaning(kind, (kind, "u32", "u32"), field)
    if name == "bfi":

        def inserted(a, b, start, length):
            start, length = bound(start), bound(length)
            mask = ((1 << length) - 1) << start & full
            return a << start & mask | b & ~mask

        return Meaning(kind, (kind, kind, "u32", "u32"), inserted)
    if name == "popc":
        return Meaning("u32", (kind,), lambda a: bin(a).count("1"))
    if name == "clz":
        return Meaning("u32", (kind,), lambda a: bits - a.bit_length())
    if name == "brev":
        return Meaning(kind, (kind,), lambda a: int(f"{a:0{bits}b}"[::-1], 2))
    if name == "bfind":

        def highest(a):
            a = ~a & full if kind[0] == "s" and a >> bits - 1 else a
            return -1 if not a else bits - a.bit_length() if o.has("shiftamt") else a.bit_length() - 1

        return Meaning("u32", (kind,), highest)
    if name == "fns":
        return Meaning("b32", ("b32", "small", "small"), nth_bit)
    if name == "bmsk":

        def mask(a, b):
            if o.has("clamp"):
                return ((1 << min(b, 64)) - 1) << a if a < 32 else 0
            return ((1 << (b & 31)) - 1) << (a & 31)

        return Meaning("b32", ("u32", "u32"), mask)
    if name == "szext":

        def extended(a, n):
            n = min(n, 32) if o.has("clamp") else n & 31
            low = a & (1 << n) - 1
            return low | -1 << n if kind == "s32" and n and low >> n - 1 else low

        return Meaning(kind, (kind, "u32"), extended)
    if name == "lop3":

        def logic(a, b, c, p=0):
            d = sum(
                (0xE8 >> ((a >> k & 1) * 4 + (b >> k & 1) * 2 + (c >> k & 1)) & 1) << k for k in range(32)
            )
            return d if not combining(o) else d | int(combining(o)(d != 0, bool(p))) << 32

        both = combining(o) is not None
        return Meaning("b32 pred" if both else "b32", ("b32",) * 3 + ("pred",) * both, logic, "0xE8")
    patterns = {
        "f4e": "3210 4321 5432 6543", "b4e": "5670 6701 7012 0123", "rc8": "0000 1111 2222 3333",
        "ecl": "3210 3211 3222 3333", "ecr": "0000 1110 2210 3210", "rc16": "1010 3232 1010 3232",
    }  # fmt: skip

    def permuted(a, b, selector):
        source, mode = (b << 32 | a).to_bytes(8, "little"), o.modifiers[-1]
        if mode in patterns:
            picks = [int(digit) for digit in reversed(patterns[mode].split()[selector & 3])]
        else:
            picks = [selector >> 4 * k & 15 for k in range(4)]
        chosen = [(255 if source[p & 7] & 128 else 0) if p & 8 else source[p & 7] for p in picks]
        return int.from_bytes(bytes(chosen), "little")

    return Meaning("b32", ("b32",) * 3, permuted)
