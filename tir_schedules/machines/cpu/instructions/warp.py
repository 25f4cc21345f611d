"""Instructions in which lanes of a warp look at each other; core/warp.cpp executes them."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from tir_schedules.machines.cpu.abi import NONE
from tir_schedules.machines.cpu.context import Lowering
from tir_schedules.machines.cpu.lane_code import is_float
from tir_schedules.machines.cpu.micro_ops import micro_op
from tir_schedules.machines.cpu.ptx import BITS, SINK, Immediate, Instruction, Negated, Pair
from tir_schedules.machines.cpu.table import Lower, Lowered, Row, Spread, passthrough

ShuffleMode = IntEnum("ShuffleMode", "UP DOWN BUTTERFLY INDEX", start=0)
VoteMode = IntEnum("VoteMode", "BALLOT ANY ALL UNIFORM ACTIVE_MASK", start=0)
Reduction = IntEnum("Reduction", "ADD MIN MAX AND OR XOR", start=0)
SHUFFLES: dict[str, ShuffleMode] = dict(zip(("up", "down", "bfly", "idx"), ShuffleMode))
VOTES: dict[str, VoteMode] = dict(zip(("ballot", "any", "all", "uni"), VoteMode))
REDUCTIONS = {one.name.lower(): one for one in Reduction}

SHUFFLE = "ShuffleMode mode; Words source lane clamp result; Predicates? valid; Words members"
Shuffle = micro_op("Shuffle", "shfl", SHUFFLE)
"""clamp: as PTX has it: the last lane, and what lanes of a segment have in common."""

Vote = micro_op(
    "Vote", "vote", "VoteMode mode; Flag negated; Predicates? predicate; Lanes result; Words? members"
)
Reduce = micro_op("Reduce", "redux", "Reduction operation; Flag is_signed; Words source result members")
Match = micro_op("Match", "match", "Constant bytes; Lanes source; Words result members")
"""match.any. bytes: of each of the values that are compared."""

Elect = micro_op("Elect", "elect", "Predicates predicate; Words? elected")
WarpBarrier = micro_op("WarpBarrier", "bar.warp", "Words members")


def shuffled(i: Instruction) -> dict[str, Any]:
    """The operands of a Shuffle."""
    to, source, lane, clamp, *members = i.operands
    result, valid = (to.first, to.second) if isinstance(to, Pair) else (to, SINK)
    return dict(
        mode=SHUFFLES[i.choice([*SHUFFLES])], source=source, lane=lane, clamp=clamp, result=result,
        valid=valid, members=members[0] if members else Immediate(NONE),
    )  # fmt: skip


def shuffle(low: Lowering, i: Instruction) -> Lowered:
    return [Shuffle(low, i, **shuffled(i))]


def active_mask(low: Lowering, i: Instruction) -> Lowered:
    how = dict(mode=VoteMode.ACTIVE_MASK, negated=False, predicate=None, members=None)
    return [Vote(low, i, **how, result=i.operands[0])]


def vote(low: Lowering, i: Instruction) -> Lowered:
    to, predicate, *members = i.operands
    negated, mode = isinstance(predicate, Negated), VOTES[i.choice([*VOTES])]
    asked, mask = predicate.register if isinstance(predicate, Negated) else predicate, (*members, None)[0]
    return [Vote(low, i, mode=mode, negated=negated, predicate=asked, members=mask, result=to)]


def reduction(low: Lowering, i: Instruction) -> Lowered:
    if is_float(i.type):
        raise i.unsupported("float operands")
    to, source, members = i.operands
    how = dict(operation=REDUCTIONS[i.choice([*REDUCTIONS])], is_signed=i.type[0] == "s")
    return [Reduce(low, i, **how, source=source, result=to, members=members)]


def match_any(low: Lowering, i: Instruction) -> Lowered:
    i.choice(["any"])
    to, source, members = i.operands
    return [Match(low, i, bytes=BITS[i.type] // 8, source=source, result=to, members=members)]


def elect(low: Lowering, i: Instruction) -> Lowered:
    (results,) = i.operands[:1]
    assert isinstance(results, Pair)
    return [Elect(low, i, predicate=results.second, elected=results.first)]


def of_warp(lower: Lower, operands: str, modifiers: str, pipe: str = "") -> Row:
    return Row(lower, operands, modifiers, mix="shuffle", pipe=pipe, spread=Spread.NONE)


ROWS: dict[str, Row] = {
    "shfl": of_warp(shuffle, "=d|=p?, a, b, c", "up down bfly idx"),
    "shfl.sync": of_warp(shuffle, "=d|=p?, a, b, c, members", "up down bfly idx"),
    "vote": of_warp(vote, "=d, p:pred", "ballot any all uni", "alu"),
    "vote.sync": of_warp(vote, "=d, p:pred, members", "ballot any all uni", "alu"),
    "activemask": of_warp(active_mask, "=d", "", "alu"),
    "redux": of_warp(reduction, "=d, a, members", "sync add min max and or xor"),
    "match": of_warp(match_any, "=d, a, members", "any sync"),
    "elect": of_warp(elect, "=d|=p, members", "sync", "alu"),
    "bar.warp": Row(
        passthrough(WarpBarrier), "members", "sync", mix="barrier", pipe="cbu", fence=True, gathers=True
    ),
}
