"""Clusters of blocks: their barrier, and addresses in the shared memory of each; core/cluster.cpp executes
them."""

from __future__ import annotations

from tir_schedules.machines.cpu.abi import Exit
from tir_schedules.machines.cpu.context import Lowering, only
from tir_schedules.machines.cpu.forms import Form, Lowered, exact
from tir_schedules.machines.cpu.micro_ops import Constant, Flag, Lanes, MicroOp, Words
from tir_schedules.machines.cpu.ptx import BITS, Instruction

CASES = "cases written by hand"


class AtBarrier(MicroOp, names="cluster.arrive cluster.wait"):
    """aligned: whether all lanes of the warp must execute it."""

    relaxed: Flag
    aligned: Flag


class MapAddress(MicroOp, name="mapa"):
    """bytes: of an address."""

    result: Lanes
    address: Lanes
    rank: Words
    bytes: Constant
    generic: Flag


class RankOf(MicroOp, name="getctarank"):
    result: Words
    address: Lanes
    bytes: Constant
    generic: Flag


def arrive_or_wait(low: Lowering, i: Instruction) -> Lowered:
    only(i, {"cluster", "arrive", "wait", "aligned", "release", "relaxed", "acquire"})
    if i.operands:
        raise i.unsupported("number of operands")
    return [AtBarrier.named(f"cluster.{i.parts[2]}")(i, relaxed=i.has("relaxed"), aligned=i.has("aligned"))]


def map_address(low: Lowering, i: Instruction) -> Lowered:
    only(i, {"shared::cluster"})
    result, there, rank = i.operands
    return [
        MapAddress(
            i,
            result=low.place(result, i.type, i),
            address=low.place(there, i.type, i),
            rank=low.place(rank, "u32", i),
            bytes=BITS[i.type] // 8,
            generic=i.space == "generic",
        )
    ]


def rank_of(low: Lowering, i: Instruction) -> Lowered:
    only(i, {"shared::cluster"})
    result, there = i.operands
    return [
        RankOf(
            i,
            result=low.place(result, "u32", i),
            address=low.place(there, i.type, i),
            bytes=BITS[i.type] // 8,
            generic=i.space == "generic",
        )
    ]


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
