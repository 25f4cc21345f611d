"""Arithmetic that each lane does for itself: C++ over the helpers of core/numeric.h and core/arithmetic.h.

Source: PTX ISA, version 9.0, "Instruction Set".
"""

from __future__ import annotations

from tir_schedules.machines.cpu.instructions.integers import extended, pairs_of_16, product
from tir_schedules.machines.cpu.lane_code import HALVES, STORAGE, WIDER, LaneCode, is_float, rounding
from tir_schedules.machines.cpu.lines import FRACTIONS, Line, exact, modelled, refusal
from tir_schedules.machines.cpu.ptx import BITS, Instruction
from tir_schedules.machines.cpu.table import Row, Zeros, lane

FLOAT_FORMS = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "neg": "-{0}",
    "abs": "std::fabs({0})",
    "ex2": "std::exp2({0})",
    "tanh": "std::tanh({0})",
}
DIRECTED_FORMS = {
    "add": "directed_sum<{type}, {wide}>({0}, {1}, {mode})",
    "sub": "directed_sum<{type}, {wide}>({0}, -{1}, {mode})",
    "mul": "round_directed<{type}>(({wide}){0} * {1}, {mode})",
    "fma": "directed_sum<{type}, {wide}>(({wide}){0} * {1}, {2}, {mode})",
    "mad": "directed_sum<{type}, {wide}>(({wide}){0} * {1}, {2}, {mode})",
    "div": "round_directed<{type}>(({wide}){0} / {1}, {mode})",
    "rcp": "round_directed<{type}>(({wide})1 / {0}, {mode})",
    "sqrt.f32": "round_directed<f32>(std::sqrt((f64){0}), {mode})",
    "sqrt.f64": "directed_root({0}, {mode})",
}


def directed(code: LaneCode, values: list[str], mode: int) -> str:
    """A result rounded down (mode -1), up (1) or towards zero (0)."""
    kind, name = code.instruction.type, code.instruction.name
    form = DIRECTED_FORMS[f"{name}.{kind}" if name == "sqrt" else name]
    return form.format(*values, mode=mode, type=kind, wide=WIDER[kind])


def extreme(i: Instruction, values: list[str]) -> str:
    """The least or greatest of float32 or float64 values."""
    signed, opposite = values, i.has("xorsign")
    if opposite != (i.has("xorsign") and i.has("abs")) or opposite and len(values) != 2:
        raise i.unsupported("modifier .xorsign")
    if i.has("abs"):
        values = [f"std::fabs({value})" for value in values]
    result = values[0]
    for value in values[1:]:
        smaller = f"float_{i.name}({result}, {value})"
        result = f"either_nan({result}, {value}, {smaller})" if i.has("NaN") else smaller
    return f"with_xor_of_signs({result}, {signed[0]}, {signed[1]})" if opposite else result


def half_form(i: Instruction, values: list[str]) -> str:
    """float32 from which rounding to half is right, of float32 operands."""
    if i.name in ("max", "min"):
        return extreme(i, values)
    if i.name in ("fma", "mad"):
        result = "round_to_odd(odd_sum((f64){0} * {1}, (f64){2}))".format(*values)
    else:
        result = FLOAT_FORMS[i.name].format(*values)
    if i.has("sat"):
        result = f"float_min(float_max({result}, 0.f), 1.f)"
    return f"rectify({result})" if i.has("relu") else result


def half_arithmetic(code: LaneCode) -> None:
    """f16, bf16 and their x2 forms, through float32."""
    i = code.instruction
    if rounding(i) is not None or i.has("relu") and i.name != "fma":
        raise i.unsupported("of halves")
    operands = [code.halves(k) for k in range(1, len(i.operands))]
    code.write_halves([half_form(i, list(values)) for values in zip(*operands)])


def float_arithmetic(code: LaneCode) -> None:
    """f32 and f64, rounded as the instruction says."""
    i = code.instruction
    if i.has("relu"):
        raise i.unsupported("modifier .relu of a type that is not a half")
    values, mode = [code.read(k) for k in range(1, len(i.operands))], rounding(i)
    if mode is not None:
        expression = directed(code, values, mode)
    elif i.name in ("max", "min"):
        expression = extreme(i, values)
    else:
        form = "std::fma({0}, {1}, {2})" if i.name in ("fma", "mad") else FLOAT_FORMS[i.name]
        expression = form.format(*values)
    code.write(f"float_min(float_max({expression}, 0.f), 1.f)" if i.has("sat") else expression)


