"""Clusters of blocks: their barrier, and addresses in the shared memory of each; core/cluster.cpp executes
them."""

from __future__ import annotations

from tir_schedules.machines.cpu.abi import Exit
from tir_schedules.machines.cpu.context import Lowering, MicroOp, only
from tir_schedules.machines.cpu.forms import Form, Lowered, exact
from tir_schedules.machines.cpu.ptx import BITS, Instruction

CASES = "cases written by hand"


def arrive_or_wait(low: Lowering, i: Instruction) -> Lowered:
    only(i, {"cluster", "arrive", "wait", "aligned", "release", "relaxed", "acquire"})
    if i.operands:
        raise i.unsupported("number of operands")
    return [MicroOp(f"cluster.{i.parts[2]}", (int(i.has("relaxed")), int(i.has("aligned"))), i)]


def map_address(low: Lowering, i: Instruction) -> Lowered:
    only(i, {"shared::cluster"})
    result, there, rank = i.operands
    numbers = (low.place(result, i.type, i), low.place(there, i.type, i), low.place(rank, "u32", i))
    return [MicroOp("mapa", (*numbers, BITS[i.type] // 8, int(i.space == "generic")), i)]


def rank_of(low: Lowering, i: Instruction) -> Lowered:
    only(i, {"shared::cluster"})
    result, there = i.operands
    numbers = low.place(result, "u32", i), low.place(there, i.type, i)
    return [MicroOp("getctarank", (*numbers, BITS[i.type] // 8, int(i.space == "generic")), i)]


ADDRESS = Form(map_address, mix="int", makes_addresses=False, units=True)

FORMS: dict[str, Form] = {
    "barrier.cluster.arrive": Form(
        arrive_or_wait, has_result=False, mix="barrier", fence=True, units=True
    ).told(exact("barrier.cluster.arrive{,.release,.relaxed}{,.aligned}", CASES, 90)),
    "barrier.cluster.wait": Form(
        arrive_or_wait, ends=Exit.WAIT, has_result=False, mix="barrier", fence=True, units=True
    ).told(exact("barrier.cluster.wait{,.acquire}{,.aligned}", CASES, 90)),
    "mapa": ADDRESS.told(exact("mapa{,.shared::cluster}.{u32,u64}", CASES, 90)),
    "getctarank": Form(rank_of, mix="int", units=True).told(
        exact("getctarank{,.shared::cluster}.{u32,u64}", CASES, 90)
    ),
}
