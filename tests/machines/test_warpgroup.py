"""wgmma against numpy: every layout of descriptors, type, number of columns, and rows of A in registers."""

import re

import numpy as np
import pytest
from warpgroup_kernels import (
    BITS,
    FILL,
    RIGHT_AT,
    ROOM,
    Layout,
    entry,
    fragments,
    launch,
    loads,
    product,
    stores,
    sums_of,
)

from tir_schedules.machines.cpu.catalogue import entries, expanded
from tir_schedules.machines.cpu.instructions.warpgroup import COLUMNS
from tir_schedules.model.machine import Watch

OPCODES = [
    opcode
    for line in entries()
    if line.opcodes.startswith("wgmma.mma_async") and line.precision != "refused"
    for opcode in expanded(line.opcodes)
]
HALVES = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"
GROUP = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n"
FENCE = "wgmma.fence.sync.aligned;\n"
rng = np.random.default_rng(5)


def parts_of(opcode):
    """Columns, and types of sums, A and B."""
    columns = int(re.search(r"n(\d+)k", opcode)[1])
    return columns, *(part for part in opcode.split(".")[5:] if part != "satfinite")


def values(kind, shape):
    """Whole numbers that the type has, and their bits."""
    if kind in ("s8", "u8"):
        numbers = rng.integers(-128 if kind == "s8" else 0, 128 if kind == "s8" else 256, shape)
        return numbers, numbers & 255
    numbers = rng.integers(-4, 5, shape)
    if kind in ("e4m3", "e5m2"):
        mantissa, bias = (3, 7) if kind == "e4m3" else (2, 15)
        size = np.abs(numbers)
        exponent = np.where(size > 0, np.floor(np.log2(np.maximum(size, 1))), 0).astype(int)
        steps = (size / 2.0**exponent - 1) * 2**mantissa
        bits = np.where(size > 0, (exponent + bias << mantissa) + steps.astype(int), 0)
        return numbers, bits | np.where(numbers < 0, 128, 0)
    if kind == "f16":
        return numbers, numbers.astype(np.float16).view(np.uint16)
    words = numbers.astype(np.float32).view(np.uint32)
    return numbers, words >> 16 if kind == "bf16" else words | 0x1FFF  # of which tf32 has no bit


def signs_of(opcode, left="f16", signs=(1, 1), across=(0, 0)):
    """The constants behind the predicate."""
    if left in ("s8", "u8"):
        return ()
    return (*signs, *across) if left in ("f16", "bf16") else signs


def kernel(opcode, left, right, tail, adds=1, before="", more=""):
    """X to shared memory; sums from Y; a product; sums to Y."""
    columns, kind, *_ = parts_of(opcode)
    count = len(sums_of(kind, columns))
    rows = "l" if "mov.b64 l" in left else "{a0, a1, a2, a3}"
    left += " add.s64 l, l, begin;" if rows == "l" else ""
    return entry(
        f".reg .b32 d<{count}>, a<4>; .reg .b64 l, r;\n{FILL}{loads(count)}\n"
        f"mov.b64 r, {right}; add.s64 r, r, begin; {left} setp.ne.s32 p, {adds}, 0;\n{before}"
        f"{FENCE}{product(opcode, rows, 'r', tail)}{more}{GROUP}"
        f"{stores(count)}"
    )


def words_of(kind, matrix):
    """(thread, register) of the sums; one that float16 does not hold is infinite."""
    found = fragments(matrix)
    if kind == "f16":
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(found.astype(np.float16)).view(np.uint32)
    return np.ascontiguousarray(found.astype(np.int32 if kind == "s32" else np.float32)).view(np.uint32)


def multiplied(opcode, left_layout=None, right_layout=None, signs=(1, 1), adds=1, scale=1, **how):
    """Run one product of random matrices; what it should give, and what it gave, as words."""
    columns, kind, left, right = parts_of(opcode)
    left_layout = left_layout or Layout(left, 64, 0, False, 0)
    right_layout = right_layout or Layout(right, columns, 0, False, RIGHT_AT)
    a, a_bits = values(left, (64, left_layout.depth))
    b, b_bits = values(right, (columns, left_layout.depth))
    memory = np.full(ROOM, 255, np.uint8)
    left_layout.put(memory, a_bits), right_layout.put(memory, b_bits)
    c = rng.integers(-9, 10, (64, columns)) * scale
    across = (int(left_layout.across), int(right_layout.across))
    text = kernel(
        opcode,
        f"mov.b64 l, {left_layout.descriptor};",
        right_layout.descriptor,
        signs_of(opcode, left, signs, across),
        adds,
    )
    sums = words_of(kind, c)
    execution = launch(text, {"X": memory, "Y": sums}, ("Y",), given=("Y",), **how)
    assert execution.findings == ()
    expected = (c if adds else 0) + signs[0] * signs[1] * (a @ b.T)
    if "satfinite" in opcode:
        expected = np.clip(expected, -(2**31), 2**31 - 1)
    return words_of(kind, expected), sums


