"""Branches, barriers, exits and fences. What ends a basic block is executed by core/block.cpp."""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum

from tir_schedules.machines.cpu.abi import Exit, Scope
from tir_schedules.machines.cpu.context import Lowering
from tir_schedules.machines.cpu.micro_ops import micro_op
from tir_schedules.machines.cpu.ptx import Immediate, Instruction, Negated
from tir_schedules.machines.cpu.table import Lowered, Row

DEVICE_SCOPES = {"gl", "sys", "gpu", "cluster"}
BarrierVote = IntEnum("BarrierVote", "POPC AND OR", start=0)

VOTES = {one.name.lower(): one for one in BarrierVote}

Barrier = micro_op(
    "Barrier",
    "barrier",
    "Flag only_arrives; Flag aligned; Words number; Words? threads; BarrierVote vote; Predicates? predicate;"
    " Flag negated; Lanes? result",
    executed=False,
)
"""One of some threads, or one that votes; the engine reads it, and executes nothing. aligned: whether the
lanes of a warp execute it together. threads: how many; predicate, result: of a vote."""

Fence = micro_op("Fence", "fence", "Scope scope")


def is_of_the_block(i: Instruction) -> bool:
    """Whether it is the barrier of __syncthreads: number 0, all threads, nothing voted on, the same one for
    each thread."""
    everybody = i.operands == (Immediate(0),) and not {"arrive", "red"}.intersection(i.parts)
    return everybody and (i.name == "bar" or i.has("aligned"))


def block_barrier(low: Lowering, i: Instruction) -> Lowered:
    if is_of_the_block(i):
        return []
    result, vote, asked = None, BarrierVote.POPC, None
    operands = list(i.operands)
    if i.has("red"):
        result, *operands, asked = operands
        vote = VOTES[i.choice([*VOTES])]
    negated, predicate = isinstance(asked, Negated), asked.register if isinstance(asked, Negated) else asked
    number, threads = operands[0], (*operands[1:], None)[0]
    if i.has("arrive") and threads is None:
        raise i.unsupported("without a number of threads")
    aligned = i.name == "bar" or i.has("aligned")
    how = dict(only_arrives=i.has("arrive"), aligned=aligned, vote=vote, negated=negated)
    return [Barrier(low, i, **how, number=number, threads=threads, predicate=predicate, result=result)]


def fence(low: Lowering, i: Instruction) -> Lowered:
    """Those that order accesses by the threads; what names an alias orders nothing that is known apart."""
    of_block = DEVICE_SCOPES.isdisjoint(i.parts)
    return [Fence(low, i, scope=Scope.THREADS_OF_BLOCK if of_block else Scope.DEVICE)]


def of_block(operands: str, modifiers: str) -> Row:
    return Row(block_barrier, operands, modifiers, ends=Exit.BARRIER, mix="barrier")


BARRIER = of_block("barrier, threads?", "cta sync arrive aligned")
VOTE = of_block("=d, barrier, threads?, p:pred", "aligned popc and or")
EXIT = Row(None, ends=Exit.LEAVE, mix="control")
FENCE = "cta gl gpu sys cluster acq_rel sc acquire release"

ROWS: dict[str, Row] = {
    "bra": Row(None, "target", "uni", ends=Exit.BRANCH, mix="control"),
    "ret": replace(EXIT, modifiers="uni"),
    "exit": EXIT,
    "bar": BARRIER,
    "bar.red": VOTE,
    "bar.cta.red": VOTE,
    "barrier": BARRIER,
    "barrier.red": VOTE,
    "barrier.cta.red": VOTE,
    "membar": Row(fence, "", FENCE, mix="barrier", pipe="lsu", orders=True),
    "fence": Row(fence, "", FENCE, mix="barrier", pipe="lsu", orders=True),
    "fence.proxy.alias": Row(None, mix="barrier", pipe="lsu", orders=True),
    "nanosleep": Row(None, "t", pipe="cbu"),
    "pmevent": Row(None, "#n", "mask", pipe="cbu"),
}
