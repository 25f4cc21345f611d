"""Comparison and selection that each lane does for itself.

Source: PTX ISA, version 9.0, "Instruction Set".
"""

from __future__ import annotations

from tir_schedules.machines.cpu.instructions.bits import zeros_of_or
from tir_schedules.machines.cpu.lane_code import HALVES, STORAGE, LaneCode, is_float, raw, unsigned
from tir_schedules.machines.cpu.lines import FRACTIONS, Line, exact, refusal
from tir_schedules.machines.cpu.ptx import BITS, SINK, Pair
from tir_schedules.machines.cpu.table import Row, Spread, lane

COMPARISONS = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "lo": "<", "ls": "<=", "hi": ">", "hs": ">=",
}  # fmt: skip


def comparison(name: str, a: str, b: str, is_number: bool) -> str:
    """C++ of a comparison. is_number: whether of floats; one of them may be NaN."""
    unordered = f"({a} != {a} || {b} != {b})"
    if name in COMPARISONS:
        result = f"({a} {COMPARISONS[name]} {b})"
        return f"({result} && !{unordered})" if is_number and name == "ne" else result
    if name in ("num", "nan"):
        return unordered if name == "nan" else f"!{unordered}"
    return f"({a} {COMPARISONS[name[:2]]} {b} || {unordered})"


def compared(code: LaneCode) -> list[str]:
    """C++ of what the opcode compares, one for each part of the operands."""
    i = code.instruction
    name = i.parts[1]
    if i.has("ftz") and i.type not in ("f32", "f16", "f16x2"):
        raise i.unsupported("modifier .ftz")
    if i.type.removesuffix("x2") in HALVES:
        return [comparison(name, a, b, True) for a, b in zip(code.halves(1), code.halves(2))]
    kind = i.type if i.type[0] != "b" else unsigned(i.type)
    return [comparison(name, code.read(1, kind), code.read(2, kind), is_float(kind))]


def combined(code: LaneCode) -> str:
    """What is done to the result with the predicate, the third operand."""
    for part, symbol in (("and", "&"), ("or", "|"), ("xor", "^")):
        if code.instruction.has(part):
            return f" {symbol} {code.read(3, 'pred')}"
    return ""


def compare(code: LaneCode) -> None:
    results, combine, to = compared(code), combined(code), code.operand(0)
    first, second = (to.first, to.second) if isinstance(to, Pair) else (to, SINK)
    if len(results) == 1:
        results.append(f"!{results[0]}")
    elif not isinstance(to, Pair):
        raise code.instruction.unsupported("one predicate for two comparisons")
    code.write(f"(u32){results[0]}{combine}", "pred", first)
    code.write(f"(u32){results[1]}{combine}", "pred", second)


def set_number(code: LaneCode) -> None:
    """Where a comparison holds: all bits, or 1 of a float type; 0 elsewhere."""
    i, combine = code.instruction, combined(code)
    if len(i.types) != 2:
        raise i.unsupported()
    to, results = i.types[0], [f"({result}{combine})" for result in compared(code)]
    ones = {"f32": "1.f", "f16": "0x3c00", "bf16": "0x3f80"}
    if len(results) == 2:
        if BITS[to] != 32 or to == "f32":
            raise i.unsupported("types")
        one = ones.get(to.removesuffix("x2"), "0xffff")
        return code.write(f"pack({results[0]} ? {one} : 0, {results[1]} ? {one} : 0)", "b32")
    one = ones.get(to, "-1" if to[0] == "s" else f"({unsigned(to)})-1")
    code.write(f"({results[0]} ? ({STORAGE[to]}){one} : ({STORAGE[to]})0)", to)


def test_property(code: LaneCode) -> None:
    forms = {
        "finite": "std::isfinite({0})",
        "infinite": "std::isinf({0})",
        "notanumber": "{0} != {0}",
        "number": "{0} == {0}",
        "normal": "std::isnormal({0}) || {0} == 0",
        "subnormal": "std::fpclassify({0}) == FP_SUBNORMAL",
    }
    code.write(f"(u32)({forms[code.instruction.parts[1]].format(code.read(1))})", "pred")


