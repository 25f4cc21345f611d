"""cp.async; core/async_copy.cpp executes it, core/copy_cost.cpp counts it."""

from __future__ import annotations

from tir_schedules.machines.cpu.abi import NONE
from tir_schedules.machines.cpu.context import Lowering, MicroOp, only
from tir_schedules.machines.cpu.forms import COPIES, Form, Lowered, Spread, exact
from tir_schedules.machines.cpu.instructions.memory import without_hint
from tir_schedules.machines.cpu.ptx import Immediate, Instruction, Negated, Operand, Register

MODIFIERS = {
    "async",
    "ca",
    "cg",
    "shared",
    "shared::cta",
    "global",
    "L2::64B",
    "L2::128B",
    "L2::256B",
    "L2::cache_hint",
}


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
    _, _, _, *others = without_hint(i)
    size = i.number(2)
    if size not in (4, 8, 16) or not source_wide or len(others) > 1:
        raise i.unsupported("size or address")
    before, available = bytes_available(low, i, others[0], size) if others else ([], NONE)
    low.watch_shared(i, size)
    shared, global_ = low.counter(i, "shared_cp_async"), low.counter(i, "global_cp_async")
    split = (source_offset & NONE, source_offset >> 32 & NONE)
    numbers = (base, wide, source, size, available, global_, *split, int(i.has("cg")))
    return [*before, MicroOp("cp.async", numbers, i, offset, shared, i.address(0))]


def bytes_available(low: Lowering, i: Instruction, given: Operand, size: int) -> tuple[Lowered, int]:
    """The place of how many bytes are read, the others being zeros; and what has to be executed before.

    given: their number, or a predicate that says to read none.
    """
    if not (isinstance(given, Negated) or isinstance(given, Register) and given.type == "pred"):
        return [], low.place(given, "u32", i)
    held, ignored = low.temporary("available", "u32"), given
    amounts = Immediate(0), Immediate(size)
    if isinstance(given, Negated):
        ignored, amounts = given.register, amounts[::-1]
    choice = Instruction("selp.u32", (held, *amounts, ignored), i.guard, i.line, i.source, i.within)
    return [choice], low.place(held, "u32", i)


SOURCES = "{ca,cg}.shared.global"

FORMS: dict[str, Form] = {
    "cp.async": Form(copy_async, has_result=False, mix="cp_async", fence=True, spread=Spread.USE).told(
        exact(f"cp.async.{SOURCES} cp.async.commit_group cp.async.wait_group cp.async.wait_all", COPIES, 80)
    ),
}
