"""What one lane computes for bit operations, comparisons, moves and conversions: C++ over the helpers of
core/numeric.h.

Source: PTX ISA, version 9.0, "Instruction Set".
"""

from __future__ import annotations

from tir_schedules.machines.cpu.arithmetic import HALVES, rounding
from tir_schedules.machines.cpu.lane_code import STORAGE, LaneCode, is_float, operation, raw, unsigned
from tir_schedules.machines.cpu.ptx import BITS, SINK, Immediate, Pair, Vector

COMPARISONS = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "lo": "<",
    "ls": "<=",
    "hi": ">",
    "hs": ">=",
}
INTEGRAL = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


# ---- bits ---
@operation("and or xor")
def logic(code: LaneCode) -> None:
    kind = raw(code.instruction.type)
    symbol = {"and": "&", "or": "|", "xor": "^"}[code.instruction.name]
    code.write(f"({STORAGE[kind]})({code.read(1, kind)} {symbol} {code.read(2, kind)})", kind)


@operation("not")
def complement(code: LaneCode) -> None:
    kind = raw(code.instruction.type)
    code.write(
        f"!{code.read(1, kind)}" if kind == "pred" else f"({STORAGE[kind]})~{code.read(1, kind)}", kind
    )


@operation("shl shr")
def shift(code: LaneCode) -> None:
    """A shift by the width or more gives 0, or copies of the sign."""
    i = code.instruction
    kind = i.type if i.name == "shr" and i.type[0] != "b" else unsigned(i.type)
    value, amount, width = code.read(1, kind), code.read(2, "u32"), BITS[kind]
    if kind[0] == "s":
        return code.write(f"({STORAGE[kind]})({value} >> least<u32>({amount}, {width - 1}))", kind)
    symbol = "<<" if i.name == "shl" else ">>"
    code.write(
        f"({STORAGE[kind]})({amount} > {width - 1} ? 0 : {value} {symbol} ({amount} & {width - 1}))", kind
    )


@operation("shf", "l r wrap clamp")
def funnel_shift(code: LaneCode) -> None:
    amount = (
        f"({code.read(3, 'u32')} & 31)"
        if code.instruction.has("wrap")
        else f"least<u32>({code.read(3, 'u32')}, 32)"
    )
    both = f"((u64){code.read(2, 'b32')} << 32 | {code.read(1, 'b32')})"
    code.write(
        f"(u32)(({both} << {amount}) >> 32)" if code.instruction.has("l") else f"(u32)({both} >> {amount})",
        "b32",
    )


@operation("bfi")
def insert(code: LaneCode) -> None:
    kind = STORAGE[code.instruction.type]
    code.write(
        f"insert_field<{kind}>({code.read(1)}, {code.read(2)}, {code.read(3, 'u32')}, {code.read(4, 'u32')})"
    )


@operation("bfe")
def extract(code: LaneCode) -> None:
    kind = STORAGE[code.instruction.type]
    code.write(f"extract_field<{kind}>({code.read(1)}, {code.read(2, 'u32')}, {code.read(3, 'u32')})")


@operation("prmt")
def permute(code: LaneCode) -> None:
    code.write(f"permute_bytes({code.read(1, 'b32')}, {code.read(2, 'b32')}, {code.read(3, 'b32')})", "b32")


@operation("lop3")
def three_input_logic(code: LaneCode) -> None:
    table = code.operand(4)
    if not isinstance(table, Immediate):
        raise code.instruction.unsupported()
    code.write(
        f"logic3({code.read(1, 'b32')}, {code.read(2, 'b32')}, {code.read(3, 'b32')}, {table.value})", "b32"
    )


@operation("popc clz brev bfind", "shiftamt")
def count_bits(code: LaneCode) -> None:
    i = code.instruction
    value, wide = code.read(1, raw(i.type)), BITS[i.type] == 64
    if wide and i.name in ("brev", "bfind"):
        raise i.unsupported("64 bits")
    suffix = "ll" if wide else ""
    forms = {
        "popc": f"__builtin_popcount{suffix}({value})",
        "clz": f"({value} ? __builtin_clz{suffix}({value}) : {BITS[i.type]})",
        "brev": f"reverse_bits({value})",
        "bfind": f"find_highest({value}, {int(i.type[0] == 's')}, {int(i.has('shiftamt'))})",
    }
    code.write(forms[i.name], "u32")


