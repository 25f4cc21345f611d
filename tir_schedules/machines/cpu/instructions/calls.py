"""Calls, functions of the machine such as printf, switch tables, and what ends a launch; core/calls.cpp,
core/printf.cpp and core/heap.cpp execute them.

functions.py writes the `call.` instructions that no PTX has.
"""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from typing import Any, Optional, Sequence

from tir_schedules.machines.cpu.abi import NONE, Exit
from tir_schedules.machines.cpu.context import Lowering, size_of
from tir_schedules.machines.cpu.micro_ops import Constant, Lanes, Longs, MicroOp, Undefineds, Words
from tir_schedules.machines.cpu.ptx import Immediate, Instruction, Register, items
from tir_schedules.machines.cpu.table import Lower, Lowered, Row, Spread, exact

Stop = IntEnum("Stop", "TRAPPED BROKE NO_FUNCTION NO_TARGET", start=0)
"""Why a launch ends."""


STOPS = {"trap": Stop.TRAPPED, "brkpt": Stop.BROKE}


class Target(MicroOp, name="call.target"):
    """address: of a function; starts: the first block of each function, or NONE."""

    address: Longs
    starts: Sequence[Constant]


class Switch(MicroOp, name="switch"):
    index: Words
    targets: Sequence[Constant]


class Enter(MicroOp, name="call.enter"):
    """place: of a function's parameters and variables; passed: bytes of the parameters, from `given` on."""

    place: Constant
    passed: Constant
    given: Constant


class Push(MicroOp, name="call.push"):
    """As Enter, for a frame of `bytes` bytes, which counts as `counted`."""

    frame: Longs
    bytes: Constant
    passed: Constant
    given: Constant
    counted: Constant


class Leave(MicroOp, name="call.leave"):
    place: Constant
    bytes: Constant


class Keep(MicroOp, names="call.save call.resume"):
    """Registers, the bytes of each, and what of it is undefined."""

    registers: Sequence[Lanes]
    sizes: Sequence[Constant]
    undefined: Sequence[Optional[Undefineds]]


class BuiltIn(MicroOp, names="call.printf call.assert call.malloc call.free call.memcpy call.memset"):
    """A function of CUDA: where its arguments are, and where its result goes."""

    arguments: Constant
    result: Constant


class StopLaunch(MicroOp, name="stop"):
    why: Stop


class Allocate(MicroOp, name="alloca"):
    result: Longs
    bytes: Longs
    align: Constant


def numbers(i: Instruction) -> list[int]:
    """The operands that are constants."""
    return [operand.value for operand in i.operands if isinstance(operand, Immediate)]


def call(low: Lowering, i: Instruction) -> Lowered:
    """Where a call through a pointer goes: the first block of each function of the module, NONE for those
    that it cannot reach."""
    target = i.operands[0]
    if not isinstance(target, Register):
        return []
    return [
        Target(low, i, address=target, starts=[low.kernel.starts.get(name, NONE) for name in low.functions])
    ]


def switch(low: Lowering, i: Instruction) -> Lowered:
    return [Switch(low, i, index=i.operands[0], targets=low.successors[: len(i.operands) - 1])]


def enter(low: Lowering, i: Instruction) -> Lowered:
    """The parameters and variables of a function at a fixed place."""
    place, passed, given = numbers(i)
    return [Enter(low, i, place=place, passed=passed, given=given)]


def push(low: Lowering, i: Instruction) -> Lowered:
    """Those of a recursive function, in a new frame."""
    size, passed, given, counted = numbers(i)
    return [Push(low, i, frame=i.operands[0], bytes=size, passed=passed, given=given, counted=counted)]


def keep(low: Lowering, i: Instruction) -> Lowered:
    """Registers of a recursive function: saved before a call, and taken back after it."""
    kept = [register for register in items(i.operands[0]) if isinstance(register, Register)]
    if not kept:
        return []
    sizes, undefined = [size_of(r.type) for r in kept], [low.followed.get(r) for r in kept]
    return [Keep.named(i.opcode)(low, i, registers=kept, sizes=sizes, undefined=undefined)]


def built_in(low: Lowering, i: Instruction) -> Lowered:
    arguments, result = numbers(i)
    return [BuiltIn.named(i.opcode)(low, i, arguments=arguments, result=result)]


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
    if not i.operands:
        return []
    place, size = numbers(i)
    return [Leave(low, i, place=place, bytes=size)]


def control(
    lower: Lower, operands: str = "", modifiers: str = "", ends: Exit | None = None, **how: Any
) -> Row:
    """The Row of an instruction through which no undefined value passes."""
    how = {"spread": Spread.NONE, **how}
    return Row(lower, operands, modifiers, ends=ends, mix="control", makes_addresses=False, **how)


OURS = {
    "call.return": control(leave, "#place?, #size?", ends=Exit.RETURN),
    "call.assert": control(built_in, "#arguments, #result", ends=Exit.LEAVE),
    "call.enter": control(enter, "#place, #passed, #given"),
    "call.push": control(push, "=frame, #size, #passed, #given, #counted"),
    "call.save": control(keep, "a{}"),
    "call.resume": control(keep, "a{}"),
    "call.printf": control(built_in, "#arguments, #result", fence=True),
    "call.malloc": control(built_in, "#arguments, #result"),
    "call.free": control(built_in, "#arguments, #result"),
    "call.memcpy": control(built_in, "#arguments, #result", fence=True),
    "call.memset": control(built_in, "#arguments, #result", fence=True),
}
"""What functions.py writes."""

BY_HAND = "cases written by hand"

ROWS: dict[str, Row] = {
    "call": control(call, "f", "uni", Exit.CALL, spread=Spread.USE).told(exact("call{,.uni}", BY_HAND)),
    "brx": control(switch, "index, target...", "idx uni", Exit.SWITCH, spread=Spread.USE).told(
        exact("brx.idx{,.uni}", BY_HAND)
    ),
    "trap": control(stop, ends=Exit.LEAVE).told(exact("trap", BY_HAND)),
    "brkpt": control(stop, ends=Exit.LEAVE).told(exact("brkpt", BY_HAND)),
    "alloca": control(allocate, "=d, size, #align?").told(exact("alloca.u64", BY_HAND)),
    **{name: replace(row, ours=True) for name, row in OURS.items()},
}
