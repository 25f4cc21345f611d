"""mbarriers, and the fences that let asynchronous units see what threads have done; core/mbarrier.cpp has
them."""

from __future__ import annotations

from enum import IntFlag
from typing import Any

from tir_schedules.machines.cpu.abi import Polls
from tir_schedules.machines.cpu.context import Lowering
from tir_schedules.machines.cpu.lines import BY_HAND, Line, exact, modelled
from tir_schedules.machines.cpu.micro_ops import micro_op
from tir_schedules.machines.cpu.ptx import SINK, Address, Instruction
from tir_schedules.machines.cpu.table import Lower, Lowered, Row, Spread, passthrough, refused

Arrival = IntFlag("Arrival", "ARRIVES EXPECTS DROPS NO_COMPLETE RELAXED COMPLETES_BYTES")
"""What is told to an mbarrier."""

AT = "Where where; Flag generic; "
"""Fields of what is about an mbarrier. generic: whether the address is."""

Initialise = micro_op("Initialise", "mbarrier.init", AT + "Words count")
"""count: arrivals of a phase."""

Invalidate = micro_op("Invalidate", "mbarrier.inval", AT)
Tell = micro_op("Tell", "mbarrier.tell", AT + "Arrival how; Words? count bytes; Longs? state")
"""count: of arrivals, 1 where there is none; state: the result."""

Test = micro_op("Test", "mbarrier.test", AT + "Flag parity relaxed; Lanes value; Predicates result")
"""value: a parity, or the state that an arrival gave."""

PendingCount = micro_op("PendingCount", "mbarrier.pending_count", "Words result; Longs state")
ArriveWithCopies = micro_op("ArriveWithCopies", "cp.async.mbarrier", AT + "Flag noinc")
"""noinc: whether the arrival is one of those that the mbarrier expects."""

FenceInit = micro_op("FenceInit", "fence.mbarrier_init")
FenceProxy = micro_op("FenceProxy", "fence.proxy")


def where(i: Instruction, k: int) -> dict[str, Any]:
    """The fields of AT; operand k is the address."""
    if i.types != ("b64",):
        raise i.unsupported("type")
    return dict(where=i.operands[k], generic=i.space == "generic")


def initialise(low: Lowering, i: Instruction) -> Lowered:
    if i.has("inval"):
        return [Invalidate(low, i, **where(i, 0))]
    return [Initialise(low, i, **where(i, 0), count=i.operands[1])]


def arrive(low: Lowering, i: Instruction) -> Lowered:
    """arrive and arrive_drop: the state they give, an address, and a count, or bytes that are expected."""
    expects = i.has("expect_tx")
    at = 0 if isinstance(i.operands[0], Address) else 1
    number, state = (*i.operands[at + 1 :], None)[0], i.operands[0] if at else None
    if expects and (number is None or i.has("noComplete")):
        raise i.unsupported("number of operands")
    if i.has("shared::cluster") and state not in (None, SINK):
        raise i.unsupported("the state of an mbarrier of another block")
    how = Arrival.ARRIVES | (Arrival.EXPECTS if expects else 0)
    how |= Arrival.DROPS if i.has("arrive_drop") else 0
    how |= Arrival.NO_COMPLETE if i.has("noComplete") else 0
    how |= Arrival.RELAXED if i.has("relaxed") else 0
    numbers = dict(count=None if expects else number, bytes=number if expects else None)
    return [Tell(low, i, **where(i, at), how=how, **numbers, state=state)]


def count_bytes(low: Lowering, i: Instruction) -> Lowered:
    how = Arrival.EXPECTS if i.has("expect_tx") else Arrival.COMPLETES_BYTES
    return [Tell(low, i, **where(i, 0), how=how, count=None, bytes=i.operands[1], state=None)]


def test(low: Lowering, i: Instruction) -> Lowered:
    """test_wait and try_wait: of the phase of a state, or of a parity. How long to try does not matter."""
    result, _, value = i.operands[:3]
    how = dict(parity=i.has("parity"), relaxed=i.has("relaxed"))
    placed = low.place(value, "u32" if i.has("parity") else "b64", i)
    return [Test(low, i, **where(i, 1), **how, value=placed, result=result)]


