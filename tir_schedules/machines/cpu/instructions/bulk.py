"""Bulk copies, also of boxes of tensor maps (TMA), and st.async; core/bulk.cpp executes them."""

from __future__ import annotations

import re
from typing import Any

from tir_schedules.machines.cpu.context import Lowering
from tir_schedules.machines.cpu.lines import COPIES, exact, modelled, refusal
from tir_schedules.machines.cpu.micro_ops import micro_op
from tir_schedules.machines.cpu.ptx import BITS, Address, Instruction, Operand, items
from tir_schedules.machines.cpu.table import Lower, Lowered, Row, Spread, passthrough

BY_MBARRIER, BY_GROUP = "mbarrier::complete_tx::bytes", "bulk_group"

BulkLoad = micro_op(
    "BulkLoad",
    "bulk.load",
    "Where into told; Halves? ranks; Flag from_shared; Where far; Integers[] coordinates; Words? bytes;"
    " Counter counter",
)
"""told: the mbarrier; ranks: blocks of a multicast; far: a tensor map with coordinates, or `bytes` in a
row."""

BulkStore = micro_op(
    "BulkStore", "bulk.store", "Where source far; Integers[] coordinates; Words? bytes; Counter counter"
)
"""As BulkLoad, out of shared memory."""

BulkPrefetch = micro_op("BulkPrefetch", "bulk.prefetch", "Where far; Integers[] coordinates; Words? bytes")
BulkCommit = micro_op("BulkCommit", "bulk.commit")
BulkWait = micro_op("BulkWait", "bulk.wait", "Constant open; Flag read")
"""open: groups that may stay in flight; read: whether to have read is enough."""

StoreAsync = micro_op("StoreAsync", "st.async", "Where into told; Constant element; Lanes[] values")
"""told: the mbarrier; element: bytes of each of the values."""


def far_side(i: Instruction, far: Operand, size: Operand | None) -> dict[str, Any]:
    """Operands for the other side of a copy. size: None: a box of a tensor map."""
    given = far.coordinates if isinstance(far, Address) else ()
    if size is not None and given:
        raise i.unsupported("tensor coordinates in an address")
    rank = next((int(part[0]) for part in i.parts if re.fullmatch("[1-5]d", part)), 0)
    if size is None and (not rank or len(given) != rank):
        raise i.unsupported(f"{len(given)} coordinates")
    return dict(far=far, coordinates=given, bytes=size)


def copy(low: Lowering, i: Instruction) -> Lowered:
    spaces = [part for part in i.parts if part in ("global", "shared::cta", "shared::cluster")]
    operands, tensor = list(i.operands[:-1] if i.has("L2::cache_hint") else i.operands), i.has("tensor")
    if spaces == ["global", "shared::cta"] and i.has(BY_GROUP):
        return write_back(low, i, operands)
    sources = {"shared::cluster": ("global", "shared::cta"), "shared::cta": ("global",)}
    if len(spaces) != 2 or not i.has(BY_MBARRIER) or spaces[1] not in sources.get(spaces[0], ()):
        raise i.unsupported("spaces")
    mask = operands.pop() if i.has("multicast::cluster") else None
    if len(operands) != (3 if tensor else 4) or (mask or tensor) and spaces[1] != "global":
        raise i.unsupported("number of operands")
    into, source, *size, told = operands
    far = far_side(i, source, None if tensor else size[0])
    counter = low.counter(i, "tma_load") if tensor else -1
    how = dict(ranks=mask, from_shared=spaces[1] != "global", counter=counter)
    return [BulkLoad(low, i, into=into, told=told, **how, **far)]


def write_back(low: Lowering, i: Instruction, operands: list[Operand]) -> Lowered:
    tensor = i.has("tensor")
    if len(operands) != (2 if tensor else 3):
        raise i.unsupported("number of operands")
    far = far_side(i, operands[0], None if tensor else operands[2])
    counter = low.counter(i, "tma_store") if tensor else -1
    return [BulkStore(low, i, source=operands[1], **far, counter=counter)]