def arithmetic(code: LaneCode) -> None:
    i = code.instruction
    if len(i.types) > 1:
        raise i.unsupported(MIXED)
    if i.type.removesuffix("x2") in HALVES:
        return half_arithmetic(code)
    if is_float(i.type):
        return float_arithmetic(code)
    if i.has("cc"):
        return extended(code)
    return pairs_of_16(code) if i.type.endswith("x2") else integer_arithmetic(code)


def integer_arithmetic(code: LaneCode) -> None:
    i, kind = code.instruction, code.instruction.type
    if i.name in ("max", "min"):
        return integer_extreme(code)
    if i.has("sat"):
        return saturated(code)
    plain = f"u{BITS[kind]}"  # wraps around
    if i.name in ("mul", "mad"):
        result = product(code)
        if i.has("wide"):
            kind, plain = f"{kind[0]}{2 * BITS[kind]}", f"u{2 * BITS[kind]}"
            result = f"({plain})({result})" if i.name == "mad" else result
        if i.name == "mad":
            result += f" + {code.read(3, plain)}"
        return code.write(result if i.has("wide") else f"({STORAGE[kind]})({result})", kind)
    symbol = {"add": "+", "sub": "-"}[i.name]
    result = f"(u{max(32, BITS[kind])}){code.read(1, plain)} {symbol} {code.read(2, plain)}"
    code.write(f"({STORAGE[kind]})({result})")


def integer_extreme(code: LaneCode) -> None:
    i, kind = code.instruction, code.instruction.type
    function = "greatest" if i.name == "max" else "least"
    result = f"{function}<{STORAGE[kind]}>({code.read(1)}, {code.read(2)})"
    if i.has("relu") and kind != "s32":
        raise i.unsupported("modifier .relu")
    code.write(f"greatest<s32>({result}, 0)" if i.has("relu") else result)


def saturated(code: LaneCode) -> None:
    i = code.instruction
    forms = {
        "add": "saturate((s64){0} + {1})",
        "sub": "saturate((s64){0} - {1})",
        "mad": "saturate(((s64){0} * {1} >> 32) + {2})",
    }
    if i.type != "s32" or i.name not in forms or i.name == "mad" and not i.has("hi"):
        raise i.unsupported("modifier .sat")
    code.write(forms[i.name].format(*(code.read(k) for k in range(1, len(i.operands)))))


def division(code: LaneCode) -> None:
    i, kind, mode = code.instruction, code.instruction.type, rounding(code.instruction)
    a, b = code.read(1), code.read(2)
    if not is_float(kind):
        return code.write(f"divide<{STORAGE[kind]}>({a}, {b})")
    if mode is not None:
        return code.write(directed(code, [a, b], mode))
    code.write(f"approximate_quotient({a}, {b})" if i.has("approx") else f"{a} / {b}")


def remainder(code: LaneCode) -> None:
    code.write(f"remainder_of<{STORAGE[code.instruction.type]}>({code.read(1)}, {code.read(2)})")


def sign(code: LaneCode) -> None:
    i = code.instruction
    if i.type.removesuffix("x2") in HALVES:
        return half_arithmetic(code)
    if is_float(i.type):
        return code.write(FLOAT_FORMS[i.name].format(code.read(1)))
    negative = f"({STORAGE[i.type]})(0 - (u{BITS[i.type]}){code.read(1)})"
    code.write(negative if i.name == "neg" else f"({code.read(1)} < 0 ? {negative} : {code.read(1)})")


def transcendental(code: LaneCode) -> None:
    """Approximate ones are computed to full precision: a GPU's differ by a few units in the last place."""
    i, mode = code.instruction, rounding(code.instruction)
    if i.type.removesuffix("x2") in HALVES:
        return half_arithmetic(code)
    value = code.read(1)
    if mode is not None:
        return code.write(directed(code, [value], mode))
    forms = {
        "sqrt": "std::sqrt({0})",
        "rcp": "{1}(1) / {0}",
        "rsqrt": "({1})(1.0 / std::sqrt((f64){0}))",
        "ex2": "std::exp2({0})",
        "lg2": "std::log2({0})",
    }
    form = forms.get(i.name, f"std::{i.name}({{0}})")
    if i.type == "f64" and i.has("ftz"):
        value, form = f"flush({value})", f"flush(upper_half({form}))"
    code.write(form.format(value, STORAGE[i.type]))


