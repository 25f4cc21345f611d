"""mbarriers, and the fences that let asynchronous units see what threads have done; core/mbarrier.cpp has
them."""

from __future__ import annotations

from enum import IntFlag
from typing import Optional

from tir_schedules.machines.cpu.context import Lowering, only
from tir_schedules.machines.cpu.forms import Form, Lower, Lowered, Spread, exact, modelled, refusal, refused
from tir_schedules.machines.cpu.micro_ops import Flag, Lanes, Longs, MicroOp, Where, Words
from tir_schedules.machines.cpu.ptx import SINK, Address, Instruction

SPACES = {"shared", "shared::cta", "shared::cluster"}
ORDER = {"release", "acquire", "relaxed", "cta", "cluster"}


Arrival = IntFlag("Arrival", "ARRIVES EXPECTS DROPS NO_COMPLETE RELAXED COMPLETES_BYTES")
"""What is told to an mbarrier."""


class AtMbarrier(MicroOp):
    """generic: whether the address is."""

    where: Where
    generic: Flag


class Initialise(AtMbarrier, name="mbarrier.init"):
    """count: arrivals of a phase."""

    count: Words


class Invalidate(AtMbarrier, name="mbarrier.inval"):
    pass


class Tell(AtMbarrier, name="mbarrier.tell"):
    """count: of arrivals, 1 where there is none; state: the result."""

    how: Arrival
    count: Optional[Words]
    bytes: Optional[Words]
    state: Optional[Longs]


class Test(AtMbarrier, name="mbarrier.test"):
    """value: a parity, or the state that an arrival gave."""

    parity: Flag
    relaxed: Flag
    value: Lanes
    result: Words


class PendingCount(MicroOp, name="mbarrier.pending_count"):
    result: Words
    state: Longs


class ArriveWithCopies(AtMbarrier, name="cp.async.mbarrier"):
    """noinc: whether the arrival is one of those that the mbarrier expects."""

    noinc: Flag


class FenceInit(MicroOp, name="fence.mbarrier_init"):
    pass


class FenceProxy(MicroOp, name="fence.proxy"):
    pass


def is_generic(i: Instruction) -> bool:
    return i.space == "generic"


def initialise(low: Lowering, i: Instruction) -> Lowered:
    only(i, SPACES, {"init", "inval"})
    if i.types != ("b64",) or i.has("shared::cluster") or len(i.operands) != 1 + i.has("init"):
        raise i.unsupported("type, space or number of operands")
    where, generic = low.address(i.operands[0], i), is_generic(i)
    if i.has("inval"):
        return [Invalidate(i, where=where, generic=generic)]
    return [Initialise(i, where=where, generic=generic, count=low.place(i.operands[1], "u32", i))]


def arrive(low: Lowering, i: Instruction) -> Lowered:
    """arrive and arrive_drop: the state they give, an address, and a count, or bytes that are expected."""
    only(i, SPACES, ORDER, {"arrive", "arrive_drop", "expect_tx", "noComplete"})
    given = list(i.operands)
    result = given.pop(0) if given and not isinstance(given[0], Address) else SINK
    expects = i.has("expect_tx")
    if i.types != ("b64",) or not 1 + expects <= len(given) <= 2 or expects and i.has("noComplete"):
        raise i.unsupported("type or number of operands")
    if i.has("shared::cluster") and result != SINK:
        raise i.unsupported("the state of an mbarrier of another block")
    how = Arrival.ARRIVES | (Arrival.EXPECTS if expects else 0)
    how |= Arrival.DROPS if i.has("arrive_drop") else 0
    how |= Arrival.NO_COMPLETE if i.has("noComplete") else 0
    how |= Arrival.RELAXED if i.has("relaxed") else 0
    where = low.address(given[0], i)
    number = low.place(given[1], "u32", i) if len(given) > 1 else None
    return [
        Tell(
            i,
            where=where,
            generic=is_generic(i),
            how=how,
            count=None if expects else number,
            bytes=number if expects else None,
            state=low.wanted(result, "b64", i),
        )
    ]


def count_bytes(low: Lowering, i: Instruction) -> Lowered:
    only(i, SPACES, {"relaxed", "cta", "cluster", "expect_tx", "complete_tx"})
    if i.types != ("b64",) or len(i.operands) != 2:
        raise i.unsupported("type or number of operands")
    return [
        Tell(
            i,
            where=low.address(i.operands[0], i),
            generic=is_generic(i),
            how=Arrival.EXPECTS if i.has("expect_tx") else Arrival.COMPLETES_BYTES,
            count=None,
            bytes=low.place(i.operands[1], "u32", i),
            state=None,
        )
    ]


def test(low: Lowering, i: Instruction) -> Lowered:
    """test_wait and try_wait: of the phase of a state, or of a parity. How long to try does not matter."""
    only(i, SPACES, ORDER, {"test_wait", "try_wait", "parity"})
    if i.types != ("b64",) or i.has("shared::cluster") or not 3 <= len(i.operands) <= 3 + i.has("try_wait"):
        raise i.unsupported("type, space or number of operands")
    parity = i.has("parity")
    return [
        Test(
            i,
            where=low.address(i.operands[1], i),
            generic=is_generic(i),
            parity=parity,
            relaxed=i.has("relaxed"),
            value=low.place(i.operands[2], "u32" if parity else "b64", i),
            result=low.place(i.operands[0], "pred", i),
        )
    ]


