"""Classes of instructions, for the counters' instruction mix."""

from __future__ import annotations

from tir_schedules.machines.cpu.lane_code import is_float
from tir_schedules.machines.cpu.ptx import Instruction

BY_NAME = {
    "bra": "control", "ret": "control", "exit": "control", "trap": "control", "bar": "barrier",
    "barrier": "barrier",
    "shfl": "shuffle", "vote": "shuffle", "activemask": "shuffle", "redux": "shuffle", "match": "shuffle",
    "elect": "shuffle",
    "atom": "atomic", "red": "atomic", "mma": "mma", "ldmatrix": "load", "ld": "load", "ldu": "load",
    "st": "store",
    "cp": "cp_async", "mov": "move", "cvta": "move", "cvt": "convert", "membar": "barrier",
    "fence": "barrier",
    "ex2": "special", "lg2": "special", "sin": "special", "cos": "special", "tanh": "special",
    "rcp": "special",
    "rsqrt": "special", "sqrt": "special",
}  # fmt: skip
WMMA = {"load": "load", "store": "store", "mma": "mma"}
HALF_TYPES = ("f16", "f16x2", "bf16", "bf16x2")


def instruction_class(instruction: Instruction) -> str:
    """Such as "fp32", "int", "load", "mma"; arithmetic goes by its type."""
    if instruction.name == "wmma":
        return WMMA[instruction.parts[1]]
    if instruction.name == "bar" and instruction.has("warp"):
        return "barrier"
    known = BY_NAME.get(instruction.name)
    if known:
        return known
    kind = instruction.types[-1] if instruction.types else ""
    if kind in HALF_TYPES:
        return "fp16"
    if is_float(kind):
        return "fp64" if kind == "f64" else "fp32"
    return "int"
