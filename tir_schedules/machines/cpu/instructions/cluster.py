"""Clusters of blocks: their barrier, and addresses in the shared memory of each; core/cluster.cpp executes
them."""

from __future__ import annotations

from tir_schedules.machines.cpu.abi import Exit
from tir_schedules.machines.cpu.context import Lowering
from tir_schedules.machines.cpu.micro_ops import Constant, Flag, Lanes, MicroOp, Words, fields
from tir_schedules.machines.cpu.ptx import BITS, Instruction
from tir_schedules.machines.cpu.table import Lowered, Row, exact

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
    made = AtBarrier.named(f"cluster.{i.parts[2]}")
    return [made(low, i, relaxed=i.has("relaxed"), aligned=i.has("aligned"))]


def map_address(low: Lowering, i: Instruction) -> Lowered:
    result, there, rank = i.operands
    how = fields(bytes=BITS[i.type] // 8, generic=i.space == "generic")
    return [MapAddress(low, i, **how, result=result, address=there, rank=rank)]


def rank_of(low: Lowering, i: Instruction) -> Lowered:
    result, there = i.operands
    how = fields(bytes=BITS[i.type] // 8, generic=i.space == "generic")
    return [RankOf(low, i, **how, result=result, address=there)]


def of_barrier(modifiers: str, ends: Exit | None = None) -> Row:
    return Row(arrive_or_wait, "", modifiers, ends=ends, mix="barrier", fence=True, units=True)


ROWS: dict[str, Row] = {
    "barrier.cluster.arrive": of_barrier("release relaxed aligned").told(
        exact("barrier.cluster.arrive{,.release,.relaxed}{,.aligned}", CASES, 90)
    ),
    "barrier.cluster.wait": of_barrier("acquire aligned", Exit.WAIT).told(
        exact("barrier.cluster.wait{,.acquire}{,.aligned}", CASES, 90)
    ),
    "mapa": Row(
        map_address, "=d, a, rank", "shared::cluster", mix="int", makes_addresses=False, units=True
    ).told(exact("mapa{,.shared::cluster}.{u32,u64}", CASES, 90)),
    "getctarank": Row(rank_of, "=d, a", "shared::cluster", mix="int", units=True).told(
        exact("getctarank{,.shared::cluster}.{u32,u64}", CASES, 90)
    ),
}
