"""Bit operations that each lane does for itself: C++ over the helpers of core/bits.h.

Source: PTX ISA, version 9.0, "Instruction Set".
"""

from __future__ import annotations

from tir_schedules.machines.cpu.lane_code import STORAGE, LaneCode, raw, unsigned
from tir_schedules.machines.cpu.lines import exact
from tir_schedules.machines.cpu.ptx import BITS, Immediate, Instruction, Pair
from tir_schedules.machines.cpu.table import Row, Spread, Zeros, lane


def logic(code: LaneCode) -> None:
    kind = raw(code.instruction.type)
    symbol = {"and": "&", "or": "|", "xor": "^"}[code.instruction.name]
    code.write(f"({STORAGE[kind]})({code.read(1, kind)} {symbol} {code.read(2, kind)})", kind)


def complement(code: LaneCode) -> None:
    kind = raw(code.instruction.type)
    value = code.read(1, kind)
    code.write(f"!{value}" if kind == "pred" else f"({STORAGE[kind]})~{value}", kind)


def shift(code: LaneCode) -> None:
    """A shift by the width or more gives 0, or copies of the sign."""
    i = code.instruction
    kind = i.type if i.name == "shr" and i.type[0] != "b" else unsigned(i.type)
    value, amount, width = code.read(1, kind), code.read(2, "u32"), BITS[kind]
    if kind[0] == "s":
        return code.write(f"({STORAGE[kind]})({value} >> least<u32>({amount}, {width - 1}))", kind)
    symbol = "<<" if i.name == "shl" else ">>"
    shifted = f"{value} {symbol} ({amount} & {width - 1})"
    code.write(f"({STORAGE[kind]})({amount} > {width - 1} ? 0 : {shifted})", kind)


def funnel_shift(code: LaneCode) -> None:
    amount, left = code.read(3, "u32"), code.instruction.has("l")
    amount = f"({amount} & 31)" if code.instruction.has("wrap") else f"least<u32>({amount}, 32)"
    both = f"((u64){code.read(2, 'b32')} << 32 | {code.read(1, 'b32')})"
    code.write(f"(u32)(({both} << {amount}) >> 32)" if left else f"(u32)({both} >> {amount})", "b32")


def insert(code: LaneCode) -> None:
    kind, position, length = STORAGE[code.instruction.type], code.read(3, "u32"), code.read(4, "u32")
    code.write(f"insert_field<{kind}>({code.read(1)}, {code.read(2)}, {position}, {length})")


def extract(code: LaneCode) -> None:
    kind, position, length = STORAGE[code.instruction.type], code.read(2, "u32"), code.read(3, "u32")
    code.write(f"extract_field<{kind}>({code.read(1)}, {position}, {length})")


PERMUTE_MODES = ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"]
"""In the order of PermuteMode in core/bits.h."""


def permute(code: LaneCode) -> None:
    operands = ", ".join(code.read(k, "b32") for k in (1, 2, 3))
    mode = next((k for k, mode in enumerate(PERMUTE_MODES) if code.instruction.has(mode)), None)
    result = f"permute_bytes({operands})" if mode is None else f"permute_by_mode({operands}, {mode})"
    code.write(result, "b32")


def three_input_logic(code: LaneCode) -> None:
    """With .and or .or, also a predicate: whether any bit is set, combined with another predicate."""
    i, to, table = code.instruction, code.operand(0), code.operand(4)
    if not isinstance(table, Immediate):
        raise i.unsupported()
    a, b, c = (code.read(k, "b32") for k in (1, 2, 3))
    result = f"logic3({a}, {b}, {c}, {table.value})"
    symbol = "&" if i.has("and") else "|" if i.has("or") else ""
    if isinstance(to, Pair) != bool(symbol):
        raise i.unsupported("a predicate")
    if isinstance(to, Pair):
        code.write(f"(u32)({result} != 0) {symbol} {code.read(5, 'pred')}", "pred", to.second)
        to = to.first
    code.write(result, "b32", to)


def conditional_not(code: LaneCode) -> None:
    kind = raw(code.instruction.type)
    code.write(f"({STORAGE[kind]})({code.read(1, kind)} == 0)", kind)


def count_bits(code: LaneCode) -> None:
    i = code.instruction
    value, wide = code.read(1, raw(i.type)), BITS[i.type] == 64
    suffix = "ll" if wide else ""
    forms = {
        "popc": f"__builtin_popcount{suffix}({value})",
        "clz": f"({value} ? __builtin_clz{suffix}({value}) : {BITS[i.type]})",
        "brev": f"reverse_bits({value})",
        "bfind": f"find_highest({value}, {int(i.type[0] == 's')}, {int(i.has('shiftamt'))})",
    }
    code.write(forms[i.name], unsigned(i.type) if i.name == "brev" else "u32")


