"""cp.async; core/async_copy.cpp executes it, core/copy_cost.cpp counts it."""

from __future__ import annotations

from tir_schedules.machines.cpu.abi import NONE
from tir_schedules.machines.cpu.context import Lowering
from tir_schedules.machines.cpu.instructions.memory import without_hint
from tir_schedules.machines.cpu.lines import COPIES, exact
from tir_schedules.machines.cpu.micro_ops import micro_op
from tir_schedules.machines.cpu.ptx import Immediate, Instruction, Negated, Operand, Register
from tir_schedules.machines.cpu.table import Lower, Lowered, Row, Spread, passthrough

CopyAsync = micro_op(
    "CopyAsync",
    "cp.async",
    "Where target source; Constant bytes; Words? available; Constant source_counter; Flag bypasses;"
    " Counter counter",
)
"""available: bytes that are read, the others being zeros; bypasses: the L1 cache."""

CommitCopies = micro_op("CommitCopies", "cp.async.commit_group")
WaitForCopies = micro_op("WaitForCopies", "cp.async.wait_group", "Constant open")
"""open: groups that may stay in flight; NONE: not even what is in no group."""


def copy_async(low: Lowering, i: Instruction) -> Lowered:
    target, source = low.address(i.operands[0], i, bounded=True), low.address(i.operands[1], i)
    _, _, _, *others = without_hint(i)
    size = i.number(2)
    if size not in (4, 8, 16) or not source.wide or len(others) > 1:
        raise i.unsupported("size or address")
    before, available = bytes_available(low, i, others[0], size) if others else ([], None)
    low.watch_shared(i, size)
    counter, of_source = low.counter(i, "shared_cp_async"), low.counter(i, "global_cp_async")
    how = dict(bytes=size, available=available, bypasses=i.has("cg"), source_counter=of_source)
    return [*before, CopyAsync(low, i, target=target, source=source, **how, counter=counter)]


def wait(low: Lowering, i: Instruction) -> Lowered:
    return [WaitForCopies(low, i, open=i.number(0) if i.operands else NONE)]


def bytes_available(low: Lowering, i: Instruction, given: Operand, size: int) -> tuple[Lowered, Operand]:
    """How many bytes are read, the others being zeros; and what has to be executed before.

    given: their number, or a predicate that says to read none.
    """
    if not (isinstance(given, Negated) or isinstance(given, Register) and given.type == "pred"):
        return [], given
    held, ignored = low.temporary("available", "u32"), given
    amounts = Immediate(0), Immediate(size)
    if isinstance(given, Negated):
        ignored, amounts = given.register, amounts[::-1]
    choice = Instruction("selp.u32", (held, *amounts, ignored), i.guard, i.line, i.source, i.within)
    return [choice], held


SOURCES = "{ca,cg}.shared.global"
MODIFIERS = "ca cg shared shared::cta global L2::64B L2::128B L2::256B L2::cache_hint"


def of_copies(lower: Lower, operands: str = "", modifiers: str = "") -> Row:
    return Row(lower, operands, modifiers, mix="cp_async", fence=True, spread=Spread.USE)


ROWS: dict[str, Row] = {
    "cp.async": of_copies(copy_async, "[d], [a], #size, available?, policy?", MODIFIERS),
    "cp.async.commit_group": of_copies(passthrough(CommitCopies)),
    "cp.async.wait_group": of_copies(wait, "#n"),
    "cp.async.wait_all": of_copies(wait),
}

LINES = (
    exact(f"cp.async.{SOURCES}", COPIES, 80),
    exact("cp.async.commit_group", COPIES, 80),
    exact("cp.async.wait_group", COPIES, 80),
    exact("cp.async.wait_all", COPIES, 80),
)