def pending_count(low: Lowering, i: Instruction) -> Lowered:
    only(i, {"pending_count"})
    result, state = i.operands
    return [PendingCount(i, result=low.place(result, "u32", i), state=low.place(state, "b64", i))]


def arrive_with_copies(low: Lowering, i: Instruction) -> Lowered:
    only(i, {"async", "mbarrier", "arrive", "noinc", "shared", "shared::cta"})
    where = low.address(i.operands[0], i)
    return [ArriveWithCopies(i, where=where, generic=is_generic(i), noinc=i.has("noinc"))]


def fence(low: Lowering, i: Instruction) -> Lowered:
    """fence.proxy.async and fence.mbarrier_init."""
    if i.has("mbarrier_init"):
        only(i, {"mbarrier_init", "release", "cluster"})
        return [FenceInit(i)]
    only(i, {"proxy", "async", "global", "shared::cta", "shared::cluster"})
    return [FenceProxy(i)]


def of_barrier(lower: Lower, has_result: bool = False, access: str = "updates") -> Form:
    return Form(
        lower, has_result=has_result, mix="mbarrier", access=access, fence=True, spread=Spread.USE,
        makes_addresses=False, units=True,
    )  # fmt: skip


SPACE, OF_BLOCK = "{,.shared,.shared::cta}", "{,.shared::cta}"
CASES = "cases written by hand"
AT_ONCE = "the copies arrive at once"
REBUILT = "tensor maps are those of the launch: give the kernel another one"

FORMS: dict[str, Form] = {
    "mbarrier.init": of_barrier(initialise).told(exact(f"mbarrier.init{SPACE}.b64", CASES, 80)),
    "mbarrier.inval": of_barrier(initialise).told(exact(f"mbarrier.inval{SPACE}.b64", CASES, 80)),
    "mbarrier.arrive": of_barrier(arrive, has_result=True).told(
        exact("mbarrier.arrive{,.noComplete}{,.shared}.b64", CASES, 80),
        exact(
            "mbarrier.arrive{,.expect_tx}{,.release.cta,.release.cluster,.relaxed.cta}"
            "{,.shared::cta,.shared::cluster}.b64",
            CASES,
            90,
        ),
    ),
    "mbarrier.arrive_drop": of_barrier(arrive, has_result=True).told(
        exact("mbarrier.arrive_drop{,.noComplete}{,.shared}.b64", CASES, 80),
        exact("mbarrier.arrive_drop.expect_tx{,.shared::cta,.shared::cluster}.b64", CASES, 90),
    ),
    "mbarrier.expect_tx": of_barrier(count_bytes).told(
        exact(
            "mbarrier.expect_tx{,.relaxed.cta,.relaxed.cluster}{,.shared::cta,.shared::cluster}.b64",
            CASES,
            90,
        )
    ),
    "mbarrier.complete_tx": of_barrier(count_bytes).told(
        exact(
            "mbarrier.complete_tx{,.relaxed.cta,.relaxed.cluster}{,.shared::cta,.shared::cluster}.b64",
            CASES,
            90,
        )
    ),
    "mbarrier.test_wait": of_barrier(test, has_result=True, access="reads").told(
        exact("mbarrier.test_wait{,.parity}{,.shared}.b64", CASES, 80),
        exact(
            "mbarrier.test_wait{,.parity}{.acquire.cta,.acquire.cluster,.relaxed.cta}.shared::cta.b64",
            CASES,
            90,
        ),
    ),
    "mbarrier.try_wait": of_barrier(test, has_result=True, access="reads").told(
        exact(
            "mbarrier.try_wait{,.parity}{,.acquire.cta,.acquire.cluster,.relaxed.cta}{,.shared::cta}.b64",
            CASES,
            90,
        )
    ),
    "mbarrier.pending_count": of_barrier(pending_count, has_result=True, access="reads").told(
        exact("mbarrier.pending_count.b64", CASES, 80)
    ),
    "cp.async.mbarrier": of_barrier(arrive_with_copies).told(
        modelled("cp.async.mbarrier.arrive{,.noinc}{,.shared,.shared::cta}.b64", AT_ONCE, 80)
    ),
    "fence.proxy.async": of_barrier(fence).told(
        exact("fence.proxy.async{,.global,.shared::cta,.shared::cluster}", CASES, 90)
    ),
    "fence.mbarrier_init": of_barrier(fence).told(exact("fence.mbarrier_init.release.cluster", CASES, 90)),
    "fence.proxy.tensormap": refused(REBUILT).told(refusal("fence.proxy.tensormap", REBUILT, 90)),
    "fence.proxy.tensormap::generic": refused(REBUILT).told(
        refusal("fence.proxy.tensormap::generic", REBUILT, 90)
    ),
}
