"""Comparison and selection that each lane does for itself.

Source: PTX ISA, version 9.0, "Instruction Set".
"""

from __future__ import annotations

from tir_schedules.machines.cpu.forms import Form, Spread, Zeros, lane
from tir_schedules.machines.cpu.lane_code import HALVES, LaneCode, is_float, unsigned
from tir_schedules.machines.cpu.ptx import SINK, Instruction, Pair

COMPARISONS = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "lo": "<", "ls": "<=", "hi": ">", "hs": ">=",
}  # fmt: skip


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


def test_property(code: LaneCode) -> None:
    forms = {
        "finite": "std::isfinite({0})",
        "infinite": "std::isinf({0})",
        "notanumber": "{0} != {0}",
        "number": "{0} == {0}",
    }
    code.write(f"(u32)({forms[code.instruction.parts[1]].format(code.read(1))})", "pred")


def select(code: LaneCode) -> None:
    code.write(f"({code.read(3, 'pred')} ? {code.read(1)} : {code.read(2)})")


def zeros_of_either(i: Instruction, zeros: Zeros) -> int:
    return min(zeros(i.operands[1]), zeros(i.operands[2]))


COMPARED = " ".join(COMPARISONS) + " equ neu ltu leu gtu geu num nan and or xor ftz"

FORMS: dict[str, Form] = {
    "setp": lane(compare, COMPARED, operand_types={3: "pred"}),
    "testp": lane(test_property, "finite infinite number notanumber"),
    "selp": lane(select, spread=Spread.CHOSEN, zeros=zeros_of_either, operand_types={3: "pred"}),
}