def copy_sign(code: LaneCode) -> None:
    code.write(f"std::copysign({code.read(2)}, {code.read(1)})")


# ---- trailing zeros of results ---
def zeros_of_sum(i: Instruction, zeros: Zeros) -> int:
    return 0 if i.has("hi") else min(zeros(i.operands[1]), zeros(i.operands[2]))


def zeros_of_product(i: Instruction, zeros: Zeros) -> int:
    return 0 if i.has("hi") else zeros(i.operands[1]) + zeros(i.operands[2])


def zeros_of_multiply_add(i: Instruction, zeros: Zeros) -> int:
    return 0 if i.has("hi") else min(zeros_of_product(i, zeros), zeros(i.operands[3]))


MIXED = "convert the half first"
ROUNDINGS = "rn rm rp rz ftz"
MODIFIERS = f"{ROUNDINGS} sat lo hi wide cc"
SUM = lane(arithmetic, "=d, a, b", MODIFIERS, zeros=zeros_of_sum)
EXTREME = lane(
    arithmetic, "=d, a, b, c?", "ftz NaN xorsign abs relu", pipe="fp32:alu fp16:alu", zeros=zeros_of_sum
)
SIGN = lane(sign, "=d, a", "ftz")
ROOT = lane(transcendental, "=d, a", f"{ROUNDINGS} approx", mix="special")
SPECIAL = lane(transcendental, "=d, a", "approx ftz", mix="special")

ALL_ROUNDINGS = "{,.rn,.rz,.rm,.rp}"
SINGLE = f"{ALL_ROUNDINGS}{{,.ftz}}{{,.sat}}.f32"
HALF = "{,.rn}{,.ftz}{,.sat}.{f16,f16x2}"
CORRECT = "correctly rounded in float32 or float64; an H200's differs by up to"
WITHIN = f"{CORRECT} 1 unit in the last place"
OF_WAVES = f"{CORRECT} 36 units in the last place between 0.1 and 3.1, elsewhere by more"
OF_LOGARITHMS = f"{CORRECT} 33 units in the last place, beside 1 by more"
UPPER = "of the upper 32 bits, which are all it has"


def of_sums(name: str) -> tuple[Line, ...]:
    return (
        exact(f"{name}.{{u16,s16,u32,s32,u64,s64}} {name}.sat.s32 {name}.cc.{{u32,s32,u64,s64}}"),
        exact(f"{name}{SINGLE} {name}{ALL_ROUNDINGS}.f64 {name}{HALF}", FRACTIONS),
        exact(f"{name}{{,.rn}}.{{bf16,bf16x2}}", FRACTIONS, 90),
        refusal(f"{name}.f32.{{f16,bf16}}", MIXED, 100),
    )


def of_extremes(name: str) -> tuple[Line, ...]:
    return (
        exact(f"{name}.{{u16,s16,u32,s32,u64,s64}}"),
        exact(f"{name}{{,.relu}}.s16x2 {name}.u16x2 {name}.relu.s32", since=90),
        exact(f"{name}{{,.ftz}}.f32 {name}.f64", FRACTIONS),
        exact(f"{name}{{,.ftz}}{{,.NaN}}{{,.xorsign.abs}}.{{f16,f16x2}}", FRACTIONS, 80),
        exact(f"{name}{{,.NaN}}{{,.xorsign.abs}}.{{bf16,bf16x2}}", FRACTIONS, 80),
        exact(f"{name}{{,.ftz}}.NaN{{,.xorsign.abs}}.f32 {name}{{,.ftz}}.xorsign.abs.f32", FRACTIONS, 80),
    )


OF_SIGNS = "{s16,s32,s64}"
OF_ROOTS = "{.rn,.rz,.rm,.rp}{.f32,.ftz.f32,.f64}"

ROWS: dict[str, Row] = {
    "add": SUM,
    "sub": SUM,
    "max": EXTREME,
    "min": EXTREME,
    "mul": lane(arithmetic, "=d, a, b", MODIFIERS, pipe="int:fma", zeros=zeros_of_product),
    "mad": lane(arithmetic, "=d, a, b, c", MODIFIERS, pipe="int:fma", zeros=zeros_of_multiply_add),
    "fma": lane(arithmetic, "=d, a, b, c", f"{ROUNDINGS} sat relu"),
    "div": lane(division, "=d, a, b", f"{ROUNDINGS} approx full", pipe="int:fma"),
    "rem": lane(remainder, "=d, a, b", pipe="fma"),
    "neg": SIGN,
    "abs": SIGN,
    "copysign": lane(copy_sign, "=d, a, b", pipe="alu"),
    "sqrt": ROOT,
    "rcp": ROOT,
    "rsqrt": SPECIAL,
    "sin": SPECIAL,
    "cos": SPECIAL,
    "lg2": SPECIAL,
    "ex2": SPECIAL,
    "tanh": SPECIAL,
}

