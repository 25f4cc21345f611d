"""Instructions that the four warps of a warpgroup execute together: wgmma and setmaxnreg. core/warpgroup.cpp
executes them, core/products.cpp has the numbers; who waits for a wgmma is core/units.cpp's."""

from __future__ import annotations

import re
from enum import IntEnum, IntFlag

from tir_schedules.machines.cpu import ptx
from tir_schedules.machines.cpu.abi import Exit
from tir_schedules.machines.cpu.context import Lowering
from tir_schedules.machines.cpu.lines import INTEGERS, exact, modelled, refusal
from tir_schedules.machines.cpu.micro_ops import MicroOpType, micro_op
from tir_schedules.machines.cpu.table import Lowered, Row, Spread, passthrough, refused

Factor = IntEnum("Factor", "F16 BF16 TF32 E4M3 E5M2 S8 U8", start=0)

Sum = IntEnum("Sum", "F16 F32 S32", start=0)

FACTORS = {one.name.lower(): one for one in Factor}
SUMS = {one.name.lower(): one for one in Sum}
SUMS_OF = {
    **dict.fromkeys(("f16", "e4m3", "e5m2"), ("f16", "f32")),
    **dict.fromkeys(("bf16", "tf32"), ("f32",)),
    **dict.fromkeys(("s8", "u8"), ("s32",)),
}
TOGETHER = ({"f16"}, {"bf16"}, {"tf32"}, {"e4m3", "e5m2"}, {"s8", "u8"})
"""Types that A and B may have at once."""

BYTES = {"f16": 2, "bf16": 2, "tf32": 4}
DEPTH_BYTES = 32
"""Bytes of the elements along k, of every type."""

ProductOption = IntFlag("ProductOption", "LEFT_ACROSS RIGHT_ACROSS NEGATED SATURATED IN_REGISTERS")
"""LEFT_ACROSS, RIGHT_ACROSS: A, B lies across k. IN_REGISTERS: rows of A are."""

Wgmma = micro_op(
    "Wgmma",
    "wgmma",
    "Constant columns; Factor left_kind right_kind; Sum sum_kind; ProductOption options; Predicates adds;"
    " Longs right; Longs? left; Words[] rows; Lanes[] sums; Counter counter",
)
"""adds: whether what the sums hold counts. right: the descriptor of B; left: that of A, or its rows."""

FenceProducts = micro_op("FenceProducts", "wgmma.fence")
CommitProducts = micro_op("CommitProducts", "wgmma.commit_group")
WaitForProducts = micro_op("WaitForProducts", "wgmma.wait_group", "Constant open")
"""open: groups that may stay in flight."""

AskForRegisters = micro_op("AskForRegisters", "setmaxnreg", "Constant asked")
"""asked: registers of a thread."""

COLUMNS = range(8, 257, 8)
COLUMNS_OF_INTEGERS = [n for n in COLUMNS if n % 16 == 0 or n in (8, 24)]
FEWEST_REGISTERS, MOST_REGISTERS = 24, 256


def held_registers(i: ptx.Instruction) -> set[ptx.Register]:
    """The registers of a product that must not be touched until it was waited for: sums, and rows of A."""
    left = [operand for operand in i.operands[1:2] if isinstance(operand, ptx.Vector)]
    return {*ptx.registers_of((*i.operands[:1], *left))}


def types_of(i: ptx.Instruction) -> tuple[str, str, str]:
    """Types of the sums, A and B."""
    named = [part for part in i.parts if part in FACTORS or part in SUMS]
    if len(named) != 3:
        raise i.unsupported("types")
    sums, left, right = named
    if not any({left, right} <= group for group in TOGETHER) or sums not in SUMS_OF[left]:
        raise i.unsupported("types")
    return sums, left, right


def options_of(i: ptx.Instruction, left: str, in_registers: bool) -> ProductOption:
    """What the constants behind the predicate ask for: signs of A and B, and which of them lie across k."""
    given = [i.number(4 + k) for k in range(len(i.operands) - 4)]
    halves, whole = left in ("f16", "bf16"), left in ("s8", "u8")
    layouts = (1 if in_registers else 2) if halves else 0
    if len(given) != (0 if whole else 2) + layouts:
        raise i.unsupported("number of operands")
    signs, across = given[:2], given[2:]
    if not {*signs} <= {1, -1} or not {*across} <= {0, 1}:
        raise i.unsupported("a sign that is not 1 or -1, or a layout that is not 0 or 1")
    options = ProductOption.IN_REGISTERS if in_registers else ProductOption(0)
    options |= ProductOption.NEGATED if signs in ([1, -1], [-1, 1]) else 0
    if across:
        options |= ProductOption.RIGHT_ACROSS if across[-1] else 0
        options |= ProductOption.LEFT_ACROSS if across[0] and not in_registers else 0
    return options | (ProductOption.SATURATED if i.has("satfinite") else 0)


