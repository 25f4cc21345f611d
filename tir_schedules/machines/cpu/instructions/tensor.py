"""Tensor-core instructions: ldmatrix, mma.sync and wmma; core/tensor.cpp executes them."""

from __future__ import annotations

import re
from enum import IntEnum, IntFlag

from tir_schedules.machines.cpu.abi import SPACES
from tir_schedules.machines.cpu.context import Lowering
from tir_schedules.machines.cpu.instructions.memory import SPACE_NAMES
from tir_schedules.machines.cpu.lines import COPIES, INTEGERS, exact, modelled, refusal
from tir_schedules.machines.cpu.micro_ops import micro_op
from tir_schedules.machines.cpu.ptx import BITS, Immediate, Instruction, items
from tir_schedules.machines.cpu.table import Lowered, Row, Spread, passthrough

RESULTS = {"f16": ("f16", "f32"), "bf16": ("f32",), "tf32": ("f32",), "f64": ("f64",)}
"""Type of a factor -> those of sums; s32 for integers."""

SHAPES = {
    **dict.fromkeys(("f16", "bf16"), "m16n8k8 m16n8k16"),
    "tf32": "m16n8k4 m16n8k8",
    "f64": "m8n8k4 m16n8k4 m16n8k8 m16n8k16",
    **dict.fromkeys(("s8", "u8"), "m8n8k16 m16n8k16 m16n8k32"),
    **dict.fromkeys(("s4", "u4"), "m8n8k32 m16n8k32 m16n8k64"),
    "b1": "m8n8k128 m16n8k128 m16n8k256",
}
WMMA_SHAPES = {
    **dict.fromkeys(("f16", "bf16", "s8", "u8"), "m16n16k16 m32n8k16 m8n32k16"),
    "tf32": "m16n16k8",
    "f64": "m8n8k4",
}
"""Type of a factor -> the shapes that mma and wmma have for it."""

KNOWN_SHAPES = [*dict.fromkeys(" ".join([*SHAPES.values(), *WMMA_SHAPES.values()]).split())]
BY_ITSELF = ("m16n8k8", "m16n8k16", "m16n16k16")
"""Shapes that core/tensor.cpp has for halves; all else is in core/fragments.cpp."""

Element = IntEnum("Element", "F16 BF16 TF32 F64 F32 S32 S8 U8 S4 U4 B1", start=0)
"""Of a matrix."""

ELEMENTS = {one.name.lower(): one for one in Element}

Matrix = IntEnum("Matrix", "A B C", start=0)

MultiplyFlag = IntFlag("MultiplyFlag", "SATURATE XOR_BITS AND_BITS")

Matrices = micro_op(
    "Matrices", "ldmatrix stmatrix", "Where where; Flag transposed; Words[] registers; Counter counter"
)
"""Rows of 8x8 matrices of 16 bits."""

Transpose = micro_op("Transpose", "movmatrix", "Words result source")
MultiplyHalves = micro_op(
    "MultiplyHalves", "mma", "Constant k; Flag bfloat half_result half_addend wmma; Words[] d a b c"
)
"""Of halves; the sums may be halves or float32."""

MultiplyFragments = micro_op(
    "MultiplyFragments",
    "mma.fragments",
    "Element d_kind a_kind b_kind c_kind; Constant m n k; MultiplyFlag flags; Lanes[] d a b c",
)
"""Of any types and shape: d_kind is the type of d."""

Fragment = micro_op(
    "Fragment",
    "wmma.load wmma.store",
    "Where where; Matrix matrix; Flag by_rows; Space space; Constant element; Integers stride;"
    " Words[] registers; Counter counter",
)
"""A matrix of wmma in memory, of 16x16 elements. element: bytes of one; stride: of rows or columns."""

AnyFragment = micro_op(
    "AnyFragment",
    "wmma.load.fragments wmma.store.fragments",
    "Where where; Matrix matrix; Element kind; Constant m n k; Flag by_rows; Space space; Integers stride;"
    " Lanes[] registers; Counter counter",
)
"""One of any type and shape."""


def matrices(low: Lowering, i: Instruction) -> Lowered:
    """ldmatrix and stmatrix."""
    load = i.name == "ldmatrix"
    registers, where = i.operands if load else i.operands[::-1]
    low.narrowest_shared = min(low.narrowest_shared, 16 if low.by_lines else 2)
    if i.space != "shared" or i.type != "b16" or not i.has(f"x{len(items(registers))}"):
        raise i.unsupported("shape, type or space")
    how = dict(transposed=i.has("trans"), counter=low.counter(i, i.name if load else "shared_store"))
    reached = low.address(where, i, bounded=True)
    return [Matrices[i.name](low, i, where=reached, **how, registers=items(registers))]


def factor_types(i: Instruction) -> tuple[str, ...]:
    """Types of d, a, b and c; wmma of halves names d and c alone."""
    if i.name == "wmma" and len(i.types) == 2:
        return i.types[0], "f16", "f16", i.types[1]
    if len(i.types) != 4:
        raise i.unsupported("types or shape")
    return i.types


def numbers_of(shape: str) -> tuple[int, ...]:
    """m, n and k."""
    return tuple(map(int, re.findall(r"\d+", shape)))


