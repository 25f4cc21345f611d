"""Calls, functions of the machine such as printf, switch tables, and what ends a launch; core/calls.cpp,
core/printf.cpp and core/heap.cpp execute them.

functions.py writes the `call.` instructions that no PTX has.
"""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from typing import Optional, Sequence

from tir_schedules.machines.cpu.abi import NONE, Exit
from tir_schedules.machines.cpu.context import Lowering, only, size_of
from tir_schedules.machines.cpu.forms import Form, Lower, Lowered, Spread, exact
from tir_schedules.machines.cpu.micro_ops import Constant, Lanes, Longs, MicroOp, Undefineds, Words
from tir_schedules.machines.cpu.ptx import Immediate, Instruction, Register, items

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
    only(i, {"uni"})
    target = i.operands[0]
    if not isinstance(target, Register):
        return []
    starts = [low.kernel.starts.get(name, NONE) for name in low.functions]
    return [Target(i, address=low.place(target, "b64", i), starts=starts)]


def switch(low: Lowering, i: Instruction) -> Lowered:
    only(i, {"idx", "uni"})
    targets = low.successors[: len(i.operands) - 1]
    return [Switch(i, index=low.place(i.operands[0], "b32", i), targets=targets)]


def enter(low: Lowering, i: Instruction) -> Lowered:
    """The parameters and variables of a function at a fixed place."""
    place, passed, given = numbers(i)
    return [Enter(i, place=place, passed=passed, given=given)]


def push(low: Lowering, i: Instruction) -> Lowered:
    """Those of a recursive function, in a new frame."""
    frame, (bytes_, passed, given, counted) = low.place(i.operands[0], "b64", i), numbers(i)
    return [Push(i, frame=frame, bytes=bytes_, passed=passed, given=given, counted=counted)]


def keep(low: Lowering, i: Instruction) -> Lowered:
    """Registers of a recursive function: saved before a call, and taken back after it."""
    kept = [register for register in items(i.operands[0]) if isinstance(register, Register)]
    if not kept:
        return []
    places = [low.place(register, register.type, i) for register in kept]
    sizes, undefined = [size_of(r.type) for r in kept], [low.followed.get(r) for r in kept]
    return [Keep.named(i.opcode)(i, registers=places, sizes=sizes, undefined=undefined)]


def built_in(low: Lowering, i: Instruction) -> Lowered:
    arguments, result = numbers(i)
    return [BuiltIn.named(i.opcode)(i, arguments=arguments, result=result)]


def stop(low: Lowering, i: Instruction) -> Lowered:
    only(i)
    return [StopLaunch(i, why=STOPS[i.name])]


def allocate(low: Lowering, i: Instruction) -> Lowered:
    """alloca: its result is an address in local memory."""
    only(i)
    if i.type != "u64" or len(i.operands) < 2:
        raise i.unsupported("an address of 32 bits")
    result, bytes_ = low.place(i.operands[0], "b64", i), low.place(i.operands[1], "u64", i)
    return [Allocate(i, result=result, bytes=bytes_, align=i.number(2) if len(i.operands) > 2 else 8)]


def leave(low: Lowering, i: Instruction) -> Lowered:
    if not i.operands:
        return []
    place, bytes_ = numbers(i)
    return [Leave(i, place=place, bytes=bytes_)]


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