# ---- comparison and selection
# ----------------------------------------------------------------------------------------
@operation("setp", " ".join(COMPARISONS) + " equ neu ltu leu gtu geu num nan and or xor ftz")
def compare(code: LaneCode) -> None:
    i = code.instruction
    if i.type.endswith("x2") or i.has("ftz") and i.type != "f32":
        raise i.unsupported()
    kind = i.type if is_float(i.type) or i.type[0] in "us" or i.type in HALVES else unsigned(i.type)
    a, b = code.read(1, kind), code.read(2, kind)
    if kind in HALVES:
        a, b, kind = f"{HALVES[kind][0]}({a})", f"{HALVES[kind][0]}({b})", "f32"
    unordered, comparison = f"({a} != {a} || {b} != {b})", i.parts[1]
    if comparison in COMPARISONS:
        result = f"({a} {COMPARISONS[comparison]} {b})"
        if is_float(kind) and comparison == "ne":
            result = f"({result} && !{unordered})"
    elif comparison in ("num", "nan"):
        result = unordered if comparison == "nan" else f"!{unordered}"
    else:
        result = f"({a} {COMPARISONS[comparison[:2]]} {b} || {unordered})"
    combine = ""
    for part, symbol in (("and", "&"), ("or", "|"), ("xor", "^")):
        if i.has(part):
            combine = f" {symbol} {code.read(3, 'pred')}"
    to = code.operand(0)
    first, second = (to.first, to.second) if isinstance(to, Pair) else (to, SINK)
    code.write(f"(u32){result}{combine}", "pred", first)
    code.write(f"(u32)!{result}{combine}", "pred", second)


@operation("testp", "finite infinite number notanumber")
def classify(code: LaneCode) -> None:
    value = code.read(1)
    forms = {
        "finite": "std::isfinite({0})",
        "infinite": "std::isinf({0})",
        "notanumber": "{0} != {0}",
        "number": "{0} == {0}",
    }
    code.write(f"(u32)({forms[code.instruction.parts[1]].format(value)})", "pred")


@operation("selp")
def select(code: LaneCode) -> None:
    code.write(f"({code.read(3, 'pred')} ? {code.read(1)} : {code.read(2)})")


# ---- moves and conversions
# -------------------------------------------------------------------------------------------
@operation("mov")
def move(code: LaneCode) -> None:
    to, source, kind = code.operand(0), code.operand(1), raw(code.instruction.type)
    if isinstance(to, Vector):
        width = BITS[kind] // len(to.items)
        for k, item in enumerate(to.items):
            code.write(f"(u{width})({code.read(1, kind)} >> {width * k})", f"b{width}", item)
    elif isinstance(source, Vector):
        width = BITS[kind] // len(source.items)
        parts = (
            f"(u{BITS[kind]}){code.value(item, f'b{width}')} << {width * k}"
            for k, item in enumerate(source.items)
        )
        code.write(" | ".join(parts), kind)
    else:
        code.write(code.read(1, kind), kind)


@operation("cvta", "to global shared local const")
def convert_address(code: LaneCode) -> None:
    i = code.instruction
    window = {"shared": "SHARED_WINDOW", "local": "LOCAL_WINDOW"}.get(i.space)
    symbol = "-" if i.has("to") else "+"
    code.write(f"{code.read(1, 'u64')} {symbol} {window}" if window else code.read(1, "u64"), "u64")


@operation("cvt", "rn rna rm rp rz rni rzi rmi rpi ftz sat")
def convert(code: LaneCode) -> None:
    i = code.instruction
    if len(i.types) != 2:
        raise i.unsupported()
    to, source = i.types
    mode, integral = rounding(i), next((INTEGRAL[part] for part in i.parts if part in INTEGRAL), None)
    if mode is not None and to.removesuffix("x2") in HALVES:
        raise i.unsupported("directed rounding to half")
    if i.has("rna") != (to == "tf32"):
        raise i.unsupported("rounding")
    if to in ("f16x2", "bf16x2"):
        narrow = HALVES[to[:-2]][1]
        return code.write(f"pack({narrow}({code.read(2, 'f32')}), {narrow}({code.read(1, 'f32')}))", "b32")
    value = code.read(1, source)
    nan = 1 << (BITS[to] - 1) if source == "f64" or BITS[to] == 64 else 0
    if source in HALVES:
        value, source = f"{HALVES[source][0]}({value})", "f32"
    if is_float(source) and to[0] in "us":
        value = f"std::{integral}((f64){value})" if integral else value
        low, high = (
            (0, 2 ** BITS[to] - 1) if to[0] == "u" else (-(2 ** (BITS[to] - 1)), 2 ** (BITS[to] - 1) - 1)
        )
        return code.write(f"to_integer<{STORAGE[to]}>({value}, {float(low)!r}, {float(high)!r}, {nan}u)", to)
    if not is_float(source) and (i.has("sat") or to == "bf16" and BITS[source] == 64):
        raise i.unsupported("of an integer")
    if not is_float(source) and to[0] in "us":
        return code.write(f"({STORAGE[to]})({value})", to)
    if integral:
        value = f"std::{integral}({value})"
    if mode is not None:
        if to != "f32" or BITS[source] == 64 and not is_float(source):
            raise i.unsupported("directed rounding")
        value = f"round_directed((f64){value}, {mode})"
    if i.has("sat"):
        value = f"float_min(float_max({value}, {STORAGE[source]}(0)), {STORAGE[source]}(1))"
    if to in HALVES:
        value = f"{HALVES[to][1]}({f'round_to_odd({value})' if source != 'f32' else value})"
    elif to == "tf32":
        value = f"round_to_tf32({value})"
    else:
        value = f"({STORAGE[to]})({value})"
    code.write(value, to)
