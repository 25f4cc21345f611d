"""Arithmetic that each lane does for itself: C++ over the helpers of core/numeric.h and core/arithmetic.h.

Source: PTX ISA, version 9.0, "Instruction Set".
"""

from __future__ import annotations

from tir_schedules.machines.cpu.forms import Form, Zeros, lane
from tir_schedules.machines.cpu.lane_code import HALVES, STORAGE, LaneCode, is_float, rounding, unsigned
from tir_schedules.machines.cpu.ptx import BITS, Instruction

WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
FLOAT_FORMS = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "max": "float_max({0}, {1})",
    "min": "float_min({0}, {1})",
    "neg": "-{0}",
    "abs": "std::fabs({0})",
    "ex2": "std::exp2({0})",
    "tanh": "std::tanh({0})",
}
DIRECTED_FORMS = {
    "add": "directed_sum({0}, {1}, {mode})",
    "sub": "directed_sum({0}, -{1}, {mode})",
    "mul": "round_directed((f64){0} * {1}, {mode})",
    "fma": "directed_sum((f64){0} * {1}, {2}, {mode})",
    "mad": "directed_sum((f64){0} * {1}, {2}, {mode})",
}


def half_form(name: str, *values: str) -> str:
    """float32 from which rounding to half is right, of float32 operands."""
    if name in ("fma", "mad"):
        return "round_to_odd(odd_sum((f64){0} * {1}, {2}))".format(*values)
    return FLOAT_FORMS[name].format(*values)


def half_arithmetic(code: LaneCode) -> None:
    """f16, bf16 and their x2 forms, through float32."""
    i = code.instruction
    if rounding(i) is not None or i.has("sat") or i.has("ftz") or i.has("NaN") or i.has("relu"):
        raise i.unsupported()
    widen, narrow = HALVES[i.type.removesuffix("x2")]
    count = len(i.operands)
    if not i.type.endswith("x2"):
        values = [f"{widen}({code.read(k)})" for k in range(1, count)]
        return code.write(f"{narrow}({half_form(i.name, *values)})")
    parts = []
    for shift in (0, 16):
        values = (f"{widen}((u16)({code.read(k, 'b32')} >> {shift}))" for k in range(1, count))
        parts.append(f"{narrow}({half_form(i.name, *values)})")
    code.write(f"pack({parts[0]}, {parts[1]})", "b32")


def float_arithmetic(code: LaneCode) -> None:
    """f32 and f64, rounded as the instruction says."""
    i = code.instruction
    values = [code.read(k) for k in range(1, len(i.operands))]
    form = "std::fma({0}, {1}, {2})" if i.name in ("fma", "mad") else FLOAT_FORMS[i.name]
    mode = rounding(i)
    if mode is not None:
        if i.type != "f32":
            raise i.unsupported("directed rounding of float64")
        form = DIRECTED_FORMS[i.name]
    expression = form.format(*values, mode=mode)
    code.write(f"float_min(float_max({expression}, 0.f), 1.f)" if i.has("sat") else expression)


def arithmetic(code: LaneCode) -> None:
    i = code.instruction
    if i.type.removesuffix("x2") in HALVES:
        return half_arithmetic(code)
    if not is_float(i.type):
        return integer_arithmetic(code)
    float_arithmetic(code)


def integer_arithmetic(code: LaneCode) -> None:
    i, kind = code.instruction, code.instruction.type
    if i.has("sat"):
        raise i.unsupported("modifier .sat")
    if i.name in ("max", "min"):
        function = "greatest" if i.name == "max" else "least"
        return code.write(f"{function}<{STORAGE[kind]}>({code.read(1)}, {code.read(2)})")
    addend = i.name == "mad"
    if i.has("wide"):
        wide = WIDER[kind]
        result = f"({STORAGE[wide]}){code.read(1)} * ({STORAGE[wide]}){code.read(2)}"
        if addend:
            result = f"({unsigned(wide)})({result}) + {code.read(3, unsigned(wide))}"
        return code.write(result, wide)
    if i.has("hi"):
        double = {32: f"{kind[0]}64", 64: "__int128" if kind[0] == "s" else "unsigned __int128"}[BITS[kind]]
        high = f"({STORAGE[kind]})(({double}){code.read(1)} * ({double}){code.read(2)} >> {BITS[kind]})"
        return code.write(f"({STORAGE[kind]})({high} + {code.read(3)})" if addend else high)
    plain = unsigned(kind)  # wraps around; narrow types are promoted beyond overflow
    symbol = {"add": "+", "sub": "-", "mul": "*", "mad": "*"}[i.name]
    result = f"(u{max(32, BITS[kind])}){code.read(1, plain)} {symbol} {code.read(2, plain)}"
    code.write(f"({STORAGE[kind]})({result}{' + ' + code.read(3, plain) if addend else ''})")


