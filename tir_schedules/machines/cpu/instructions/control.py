"""Branches, barriers, exits and fences. What ends a basic block is executed by core/engine.cpp itself."""

from __future__ import annotations

from tir_schedules.machines.cpu.abi import Exit
from tir_schedules.machines.cpu.context import Lowering
from tir_schedules.machines.cpu.forms import Form, Lowered
from tir_schedules.machines.cpu.ptx import Immediate, Instruction


def block_barrier(low: Lowering, i: Instruction) -> Lowered:
    """Only the barrier of __syncthreads: number 0, all threads, nothing reduced."""
    known = {"bar", "barrier", "sync", "cta", "aligned"}
    if not set(i.parts) <= known or i.operands != (Immediate(0),):
        raise i.unsupported("only barrier 0 of all threads")
    return []


BARRIER = Form(block_barrier, ends=Exit.BARRIER, has_result=False, mix="barrier")
EXIT = Form(None, ends=Exit.LEAVE, has_result=False, mix="control")
FENCE = Form(None, has_result=False, mix="barrier")
PAUSE = Form(None, has_result=False)

FORMS: dict[str, Form] = {
    "bra": Form(None, ends=Exit.BRANCH, has_result=False, mix="control"),
    "ret": EXIT,
    "exit": EXIT,
    "bar": BARRIER,
    "barrier": BARRIER,
    "membar": FENCE,
    "fence": FENCE,
    "nanosleep": PAUSE,
    "pmevent": PAUSE,
}
