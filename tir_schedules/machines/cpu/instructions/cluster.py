"""Clusters of blocks: their barrier, and addresses in the shared memory of each; core/cluster.cpp executes
them."""

from __future__ import annotations

from tir_schedules.machines.cpu.abi import Exit
from tir_schedules.machines.cpu.context import Lowering
from tir_schedules.machines.cpu.lines import BY_HAND, exact
from tir_schedules.machines.cpu.micro_ops import micro_op
from tir_schedules.machines.cpu.ptx import BITS, Instruction
from tir_schedules.machines.cpu.table import Lowered, Row, passthrough

AtBarrier = micro_op("AtBarrier", "cluster.arrive cluster.wait", "Flag relaxed aligned")
"""aligned: whether all lanes of the warp must execute it."""

MapAddress = micro_op("MapAddress", "mapa", "Lanes result address; Words rank; Constant bytes; Flag generic")
"""bytes: of an address."""

RankOf = micro_op("RankOf", "getctarank", "Words result; Lanes address; Constant bytes; Flag generic")


def map_address(low: Lowering, i: Instruction) -> Lowered:
    result, there, rank = i.operands
    how = dict(bytes=BITS[i.type] // 8, generic=i.space == "generic")
    return [MapAddress(low, i, **how, result=result, address=there, rank=rank)]


def rank_of(low: Lowering, i: Instruction) -> Lowered:
    result, there = i.operands
    how = dict(bytes=BITS[i.type] // 8, generic=i.space == "generic")
    return [RankOf(low, i, **how, result=result, address=there)]


def of_barrier(function: str, modifiers: str, ends: Exit | None = None) -> Row:
    lower = passthrough(AtBarrier[function])
    return Row(lower, "", modifiers, ends=ends, mix="barrier", fence=True, units=True)


ROWS: dict[str, Row] = {
    "barrier.cluster.arrive": of_barrier("cluster.arrive", "release relaxed aligned"),
    "barrier.cluster.wait": of_barrier("cluster.wait", "acquire aligned", Exit.WAIT),
    "mapa": Row(map_address, "=d, a, rank", "shared::cluster", mix="int", makes_addresses=False, units=True),
    "getctarank": Row(rank_of, "=d, a", "shared::cluster", mix="int", units=True),
}

LINES = (
    exact("barrier.cluster.arrive{,.release,.relaxed}{,.aligned}", BY_HAND, 90),
    exact("barrier.cluster.wait{,.acquire}{,.aligned}", BY_HAND, 90),
    exact("mapa{,.shared::cluster}.{u32,u64}", BY_HAND, 90),
    exact("getctarank{,.shared::cluster}.{u32,u64}", BY_HAND, 90),
)
