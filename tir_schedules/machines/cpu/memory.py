"""Lowering of instructions that reach memory or other lanes: their operands, in the order that core/*.cpp
expects."""

from __future__ import annotations

from typing import Callable

from tir_schedules.machines.cpu.context import NONE, Lowering, Step
from tir_schedules.machines.cpu.extents import SPACES
from tir_schedules.machines.cpu.lane_code import is_float
from tir_schedules.machines.cpu.ptx import (  # fmt: skip
    BITS,
    SINK,
    Address,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Vector,
)

LOCAL_WINDOW = 1 << 37
SCOPES = {"cta", "gpu", "sys", "cluster"}
SPACE_NAMES = {"shared", "shared::cta", "global", "const", "local", "param"}
CACHING = {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "L1::evict_last", "L1::evict_first",
    "L1::no_allocate",
           "L1::evict_normal", "L1::evict_unchanged", "L2::64B", "L2::128B", "L2::256B"}  # fmt: skip
ORDERING = {"volatile", "relaxed", "acquire", "release", "acq_rel", "weak"} | SCOPES
ATOMICS = ["add", "min", "max", "exch", "cas", "and", "or", "xor"]
VOTES = ["ballot", "any", "all", "uni"]
SHUFFLES = ["up", "down", "bfly", "idx"]
ACTIVE_MASK = 4
ALL = NONE


def items(operand: Operand) -> list[Operand]:
    return list(operand.items) if isinstance(operand, Vector) else [operand]


def only(i: Instruction, *allowed: set[str] | list[str]) -> None:
    """UnsupportedInstruction when the opcode has a modifier that is neither a type nor allowed."""
    known = set(BITS).union(*allowed)
    for part in i.parts[1:]:
        if part not in known:
            raise i.unsupported(f"modifier .{part}")


def address(low: Lowering, operand: Operand, i: Instruction) -> tuple[int, int, int]:
    """Register offset of the base, whether it has 64 bits, and the constant offset."""
    if not isinstance(operand, Address):
        raise i.unsupported(f"address {operand}")
    if isinstance(operand.base, Register):
        return low.place(operand.base, operand.base.type, i), int(operand.base.bits == 64), operand.offset
    start = low.address_of(operand.base, i) if operand.base is not None else 0
    return low.place(Immediate(0), "u64", i), 1, operand.offset + start


def watch_shared(low: Lowering, i: Instruction, element_bytes: int) -> None:
    """Races are told apart at the width of the narrowest access to shared memory."""
    if i.space in ("shared", "generic"):
        low.narrowest_shared = min(low.narrowest_shared, element_bytes)


def load_parameter(low: Lowering, i: Instruction) -> list[Step]:
    only(i, SPACE_NAMES)
    to, source = i.operands
    parameter = {p.name: p for p in low.kernel.parameters}.get(getattr(source.base, "name", None))
    if parameter is None or isinstance(to, Vector):
        raise i.unsupported("parameter")
    offset, size = parameter.offset + source.offset, BITS[i.type] // 8
    if to.bits == BITS[i.type]:
        return [Step("ld.param", (low.place(to, i.type, i), size), i, offset)]
    # A narrower parameter: load it, then extend it to the register. Bytes are loaded as 16 bits with the high
    # ones clear.
    narrow = i.type if size > 1 else "u16"
    held = low.temporary("parameter", narrow)
    kind = "s" if i.type[0] == "s" else "u"
    if i.type == "s8":
        raise i.unsupported("signed bytes as parameters")
    extend = Instruction(f"cvt.{kind}{to.bits}.{kind}{BITS[narrow]}", (to, held), i.guard, i.line, i.source)
    return [Step("ld.param", (low.place(held, narrow, i), size), i, offset), low.lane_step(extend)]


