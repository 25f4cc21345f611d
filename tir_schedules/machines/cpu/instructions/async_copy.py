"""cp.async; core/async_copy.cpp executes it, core/copy_cost.cpp counts it."""

from __future__ import annotations

from typing import Optional

from tir_schedules.machines.cpu.abi import NONE
from tir_schedules.machines.cpu.context import Lowering, only
from tir_schedules.machines.cpu.forms import COPIES, Form, Lowered, Spread, exact
from tir_schedules.machines.cpu.instructions.memory import without_hint
from tir_schedules.machines.cpu.micro_ops import Constant, Counter, Flag, MicroOp, Where, Words
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


class CopyAsync(MicroOp, name="cp.async"):
    """available: bytes that are read, the others being zeros; bypasses: the L1 cache."""

    target: Where
    source: Where
    bytes: Constant
    available: Optional[Words]
    source_counter: Constant
    bypasses: Flag
    counter: Counter


class CommitCopies(MicroOp, name="cp.async.commit_group"):
    pass


class WaitForCopies(MicroOp, name="cp.async.wait_group"):
    """open: groups that may stay in flight; NONE: not even what is in no group."""

    open: Constant


def copy_async(low: Lowering, i: Instruction) -> Lowered:
    if i.opcode == "cp.async.commit_group":
        return [CommitCopies(i)]
    if i.opcode == "cp.async.wait_all":
        return [WaitForCopies(i, open=NONE)]
    if i.opcode == "cp.async.wait_group":
        return [WaitForCopies(i, open=i.number(0))]
    only(i, MODIFIERS)
    target, source = low.address(i.address(0), i, bounded=True), low.address(i.address(1), i)
    _, _, _, *others = without_hint(i)
    size = i.number(2)
    if size not in (4, 8, 16) or not source.wide or len(others) > 1:
        raise i.unsupported("size or address")
    before, available = bytes_available(low, i, others[0], size) if others else ([], None)
    low.watch_shared(i, size)
    shared, global_ = low.counter(i, "shared_cp_async"), low.counter(i, "global_cp_async")
    copy = CopyAsync(
        i,
        target=target,
        source=source,
        bytes=size,
        available=available,
        source_counter=global_,
        bypasses=i.has("cg"),
        counter=shared,
    )
    return [*before, copy]


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