def is_in_space(code: LaneCode) -> None:
    """Variables in const space lie among those in global space, and cannot be told from them."""
    forms = {
        "shared": "({0} - SHARED_WINDOW < (1ull << RANK_SHIFT))",
        "shared::cluster": "({0} - SHARED_WINDOW < WINDOW_BYTES)",
        "local": "({0} - LOCAL_WINDOW < WINDOW_BYTES)",
        "global": "({0} >> BUFFER_SHIFT != 0)",
    }
    space = "shared::cluster" if code.instruction.has("shared::cluster") else code.instruction.space
    code.write(f"(u32){forms[space].format(code.read(1, 'u64'))}", "pred")


def select_by_sign(code: LaneCode) -> None:
    i = code.instruction
    if len(i.types) != 2 or i.type not in ("s32", "f32") or i.has("ftz") and i.type != "f32":
        raise i.unsupported("types")
    kind = raw(i.types[0])
    code.write(f"({code.read(3)} >= 0 ? {code.read(1, kind)} : {code.read(2, kind)})", kind)


def select(code: LaneCode) -> None:
    code.write(f"({code.read(3, 'pred')} ? {code.read(1)} : {code.read(2)})")


COMPARED = " ".join(COMPARISONS) + " equ neu ltu leu gtu geu num nan and or xor ftz"
PROPERTIES = "finite infinite number notanumber normal subnormal"

TESTS = "{eq,ne,lt,le,gt,ge}"
ON_FLOATS = "{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}"


def of_comparisons(name: str, result: str) -> tuple[Line, ...]:
    """result: of set, its type."""
    halves = result.replace("f32", "f16")
    return (
        exact(f"{name}.{TESTS}{{,.and,.or,.xor}}{result}.{{s16,s32,s64}}"),
        exact(
            f"{name}.{{eq,ne}}{result}.{{b16,b32,b64}} {name}.{{eq,ne,lo,ls,hi,hs}}{result}.{{u16,u32,u64}}"
        ),
        exact(f"{name}.{ON_FLOATS}{result}{{.f32,.f64}} {name}.{TESTS}.ftz{result}.f32", FRACTIONS),
        exact(f"{name}.{ON_FLOATS}{halves}.f16 {name}.{TESTS}.ftz{halves}.f16", FRACTIONS),
    )


ROWS: dict[str, Row] = {
    "setp": lane(compare, "=p|=q?, a, b, c:pred?", COMPARED, pipe="fp32:alu"),
    "set": lane(set_number, "=d, a, b, c:pred?", COMPARED, pipe="fp32:alu"),
    "testp": lane(test_property, "=p, a", PROPERTIES, pipe="fp32:alu"),
    "isspacep": lane(is_in_space, "=p, a:u64", "global local shared shared::cta shared::cluster"),
    "slct": lane(select_by_sign, "=d, a, b, c", "ftz", pipe="alu"),
    "selp": lane(select, "=d, a, b, c:pred", pipe="alu", spread=Spread.CHOSEN, zeros=zeros_of_or),
}

LINES = (
    *of_comparisons("setp", ""),
    exact(f"setp.{ON_FLOATS}{{,.and}}.f16x2", FRACTIONS),
    exact(f"setp.{ON_FLOATS}.{{bf16,bf16x2}}", FRACTIONS, 90),
    *of_comparisons("set", ".{u32,s32,f32}"),
    exact(f"set.{ON_FLOATS}.{{f16x2,u32}}.f16x2", FRACTIONS),
    exact(f"set.{ON_FLOATS}.{{bf16x2,u32}}.bf16x2 set.{ON_FLOATS}.bf16.bf16", FRACTIONS, 90),
    exact("testp.{finite,infinite,number,notanumber,normal,subnormal}.{f32,f64}", FRACTIONS),
    exact("isspacep.{global,local,shared,shared::cta}"),
    exact("isspacep.shared::cluster", since=90),
    refusal("isspacep.const", "the machine keeps constants among global variables"),
    exact("slct.{b16,b32,b64,u16,s16,u32,s32,u64,s64,f32,f64}.s32"),
    exact("slct{,.ftz}.{b32,f64}.f32"),
    exact("selp.{b16,b32,b64,u16,s16,u32,s32,u64,s64,f32,f64}"),
)
