"""Tensor-core instructions: ldmatrix, mma.sync and wmma; core/tensor.cpp executes them."""

from __future__ import annotations

from tir_schedules.machines.cpu.abi import SPACES
from tir_schedules.machines.cpu.context import Lowering, MicroOp, only
from tir_schedules.machines.cpu.forms import Form, Lowered, Spread
from tir_schedules.machines.cpu.instructions.memory import SPACE_NAMES
from tir_schedules.machines.cpu.ptx import Immediate, Instruction, items

LOADED = {"sync", "aligned", "m8n8", "x1", "x2", "x4", "trans", "shared", "shared::cta"}
WMMA = {"load", "store", "a", "b", "c", "d", "sync", "aligned", "row", "col", "m16n16k16"}


def load_matrices(low: Lowering, i: Instruction) -> Lowered:
    only(i, LOADED)
    where = i.address(1)
    base, wide, offset = low.address(where, i)
    low.narrowest_shared = min(low.narrowest_shared, 2)
    registers = [low.place(register, "b32", i) for register in items(i.operands[0])]
    numbers = (base, wide, len(registers), int(i.has("trans")), *registers)
    return [MicroOp("ldmatrix", numbers, i, offset, low.counter(i, "ldmatrix"), where)]


def matrix_multiply(low: Lowering, i: Instruction) -> Lowered:
    wmma, types = i.name == "wmma", i.types
    shape = i.choice(["m16n8k8", "m16n8k16", "m16n16k16"])
    only(i, {"sync", "aligned", "row", "col", "mma", shape})
    if wmma:
        inputs, result, addend = (types[1] if len(types) == 4 else "f16"), types[0], types[-1]
    else:
        if not (i.has("row") and i.has("col")) or len(types) != 4:
            raise i.unsupported("layout or types")
        inputs, result, addend = types[1], types[0], types[3]
    known = inputs in ("f16", "bf16") and result in ("f16", "f32") and addend in ("f16", "f32")
    if not known or wmma != (shape == "m16n16k16"):
        raise i.unsupported("types or shape")
    groups = [items(operand) for operand in i.operands[:4]]
    kinds = (int(inputs == "bf16"), int(result == "f16"), int(addend == "f16"), int(wmma))
    registers = [low.place(register, "b32", i) for group in groups for register in group]
    depth = 8 if shape.endswith("k8") else 16
    return [MicroOp("mma", (depth, *kinds, *(len(group) for group in groups), *registers), i)]


def wmma_access(low: Lowering, i: Instruction) -> Lowered:
    only(i, WMMA, SPACE_NAMES)
    i.choice(["m16n16k16"])
    load = i.parts[1] == "load"
    where, fragment = (i.address(1), i.operands[0]) if load else (i.address(0), i.operands[1])
    base, wide, offset = low.address(where, i)
    size = 2 if i.type in ("f16", "bf16") else 4
    low.watch_shared(i, size)
    matrix = "abc".index(i.parts[2]) if load else 2
    stride = i.operands[2] if len(i.operands) > 2 else Immediate(16)
    shape = (matrix, int(i.has("row")), SPACES[i.space], size, low.place(stride, "s32", i))
    places = [low.place(register, "b32", i) for register in items(fragment)]
    counter = -1
    if i.space in ("shared", "global"):
        as_ldmatrix = load and matrix < 2 and i.space == "shared"
        counter = low.counter(i, "ldmatrix" if as_ldmatrix else f"{i.space}_{i.parts[1]}")
    numbers = (base, wide, *shape, len(places), *places)
    return [MicroOp(f"wmma.{i.parts[1]}", numbers, i, offset, counter, where)]


MULTIPLY = Form(matrix_multiply, mix="mma", spread=Spread.ADDEND, makes_addresses=False)

FORMS: dict[str, Form] = {
    "ldmatrix": Form(load_matrices, mix="load", access="reads", spread=Spread.NONE),
    "mma": MULTIPLY,
    "wmma.mma": MULTIPLY,
    "wmma.load": Form(wmma_access, mix="load", access="reads", spread=Spread.NONE),
    "wmma.store": Form(wmma_access, mix="store", has_result=False, spread=Spread.USE),
}
