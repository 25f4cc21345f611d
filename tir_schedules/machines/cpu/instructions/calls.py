"""Calls, functions of the machine such as printf, switch tables, and what ends a launch; core/calls.cpp,
core/printf.cpp and core/heap.cpp execute them.

functions.py writes the `call.` instructions that no PTX has.
"""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from typing import Any

from tir_schedules.machines.cpu.abi import NONE, Exit
from tir_schedules.machines.cpu.context import Lowering, size_of
from tir_schedules.machines.cpu.lines import BY_HAND, exact
from tir_schedules.machines.cpu.micro_ops import micro_op
from tir_schedules.machines.cpu.ptx import Instruction, Register, items
from tir_schedules.machines.cpu.table import Lower, Lowered, Row, Spread, passthrough

Stop = IntEnum("Stop", "TRAPPED BROKE NO_FUNCTION NO_TARGET", start=0)
"""Why a launch ends."""

STOPS = {"trap": Stop.TRAPPED, "brkpt": Stop.BROKE}

Target = micro_op("Target", "call.target", "Longs address; Constant[] starts")
"""address: of a function; starts: the first block of each function, or NONE."""

Switch = micro_op("Switch", "switch", "Words index; Constant[] targets")
Enter = micro_op("Enter", "call.enter", "Constant place passed given")
"""place: of a function's parameters and variables; passed: bytes of the parameters, from `given` on."""

Push = micro_op("Push", "call.push", "Longs frame; Constant bytes passed given counted")
"""As Enter, for a frame of `bytes` bytes, which counts as `counted`."""

Leave = micro_op("Leave", "call.leave", "Constant place bytes")
Keep = micro_op(
    "Keep", "call.save call.resume", "Lanes[] registers; Constant[] sizes; Undefineds?[] undefined"
)
"""Registers, the bytes of each, and what of it is undefined."""

BuiltIn = micro_op(
    "BuiltIn",
    "call.printf call.assert call.malloc call.free call.memcpy call.memset",
    "Constant arguments result",
)
"""A function of CUDA: where its arguments are, and where its result goes."""

StopLaunch = micro_op("StopLaunch", "stop", "Stop why")
Allocate = micro_op("Allocate", "alloca", "Longs result bytes; Constant align")


def call(low: Lowering, i: Instruction) -> Lowered:
    """Where a call through a pointer goes: the first block of each function of the module, NONE for those
    that it cannot reach."""
    target = i.operands[0]
    if not isinstance(target, Register):
        return []
    starts = [low.kernel.starts.get(name, NONE) for name in low.functions]
    return [Target(low, i, address=target, starts=starts)]


def switch(low: Lowering, i: Instruction) -> Lowered:
    return [Switch(low, i, index=i.operands[0], targets=low.successors[: len(i.operands) - 1])]


def keep(low: Lowering, i: Instruction) -> Lowered:
    """Registers of a recursive function: saved before a call, and taken back after it."""
    kept = [register for register in items(i.operands[0]) if isinstance(register, Register)]
    if not kept:
        return []
    sizes, undefined = [size_of(r.type) for r in kept], [low.followed.get(r) for r in kept]
    return [Keep[i.opcode](low, i, registers=kept, sizes=sizes, undefined=undefined)]


def stop(low: Lowering, i: Instruction) -> Lowered:
    return [StopLaunch(low, i, why=STOPS[i.name])]


def allocate(low: Lowering, i: Instruction) -> Lowered:
    """alloca: its result is an address in local memory."""
    if i.type != "u64":
        raise i.unsupported("an address of 32 bits")
    result, size, *_ = i.operands
    align = i.number(2) if len(i.operands) > 2 else 8
    return [Allocate(low, i, result=result, bytes=size, align=align)]


def leave(low: Lowering, i: Instruction) -> Lowered:
    return [Leave(low, i, place=i.number(0), bytes=i.number(1))] if i.operands else []


def built_in(name: str, **how: Any) -> Row:
    return control(passthrough(BuiltIn[name]), "#arguments, #result", **how)


def control(
    lower: Lower, operands: str = "", modifiers: str = "", ends: Exit | None = None, **how: Any
) -> Row:
    """The Row of an instruction through which no undefined value passes."""
    how = {"spread": Spread.NONE, **how}
    return Row(lower, operands, modifiers, ends=ends, mix="control", makes_addresses=False, **how)


OURS = {
    "call.return": control(leave, "#place?, #size?", ends=Exit.RETURN),
    "call.assert": built_in("call.assert", ends=Exit.LEAVE),
    "call.enter": control(passthrough(Enter), "#place, #passed, #given"),
    "call.push": control(passthrough(Push), "=frame, #size, #passed, #given, #counted"),
    "call.save": control(keep, "a{}"),
    "call.resume": control(keep, "a{}"),
    "call.printf": built_in("call.printf", fence=True),
    "call.malloc": built_in("call.malloc"),
    "call.free": built_in("call.free"),
    "call.memcpy": built_in("call.memcpy", fence=True),
    "call.memset": built_in("call.memset", fence=True),
}
"""What functions.py writes."""

ROWS: dict[str, Row] = {
    "call": control(call, "f", "uni", Exit.CALL, spread=Spread.USE),
    "brx": control(switch, "index, target...", "idx uni", Exit.SWITCH, spread=Spread.USE),
    "trap": control(stop, ends=Exit.LEAVE),
    "brkpt": control(stop, ends=Exit.LEAVE),
    "alloca": control(allocate, "=d, size, #align?"),
    **{name: replace(row, ours=True) for name, row in OURS.items()},
}

LINES = (
    exact("call{,.uni}", BY_HAND),
    exact("brx.idx{,.uni}", BY_HAND),
    exact("trap", BY_HAND),
    exact("brkpt", BY_HAND),
    exact("alloca.u64", BY_HAND),
)
