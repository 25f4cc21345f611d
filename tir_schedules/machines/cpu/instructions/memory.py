"""Loads, stores and atomics; core/memory.cpp executes them."""

from __future__ import annotations

from tir_schedules.machines.cpu.abi import LOCAL_WINDOW, NONE, SPACES
from tir_schedules.machines.cpu.context import Lowering, MicroOp, only
from tir_schedules.machines.cpu.forms import Form, Lowered, Spread
from tir_schedules.machines.cpu.lane_code import HALVES, is_float
from tir_schedules.machines.cpu.ptx import BITS, SINK, Immediate, Instruction, Operand, Register, items

SCOPES = {"cta", "gpu", "sys", "cluster"}
SPACE_NAMES = {"shared", "shared::cta", "global", "const", "local", "param"}
CACHING = {
    "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc",
    "L1::evict_last", "L1::evict_first", "L1::no_allocate", "L1::evict_normal", "L1::evict_unchanged",
    "L2::64B", "L2::128B", "L2::256B",
}  # fmt: skip
HINTED = {"L2::cache_hint", "L2::evict_last", "L2::evict_first", "L2::evict_normal"}
ORDERING = {"volatile", "relaxed", "acquire", "release", "acq_rel", "weak"} | SCOPES
ATOMICS = ["add", "min", "max", "exch", "cas", "and", "or", "xor", "inc", "dec"]
"""In the order of AtomicOperation in core/memory.cpp."""


def load_parameter(low: Lowering, i: Instruction) -> Lowered:
    """Each element by itself: nothing counts how wide a load of parameters is."""
    only(i, SPACE_NAMES, {"v2", "v4"})
    source = i.address(1)
    parameter = {p.name: p for p in low.kernel.parameters}.get(getattr(source.base, "name", ""))
    if parameter is None:
        raise i.unsupported("parameter")
    offset, size, lowered = parameter.offset + source.offset, BITS[i.type] // 8, []
    for k, to in enumerate(items(i.operands[0])):
        if to != SINK:
            lowered += load_parameter_element(low, i, to, offset + size * k)
    return lowered


def load_parameter_element(low: Lowering, i: Instruction, to: Operand, offset: int) -> Lowered:
    if not isinstance(to, Register):
        raise i.unsupported(f"result {to}")
    size = BITS[i.type] // 8
    if to.bits == BITS[i.type]:
        return [MicroOp("ld.param", (low.place(to, i.type, i), size), i, offset)]
    # A narrower parameter: load it, then extend it to the register. Bytes are loaded as 16 bits with the high
    # ones clear.
    held, sign = low.temporary(f"parameter {offset}", "u16" if size == 1 else i.type), "us"[i.type[0] == "s"]
    extend = Instruction(
        f"cvt.{sign}{to.bits}.{sign}{BITS[i.type]}", (to, held), i.guard, i.line, i.source, i.within
    )
    return [MicroOp("ld.param", (low.place(held, i.type, i), size), i, offset), extend]


def load_or_store(low: Lowering, i: Instruction) -> Lowered:
    if BITS[i.type] * i.vector_length > 128:
        raise i.unsupported("more than 16 bytes")
    if i.space == "param":
        return load_parameter(low, i)
    only(i, SPACE_NAMES, CACHING, ORDERING, HINTED, {"v2", "v4"})
    store, operands = i.name == "st", without_hint(i)
    if len(operands) != 2:
        raise i.unsupported("number of operands")
    where, values = (i.address(0), i.operands[1]) if store else (i.address(1), i.operands[0])
    base, wide, offset = low.address(where, i)
    bits, count = BITS[i.type], i.vector_length
    low.watch_shared(i, bits // 8)
    before, after, places = [], [], []
    for k, value in enumerate(items(values)):
        if value == SINK:
            value = low.temporary(f"sink {k}", f"b{bits}")
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
    space = "global" if i.space == "const" else i.space
    counter = -1
    if space in ("shared", "global"):
        counter = low.counter(i, f"{space}_{'store' if store else 'load'}")
    if space == "local":
        space, offset = "generic", offset + LOCAL_WINDOW
    numbers = (base, wide, bits // 8, count, *places)
    return [*before, MicroOp(f"{i.name[:2]}.{space}", numbers, i, offset, counter, where), *after]


def without_hint(i: Instruction) -> tuple[Operand, ...]:
    """The operands but for the policy of a cache, which changes no result."""
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
    only(i, SPACE_NAMES, ORDERING, ATOMICS, HINTED, {"noftz", "v2", "v4", "v8"})
    result, _, value, *others = without_hint(i) if i.has_result else (SINK, *without_hint(i))
    operation, kind, count = i.choice(ATOMICS), i.type, i.vector_length
    letter, bytes_ = of_atomic(kind, operation), BITS[kind] // 8
    if letter is None or count * bytes_ > 16 or i.has("noftz") != (letter in "hb"):
        raise i.unsupported("type")
    values, results = items(value), [SINK] * count if result == SINK else items(result)
    if not len(values) == len(results) == count or len(others) != (operation == "cas"):
        raise i.unsupported("number of elements")
    low.watch_shared(i, bytes_)
    base, wide, offset = low.address(i.address(int(i.has_result)), i)
    other = low.place(others[0], kind, i) if others else NONE
    places = [low.place(item, kind, i) for item in values]
    places += [NONE if item == SINK else low.place(item, kind, i) for item in results]
    counter = low.counter(i, f"{i.space}_atomic") if i.space in ("shared", "global") else -1
    numbers = (
        base,
        wide,
        SPACES[i.space],
        ATOMICS.index(operation),
        ord(letter),
        bytes_,
        count,
        other,
        *places,
    )
    return [MicroOp("atomic", numbers, i, offset, counter, i.address(int(i.has_result)))]


LOAD = Form(load_or_store, mix="load", access="reads", spread=Spread.LOAD)
HINT = Form(None, has_result=False)

FORMS: dict[str, Form] = {
    "ld": LOAD,
    "ldu": LOAD,
    "st": Form(load_or_store, mix="store", has_result=False, spread=Spread.STORE),
    "atom": Form(atomic, mix="atomic", access="updates", spread=Spread.USE),
    "red": Form(atomic, mix="atomic", access="updates", spread=Spread.USE, has_result=False),
    **dict.fromkeys(("prefetch", "prefetchu", "discard", "applypriority"), HINT),
}