def matrix_multiply(low: Lowering, i: Instruction) -> Lowered:
    wmma, shape = i.name == "wmma", i.choice(KNOWN_SHAPES)
    result, left, right, addend = types = factor_types(i)
    sums = RESULTS.get(left, ("s32",))
    same = left == right or left[1:] == right[1:] and sums == ("s32",)
    if not same or shape not in (WMMA_SHAPES if wmma else SHAPES).get(left, "").split():
        raise i.unsupported("types or shape")
    if result not in sums or addend not in sums or not wmma and not (i.has("row") and i.has("col")):
        raise i.unsupported("layout or types")
    if i.has("satfinite") and left not in ("s8", "u8", "s4", "u4") or (left == "b1") != i.has("popc"):
        raise i.unsupported("modifier")
    groups = [items(operand) for operand in i.operands[:4]]
    m, n, k = numbers_of(shape)
    for group, kind, elements, factor in zip(groups, types, (m * n, m * k, k * n, m * n), (0, 1, 1, 0)):
        check_registers(i, len(group), kind, elements, bool(factor))
    kind = "f64" if left == "f64" else "b32"
    placed = ([low.place(register, kind, i) for register in group] for group in groups)
    registers = dict(**dict(zip("dabc", placed)))
    if left in ("f16", "bf16") and shape in BY_ITSELF:
        halves = dict(bfloat=left == "bf16", half_result=result == "f16", half_addend=addend == "f16")
        return [MultiplyHalves(low, i, k=k, wmma=wmma, **halves, **registers)]
    flags = MultiplyFlag.SATURATE if i.has("satfinite") else MultiplyFlag(0)
    flags |= MultiplyFlag.XOR_BITS if i.has("xor") else 0
    flags |= MultiplyFlag.AND_BITS if i.has("and") else 0
    kinds = dict(**{f"{name}_kind": ELEMENTS[kind] for name, kind in zip("dabc", types)})
    return [MultiplyFragments(low, i, **kinds, m=m, n=n, k=k, flags=flags, **registers)]