def descriptor(i: ptx.Instruction, operand: ptx.Operand) -> ptx.Operand:
    if (
        not isinstance(operand, (ptx.Register, ptx.Immediate))
        or isinstance(operand, ptx.Register)
        and operand.bits != 64
    ):
        raise i.unsupported("a descriptor that is not a register of 64 bits")
    return operand


def multiply(low: Lowering, i: ptx.Instruction) -> Lowered:
    sums, left, right = types_of(i)
    shape = next((part for part in i.parts if re.fullmatch(r"m64n\d+k\d+", part)), "")
    _, columns, depth = map(int, re.findall(r"\d+", shape)) if shape else (0, 0, 0)
    allowed = COLUMNS_OF_INTEGERS if sums == "s32" else COLUMNS
    if columns not in allowed or depth * BYTES.get(left, 1) != DEPTH_BYTES or len(i.operands) < 4:
        raise i.unsupported("shape")
    if i.has("satfinite") and sums != "s32":
        raise i.unsupported("modifier .satfinite")
    result, first, second, adds = i.operands[:4]
    in_registers = isinstance(first, ptx.Vector)
    options = options_of(i, left, in_registers)
    registers = [low.place(r, "b32", i) for r in ptx.items(result)]
    rows = ptx.items(first) if isinstance(first, ptx.Vector) else []
    if len(registers) != columns // (4 if sums == "f16" else 2) or in_registers and len(rows) != 4:
        raise i.unsupported("number of registers")
    factors = dict(left=None if rows else descriptor(i, first), rows=rows, right=descriptor(i, second))
    how = dict(
        columns=columns, left_kind=FACTORS[left], right_kind=FACTORS[right], sum_kind=SUMS[sums],
        options=options, adds=adds, sums=registers, counter=low.counter(i, "wgmma"),
    )  # fmt: skip
    return [Wgmma(low, i, **how, **factors)]


def ask_for_registers(low: Lowering, i: ptx.Instruction) -> Lowered:
    asked = i.number(0)
    if not FEWEST_REGISTERS <= asked <= MOST_REGISTERS or asked % 8:
        raise i.unsupported(
            f"{asked} registers: it has to be a multiple of 8 from {FEWEST_REGISTERS} to {MOST_REGISTERS}"
        )
    return [AskForRegisters(low, i, asked=asked)]


SUMMED = "all addends at once, cut 25 bits behind the first of the largest: the bits of an H200"
SUMMED_BYTES = SUMMED.replace("25", "13")
HALVES = "{f32.f16.f16,f16.f16.f16,f32.bf16.bf16}"
BYTE_FLOATS = "{f32,f16}.{e4m3,e5m2}.{e4m3,e5m2}"
EVERY = ",".join(map(str, COLUMNS))
OF_INTEGERS = ",".join(map(str, COLUMNS_OF_INTEGERS))


def of_product(columns: str, depth: int, types: str) -> str:
    return f"wgmma.mma_async.sync.aligned.m64n{{{columns}}}k{depth}.{types}"


def of_group(op: MicroOpType, operands: str = "", ends: Exit | None = None) -> Row:
    """The Row of what goes with products."""
    lower = passthrough(op)
    return Row(lower, operands, "sync aligned", ends=ends, mix="barrier", pipe="tensor", units=True)


SHAPES = [f"m64n{n}k{k}" for n in COLUMNS for k in (8, 16, 32)]
MULTIPLIED = " ".join(["sync aligned satfinite", *FACTORS, *SUMS, *SHAPES])

ROWS: dict[str, Row] = {
    "wgmma.mma_async": Row(
        multiply, "+d{}, a{}, b:b64, scale:pred, #n...", MULTIPLIED, mix="wgmma", access="reads",
        spread=Spread.SUMS, makes_addresses=False, units=True,
    ),
    "wgmma.mma_async.sp": refused("write the zeros of the sparse matrix out, and use wgmma.mma_async", 90),
    "wgmma.fence": of_group(FenceProducts),
    "wgmma.commit_group": of_group(CommitProducts),
    "wgmma.wait_group": of_group(WaitForProducts, "#n", Exit.WAIT),
    "setmaxnreg": Row(ask_for_registers, "#n", "inc dec sync aligned", mix="control", pipe="uniform"),
    "griddepcontrol": Row(None, "", "launch_dependents wait", mix="control"),
}  # fmt: skip

LINES = (
    exact(of_product(EVERY, 16, HALVES), SUMMED, 90),
    exact(of_product(EVERY, 8, "f32.tf32.tf32"), SUMMED, 90),
    exact(of_product(EVERY, 32, BYTE_FLOATS), SUMMED_BYTES, 90),
    exact(of_product(OF_INTEGERS, 32, "s32{,.satfinite}.{s8,u8}.{s8,u8}"), INTEGERS, 90),
    refusal(of_product("8", 256, "s32.b1.b1.and.popc"), "use mma.sync", 90),
    modelled("setmaxnreg.{inc,dec}.sync.aligned.u32", "registers are counted, and never run out", 90),
    modelled("griddepcontrol.{launch_dependents,wait}", "kernels run one after another", 90),
)