def load_or_store(low: Lowering, i: Instruction) -> list[Step]:
    if BITS[i.type] * i.vector_length > 128 or BITS[i.type] == 128:
        raise i.unsupported("width")
    if i.space == "param":
        return load_parameter(low, i)
    only(i, SPACE_NAMES, CACHING, ORDERING, {"v2", "v4"})
    store = i.name == "st"
    where, values = (i.operands[0], i.operands[1]) if store else (i.operands[1], i.operands[0])
    base, wide, offset = address(low, where, i)
    bits, count = BITS[i.type], i.vector_length
    watch_shared(low, i, bits // 8)
    before, after, places = [], [], []
    for k, value in enumerate(items(values)):
        if value == SINK:
            value = low.temporary(f"sink {k}", f"b{bits}")
        elif isinstance(value, Register) and value.bits != bits:  # bytes live in wider registers
            kind = i.type[0] if i.type[0] in "us" else "u"
            held = low.temporary(f"element {k}", f"{kind}{bits}")
            opcode = f"cvt.{kind}{bits}.u{value.bits}" if store else f"cvt.{kind}{value.bits}.{kind}{bits}"
            operands = (held, value) if store else (value, held)
            (before if store else after).append(
                low.lane_step(Instruction(opcode, operands, i.guard, i.line, i.source))
            )
            value = held
        places.append(low.place(value, i.type if isinstance(value, Immediate) else f"b{bits}", i))
    if len(places) != count:
        raise i.unsupported("number of elements")
    space = "global" if i.space == "const" else i.space
    counter = (
        low.counter(i, f"{space}_{'store' if store else 'load'}") if space in ("shared", "global") else -1
    )
    if space == "local":
        space, offset = "generic", offset + LOCAL_WINDOW
    extent = low.extents.of(where, i.space)
    return [
        *before,
        Step(f"{i.name[:2]}.{space}", (base, wide, bits // 8, count, *places), i, offset, counter, extent),
        *after,
    ]


def atomic(low: Lowering, i: Instruction) -> list[Step]:
    only(i, SPACE_NAMES, ORDERING, ATOMICS)
    operands = i.operands if i.name == "atom" else (SINK, *i.operands)
    kind = i.type
    if BITS[kind] < 32 or kind.endswith("x2") or any(isinstance(operand, Vector) for operand in operands):
        raise i.unsupported("type")
    base, wide, offset = address(low, operands[1], i)
    letter = "f" if is_float(kind) else "s" if kind[0] == "s" else "u"
    result = NONE if operands[0] == SINK else low.place(operands[0], kind, i)
    value = low.place(operands[2], kind, i)
    other = low.place(operands[3], kind, i) if len(operands) > 3 else NONE
    counter = low.counter(i, f"{i.space}_atomic") if i.space in ("shared", "global") else -1
    operation = ATOMICS.index(i.choice(ATOMICS))
    numbers = (base, wide, SPACES[i.space], operation, ord(letter), BITS[kind] // 8, result, value, other)
    return [Step("atomic", numbers, i, offset, counter, low.extents.of(operands[1], i.space))]


def copy_async(low: Lowering, i: Instruction) -> list[Step]:
    if i.parts[:2] != ("cp", "async"):
        raise i.unsupported()
    if i.opcode == "cp.async.commit_group":
        return [Step("cp.async.commit_group", (), i)]
    if i.opcode == "cp.async.wait_all":
        return [Step("cp.async.wait_group", (ALL,), i)]
    if i.opcode == "cp.async.wait_group":
        return [Step("cp.async.wait_group", (i.operands[0].value,), i)]
    only(i, {"async", "ca", "cg", "shared", "shared::cta", "global", "L2::64B", "L2::128B", "L2::256B"})
    base, wide, offset = address(low, i.operands[0], i)
    source, source_wide, source_offset = address(low, i.operands[1], i)
    size = i.operands[2].value
    if size not in (4, 8, 16) or not source_wide:
        raise i.unsupported("size or address")
    if isinstance(i.operands[-1], Register) and i.operands[-1].type == "pred":
        raise i.unsupported("a predicate for ignoring the source")
    available = low.place(i.operands[3], "u32", i) if len(i.operands) > 3 else NONE
    shared, global_ = low.counter(i, "shared_cp_async"), low.counter(i, "global_cp_async")
    split = (source_offset & NONE, source_offset >> 32 & NONE)
    bypass, extent = int(i.has("cg")), low.extents.of(i.operands[0], "shared")
    return [
        Step(
            "cp.async",
            (base, wide, source, size, available, global_, *split, bypass),
            i,
            offset,
            shared,
            extent,
        )
    ]


def shuffle(low: Lowering, i: Instruction) -> list[Step]:
    only(i, {"sync"}, SHUFFLES)
    to, source, lane, clamp, *members = i.operands
    result, valid = (to.first, to.second) if isinstance(to, Pair) else (to, SINK)
    mask = low.place(members[0] if members else Immediate(NONE), "u32", i)
    words = [low.place(operand, "b32", i) for operand in (source, lane, clamp, result)]
    predicate = NONE if valid == SINK else low.place(valid, "pred", i)
    return [Step("shfl", (SHUFFLES.index(i.choice(SHUFFLES)), *words, predicate, mask), i)]


def vote(low: Lowering, i: Instruction) -> list[Step]:
    only(i, {"sync"}, VOTES)
    if i.name == "activemask":
        return [Step("vote", (ACTIVE_MASK, 0, 0, low.place(i.operands[0], "b32", i), NONE), i)]
    to, predicate, *members = i.operands
    negated = isinstance(predicate, Negated)
    asked = low.place(predicate.register if negated else predicate, "pred", i)
    mask = low.place(members[0], "u32", i) if members else NONE
    return [
        Step("vote", (VOTES.index(i.choice(VOTES)), int(negated), asked, low.place(to, i.type, i), mask), i)
    ]


def reduction(low: Lowering, i: Instruction) -> list[Step]:
    operations = ["add", "min", "max", "and", "or", "xor"]
    only(i, {"sync"}, operations)
    if is_float(i.type):
        raise i.unsupported("float operands")
    to, source, members = (low.place(operand, "b32", i) for operand in i.operands)
    return [
        Step("redux", (operations.index(i.choice(operations)), int(i.type[0] == "s"), source, to, members), i)
    ]


def match_any(low: Lowering, i: Instruction) -> list[Step]:
    only(i, {"sync", "any"})
    i.choice(["any"])
    to, source, members = i.operands
    numbers = (
        BITS[i.type] // 8,
        low.place(source, i.type, i),
        low.place(to, "b32", i),
        low.place(members, "b32", i),
    )
    return [Step("match", numbers, i)]


def elect(low: Lowering, i: Instruction) -> list[Step]:
    only(i, {"sync"})
    lane, predicate = i.operands[0].first, i.operands[0].second
    return [
        Step(
            "elect", (low.place(predicate, "pred", i), NONE if lane == SINK else low.place(lane, "b32", i)), i
        )
    ]


def warp_barrier(low: Lowering, i: Instruction) -> list[Step]:
    return [Step("bar.warp", (low.place(i.operands[0], "b32", i),), i)]


def load_matrices(low: Lowering, i: Instruction) -> list[Step]:
    only(i, {"sync", "aligned", "m8n8", "x1", "x2", "x4", "trans", "shared", "shared::cta"})
    base, wide, offset = address(low, i.operands[1], i)
    low.narrowest_shared = min(low.narrowest_shared, 2)
    registers = [low.place(register, "b32", i) for register in items(i.operands[0])]
    numbers = (base, wide, len(registers), int(i.has("trans")), *registers)
    return [
        Step(
            "ldmatrix",
            numbers,
            i,
            offset,
            low.counter(i, "ldmatrix"),
            low.extents.of(i.operands[1], "shared"),
        )
    ]


def matrix_multiply(low: Lowering, i: Instruction) -> list[Step]:
    wmma, types = i.name == "wmma", i.types
    shape = i.choice(["m16n8k8", "m16n8k16", "m16n16k16"])
    only(i, {"sync", "aligned", "row", "col", "mma", shape})
    if wmma:
        inputs, result, addend = (types[1] if len(types) == 4 else "f16"), types[0], types[-1]
    else:
        if not (i.has("row") and i.has("col")) or len(types) != 4:
            raise i.unsupported("layout or types")
        inputs, result, addend = types[1], types[0], types[3]
    known = inputs in ("f16", "bf16") and result in ("f16", "f32") and addend in ("f16", "f32")
    if not known or wmma != (shape == "m16n16k16"):
        raise i.unsupported("types or shape")
    groups = [items(operand) for operand in i.operands[:4]]
    kinds = (int(inputs == "bf16"), int(result == "f16"), int(addend == "f16"), int(wmma))
    registers = [low.place(register, "b32", i) for group in groups for register in group]
    depth = 8 if shape.endswith("k8") else 16
    return [Step("mma", (depth, *kinds, *(len(group) for group in groups), *registers), i)]


def wmma(low: Lowering, i: Instruction) -> list[Step]:
    action = i.parts[1]
    if action == "mma":
        return matrix_multiply(low, i)
    only(i, {"load", "store", "a", "b", "c", "d", "sync", "aligned", "row", "col", "m16n16k16"}, SPACE_NAMES)
    i.choice(["m16n16k16"])
    load = action == "load"
    where, fragment = (i.operands[1], i.operands[0]) if load else (i.operands[0], i.operands[1])
    base, wide, offset = address(low, where, i)
    size = 2 if i.type in ("f16", "bf16") else 4
    watch_shared(low, i, size)
    matrix = "abc".index(i.parts[2]) if load else 2
    stride = i.operands[2] if len(i.operands) > 2 else Immediate(16)
    registers = items(fragment)
    places = (low.place(register, "b32", i) for register in registers)
    kind = (
        "ldmatrix"
        if load and matrix < 2 and i.space == "shared"
        else f"{i.space}_{'load' if load else 'store'}"
    )
    counter = low.counter(i, kind) if i.space in ("shared", "global") else -1
    numbers = (
        base,
        wide,
        matrix,
        int(i.has("row")),
        SPACES[i.space],
        size,
        low.place(stride, "s32", i),
        len(registers),
        *places,
    )
    return [Step(f"wmma.{action}", numbers, i, offset, counter, low.extents.of(where, i.space))]


LOWERED: dict[str, Callable[[Lowering, Instruction], list[Step]]] = {
    "ld": load_or_store, "ldu": load_or_store, "st": load_or_store, "atom": atomic, "red": atomic,
    "cp": copy_async,
    "shfl": shuffle, "vote": vote, "activemask": vote, "redux": reduction, "match": match_any, "elect": elect,
    "bar": warp_barrier, "ldmatrix": load_matrices, "mma": matrix_multiply, "wmma": wmma,
}  # fmt: skip


def lower_warp_instruction(low: Lowering, instruction: Instruction) -> list[Step] | None:
    """The steps of an instruction that is not for each lane by itself; None when it is."""
    function = LOWERED.get(instruction.name)
    return function(low, instruction) if function else None