def check_registers(i: Instruction, count: int, kind: str, elements: int, factor: bool) -> None:
    """UnsupportedInstruction where an operand has not as many registers as its matrix takes.

    A factor of halves has 8 in every shape of wmma.
    """
    per = max(1, 32 // BITS[kind])
    wanted = 8 if i.name == "wmma" and factor and kind == "f16" else elements // 32 // per
    if count != wanted:
        raise i.unsupported("number of registers")


def wmma_access(low: Lowering, i: Instruction) -> Lowered:
    shape = i.choice(KNOWN_SHAPES)
    load = i.parts[1] == "load"
    where, fragment = (i.address(1), i.operands[0]) if load else (i.address(0), i.operands[1])
    matrix = "abc".index(i.parts[2]) if load else 2
    sums = {"f16": "f16 bf16 s8 u8", "f32": "f16 bf16 tf32", "s32": "s8 u8", "f64": "f64"}
    factors = sums.get(i.type, "") if matrix == 2 else i.type
    if not any(shape in WMMA_SHAPES.get(factor, "").split() for factor in factors.split()):
        raise i.unsupported("type or shape")
    size = BITS[i.type] // 8
    low.watch_shared(i, size)
    m, n, k = numbers_of(shape)
    rows, columns = ((m, k), (k, n), (m, n))[matrix]
    columns_or_rows = Immediate(columns if i.has("row") else rows)
    stride = (*i.operands[2:], columns_or_rows)[0]
    places = [low.place(register, "f64" if size == 8 else "b32", i) for register in items(fragment)]
    check_registers(i, len(places), i.type, rows * columns, matrix < 2)
    by_itself = shape in BY_ITSELF and i.type in ("f16", "bf16", "f32", "s32")
    counter = -1
    if i.space in ("shared", "global"):
        as_ldmatrix = by_itself and load and matrix < 2 and i.space == "shared"
        counter = low.counter(i, "ldmatrix" if as_ldmatrix else f"{i.space}_{i.parts[1]}")
    operands = dict(
        where=low.address(where, i, bounded=True), matrix=Matrix(matrix), by_rows=i.has("row"),
        space=SPACES[i.space], stride=stride, registers=places, counter=counter,
    )  # fmt: skip
    if by_itself:
        return [Fragment[f"wmma.{i.parts[1]}"](low, i, **operands, element=size)]
    made = AnyFragment[f"wmma.{i.parts[1]}.fragments"]
    return [made(low, i, **operands, kind=ELEMENTS[i.type], m=m, n=n, k=k)]


TOGETHER = "sync aligned row col"
FRAGMENT = f"{TOGETHER} {' '.join(KNOWN_SHAPES)} {SPACE_NAMES} a b c d"
EIGHTS = "sync aligned m8n8 trans shared shared::cta"
MULTIPLY = Row(
    matrix_multiply, "=d{}, a{}, b{}, c{}",
    f"{TOGETHER} {' '.join(KNOWN_SHAPES)} mma satfinite xor and popc rn",
    mix="mma", spread=Spread.ADDEND, makes_addresses=False,
)  # fmt: skip
SUMS = "sums in float32, in the order of k; a GPU truncates them in ways of its own"
LAYOUT = "fragments as sm_80 lays them out; of shapes that are not square, in the same manner"
ON_OTHERS = "mma.sync.aligned.m16n8k8 has the same types"


def of_mma(shapes: str, types: str) -> str:
    return f"mma.sync.aligned.{{{shapes.replace(' ', ',')}}}.row.col.{types}"


HALF_SHAPES = "{m16n16k16,m32n8k16,m8n32k16}"
ROWS: dict[str, Row] = {
    "ldmatrix": Row(
        matrices, "=d{}, [a]", f"{EIGHTS} x1 x2 x4", mix="load", access="reads", spread=Spread.NONE
    ),
    "stmatrix": Row(matrices, "[a], b{}", f"{EIGHTS} x1 x2 x4", mix="store", spread=Spread.USE),
    "movmatrix": Row(passthrough(Transpose), "=d, a", EIGHTS, mix="move", spread=Spread.NONE),
    "mma": MULTIPLY,
    "wmma.mma": MULTIPLY,
    "wmma.load": Row(
        wmma_access, "=d{}, [a], stride?", FRAGMENT, mix="load", access="reads", spread=Spread.NONE
    ),
    "wmma.store": Row(wmma_access, "[a], d{}, stride?", FRAGMENT, mix="store", spread=Spread.USE),
}

LINES = (
    exact("ldmatrix.sync.aligned.m8n8.{x1,x2,x4}{,.trans}.shared.b16", COPIES),
    refusal("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8", "load matrices of 16 bits", 100),
    exact("stmatrix.sync.aligned.m8n8.{x1,x2,x4}{,.trans}.shared.b16", COPIES, 90),
    refusal("stmatrix.sync.aligned.m16n8.x1.trans.shared.b8", "store matrices of 16 bits", 100),
    exact("movmatrix.sync.aligned.m8n8.trans.b16", COPIES),
    modelled(of_mma(SHAPES["f16"], "{f16.f16.f16.f16,f32.f16.f16.f32}"), SUMS),
    modelled(of_mma(SHAPES["bf16"], "f32.bf16.bf16.f32"), SUMS, 80),
    modelled(of_mma(SHAPES["tf32"], "f32.tf32.tf32.f32"), SUMS, 80),
    modelled(of_mma("m8n8k4", "f64.f64.f64.f64"), "fused sums in the order of k", 80),
    modelled(of_mma("m16n8k4 m16n8k8 m16n8k16", "f64.f64.f64.f64"), "fused sums in the order of k", 90),
    exact(of_mma(SHAPES["s8"], "{,satfinite.}s32.{s8.s8,u8.u8,s8.u8,u8.s8}.s32"), INTEGERS),
    exact(of_mma(SHAPES["s4"], "{,satfinite.}s32.{s4.s4,u4.u4,s4.u4,u4.s4}.s32"), INTEGERS),
    exact(of_mma(SHAPES["b1"], "s32.b1.b1.s32.{xor,and}.popc"), INTEGERS),
    refusal(of_mma("m8n8k4", "{f16.f16.f16.f16,f32.f16.f16.f32}"), ON_OTHERS),
    refusal(of_mma("m16n8k32", "f32.{e4m3.e4m3,e5m2.e5m2}.f32"), "convert to f16 first", 89),
    modelled(f"wmma.mma.sync.aligned.row.col.{HALF_SHAPES}.{{f16.f16,f32.f32}}", SUMS),
    modelled(f"wmma.mma.sync.aligned.row.col.{HALF_SHAPES}.f32.bf16.bf16.f32", SUMS, 80),
    modelled("wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32", SUMS, 80),
    modelled("wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64", "fused sums in the order of k", 80),
    exact(f"wmma.mma.sync.aligned.row.col.{HALF_SHAPES}.s32.{{s8.s8,u8.u8}}.s32{{,.satfinite}}", INTEGERS),
    refusal("wmma.mma.sync.aligned.row.col.m8n8k32.s32.{s4.s4,u4.u4}.s32", "use mma.sync"),
    refusal("wmma.mma.and.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32", "use mma.sync"),
    modelled(f"wmma.load.{{a,b}}.sync.aligned.{{row,col}}.{HALF_SHAPES}.{{f16,bf16,s8,u8}}", LAYOUT),
    modelled(f"wmma.load.c.sync.aligned.{{row,col}}.{HALF_SHAPES}.{{f16,f32,s32}}", LAYOUT),
    modelled("wmma.load.{a,b}.sync.aligned.{row,col}.{m16n16k8.tf32,m8n8k4.f64}", LAYOUT, 80),
    refusal("wmma.load.a.sync.aligned.row.m8n8k32.{s4,u4}", "use mma.sync"),
    modelled(f"wmma.store.d.sync.aligned.{{row,col}}.{HALF_SHAPES}.{{f16,f32,s32}}", LAYOUT),
    modelled("wmma.store.d.sync.aligned.{row,col}.{m16n16k8.f32,m8n8k4.f64}", LAYOUT, 80),
)
