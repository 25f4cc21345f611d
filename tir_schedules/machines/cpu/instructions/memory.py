"""Loads, stores and atomics; core/memory.cpp executes them."""

from __future__ import annotations

from tir_schedules.machines.cpu.abi import LOCAL_WINDOW, NONE, SPACES
from tir_schedules.machines.cpu.context import Lowering, MicroOp, only
from tir_schedules.machines.cpu.forms import Form, Lowered, Spread
from tir_schedules.machines.cpu.lane_code import is_float
from tir_schedules.machines.cpu.ptx import BITS, SINK, Immediate, Instruction, Register, Vector, items

SCOPES = {"cta", "gpu", "sys", "cluster"}
SPACE_NAMES = {"shared", "shared::cta", "global", "const", "local", "param"}
CACHING = {
    "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc",
    "L1::evict_last", "L1::evict_first", "L1::no_allocate", "L1::evict_normal", "L1::evict_unchanged",
    "L2::64B", "L2::128B", "L2::256B",
}  # fmt: skip
ORDERING = {"volatile", "relaxed", "acquire", "release", "acq_rel", "weak"} | SCOPES
ATOMICS = ["add", "min", "max", "exch", "cas", "and", "or", "xor"]
"""In the order of AtomicOperation in core/memory.cpp."""


def load_parameter(low: Lowering, i: Instruction) -> Lowered:
    only(i, SPACE_NAMES)
    to, source = i.operands[0], i.address(1)
    parameter = {p.name: p for p in low.kernel.parameters}.get(getattr(source.base, "name", ""))
    if parameter is None or not isinstance(to, Register):
        raise i.unsupported("parameter")
    offset, size = parameter.offset + source.offset, BITS[i.type] // 8
    if not parameter.offset <= offset <= parameter.offset + parameter.size - size:
        raise i.unsupported(f"bytes that {parameter.name} does not have")
    if to.bits == BITS[i.type]:
        return [MicroOp("ld.param", (low.place(to, i.type, i), size), i, offset)]
    # A narrower parameter: load it, then extend it to the register. Bytes are loaded as 16 bits with the high
    # ones clear.
    narrow = i.type if size > 1 else "u16"
    held = low.temporary("parameter", narrow)
    kind = "s" if i.type[0] == "s" else "u"
    if i.type == "s8":
        raise i.unsupported("signed bytes as parameters")
    extend = Instruction(f"cvt.{kind}{to.bits}.{kind}{BITS[narrow]}", (to, held), i.guard, i.line, i.source)
    return [MicroOp("ld.param", (low.place(held, narrow, i), size), i, offset), extend]


def load_or_store(low: Lowering, i: Instruction) -> Lowered:
    if BITS[i.type] * i.vector_length > 128 or BITS[i.type] == 128:
        raise i.unsupported("width")
    if i.space == "param":
        return load_parameter(low, i)
    only(i, SPACE_NAMES, CACHING, ORDERING, {"v2", "v4"})
    store = i.name == "st"
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


def atomic(low: Lowering, i: Instruction) -> Lowered:
    only(i, SPACE_NAMES, ORDERING, ATOMICS)
    own = i.has_result
    result, _, *values = i.operands if own else (SINK, *i.operands)
    kind = i.type
    if (
        BITS[kind] < 32
        or kind.endswith("x2")
        or any(isinstance(value, Vector) for value in (result, *values))
    ):
        raise i.unsupported("type")
    base, wide, offset = low.address(i.address(int(own)), i)
    letter = "f" if is_float(kind) else "s" if kind[0] == "s" else "u"
    to = NONE if result == SINK else low.place(result, kind, i)
    value = low.place(values[0], kind, i)
    other = low.place(values[1], kind, i) if len(values) > 1 else NONE
    counter = low.counter(i, f"{i.space}_atomic") if i.space in ("shared", "global") else -1
    operation = ATOMICS.index(i.choice(ATOMICS))
    numbers = (base, wide, SPACES[i.space], operation, ord(letter), BITS[kind] // 8, to, value, other)
    return [MicroOp("atomic", numbers, i, offset, counter, i.address(int(own)))]


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
