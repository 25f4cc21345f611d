"""Bulk copies, also of boxes of tensor maps (TMA), and st.async; core/bulk.cpp executes them."""

from __future__ import annotations

import re
from typing import Any, Optional, Sequence

from tir_schedules.machines.cpu.context import Lowering, only
from tir_schedules.machines.cpu.forms import COPIES, Form, Lower, Lowered, Spread, exact, modelled, refusal
from tir_schedules.machines.cpu.micro_ops import (
    Constant,
    Counter,
    Flag,
    Halves,
    Integers,
    Lanes,
    MicroOp,
    Where,
    Words,
)
from tir_schedules.machines.cpu.ptx import BITS, Address, Instruction, Operand, items

WORDS = {"async", "bulk", "tensor", "tile", "L2::cache_hint"}
BY_MBARRIER, BY_GROUP = "mbarrier::complete_tx::bytes", "bulk_group"
REACHED = {"shared::cluster", "shared::cta", "global", BY_MBARRIER, BY_GROUP, "multicast::cluster"}


class BulkLoad(MicroOp, name="bulk.load"):
    """told: the mbarrier; ranks: blocks of a multicast; far: a tensor map with coordinates, or `bytes` in a
    row."""

    into: Where
    told: Where
    ranks: Optional[Halves]
    from_shared: Flag
    far: Where
    coordinates: Sequence[Integers]
    bytes: Optional[Words]
    counter: Counter


class BulkStore(MicroOp, name="bulk.store"):
    """As BulkLoad, out of shared memory."""

    source: Where
    far: Where
    coordinates: Sequence[Integers]
    bytes: Optional[Words]
    counter: Counter


class BulkPrefetch(MicroOp, name="bulk.prefetch"):
    far: Where
    coordinates: Sequence[Integers]
    bytes: Optional[Words]


class BulkCommit(MicroOp, name="bulk.commit"):
    pass


class BulkWait(MicroOp, name="bulk.wait"):
    """open: groups that may stay in flight; read: whether to have read is enough."""

    open: Constant
    read: Flag


class StoreAsync(MicroOp, name="st.async"):
    """told: the mbarrier; element: bytes of each of the values."""

    into: Where
    told: Where
    element: Constant
    values: Sequence[Lanes]


def far_side(low: Lowering, i: Instruction, operand: Operand, size: Operand | None) -> dict[str, Any]:
    """Operands for the other side of a copy."""
    far = low.address(operand, i)
    given = operand.coordinates if isinstance(operand, Address) else ()
    if size is not None:
        if given:
            raise i.unsupported("tensor coordinates in an address")
        return dict(far=far, coordinates=[], bytes=low.place(size, "u32", i))
    rank = next((int(part[0]) for part in i.parts if re.fullmatch("[1-5]d", part)), 0)
    if not rank or len(given) != rank:
        raise i.unsupported(f"{len(given)} coordinates")
    return dict(far=far, coordinates=[low.place(each, "s32", i) for each in given], bytes=None)


def dimensions(i: Instruction) -> set[str]:
    return {f"{rank}d" for rank in range(1, 6)} if i.has("tensor") else set()


def copy(low: Lowering, i: Instruction) -> Lowered:
    only(i, WORDS, REACHED, dimensions(i))
    spaces = [part for part in i.parts if part in ("global", "shared::cta", "shared::cluster")]
    operands = list(i.operands[:-1] if i.has("L2::cache_hint") else i.operands)
    if spaces == ["global", "shared::cta"] and i.has(BY_GROUP):
        return write_back(low, i, operands)
    sources = {"shared::cluster": ("global", "shared::cta"), "shared::cta": ("global",)}
    if len(spaces) != 2 or not i.has(BY_MBARRIER) or spaces[1] not in sources.get(spaces[0], ()):
        raise i.unsupported("spaces")
    mask = operands.pop() if i.has("multicast::cluster") else None
    tensor = i.has("tensor")
    if (
        len(operands) != (3 if tensor else 4)
        or mask
        and spaces[1] != "global"
        or tensor
        and spaces[1] != "global"
    ):
        raise i.unsupported("number of operands")
    into, source, *size, told = operands
    target, barrier = low.address(into, i), low.address(told, i)
    return [
        BulkLoad(
            i,
            into=target,
            told=barrier,
            from_shared=spaces[1] != "global",
            **far_side(low, i, source, None if tensor else size[0]),
            ranks=None if mask is None else low.place(mask, "u16", i),
            counter=low.counter(i, "tma_load") if tensor else -1,
        )
    ]