def division(code: LaneCode) -> None:
    kind = code.instruction.type
    a, b = code.read(1), code.read(2)
    code.write(f"{a} / {b}" if is_float(kind) else f"divide<{STORAGE[kind]}>({a}, {b})")


def remainder(code: LaneCode) -> None:
    code.write(f"remainder_of<{STORAGE[code.instruction.type]}>({code.read(1)}, {code.read(2)})")


def sign(code: LaneCode) -> None:
    i = code.instruction
    if i.type.removesuffix("x2") in HALVES:
        return half_arithmetic(code)
    if is_float(i.type):
        return code.write(FLOAT_FORMS[i.name].format(code.read(1)))
    negative = f"({STORAGE[i.type]})(0 - ({unsigned(i.type)}){code.read(1)})"
    code.write(negative if i.name == "neg" else f"({code.read(1)} < 0 ? {negative} : {code.read(1)})")


def transcendental(code: LaneCode) -> None:
    """Approximate ones are computed to full precision: a GPU's differ by a few units in the last place."""
    i = code.instruction
    if i.type.removesuffix("x2") in HALVES:
        return half_arithmetic(code)
    forms = {
        "sqrt": "std::sqrt({0})",
        "rcp": "{1}(1) / {0}",
        "rsqrt": "({1})(1.0 / std::sqrt((f64){0}))",
        "ex2": "std::exp2({0})",
        "lg2": "std::log2({0})",
    }
    form = forms.get(i.name, f"std::{i.name}({{0}})")
    code.write(form.format(code.read(1), STORAGE[i.type]))


def copy_sign(code: LaneCode) -> None:
    code.write(f"std::copysign({code.read(2)}, {code.read(1)})")


def dot_product(code: LaneCode) -> None:
    a, b = (str(kind[0] == "s").lower() for kind in code.instruction.types)
    code.write(f"dot4({code.read(1, 'b32')}, {code.read(2, 'b32')}, {code.read(3, 's32')}, {a}, {b})", "s32")


# ---- trailing zeros of results ---
def zeros_of_sum(i: Instruction, zeros: Zeros) -> int:
    return 0 if i.has("hi") else min(zeros(i.operands[1]), zeros(i.operands[2]))


def zeros_of_product(i: Instruction, zeros: Zeros) -> int:
    return 0 if i.has("hi") else zeros(i.operands[1]) + zeros(i.operands[2])


def zeros_of_multiply_add(i: Instruction, zeros: Zeros) -> int:
    return 0 if i.has("hi") else min(zeros_of_product(i, zeros), zeros(i.operands[3]))


MODIFIERS = "rn rm rp rz ftz sat lo hi wide"
SUM = lane(arithmetic, MODIFIERS, zeros=zeros_of_sum)
SIGN = lane(sign, "ftz")
SPECIAL = lane(transcendental, "rn approx ftz", mix="special")

FORMS: dict[str, Form] = {
    "add": SUM,
    "sub": SUM,
    "max": SUM,
    "min": SUM,
    "mul": lane(arithmetic, MODIFIERS, zeros=zeros_of_product),
    "mad": lane(arithmetic, MODIFIERS, zeros=zeros_of_multiply_add),
    "fma": lane(arithmetic, MODIFIERS),
    "div": lane(division, "rn approx full ftz"),
    "rem": lane(remainder),
    "neg": SIGN,
    "abs": SIGN,
    "copysign": lane(copy_sign),
    "dp4a": lane(dot_product),
    **dict.fromkeys(("sqrt", "rcp", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh"), SPECIAL),
}
