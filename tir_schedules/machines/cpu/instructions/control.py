"""Branches, barriers, exits and fences. What ends a basic block is executed by core/block.cpp."""

from __future__ import annotations

from tir_schedules.machines.cpu.abi import NONE, Exit, Scope
from tir_schedules.machines.cpu.context import Lowering, MicroOp, only
from tir_schedules.machines.cpu.forms import Form, Lowered
from tir_schedules.machines.cpu.ptx import SINK, Immediate, Instruction, Negated

BARRIER_WORDS = {"sync", "arrive", "red", "cta", "aligned"}
VOTES = ["popc", "and", "or"]
"""In the order of Vote in core/block.cpp."""

DEVICE_SCOPES = {"gl", "sys", "gpu", "cluster"}
FENCE_WORDS = {"cta", "acq_rel", "sc", "acquire", "release"} | DEVICE_SCOPES


def is_of_the_block(i: Instruction) -> bool:
    """Whether it is the barrier of __syncthreads: number 0, all threads, nothing voted on, the same one for
    each thread."""
    everybody = i.operands == (Immediate(0),) and not {"arrive", "red"}.intersection(i.parts)
    return everybody and (i.name == "bar" or i.has("aligned"))


def block_barrier(low: Lowering, i: Instruction) -> Lowered:
    only(i, BARRIER_WORDS, VOTES)
    if is_of_the_block(i):
        return []
    result, vote, predicate, negated = NONE, 0, 0, 0
    operands = list(i.operands)
    if i.has("red"):
        first, *operands, last = operands
        negated, last = int(isinstance(last, Negated)), last.register if isinstance(last, Negated) else last
        vote, predicate = VOTES.index(i.choice(VOTES)), low.place(last, "pred", i)
        result = NONE if first == SINK else low.place(first, i.type, i)
    number, *count = operands
    threads = low.place(count[0], "u32", i) if count else NONE
    if i.has("arrive") and not count:
        raise i.unsupported("without a number of threads")
    numbers = (int(i.has("arrive")), low.place(number, "u32", i), threads, vote, predicate, negated, result)
    return [MicroOp("barrier", numbers, i)]


def fence(low: Lowering, i: Instruction) -> Lowered:
    """Those that order accesses by the threads; what names an alias orders nothing that is known apart."""
    if i.has("proxy"):
        only(i, {"proxy", "alias"})
        return []
    only(i, FENCE_WORDS)
    of_block = DEVICE_SCOPES.isdisjoint(i.parts)
    return [MicroOp("fence", (Scope.THREADS_OF_BLOCK if of_block else Scope.DEVICE,), i)]


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