def arrive_with_copies(low: Lowering, i: Instruction) -> Lowered:
    return [ArriveWithCopies(low, i, **where(i, 0), noinc=i.has("noinc"))]


OWN, ALL = "shared shared::cta", "shared shared::cta shared::cluster"
ORDER = "release acquire relaxed cta cluster"


def of_barrier(lower: Lower, operands: str, modifiers: str, access: str = "updates", **how: Any) -> Row:
    return Row(
        lower, operands, modifiers, mix="mbarrier", access=access, fence=True,
        spread=Spread.USE, makes_addresses=False, units=True, **how,
    )  # fmt: skip


SPACE = "{,.shared,.shared::cta}"
AT_ONCE = "the copies arrive at once"
REBUILT = "tensor maps are those of the launch: give the kernel another one"

ROWS: dict[str, Row] = {
    "mbarrier.init": of_barrier(initialise, "[a], count", OWN),
    "mbarrier.inval": of_barrier(initialise, "[a]", OWN),
    "mbarrier.arrive": of_barrier(arrive, "=state?, [a], count?", f"{ALL} {ORDER} expect_tx noComplete"),
    "mbarrier.arrive_drop": of_barrier(arrive, "=state?, [a], count?", f"{ALL} {ORDER} expect_tx noComplete"),
    "mbarrier.expect_tx": of_barrier(count_bytes, "[a], bytes", f"{ALL} relaxed cta cluster"),
    "mbarrier.complete_tx": of_barrier(count_bytes, "[a], bytes", f"{ALL} relaxed cta cluster"),
    "mbarrier.test_wait": of_barrier(
        test, "=p, [a], state", f"{OWN} {ORDER} parity", "reads", observes=Polls.OF_BARRIERS
    ),
    "mbarrier.try_wait": of_barrier(
        test, "=p, [a], state, time?", f"{OWN} {ORDER} parity", "reads", observes=Polls.OF_BARRIERS
    ),
    "mbarrier.pending_count": of_barrier(passthrough(PendingCount), "=count, state", "", "reads"),
    "cp.async.mbarrier": of_barrier(arrive_with_copies, "[a]", "arrive noinc shared shared::cta"),
    "fence.proxy.async": of_barrier(passthrough(FenceProxy), "", "global shared::cta shared::cluster"),
    "fence.mbarrier_init": of_barrier(passthrough(FenceInit), "", "release cluster"),
    "fence.proxy.tensormap": refused(REBUILT, 90),
    "fence.proxy.tensormap::generic": refused(REBUILT, 90),
}


def cases(opcodes: str, since: int = 90) -> Line:
    return exact(opcodes, BY_HAND, since)


LINES = (
    cases(f"mbarrier.init{SPACE}.b64", 80),
    cases(f"mbarrier.inval{SPACE}.b64", 80),
    cases("mbarrier.arrive{,.noComplete}{,.shared}.b64", 80),
    cases(
        "mbarrier.arrive{,.expect_tx}{,.release.cta,.release.cluster,.relaxed.cta}"
        "{,.shared::cta,.shared::cluster}.b64"
    ),
    cases("mbarrier.arrive_drop{,.noComplete}{,.shared}.b64", 80),
    cases("mbarrier.arrive_drop.expect_tx{,.shared::cta,.shared::cluster}.b64"),
    cases("mbarrier.expect_tx{,.relaxed.cta,.relaxed.cluster}{,.shared::cta,.shared::cluster}.b64"),
    cases("mbarrier.complete_tx{,.relaxed.cta,.relaxed.cluster}{,.shared::cta,.shared::cluster}.b64"),
    cases("mbarrier.test_wait{,.parity}{,.shared}.b64", 80),
    cases("mbarrier.test_wait{,.parity}{.acquire.cta,.acquire.cluster,.relaxed.cta}.shared::cta.b64"),
    cases("mbarrier.try_wait{,.parity}{,.acquire.cta,.acquire.cluster,.relaxed.cta}{,.shared::cta}.b64"),
    cases("mbarrier.pending_count.b64", 80),
    modelled("cp.async.mbarrier.arrive{,.noinc}{,.shared,.shared::cta}.b64", AT_ONCE, 80),
    cases("fence.proxy.async{,.global,.shared::cta,.shared::cluster}"),
    cases("fence.mbarrier_init.release.cluster"),
)