def write_back(low: Lowering, i: Instruction, operands: list[Operand]) -> Lowered:
    tensor = i.has("tensor")
    if len(operands) != (2 if tensor else 3):
        raise i.unsupported("number of operands")
    source = low.address(operands[1], i)
    far = far_side(low, i, operands[0], None if tensor else operands[2])
    return [BulkStore(i, source=source, **far, counter=low.counter(i, "tma_store") if tensor else -1)]


def prefetch(low: Lowering, i: Instruction) -> Lowered:
    only(i, WORDS, {"prefetch", "L2", "global"}, dimensions(i))
    size = None if i.has("tensor") else i.operands[1]
    return [BulkPrefetch(i, **far_side(low, i, i.operands[0], size))]


def commit(low: Lowering, i: Instruction) -> Lowered:
    only(i, {"async", "bulk", "commit_group"})
    return [BulkCommit(i)]


def wait(low: Lowering, i: Instruction) -> Lowered:
    only(i, {"async", "bulk", "wait_group", "read"})
    return [BulkWait(i, open=i.number(0), read=i.has("read"))]


def store_async(low: Lowering, i: Instruction) -> Lowered:
    only(i, {"async", "weak", "shared::cluster", BY_MBARRIER, "v2", "v4"})
    into, value, told = i.operands
    values, bytes_ = items(value), BITS[i.type] // 8
    if (
        len(values) != i.vector_length
        or bytes_ not in (4, 8)
        or bytes_ * len(values) > 16
        or not i.has(BY_MBARRIER)
    ):
        raise i.unsupported("type or number of elements")
    low.watch_shared(i, bytes_ * len(values))
    target, barrier = low.address(into, i), low.address(told, i)
    return [
        StoreAsync(
            i,
            into=target,
            told=barrier,
            element=bytes_,
            values=[low.place(v, i.type, i) for v in values],
        )
    ]


def of_copy(lower: Lower, access: str = "writes", mix: str = "tma") -> Form:
    return Form(lower, has_result=False, mix=mix, access=access, fence=True, spread=Spread.USE, units=True)


SIZES = "{1d,2d,3d,4d,5d}"
NO_IM2COL = "boxes of tiles alone are known: copy a .tile"
NO_CACHE = "no cache is modelled"

FORMS: dict[str, Form] = {
    "cp.async.bulk": of_copy(copy).told(
        exact(
            f"cp.async.bulk.shared::cluster.global.{BY_MBARRIER}{{,.multicast::cluster}}{{,.L2::cache_hint}}",
            COPIES,
            90,
        ),
        exact(
            f"cp.async.bulk.{{shared::cluster.shared::cta,shared::cta.global}}.{BY_MBARRIER}",
            COPIES,
            90,
        ),
        exact(f"cp.async.bulk.global.shared::cta.{BY_GROUP}{{,.L2::cache_hint}}", COPIES, 90),
    ),
    "cp.async.bulk.tensor": of_copy(copy).told(
        exact(
            f"cp.async.bulk.tensor.{SIZES}.shared::cluster.global{{,.tile}}.{BY_MBARRIER}{{,.multicast::cluster}}",
            COPIES,
            90,
        ),
        exact(f"cp.async.bulk.tensor.{SIZES}.global.shared::cta{{,.tile}}.{BY_GROUP}", COPIES, 90),
        refusal("cp.async.bulk.tensor.{3d,4d,5d}.shared::cluster.global.im2col", NO_IM2COL, 90),
    ),
    "cp.async.bulk.prefetch": of_copy(prefetch, "reads").told(
        modelled("cp.async.bulk.prefetch.L2.global", NO_CACHE, 90),
        modelled(f"cp.async.bulk.prefetch.tensor.{SIZES}.L2.global{{,.tile}}", NO_CACHE, 90),
    ),
    "cp.async.bulk.commit_group": of_copy(commit).told(exact("cp.async.bulk.commit_group", COPIES, 90)),
    "cp.async.bulk.wait_group": of_copy(wait).told(exact("cp.async.bulk.wait_group{,.read}", COPIES, 90)),
    "st.async": of_copy(store_async, mix="store").told(
        exact(
            f"st.async{{,.weak}}.shared::cluster.{BY_MBARRIER}{{,.v2,.v4}}.{{b32,u32,s32,f32}}", COPIES, 90
        ),
        exact(f"st.async.shared::cluster.{BY_MBARRIER}{{,.v2}}.{{b64,u64,s64,f64}}", COPIES, 90),
    ),
}