def find_nth(code: LaneCode) -> None:
    code.write(f"find_nth({code.read(1, 'u32')}, {code.read(2, 'u32')}, {code.read(3, 's32')})", "u32")


def bit_mask(code: LaneCode) -> None:
    clamp = int(code.instruction.choice(["clamp", "wrap"]) == "clamp")
    code.write(f"bit_mask({code.read(1, 'u32')}, {code.read(2, 'u32')}, {clamp})", "u32")


def extend(code: LaneCode) -> None:
    i = code.instruction
    how = f"{int(i.type[0] == 's')}, {int(i.choice(['clamp', 'wrap']) == 'clamp')}"
    code.write(f"extend_sign_or_zeros({code.read(1, 'u32')}, {code.read(2, 'u32')}, {how})", "u32")


# ---- trailing zeros of results ---
def zeros_of_or(i: Instruction, zeros: Zeros) -> int:
    return min(zeros(i.operands[1]), zeros(i.operands[2]))


def zeros_of_and(i: Instruction, zeros: Zeros) -> int:
    return max(zeros(i.operands[1]), zeros(i.operands[2]))


def zeros_of_left_shift(i: Instruction, zeros: Zeros) -> int:
    amount = i.operands[2]
    return zeros(i.operands[1]) + (amount.value if isinstance(amount, Immediate) else 0)


def zeros_of_right_shift(i: Instruction, zeros: Zeros) -> int:
    amount = i.operands[2]
    return max(0, zeros(i.operands[1]) - amount.value) if isinstance(amount, Immediate) else 0


def zeros_of_insert(i: Instruction, zeros: Zeros) -> int:
    field, into, position = i.operands[1:4]
    return min(zeros(field) + position.value, zeros(into)) if isinstance(position, Immediate) else 0


COUNT = lane(count_bits, "=d, a", pipe="xu")

ROWS: dict[str, Row] = {
    "and": lane(logic, "=d, a, b", spread=Spread.PARTS, zeros=zeros_of_and),
    "or": lane(logic, "=d, a, b", spread=Spread.PARTS, zeros=zeros_of_or),
    "xor": lane(logic, "=d, a, b", zeros=zeros_of_or),
    "not": lane(complement, "=d, a"),
    "shl": lane(shift, "=d, a, b:u32", zeros=zeros_of_left_shift),
    "shr": lane(shift, "=d, a, b:u32", zeros=zeros_of_right_shift),
    "shf": lane(funnel_shift, "=d, a, b, c:u32", "l r wrap clamp", spread=Spread.PARTS),
    "bfi": lane(insert, "=f, a, b, c:u32, d:u32", spread=Spread.PARTS, zeros=zeros_of_insert),
    "bfe": lane(extract, "=d, a, b:u32, c:u32"),
    "prmt": lane(permute, "=d, a, b, c", " ".join(PERMUTE_MODES), spread=Spread.PARTS),
    "lop3": lane(three_input_logic, "=d|=p?, a, b, c, #table, q:pred?", "and or", spread=Spread.PARTS),
    "cnot": lane(conditional_not, "=d, a"),
    "fns": lane(find_nth, "=d, mask, base, offset"),
    "bmsk": lane(bit_mask, "=d, a, b", "clamp wrap"),
    "szext": lane(extend, "=d, a, b:u32", "clamp wrap"),
    "popc": COUNT,
    "clz": COUNT,
    "brev": COUNT,
    "bfind": lane(count_bits, "=d, a", "shiftamt", pipe="xu"),
}

LINES = (
    exact("and.{pred,b16,b32,b64}"),
    exact("or.{pred,b16,b32,b64}"),
    exact("xor.{pred,b16,b32,b64}"),
    exact("not.{pred,b16,b32,b64}"),
    exact("shl.{b16,b32,b64}"),
    exact("shr.{b16,b32,b64,u16,s16,u32,s32,u64,s64}"),
    exact("shf.{l,r}.{wrap,clamp}.b32"),
    exact("bfi.{b32,b64}"),
    exact("bfe.{u32,s32,u64,s64}"),
    exact("prmt.b32{,.f4e,.b4e,.rc8,.ecl,.ecr,.rc16}"),
    exact("lop3.b32 lop3.{or,and}.b32"),
    exact("cnot.{b16,b32,b64}"),
    exact("fns.b32"),
    exact("bmsk.{clamp,wrap}.b32"),
    exact("szext.{clamp,wrap}.{u32,s32}"),
    exact("popc.{b32,b64}"),
    exact("clz.{b32,b64}"),
    exact("brev.{b32,b64}"),
    exact("bfind{,.shiftamt}.{u32,s32,u64,s64}"),
)