def prefetch(low: Lowering, i: Instruction) -> Lowered:
    return [BulkPrefetch(low, i, **far_side(i, i.operands[0], None if i.has("tensor") else i.operands[1]))]


def store_async(low: Lowering, i: Instruction) -> Lowered:
    into, value, told = i.operands
    values, bytes_ = items(value), BITS[i.type] // 8
    size = bytes_ * len(values)
    if len(values) != i.vector_length or bytes_ not in (4, 8) or size > 16 or not i.has(BY_MBARRIER):
        raise i.unsupported("type or number of elements")
    low.watch_shared(i, size)
    return [StoreAsync(low, i, into=into, told=told, element=bytes_, values=values)]


WORDS = f"shared::cluster shared::cta global {BY_MBARRIER} {BY_GROUP} multicast::cluster L2::cache_hint"
BOXES = "1d 2d 3d 4d 5d tile"


def of_copy(lower: Lower, operands: str, modifiers: str, access: str = "writes", pipe: str = "tma") -> Row:
    return Row(
        lower, operands, modifiers, mix="store" if pipe == "lsu" else "tma", pipe=pipe, access=access,
        fence=True, spread=Spread.USE, units=True,
    )  # fmt: skip


SIZES, MULTICAST = "{1d,2d,3d,4d,5d}", "{,.multicast::cluster}"
BOX = "cp.async.bulk.tensor"
NO_IM2COL = "only boxes of tiles are known: copy a .tile"
NO_CACHE = "no cache is modelled"

ROWS: dict[str, Row] = {
    "cp.async.bulk": of_copy(copy, "[d], [a], size, [mbarrier]?, ranks?, policy?", WORDS),
    "cp.async.bulk.tensor": of_copy(copy, "[d], [a], [mbarrier]?, ranks?, policy?", f"{WORDS} {BOXES}"),
    "cp.async.bulk.prefetch": of_copy(prefetch, "[a], size?", f"L2 global tensor {BOXES}", "reads"),
    "cp.async.bulk.commit_group": of_copy(passthrough(BulkCommit), "", ""),
    "cp.async.bulk.wait_group": of_copy(passthrough(BulkWait), "#n", "read"),
    "st.async": of_copy(
        store_async, "[d], a{}, [mbarrier]", f"weak shared::cluster {BY_MBARRIER} v2 v4", pipe="lsu"
    ),
}

LINES = (
    exact(f"cp.async.bulk.shared::cluster.global.{BY_MBARRIER}{MULTICAST}{{,.L2::cache_hint}}", COPIES, 90),
    exact(f"cp.async.bulk.{{shared::cluster.shared::cta,shared::cta.global}}.{BY_MBARRIER}", COPIES, 90),
    exact(f"cp.async.bulk.global.shared::cta.{BY_GROUP}{{,.L2::cache_hint}}", COPIES, 90),
    exact(f"{BOX}.{SIZES}.shared::cluster.global{{,.tile}}.{BY_MBARRIER}{MULTICAST}", COPIES, 90),
    exact(f"{BOX}.{SIZES}.global.shared::cta{{,.tile}}.{BY_GROUP}", COPIES, 90),
    refusal(f"{BOX}.{{3d,4d,5d}}.shared::cluster.global.im2col", NO_IM2COL, 90),
    modelled("cp.async.bulk.prefetch.L2.global", NO_CACHE, 90),
    modelled(f"cp.async.bulk.prefetch.tensor.{SIZES}.L2.global{{,.tile}}", NO_CACHE, 90),
    exact("cp.async.bulk.commit_group", COPIES, 90),
    exact("cp.async.bulk.wait_group{,.read}", COPIES, 90),
    exact(f"st.async{{,.weak}}.shared::cluster.{BY_MBARRIER}{{,.v2,.v4}}.{{b32,u32,s32,f32}}", COPIES, 90),
    exact(f"st.async.shared::cluster.{BY_MBARRIER}{{,.v2}}.{{b64,u64,s64,f64}}", COPIES, 90),
)
