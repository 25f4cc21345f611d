"""What one lane computes for arithmetic instructions: C++ over the helpers of core/numeric.h.

Source: PTX ISA, version 9.0, "Instruction Set".
"""

from __future__ import annotations

from tir_schedules.machines.cpu.lane_code import STORAGE, LaneCode, is_float, operation, unsigned
from tir_schedules.machines.cpu.ptx import BITS, Instruction

HALVES = {"f16": ("half_to_float", "float_to_half"), "bf16": ("bfloat_to_float", "float_to_bfloat")}
WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
DIRECTIONS = {"rm": -1, "rp": 1, "rz": 0}


def rounding(instruction: Instruction) -> int | None:
    """-1, 0 or 1 for a directed rounding, None for rounding to nearest."""
    return next((DIRECTIONS[part] for part in instruction.parts if part in DIRECTIONS), None)


# ---- floating point and integer arithmetic
# ---------------------------------------------------------------------------
FLOAT_FORMS = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "max": "float_max({0}, {1})",
    "min": "float_min({0}, {1})",
    "neg": "-{0}", "abs": "std::fabs({0})", "ex2": "std::exp2({0})", "tanh": "std::tanh({0})",
}  # fmt: skip
DIRECTED_FORMS = {
    "add": "directed_sum({0}, {1}, {mode})", "sub": "directed_sum({0}, -{1}, {mode})",
    "mul": "round_directed((f64){0} * {1}, {mode})",
    "fma": "directed_sum((f64){0} * {1}, {2}, {mode})", "mad": "directed_sum((f64){0} * {1}, {2}, {mode})",
}  # fmt: skip


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
        return code.write(
            f"{narrow}({half_form(i.name, *(f'{widen}({code.read(k)})' for k in range(1, count)))})"
        )
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


@operation("add sub mul fma mad max min", "rn rm rp rz ftz sat lo hi wide")
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
        product = f"({STORAGE[wide]}){code.read(1)} * ({STORAGE[wide]}){code.read(2)}"
        return code.write(
            f"({unsigned(wide)})({product}) + {code.read(3, unsigned(wide))}" if addend else product, wide
        )
    if i.has("hi"):
        double = {32: f"{kind[0]}64", 64: "__int128" if kind[0] == "s" else "unsigned __int128"}[BITS[kind]]
        high = f"({STORAGE[kind]})(({double}){code.read(1)} * ({double}){code.read(2)} >> {BITS[kind]})"
        return code.write(f"({STORAGE[kind]})({high} + {code.read(3)})" if addend else high)
    plain = unsigned(kind)  # wraps around; narrow types are promoted beyond overflow
    symbol = {"add": "+", "sub": "-", "mul": "*", "mad": "*"}[i.name]
    result = f"(u{max(32, BITS[kind])}){code.read(1, plain)} {symbol} {code.read(2, plain)}"
    code.write(f"({STORAGE[kind]})({result}{' + ' + code.read(3, plain) if addend else ''})")


@operation("div", "rn approx full ftz")
def division(code: LaneCode) -> None:
    kind = code.instruction.type
    code.write(
        f"{code.read(1)} / {code.read(2)}"
        if is_float(kind)
        else f"divide<{STORAGE[kind]}>({code.read(1)}, {code.read(2)})"
    )


@operation("rem")
def remainder(code: LaneCode) -> None:
    code.write(f"remainder_of<{STORAGE[code.instruction.type]}>({code.read(1)}, {code.read(2)})")


@operation("neg abs", "ftz")
def sign(code: LaneCode) -> None:
    i = code.instruction
    if i.type.removesuffix("x2") in HALVES:
        return half_arithmetic(code)
    if is_float(i.type):
        return code.write(FLOAT_FORMS[i.name].format(code.read(1)))
    negative = f"({STORAGE[i.type]})(0 - ({unsigned(i.type)}){code.read(1)})"
    code.write(negative if i.name == "neg" else f"({code.read(1)} < 0 ? {negative} : {code.read(1)})")


@operation("sqrt rcp rsqrt ex2 lg2 sin cos tanh", "rn approx ftz")
def transcendental(code: LaneCode) -> None:
    """Approximate instructions are computed to full precision; results agree with a GPU's to a few units in
    the last place."""
    i = code.instruction
    if i.type.removesuffix("x2") in HALVES:
        return half_arithmetic(code)
    forms = {
        "sqrt": "std::sqrt({0})",
        "rcp": "{1}(1) / {0}",
        "rsqrt": "({1})(1.0 / std::sqrt((f64){0}))",
        "lg2": "std::log2({0})",
    }
    code.write(
        forms.get(i.name, f"std::{ {'ex2': 'exp2'}.get(i.name, i.name) }({{0}})").format(
            code.read(1), STORAGE[i.type]
        )
    )


@operation("copysign")
def copy_sign(code: LaneCode) -> None:
    code.write(f"std::copysign({code.read(2)}, {code.read(1)})")


@operation("dp4a")
def dot_product(code: LaneCode) -> None:
    a, b = (str(kind[0] == "s").lower() for kind in code.instruction.types)
    code.write(f"dot4({code.read(1, 'b32')}, {code.read(2, 'b32')}, {code.read(3, 's32')}, {a}, {b})", "s32")
