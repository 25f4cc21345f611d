"""Loads, stores and atomics; core/memory.cpp executes them."""

from __future__ import annotations

from enum import IntEnum

from tir_schedules.machines.cpu.abi import LOCAL_WINDOW, SHARED_WINDOW, SPACES, How, Polls
from tir_schedules.machines.cpu.context import Lowering
from tir_schedules.machines.cpu.lane_code import HALVES, is_float
from tir_schedules.machines.cpu.lines import BY_HAND, COPIES, Line, exact, modelled, refusal
from tir_schedules.machines.cpu.micro_ops import micro_op
from tir_schedules.machines.cpu.ptx import BITS, SINK, Immediate, Instruction, Operand, Register, items
from tir_schedules.machines.cpu.table import Lowered, Row, Spread

HOW = {
    "volatile": How.STRONG | How.VOLATILE,
    "relaxed": How.STRONG,
    "mmio": How.STRONG,
    "acquire": How.STRONG | How.ACQUIRES,
    "release": How.STRONG | How.RELEASES,
    "acq_rel": How.STRONG | How.ACQUIRES | How.RELEASES,
    "cta": How.OF_BLOCK,
    "nc": How.NON_COHERENT,
}
"""By what the opcode says of order and scope."""

AtomicOperation = IntEnum(
    "AtomicOperation", "ADD MIN MAX EXCHANGE COMPARE_AND_SWAP AND OR XOR INCREMENT DECREMENT", start=0
)

ATOMIC_NAMES = ("add", "min", "max", "exch", "cas", "and", "or", "xor", "inc", "dec")
ATOMICS: dict[str, AtomicOperation] = dict(zip(ATOMIC_NAMES, AtomicOperation))

Access = micro_op(
    "Access",
    "ld.shared ld.global ld.generic st.shared st.global st.generic",
    "Where where; Constant width; How how; Lanes[] values; Counter counter",
)
"""A load or a store. width: bytes of an element."""

LoadParameter = micro_op("LoadParameter", "ld.param", "Lanes result; Constant bytes offset")
FillShared = micro_op("FillShared", "st.bulk", "Where where; Lanes size; Flag wide")
"""st.bulk. size: in bytes; wide: whether it has 64 bits."""

Atomic = micro_op(
    "Atomic",
    "atomic",
    "Where where; Space space; AtomicOperation operation; Constant type element; Lanes? other; How how;"
    " Lanes[] values; Lanes?[] results; Counter counter",
)
"""type: a letter, see of_atomic; element: bytes of one; other: the second value."""


def load_parameter(low: Lowering, i: Instruction) -> Lowered:
    """One value: functions.py makes any other load of parameters one of memory."""
    to, source = i.operands[0], i.address(1)
    parameter = {p.name: p for p in low.kernel.parameters}.get(getattr(source.base, "name", ""))
    if parameter is None or not isinstance(to, Register):
        raise i.unsupported("parameter")
    offset, size = parameter.offset + source.offset, BITS[i.type] // 8
    if not parameter.offset <= offset <= parameter.offset + parameter.size - size:
        raise i.unsupported(f"bytes that {parameter.name} does not have")
    if to.bits == BITS[i.type]:
        return [LoadParameter(low, i, result=to, bytes=size, offset=offset)]
    # A narrower parameter: load it, then extend it to the register. Bytes are loaded as 16 bits with the high
    # ones clear.
    held, sign = low.temporary(f"parameter {offset}", "u16" if size == 1 else i.type), "us"[i.type[0] == "s"]
    opcode = f"cvt.{sign}{to.bits}.{sign}{BITS[i.type]}"
    extend = Instruction(opcode, (to, held), i.guard, i.line, i.source, i.within)
    return [LoadParameter(low, i, result=held, bytes=size, offset=offset), extend]


def how_ordered(i: Instruction) -> How:
    """How the access orders others."""
    how = How(0)
    for part in i.parts:
        how |= HOW.get(part, 0)
    return how


