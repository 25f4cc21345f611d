"""Integer arithmetic beyond one operator of C++: carries, sums of parts, 24 bits.

Source: PTX ISA, version 9.0, "Integer Arithmetic Instructions" and "Extended-Precision Integer Arithmetic".
"""

from __future__ import annotations

from tir_schedules.machines.cpu.lane_code import CARRY, STORAGE, WIDER, LaneCode, unsigned
from tir_schedules.machines.cpu.lines import exact, refusal
from tir_schedules.machines.cpu.ptx import BITS
from tir_schedules.machines.cpu.table import Row, lane


def product(code: LaneCode) -> str:
    """The low, high or all bits of operand 1 times operand 2, as the opcode says; unsigned except for .hi."""
    i, kind = code.instruction, code.instruction.type
    wide = WIDER[kind]
    if i.has("wide"):
        return f"(({wide}){code.read(1)} * ({wide}){code.read(2)})"
    if i.has("hi") and kind == "s16":
        return signed_high_half(code.read(1, "u16"), code.read(2, "u16"))
    if i.has("hi"):
        return f"({STORAGE[kind]})(({wide}){code.read(1)} * ({wide}){code.read(2)} >> {BITS[kind]})"
    plain = unsigned(kind)  # narrow types are promoted beyond overflow
    return f"((u{max(32, BITS[kind])}){code.read(1, plain)} * {code.read(2, plain)})"


def signed_high_half(a: str, b: str) -> str:
    """Of the product of two s16 that are given as u16. From (s32)a * b >> 16 g++ 12 makes vpmulhuw, where it
    vectorizes without AVX-512: the product of what is given, unsigned."""
    return f"(s16)(((u32){a} * {b} >> 16) - ((s16){a} < 0 ? {b} : 0) - ((s16){b} < 0 ? {a} : 0))"


def extended(code: LaneCode) -> None:
    """A sum or difference that takes a carry, or leaves one.

    A difference is a sum with the complement, as on a GPU: its carry is 0 where it borrows. The ISA calls the
    flag a borrow there, but nvcc's division of 128 bits asks by addc whether sub.cc has borrowed.
    """
    i, plain = code.instruction, unsigned(code.instruction.type)
    if i.type not in ("u32", "s32", "u64", "s64"):
        raise i.unsupported("type")
    wide, taken = WIDER[plain], "W.carry[l]" if i.name.endswith("c") else "0"
    if i.name.startswith("mad"):
        result = f"({wide})({plain}){product(code)} + {code.read(3, plain)} + {taken}"
    elif i.name.startswith("add"):
        result = f"({wide}){code.read(1, plain)} + {code.read(2, plain)} + {taken}"
    else:
        taken = "1" if i.name == "sub" else taken
        result = f"({wide}){code.read(1, plain)} + ({STORAGE[plain]})~({code.read(2, plain)}) + {taken}"
    code.write(f"({plain})({result})", plain)
    if i.has("cc"):
        code.write(f"(u32)(({result}) >> {BITS[plain]} & 1)", "u32", CARRY)


def sum_of_differences(code: LaneCode) -> None:
    kind = code.instruction.type
    a, b, plain = code.read(1), code.read(2), unsigned(kind)
    difference = f"({a} < {b} ? ({plain}){b} - ({plain}){a} : ({plain}){a} - ({plain}){b})"
    code.write(f"({STORAGE[kind]})({difference} + ({plain}){code.read(3)})")


def is_signed(kind: str) -> str:
    return "true" if kind[0] == "s" else "false"


def dot_product(code: LaneCode) -> None:
    i = code.instruction
    arguments = [code.read(1, "b32"), code.read(2, "b32"), code.read(3, "s32"), *map(is_signed, i.types)]
    if i.name == "dp2a":
        arguments.append("16" if i.choice(["lo", "hi"]) == "hi" else "0")
    code.write(f"{'dot4' if i.name == 'dp4a' else 'dot2'}({', '.join(arguments)})", "s32")