@pytest.mark.parametrize("across", [(a, b) for a in (False, True) for b in (False, True)], ids=str)
@pytest.mark.parametrize("span", [0, 32, 64, 128])
def test_layouts(span, across):
    left, right = Layout("f16", 64, span, across[0], 0), Layout("f16", 64, span, across[1], RIGHT_AT)
    expected, got = multiplied(HALVES, left, right)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("span", [0, 32, 64, 128])
@pytest.mark.parametrize("across", [False, True])
def test_a_later_part_of_a_row_and_many_columns(span, across):
    """A descriptor that goes on along k: 32 bytes further, or two rows of pieces."""
    right = Layout("bf16", 256, span, across, RIGHT_AT + (0 if across or span < 64 else 32))
    expected, got = multiplied("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", None, right)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("span, base", [(128, 2), (128, 5), (64, 1), (64, 3), (32, 1)])
def test_a_base_offset(span, base):
    """Patterns that begin where no multiple of their size is."""
    left = Layout("f16", 64, span, False, 128 * base, base)
    right = Layout("f16", 64, span, False, RIGHT_AT + 128 * base, base)
    expected, got = multiplied(HALVES, left, right)
    np.testing.assert_array_equal(got, expected)


def sampled(opcodes):
    """Of each type the smallest, a middle and the largest number of columns."""
    chosen = {}
    for opcode in opcodes:
        chosen.setdefault(re.sub(r"n\d+k", "k", opcode), []).append(opcode)
    return [each for group in chosen.values() for each in (group[0], group[len(group) // 3], group[-1])]


@pytest.mark.parametrize("opcode", sampled(OPCODES))
def test_types_and_columns(opcode):
    scale = 238609294 if "satfinite" in opcode else 1  # a ninth of the largest number
    expected, got = multiplied(opcode, scale=scale)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.slow
@pytest.mark.parametrize("opcode", OPCODES)
def test_every_opcode(opcode):
    expected, got = multiplied(opcode)
    np.testing.assert_array_equal(got, expected)


def test_the_table_has_every_number_of_columns():
    assert {parts_of(opcode)[0] for opcode in OPCODES} == {*COLUMNS}


@pytest.mark.parametrize("adds", [0, 1])
@pytest.mark.parametrize("signs", [(1, -1), (-1, 1), (-1, -1)])
def test_signs_and_sums_that_start_anew(signs, adds):
    expected, got = multiplied(HALVES, signs=signs, adds=adds)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("copies", ["late", "early"])
@pytest.mark.parametrize("order", ["forward", "reverse"])
def test_in_every_order(order, copies):
    expected, got = multiplied(HALVES, warp_order=order, copies=copies)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    "kind, types",
    [("f16", "f32.f16.f16"), ("tf32", "f32.tf32.tf32"), ("s8", "s32.s8.s8"), ("e4m3", "f32.e4m3.e4m3")],
)
def test_rows_in_registers(kind, types):
    depth = 256 // BITS[kind]
    opcode = f"wgmma.mma_async.sync.aligned.m64n16k{depth}.{types}"
    right = Layout(kind, 16, 0, False, RIGHT_AT)
    a, a_bits = values(kind, (64, depth))
    b, b_bits = values(kind, (16, depth))
    memory = np.zeros(ROOM, np.uint8)
    right.put(memory, b_bits)
    thread, per = np.arange(128), 32 // BITS[kind]
    for register in range(4):
        rows = thread // 32 * 16 + thread % 32 // 4 + 8 * (register % 2)
        words = np.zeros(128, np.uint64)
        for i in range(per):
            k = thread % 4 * per + i + register // 2 * 4 * per
            words |= a_bits[rows, k].astype(np.uint64) << np.uint64(BITS[kind] * i)
        memory[:2048].view(np.uint32)[register::4] = words
    tail = signs_of(opcode, kind, across=(0,))
    rows = "shl.b32 o, t, 4; add.s32 o, o, v0; ld.shared.v4.b32 {a0, a1, a2, a3}, [o];"
    text = kernel(opcode, rows, right.descriptor, tail)
    sums = words_of(types[:3], np.zeros((64, 16), int))
    assert launch(text, {"X": memory, "Y": sums}, ("Y",), given=("Y",)).findings == ()
    np.testing.assert_array_equal(sums, words_of(types[:3], a @ b.T))


def test_random_orders():
    expected, got = multiplied(HALVES, orders=4)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("every", [False, True])
def test_a_block_that_is_watched(every):
    """What a product reads is not a request of the warp's."""
    expected, got = multiplied(HALVES, watch=Watch(limit=4096, every=every))
    np.testing.assert_array_equal(got, expected)


def test_counters_are_those_of_a_model():
    """Per product of a warpgroup: A and B once, 128 bytes in a wavefront."""
    left, right = (Layout("f16", 64, 0, False, at).descriptor for at in (0, RIGHT_AT))
    text = kernel(HALVES, f"mov.b64 l, {left};", right, (1, 1, 0, 0))
    arguments = {"X": np.zeros(ROOM, np.uint8), "Y": np.zeros((128, 32), np.uint32)}
    counters = launch(text, arguments, ("Y",), count=True).counters
    access = counters.accesses["wgmma"]
    assert (access.requests, access.cost, access.ideal) == (1, 32, 32)
    assert counters.mix["wgmma"] == 128
