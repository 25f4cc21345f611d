"""cp.async; core/async_copy.cpp executes it, core/copy_cost.cpp counts it."""

from __future__ import annotations

from tir_schedules.machines.cpu.abi import NONE
from tir_schedules.machines.cpu.context import Lowering, MicroOp, only
from tir_schedules.machines.cpu.forms import Form, Lowered, Spread
from tir_schedules.machines.cpu.ptx import Instruction, Register

MODIFIERS = {"async", "ca", "cg", "shared", "shared::cta", "global", "L2::64B", "L2::128B", "L2::256B"}


def copy_async(low: Lowering, i: Instruction) -> Lowered:
    if i.opcode == "cp.async.commit_group":
        return [MicroOp("cp.async.commit_group", (), i)]
    if i.opcode == "cp.async.wait_all":
        return [MicroOp("cp.async.wait_group", (NONE,), i)]
    if i.opcode == "cp.async.wait_group":
        return [MicroOp("cp.async.wait_group", (i.number(0),), i)]
    only(i, MODIFIERS)
    base, wide, offset = low.address(i.address(0), i)
    source, source_wide, source_offset = low.address(i.address(1), i)
    size, last = i.number(2), i.operands[-1]
    if size not in (4, 8, 16) or not source_wide:
        raise i.unsupported("size or address")
    if isinstance(last, Register) and last.type == "pred":
        raise i.unsupported("a predicate for ignoring the source")
    available = low.place(i.operands[3], "u32", i) if len(i.operands) > 3 else NONE
    shared, global_ = low.counter(i, "shared_cp_async"), low.counter(i, "global_cp_async")
    split = (source_offset & NONE, source_offset >> 32 & NONE)
    numbers = (base, wide, source, size, available, global_, *split, int(i.has("cg")))
    return [MicroOp("cp.async", numbers, i, offset, shared, i.address(0))]


FORMS: dict[str, Form] = {
    "cp.async": Form(copy_async, has_result=False, mix="cp_async", fence=True, spread=Spread.USE),
}