def of_24_bits(code: LaneCode) -> None:
    i = code.instruction
    factors = f"product24({code.read(1, 'b32')}, {code.read(2, 'b32')}, {is_signed(i.type)})"
    result = f"{factors} >> 16" if i.choice(["lo", "hi"]) == "hi" else factors
    if i.has("sat"):
        if i.opcode != "mad24.hi.sat.s32":
            raise i.unsupported("modifier .sat")
        return code.write(f"saturate((s32)({result}) + (s64){code.read(3)})")
    code.write(f"(u32)({result})" + (f" + {code.read(3, 'u32')}" if i.name == "mad24" else ""), "u32")


def pairs_of_16(code: LaneCode) -> None:
    i = code.instruction
    operation = f"PART_{i.name.upper()}"
    if i.name not in ("add", "min", "max") or i.has("relu") and (i.type != "s16x2" or i.name == "add"):
        raise i.unsupported()
    a, b, relu = code.read(1, "b32"), code.read(2, "b32"), str(i.has("relu")).lower()
    code.write(f"pair_of_16({a}, {b}, {operation}, {is_signed(i.type)}, {relu})", "u32")


def part_differences(code: LaneCode) -> None:
    """Without masks and selections of parts; the third operand counts where the parts are added."""
    i = code.instruction
    if len(i.types) != 3 or len(set(i.types[1:])) != 1 or i.types[0] != "u32" or i.type not in ("u32", "s32"):
        raise i.unsupported("types")
    values = ", ".join(code.read(k, "u32") for k in (1, 2, 3))
    width = 32 // int(i.name[-1])
    how = f"{width}, {is_signed(i.type)}, {str(i.has('add')).lower()}"
    code.write(f"part_differences({values}, {how})", "u32")


CARRIED = lane(extended, "=d, a, b", "cc")
ABSOLUTE, LIMITED = "u32.{u32.u32,s32.s32}{,.add}", "u32.u32.u32.sat"
WITH_PARTS = "only u32 results without .sat"
DIFFERENCES = lane(part_differences, "=d, a, b, c", "add")

ROWS: dict[str, Row] = {
    "addc": CARRIED,
    "subc": CARRIED,
    "madc": lane(extended, "=d, a, b, c", "cc lo hi", pipe="fma"),
    "sad": lane(sum_of_differences, "=d, a, b, c"),
    "mul24": lane(of_24_bits, "=d, a, b", "lo hi", pipe="fma"),
    "mad24": lane(of_24_bits, "=d, a, b, c", "lo hi sat", pipe="fma"),
    "dp4a": lane(dot_product, "=d, a, b, c", pipe="fma"),
    "dp2a": lane(dot_product, "=d, a, b, c", "lo hi", pipe="fma"),
    "vabsdiff2": DIFFERENCES,
    "vabsdiff4": DIFFERENCES,
}

LINES = (
    exact("addc{,.cc}.{u32,s32,u64,s64}"),
    exact("subc{,.cc}.{u32,s32,u64,s64}"),
    exact("madc.{lo,hi}{,.cc}.{u32,s32,u64,s64}"),
    exact("sad.{u16,s16,u32,s32,u64,s64}"),
    exact("mul24.{lo,hi}.{u32,s32}"),
    exact("mad24.{lo,hi}.{u32,s32} mad24.hi.sat.s32"),
    exact("dp4a.{u32,s32}.{u32,s32}"),
    exact("dp2a.{lo,hi}.{u32,s32}.{u32,s32}"),
    exact(f"vabsdiff2.{ABSOLUTE}"),
    refusal(f"vabsdiff2.{LIMITED}", WITH_PARTS),
    exact(f"vabsdiff4.{ABSOLUTE}"),
    refusal(f"vabsdiff4.{LIMITED}", WITH_PARTS),
)