LINES = (
    *of_sums("add"),
    exact("add.{u16x2,s16x2}", since=90),
    *of_sums("sub"),
    *of_extremes("max"),
    *of_extremes("min"),
    exact("mul.{lo,hi}.{u16,s16,u32,s32,u64,s64} mul.wide.{u16,s16,u32,s32}"),
    exact(f"mul{SINGLE} mul{ALL_ROUNDINGS}.f64 mul{HALF}", FRACTIONS),
    exact("mul{,.rn}.{bf16,bf16x2}", FRACTIONS, 90),
    exact("mad.{lo,hi}.{u16,s16,u32,s32,u64,s64} mad.wide.{u16,s16,u32,s32} mad.hi.sat.s32"),
    exact("mad.{lo,hi}.cc.{u32,s32,u64,s64}"),
    exact("mad{.rn,.rz,.rm,.rp}{,.ftz}{,.sat}.f32 mad{.rn,.rz,.rm,.rp}.f64", FRACTIONS),
    exact("fma{.rn,.rz,.rm,.rp}{,.ftz}{,.sat}.f32 fma{.rn,.rz,.rm,.rp}.f64", FRACTIONS),
    exact("fma.rn{,.ftz}{,.sat}.{f16,f16x2}", FRACTIONS),
    exact("fma.rn{,.ftz}.relu.{f16,f16x2} fma.rn{,.relu}.{bf16,bf16x2}", FRACTIONS, 80),
    refusal("fma.rn.oob.{f16,bf16x2}", "write the comparison with NaN as a selection", 90),
    refusal("fma.rn.f32.{f16,bf16}", MIXED, 100),
    exact("div.{u16,s16,u32,s32,u64,s64}"),
    exact("div{.rn,.rz,.rm,.rp}{.f32,.ftz.f32,.f64}", FRACTIONS),
    modelled("div.{approx,full}{,.ftz}.f32", WITHIN),
    exact("rem.{u16,s16,u32,s32,u64,s64}"),
    exact(f"neg.{OF_SIGNS}"),
    exact("neg.{f32,ftz.f32,f64,f16,f16x2,ftz.f16,ftz.f16x2}", FRACTIONS),
    exact("neg.{bf16,bf16x2}", FRACTIONS, 80),
    exact(f"abs.{OF_SIGNS}"),
    exact("abs.{f32,ftz.f32,f64,f16,f16x2,ftz.f16,ftz.f16x2}", FRACTIONS),
    exact("abs.{bf16,bf16x2}", FRACTIONS, 80),
    exact("copysign.{f32,f64}", FRACTIONS),
    exact(f"sqrt{OF_ROOTS}", FRACTIONS),
    modelled("sqrt.approx{,.ftz}.f32", WITHIN),
    exact(f"rcp{OF_ROOTS}", FRACTIONS),
    modelled("rcp.approx{,.ftz}.f32", WITHIN),
    modelled("rcp.approx.ftz.f64", f"{CORRECT} 2 units in the last place {UPPER}"),
    modelled("rsqrt.approx{,.ftz}.f32 rsqrt.approx.f64", WITHIN),
    modelled("rsqrt.approx.ftz.f64", f"{WITHIN} {UPPER}"),
    modelled("sin.approx{,.ftz}.f32", OF_WAVES),
    modelled("cos.approx{,.ftz}.f32", OF_WAVES),
    modelled("lg2.approx{,.ftz}.f32", OF_LOGARITHMS),
    modelled("ex2.approx{,.ftz}.f32 ex2.approx.{f16,f16x2}", WITHIN),
    modelled("ex2.approx.ftz.{bf16,bf16x2}", WITHIN, 90),
    modelled("tanh.approx.f32", f"{CORRECT} 114 units in the last place"),
    modelled("tanh.approx.{f16,f16x2}", WITHIN),
    modelled("tanh.approx.{bf16,bf16x2}", WITHIN, 90),
)
