"""Calls, functions of the machine such as printf, switch tables, and what ends a launch; core/calls.cpp,
core/printf.cpp and core/heap.cpp execute them.

functions.py writes the `call.` instructions that no PTX has.
"""

from __future__ import annotations

from dataclasses import replace

from tir_schedules.machines.cpu.abi import NONE, Exit
from tir_schedules.machines.cpu.context import Lowering, MicroOp, only, size_of
from tir_schedules.machines.cpu.forms import Form, Lower, Lowered, Spread, exact
from tir_schedules.machines.cpu.ptx import Immediate, Instruction, Register, items

STOPS = ["trap", "brkpt"]
"""In the order of Stop in core/calls.cpp."""


def numbers(i: Instruction) -> tuple[int, ...]:
    """The operands that are constants."""
    return tuple(operand.value for operand in i.operands if isinstance(operand, Immediate))


def call(low: Lowering, i: Instruction) -> Lowered:
    """Where a call through a pointer goes: the first block of each function of the module, NONE for those
    that it cannot reach."""
    only(i, {"uni"})
    target = i.operands[0]
    if not isinstance(target, Register):
        return []
    starts = [low.kernel.starts.get(name, NONE) for name in low.functions]
    return [MicroOp("call.target", (low.place(target, "b64", i), len(starts), *starts), i)]


def switch(low: Lowering, i: Instruction) -> Lowered:
    only(i, {"idx", "uni"})
    targets = low.successors[: len(i.operands) - 1]
    return [MicroOp("switch", (low.place(i.operands[0], "b32", i), len(targets), *targets), i)]


def enter(low: Lowering, i: Instruction) -> Lowered:
    """The parameters and variables of a function at a fixed place."""
    return [MicroOp("call.enter", numbers(i), i)]


def push(low: Lowering, i: Instruction) -> Lowered:
    """Those of a recursive function, in a new frame."""
    return [MicroOp("call.push", (low.place(i.operands[0], "b64", i), *numbers(i)), i)]


def keep(low: Lowering, i: Instruction) -> Lowered:
    """Registers of a recursive function: saved before a call, and taken back after it."""
    kept = items(i.operands[0])
    if not kept:
        return []
    places = []
    for register in kept:
        assert isinstance(register, Register)
        followed = low.followed.get(register, NONE)
        places += [low.place(register, register.type, i), size_of(register.type), followed]
    return [MicroOp(i.opcode, (len(kept), *places), i)]


def built_in(low: Lowering, i: Instruction) -> Lowered:
    return [MicroOp(i.opcode, numbers(i), i)]


def stop(low: Lowering, i: Instruction) -> Lowered:
    only(i)
    return [MicroOp("stop", (STOPS.index(i.name),), i)]


def allocate(low: Lowering, i: Instruction) -> Lowered:
    """alloca: its result is an address in local memory."""
    only(i)
    if i.type != "u64" or len(i.operands) < 2:
        raise i.unsupported("an address of 32 bits")
    align = i.number(2) if len(i.operands) > 2 else 8
    return [
        MicroOp("alloca", (low.place(i.operands[0], "b64", i), low.place(i.operands[1], "u64", i), align), i)
    ]


def leave(low: Lowering, i: Instruction) -> Lowered:
    return [MicroOp("call.leave", numbers(i), i)] if i.operands else []


def control(
    lower: Lower,
    ends: Exit | None = None,
    *,
    result: bool = False,
    fence: bool = False,
    spread: Spread = Spread.NONE,
) -> Form:
    """The Form of an instruction through which no undefined value passes."""
    return Form(
        lower,
        ends=ends,
        has_result=result,
        mix="control",
        fence=fence,
        spread=spread,
        makes_addresses=False,
    )


OURS = {
    "call.return": control(leave, Exit.RETURN),
    "call.assert": control(built_in, Exit.LEAVE),
    "call.enter": control(enter),
    "call.push": control(push, result=True),
    "call.save": control(keep),
    "call.resume": control(keep),
    "call.printf": control(built_in, fence=True),
    "call.malloc": control(built_in),
    "call.free": control(built_in),
    "call.memcpy": control(built_in, fence=True),
    "call.memset": control(built_in, fence=True),
}
"""What functions.py writes."""

BY_HAND = "cases written by hand"

FORMS: dict[str, Form] = {
    "call": control(call, Exit.CALL, spread=Spread.USE).told(exact("call{,.uni}", BY_HAND)),
    "brx": control(switch, Exit.SWITCH, spread=Spread.USE).told(exact("brx.idx{,.uni}", BY_HAND)),
    "trap": control(stop, Exit.LEAVE).told(exact("trap", BY_HAND)),
    "brkpt": control(stop, Exit.LEAVE).told(exact("brkpt", BY_HAND)),
    "alloca": control(allocate, result=True).told(exact("alloca.u64", BY_HAND)),
    **{name: replace(form, ours=True) for name, form in OURS.items()},
}
