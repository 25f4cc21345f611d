"""Instructions in which lanes of a warp look at each other; core/warp.cpp executes them."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Optional

from tir_schedules.machines.cpu.abi import NONE
from tir_schedules.machines.cpu.context import Lowering, only
from tir_schedules.machines.cpu.forms import Form, Lower, Lowered, Spread
from tir_schedules.machines.cpu.lane_code import is_float
from tir_schedules.machines.cpu.micro_ops import Constant, Flag, Lanes, MicroOp, Words
from tir_schedules.machines.cpu.ptx import BITS, SINK, Immediate, Instruction, Negated, Pair

ShuffleMode = IntEnum("ShuffleMode", "UP DOWN BUTTERFLY INDEX", start=0)


VoteMode = IntEnum("VoteMode", "BALLOT ANY ALL UNIFORM ACTIVE_MASK", start=0)


Reduction = IntEnum("Reduction", "ADD MIN MAX AND OR XOR", start=0)


SHUFFLES: dict[str, ShuffleMode] = dict(zip(("up", "down", "bfly", "idx"), ShuffleMode))
VOTES: dict[str, VoteMode] = dict(zip(("ballot", "any", "all", "uni"), VoteMode))
REDUCTIONS = {one.name.lower(): one for one in Reduction}


class Shuffle(MicroOp, name="shfl"):
    """clamp: as PTX has it: the last lane, and what lanes of a segment have in common."""

    mode: ShuffleMode
    source: Words
    lane: Words
    clamp: Words
    result: Words
    valid: Optional[Words]
    members: Words


class Vote(MicroOp, name="vote"):
    mode: VoteMode
    negated: Flag
    predicate: Optional[Words]
    result: Words
    members: Optional[Words]


class Reduce(MicroOp, name="redux"):
    operation: Reduction
    is_signed: Flag
    source: Words
    result: Words
    members: Words


class Match(MicroOp, name="match"):
    """match.any. bytes: of each of the values that are compared."""

    bytes: Constant
    source: Lanes
    result: Words
    members: Words


class Elect(MicroOp, name="elect"):
    predicate: Words
    elected: Optional[Words]


class WarpBarrier(MicroOp, name="bar.warp"):
    members: Words


def shuffled(low: Lowering, i: Instruction) -> dict[str, Any]:
    """The operands of a Shuffle."""
    only(i, {"sync"}, SHUFFLES)
    to, source, lane, clamp, *members = i.operands
    result, valid = (to.first, to.second) if isinstance(to, Pair) else (to, SINK)
    return dict(
        mode=SHUFFLES[i.choice([*SHUFFLES])],
        members=low.place(members[0] if members else Immediate(NONE), "u32", i),
        source=low.place(source, "b32", i),
        lane=low.place(lane, "b32", i),
        clamp=low.place(clamp, "b32", i),
        result=low.place(result, "b32", i),
        valid=low.wanted(valid, "pred", i),
    )


def shuffle(low: Lowering, i: Instruction) -> Lowered:
    return [Shuffle(i, **shuffled(low, i))]


def active_mask(low: Lowering, i: Instruction) -> Lowered:
    only(i)
    result = low.place(i.operands[0], "b32", i)
    return [Vote(i, mode=VoteMode.ACTIVE_MASK, negated=False, predicate=None, result=result, members=None)]


def vote(low: Lowering, i: Instruction) -> Lowered:
    only(i, {"sync"}, VOTES)
    to, predicate, *members = i.operands
    negated = isinstance(predicate, Negated)
    return [
        Vote(
            i,
            mode=VOTES[i.choice([*VOTES])],
            negated=negated,
            predicate=low.place(predicate.register if negated else predicate, "pred", i),
            members=low.place(members[0], "u32", i) if members else None,
            result=low.place(to, i.type, i),
        )
    ]


def reduction(low: Lowering, i: Instruction) -> Lowered:
    only(i, {"sync"}, REDUCTIONS)
    if is_float(i.type):
        raise i.unsupported("float operands")
    to, source, members = (low.place(operand, "b32", i) for operand in i.operands)
    operation, signed = REDUCTIONS[i.choice([*REDUCTIONS])], i.type[0] == "s"
    return [Reduce(i, operation=operation, is_signed=signed, source=source, result=to, members=members)]


def match_any(low: Lowering, i: Instruction) -> Lowered:
    only(i, {"sync", "any"})
    i.choice(["any"])
    to, source, members = i.operands
    return [
        Match(
            i,
            bytes=BITS[i.type] // 8,
            source=low.place(source, i.type, i),
            result=low.place(to, "b32", i),
            members=low.place(members, "b32", i),
        )
    ]


def elect(low: Lowering, i: Instruction) -> Lowered:
    only(i, {"sync"})
    results = i.operands[0]
    if not isinstance(results, Pair):
        raise i.unsupported("without a predicate")
    predicate = low.place(results.second, "pred", i)
    return [Elect(i, predicate=predicate, elected=low.wanted(results.first, "b32", i))]


def warp_barrier(low: Lowering, i: Instruction) -> Lowered:
    return [WarpBarrier(i, members=low.place(i.operands[0], "b32", i))]


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
