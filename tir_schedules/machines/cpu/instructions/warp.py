"""Instructions in which lanes of a warp look at each other; core/warp.cpp executes them."""

from __future__ import annotations

from tir_schedules.machines.cpu.abi import NONE
from tir_schedules.machines.cpu.context import Lowering, MicroOp, only
from tir_schedules.machines.cpu.forms import Form, Lower, Lowered, Spread
from tir_schedules.machines.cpu.lane_code import is_float
from tir_schedules.machines.cpu.ptx import BITS, SINK, Immediate, Instruction, Negated, Pair

SHUFFLES = ["up", "down", "bfly", "idx"]
"""In the order of ShuffleMode in core/warp.cpp."""

VOTES = ["ballot", "any", "all", "uni"]
"""In the order of VoteMode."""

ACTIVE_MASK = 4
REDUCTIONS = ["add", "min", "max", "and", "or", "xor"]
"""In the order of Reduction."""


def shuffle(low: Lowering, i: Instruction) -> Lowered:
    only(i, {"sync"}, SHUFFLES)
    to, source, lane, clamp, *members = i.operands
    result, valid = (to.first, to.second) if isinstance(to, Pair) else (to, SINK)
    mask = low.place(members[0] if members else Immediate(NONE), "u32", i)
    words = [low.place(operand, "b32", i) for operand in (source, lane, clamp, result)]
    predicate = NONE if valid == SINK else low.place(valid, "pred", i)
    return [MicroOp("shfl", (SHUFFLES.index(i.choice(SHUFFLES)), *words, predicate, mask), i)]


def active_mask(low: Lowering, i: Instruction) -> Lowered:
    only(i)
    return [MicroOp("vote", (ACTIVE_MASK, 0, 0, low.place(i.operands[0], "b32", i), NONE), i)]


def vote(low: Lowering, i: Instruction) -> Lowered:
    only(i, {"sync"}, VOTES)
    to, predicate, *members = i.operands
    negated = isinstance(predicate, Negated)
    asked = low.place(predicate.register if negated else predicate, "pred", i)
    mask = low.place(members[0], "u32", i) if members else NONE
    mode = VOTES.index(i.choice(VOTES))
    return [MicroOp("vote", (mode, int(negated), asked, low.place(to, i.type, i), mask), i)]


def reduction(low: Lowering, i: Instruction) -> Lowered:
    only(i, {"sync"}, REDUCTIONS)
    if is_float(i.type):
        raise i.unsupported("float operands")
    to, source, members = (low.place(operand, "b32", i) for operand in i.operands)
    operation, signed = REDUCTIONS.index(i.choice(REDUCTIONS)), int(i.type[0] == "s")
    return [MicroOp("redux", (operation, signed, source, to, members), i)]


def match_any(low: Lowering, i: Instruction) -> Lowered:
    only(i, {"sync", "any"})
    i.choice(["any"])
    to, source, members = i.operands
    places = (low.place(source, i.type, i), low.place(to, "b32", i), low.place(members, "b32", i))
    return [MicroOp("match", (BITS[i.type] // 8, *places), i)]


def elect(low: Lowering, i: Instruction) -> Lowered:
    only(i, {"sync"})
    results = i.operands[0]
    if not isinstance(results, Pair):
        raise i.unsupported("without a predicate")
    predicate = low.place(results.second, "pred", i)
    lane = NONE if results.first == SINK else low.place(results.first, "b32", i)
    return [MicroOp("elect", (predicate, lane), i)]


def warp_barrier(low: Lowering, i: Instruction) -> Lowered:
    return [MicroOp("bar.warp", (low.place(i.operands[0], "b32", i),), i)]


def together(lower: Lower) -> Form:
    """The Form of an instruction whose last operand names the lanes that execute it."""
    return Form(lower, mix="shuffle", spread=Spread.NONE, members=-1)


FORMS: dict[str, Form] = {
    "shfl": Form(shuffle, mix="shuffle", spread=Spread.NONE),
    "shfl.sync": together(shuffle),
    "vote": Form(vote, mix="shuffle", spread=Spread.NONE),
    "vote.sync": together(vote),
    "activemask": Form(active_mask, mix="shuffle", spread=Spread.NONE),
    "redux": together(reduction),
    "match": together(match_any),
    "elect": together(elect),
    "bar.warp": Form(warp_barrier, mix="barrier", has_result=False, fence=True, members=0, gathers=True),
}