def counter_of(low: Lowering, i: Instruction, act: str) -> int:
    """The counter of an access; -1 for one that is not counted. An address without a space has two: that of
    global memory, and the next one for shared memory."""
    if i.has("shared::cluster") or i.space not in ("shared", "global", "generic"):
        return -1
    first = low.counter(i, f"{'shared' if i.space == 'shared' else 'global'}_{act}")
    if i.space == "generic":
        low.counter(i, f"shared_{act}")
    return first


def load_or_store(low: Lowering, i: Instruction) -> Lowered:
    if BITS[i.type] * i.vector_length > 128:
        raise i.unsupported("more than 16 bytes")
    if i.space == "param":
        return load_parameter(low, i)
    store, operands = i.name == "st", without_hint(i)
    if len(operands) != 2:
        raise i.unsupported("number of operands")
    where, values = operands if store else operands[::-1]
    space, beyond = "global" if i.space == "const" else i.space, 0
    if i.has("shared::cluster"):
        space, beyond = "generic", SHARED_WINDOW
    elif space == "local":
        space, beyond = "generic", LOCAL_WINDOW
    reached = low.address(where, i, beyond, bounded=True)
    bits, count = BITS[i.type], i.vector_length
    low.watch_shared(i, bits // 8)
    before, after, places = [], [], []
    for k, value in enumerate(items(values)):
        if value == SINK:
            value = low.temporary(f"sink {k}", f"b{bits}")
        elif isinstance(value, Register) and max(value.bits, bits) == 128 != min(value.bits, bits):
            raise i.unsupported("a register of another width")
        elif isinstance(value, Register) and value.bits != bits:  # bytes live in wider registers
            kind = i.type[0] if i.type[0] in "us" else "u"
            held = low.temporary(f"element {k}", f"{kind}{bits}")
            opcode = f"cvt.{kind}{bits}.u{value.bits}" if store else f"cvt.{kind}{value.bits}.{kind}{bits}"
            operands = (held, value) if store else (value, held)
            (before if store else after).append(Instruction(opcode, operands, i.guard, i.line, i.source))
            value = held
        places.append(low.place(value, i.type if isinstance(value, Immediate) else f"b{bits}", i))
    if len(places) != count:
        raise i.unsupported("number of elements")
    counter = counter_of(low, i, "store" if store else "load")
    made, how = Access[f"{i.name[:2]}.{space}"], how_ordered(i) | low.how.get(i, How(0))
    access = made(low, i, where=reached, width=bits // 8, how=how, values=places, counter=counter)
    return [*before, access, *after]


def without_hint(i: Instruction) -> tuple[Operand, ...]:
    """The operands without the policy of a cache, which changes no result."""
    return i.operands[:-1] if i.has("L2::cache_hint") else i.operands


def of_atomic(kind: str, operation: str) -> str | None:
    """The letter that core/memory.cpp knows a type of atomics by; None where PTX has no such operation."""
    half = kind.removesuffix("x2")
    if half in HALVES:
        return "hb"[half == "bf16"] if operation in ("add", "min", "max") else None
    if is_float(kind):
        return "f" if kind != "tf32" and operation in ("add", "exch") else None
    if BITS[kind] == 128 or kind == "b16":
        return "u" if operation == "cas" or operation == "exch" and kind == "b128" else None
    if BITS[kind] not in (32, 64) or kind.endswith("x2") or operation in ("inc", "dec") and kind != "u32":
        return None
    return "s" if kind[0] == "s" else "u"


def atomic(low: Lowering, i: Instruction) -> Lowered:
    result, where, value, *others = without_hint(i) if i.has_result else (SINK, *without_hint(i))
    if low.unused:  # as ptxas has it: it learns nothing of who stored there
        result = SINK
    operation, kind, count = i.choice([*ATOMICS]), i.type, i.vector_length
    letter, bytes_ = of_atomic(kind, operation), BITS[kind] // 8
    if letter is None or i.has("noftz") != (letter in "hb"):
        raise i.unsupported("type")
    vectors = kind == "f32" and operation == "add" or letter in "hb"
    if count > 1 and (not vectors or i.space == "shared" or count * bytes_ > 16):
        raise i.unsupported("vectors of this type or space")
    values, results = items(value), [SINK] * count if result == SINK else items(result)
    if not len(values) == len(results) == count or len(others) != (operation == "cas"):
        raise i.unsupported("number of elements")
    low.watch_shared(i, bytes_)
    space, beyond = ("generic", SHARED_WINDOW) if i.has("shared::cluster") else (i.space, 0)
    how = dict(
        where=low.address(where, i, beyond, bounded=True), space=SPACES[space], operation=ATOMICS[operation],
        type=ord(letter), element=bytes_, other=(*others, None)[0], how=how_ordered(i),
        counter=counter_of(low, i, "atomic"),
    )  # fmt: skip
    return [Atomic(low, i, **how, values=values, results=results)]


def fill_shared(low: Lowering, i: Instruction) -> Lowered:
    """Zeros in a row; PTX takes no other value."""
    size = i.operands[1]
    if i.number(2):
        raise i.unsupported("a value that is not 0")
    low.watch_shared(i, 8)
    if isinstance(size, Immediate):
        size = low.place(size, "u64", i)
    where = low.address(i.address(0), i)
    if i.space == "shared":
        where = where._replace(offset=where.offset + SHARED_WINDOW)
    wide = not isinstance(size, Register) or size.bits == 64
    return [FillShared(low, i, where=where, size=size, wide=wide)]


def cache_policy(low: Lowering, i: Instruction) -> Lowered:
    """A policy changes no result, so that any number will do."""
    return [Instruction("mov.b64", (i.operands[0], Immediate(0)), i.guard, i.line, i.source, i.within)]


SPACE_NAMES = "shared shared::cta shared::cluster global const local param"
ORDERING = "volatile relaxed acquire release acq_rel weak mmio cta gpu sys cluster"
EVICTIONS = "L2::evict_last L2::evict_first L2::evict_normal"
HINTED = f"L2::cache_hint {EVICTIONS}"
CACHING = (
    "ca cg cs lu cv wb wt nc L1::evict_last L1::evict_first L1::no_allocate L1::evict_normal"
    " L1::evict_unchanged L2::64B L2::128B L2::256B"
)
POLICIES = f"fractional range cvt L2 {EVICTIONS} L2::evict_unchanged global"
ACCESS = f"{SPACE_NAMES} {ORDERING} {HINTED} {CACHING} v2 v4 v8"
UPDATE = f"{SPACE_NAMES} {ORDERING} {HINTED} noftz v2 v4 v8 {' '.join(ATOMICS)}"
LOAD = Row(
    load_or_store, "=d{}, [a], policy?", ACCESS, mix="load", access="reads", observes=Polls.OF_MEMORY,
    spread=Spread.LOAD,
)  # fmt: skip
STORE = Row(load_or_store, "[a], b{}, policy?", ACCESS, mix="store", spread=Spread.STORE)
HINT = Row(None, "[a], #size?", f"{SPACE_NAMES} {HINTED} L1 L2 tensormap", pipe="lsu")


def of_updates(operands: str, observes: Polls) -> Row:
    return Row(atomic, operands, UPDATE, mix="atomic", access="updates", observes=observes, spread=Spread.USE)


TYPES = "{b8,b16,b32,b64,u8,s8,u16,s16,u32,s32,u64,s64,f32,f64}"
PAIRS = "{b16,b32,b64,u8,u16,u32,u64,f32,f64}"
VECTORS = f".v2.{PAIRS} .v4.{{b8,b16,b32,u8,u16,u32,f32}} .b128"
HINTS = ("prefetch", "prefetchu", "discard", "applypriority")
NO_CACHE = "no cache is modelled"
TOO_WIDE = "two accesses of 16 bytes each: only sm_100 has one of 32"
IN_SPACE = "{,.global,.shared}"
FLUSHES = "in global memory denormal numbers count as zeros, in shared memory they do not"
ONE_BY_ONE = "lanes one after another, in their order; a GPU has any order"


def of_vectors(opcode: str) -> str:
    return " ".join(opcode + vector for vector in VECTORS.split())


def of_atomics(name: str) -> tuple[Line, ...]:
    """What red leaves of integers does not depend on the order of lanes."""
    add = f"{name}{IN_SPACE}.add"
    integers = (
        f"{add}.{{u32,s32,u64}} {name}{IN_SPACE}.{{min,max}}.{{u32,s32,u64,s64}}"
        f" {name}{IN_SPACE}.{{and,or,xor}}.{{b32,b64}}"
    )
    return (
        exact(integers) if name == "red" else modelled(integers, ONE_BY_ONE),
        modelled(f"{name}{IN_SPACE}.{{inc,dec}}.u32 {add}.f64", ONE_BY_ONE),
        modelled(f"{add}.f32", f"{ONE_BY_ONE}; {FLUSHES}"),
        modelled(f"{add}.noftz.{{f16,f16x2}}", ONE_BY_ONE),
        modelled(f"{add}.noftz.{{bf16,bf16x2}}", ONE_BY_ONE, 90),
        modelled(f"{name}.global.add.{{v2,v4}}.f32", ONE_BY_ONE, 90),
        modelled(f"{name}.global.{{add,min,max}}.noftz.{{v2,v4,v8}}.{{f16,bf16}}", ONE_BY_ONE, 90),
        modelled(f"{name}.global.{{add,min,max}}.noftz.{{v2,v4}}.{{f16x2,bf16x2}}", ONE_BY_ONE, 90),
    )


ROWS: dict[str, Row] = {
    "ld": LOAD,
    "ldu": LOAD,
    "st": STORE,
    "atom": of_updates("=d{}, [a], b{}, c?, policy?", Polls.OF_MEMORY),
    "red": of_updates("[a], b{}, policy?", Polls.NOTHING),
    "st.bulk": Row(
        fill_shared, "[d], size, #n", "weak shared shared::cta", mix="store", fence=True, spread=Spread.USE
    ),
    "createpolicy": Row(cache_policy, "=policy, a...", POLICIES, mix="move"),
    **dict.fromkeys(HINTS, HINT),
}

LINES = (
    exact(f"ld{{,.global,.shared,.local,.const}}.{TYPES} {of_vectors('ld.global')}", COPIES),
    exact("ld.global.{nc,ca,cg,cs,lu,cv}.b32 ld.{volatile,relaxed.gpu,acquire.sys}.global.b32", COPIES),
    exact("ld.param.{b8,b16,b32,b64,u8,s8,u16,s16,u32,s32,u64,s64,f32,f64,v2.b32,v4.f32}", COPIES),
    refusal("ld.global.{v8.b32,v4.b64}", TOO_WIDE, 100),
    exact("ldu.global.{b32,v4.f32}", COPIES),
    exact(f"st{{,.global,.shared,.local}}.{TYPES} {of_vectors('st.global')}", COPIES),
    exact("st.global.{wb,cg,cs,wt}.b32 st.{volatile,relaxed.gpu,release.sys}.global.b32", COPIES),
    refusal("st.global.{v8.b32,v4.b64}", TOO_WIDE, 100),
    *of_atomics("atom"),
    modelled(f"atom{IN_SPACE}.{{cas,exch}}.{{b32,b64}} atom{IN_SPACE}.cas.b16", ONE_BY_ONE),
    modelled(f"atom{IN_SPACE}.{{cas,exch}}.b128", ONE_BY_ONE, 90),
    *of_atomics("red"),
    exact("st.bulk{,.weak}{,.shared,.shared::cta}", BY_HAND, 100),
    modelled("createpolicy", NO_CACHE, 80),
    *(modelled(name, NO_CACHE) for name in HINTS),
)
