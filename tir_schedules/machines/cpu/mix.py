"""Classes of instructions in the counters' mix."""

from __future__ import annotations

from functools import lru_cache

from tir_schedules.machines.cpu.instructions import FORMS, form_of_opcode
from tir_schedules.machines.cpu.lane_code import HALVES, is_float
from tir_schedules.machines.cpu.ptx import read_opcode

MIX_BY_TYPE = ("fp16", "fp32", "fp64", "int")
MIX = tuple(dict.fromkeys([form.mix for form in FORMS.values() if form.mix] + list(MIX_BY_TYPE)))


@lru_cache(maxsize=None)
def mix_of(opcode: str) -> str:
    """One of MIX; arithmetic goes by its type."""
    known = form_of_opcode(opcode).mix
    if known:
        return known
    types = read_opcode(opcode).types
    kind = types[-1] if types else ""
    if kind.removesuffix("x2") in HALVES:
        return "fp16"
    if is_float(kind):
        return "fp64" if kind == "f64" else "fp32"
    return "int"
