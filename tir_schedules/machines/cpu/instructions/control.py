"""Branches, barriers, exits and fences. What ends a basic block is executed by core/block.cpp."""

from __future__ import annotations

from enum import IntEnum
from typing import Optional

from tir_schedules.machines.cpu.abi import Exit, Scope
from tir_schedules.machines.cpu.context import Lowering, only
from tir_schedules.machines.cpu.forms import Form, Lowered
from tir_schedules.machines.cpu.micro_ops import Flag, MicroOp, Words
from tir_schedules.machines.cpu.ptx import Immediate, Instruction, Negated

BARRIER_WORDS = {"sync", "arrive", "red", "cta", "aligned"}
DEVICE_SCOPES = {"gl", "sys", "gpu", "cluster"}
FENCE_WORDS = {"cta", "acq_rel", "sc", "acquire", "release"} | DEVICE_SCOPES


BarrierVote = IntEnum("BarrierVote", "POPC AND OR", start=0)


VOTES = {one.name.lower(): one for one in BarrierVote}


class Barrier(MicroOp, name="barrier", executed=False):
    """One of some threads, or one that votes; the engine reads it, and executes nothing. threads: how many;
    predicate, result: of a vote."""

    only_arrives: Flag
    number: Words
    threads: Optional[Words]
    vote: BarrierVote
    predicate: Optional[Words]
    negated: Flag
    result: Optional[Words]


class Fence(MicroOp, name="fence"):
    scope: Scope


def is_of_the_block(i: Instruction) -> bool:
    """Whether it is the barrier of __syncthreads: number 0, all threads, nothing voted on, the same one for
    each thread."""
    everybody = i.operands == (Immediate(0),) and not {"arrive", "red"}.intersection(i.parts)
    return everybody and (i.name == "bar" or i.has("aligned"))


def block_barrier(low: Lowering, i: Instruction) -> Lowered:
    only(i, BARRIER_WORDS, VOTES)
    if is_of_the_block(i):
        return []
    result, vote, predicate, negated = None, BarrierVote.POPC, None, False
    operands = list(i.operands)
    if i.has("red"):
        first, *operands, last = operands
        negated, last = isinstance(last, Negated), last.register if isinstance(last, Negated) else last
        vote, predicate = VOTES[i.choice([*VOTES])], low.place(last, "pred", i)
        result = low.wanted(first, i.type, i)
    number, *count = operands
    threads = low.place(count[0], "u32", i) if count else None
    if i.has("arrive") and not count:
        raise i.unsupported("without a number of threads")
    return [
        Barrier(
            i,
            only_arrives=i.has("arrive"),
            number=low.place(number, "u32", i),
            threads=threads,
            vote=vote,
            predicate=predicate,
            negated=negated,
            result=result,
        )
    ]


def fence(low: Lowering, i: Instruction) -> Lowered:
    """Those that order accesses by the threads; what names an alias orders nothing that is known apart."""
    if i.has("proxy"):
        only(i, {"proxy", "alias"})
        return []
    only(i, FENCE_WORDS)
    of_block = DEVICE_SCOPES.isdisjoint(i.parts)
    return [Fence(i, scope=Scope.THREADS_OF_BLOCK if of_block else Scope.DEVICE)]


BARRIER = Form(block_barrier, ends=Exit.BARRIER, has_result=False, mix="barrier")
VOTE = Form(block_barrier, ends=Exit.BARRIER, mix="barrier")
EXIT = Form(None, ends=Exit.LEAVE, has_result=False, mix="control")
FENCE = Form(fence, has_result=False, mix="barrier", orders=True)
PAUSE = Form(None, has_result=False)

FORMS: dict[str, Form] = {
    "bra": Form(None, ends=Exit.BRANCH, has_result=False, mix="control"),
    "ret": EXIT,
    "exit": EXIT,
    "bar": BARRIER,
    "bar.red": VOTE,
    "bar.cta.red": VOTE,
    "barrier": BARRIER,
    "barrier.red": VOTE,
    "barrier.cta.red": VOTE,
    "membar": FENCE,
    "fence": FENCE,
    "nanosleep": PAUSE,
    "pmevent": PAUSE,
}
