"""What is wrong with products of warpgroups: each kernel is caught, and without the fault it is not."""

import numpy as np
import pytest
from warpgroup_kernels import FILL, RIGHT_AT, ROOM, Layout, descriptor, entry, launch, product, stores

from tir_schedules.machines.cpu.ptx import UnsupportedInstruction

LEFT, RIGHT = (Layout("f16", 64, 128, False, start).descriptor for start in (0, RIGHT_AT))
OPCODE = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"
WIDER = "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16"
FENCE, COMMIT = "wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;"
WAIT = "wgmma.wait_group.sync.aligned 0;"
ZERO = " ".join(f"mov.b32 d{k}, 0;" for k in range(32))
PRODUCT = product(OPCODE, "l", "r", (1, 1, 0, 0))
FROM_REGISTERS = product(OPCODE, "{a0, a1, a2, a3}", "r", (1, 1, 0))
GROUP = f"{COMMIT} {WAIT}"


def body_of(text, left=LEFT, right=RIGHT):
    return (
        f".reg .b32 d<64>, a<4>, e; .reg .b64 l, r;\n{FILL}mov.b64 l, {left}; mov.b64 r, {right};"
        f" setp.eq.u32 p, 0, 0;\n mov.b32 a0, t; mov.b32 a1, t; mov.b32 a2, t; mov.b32 a3, t;\n{text}"
    )


def found(text, threads=128, left=LEFT, right=RIGHT, **how):
    arguments = {"X": np.zeros(ROOM, np.uint8), "Y": np.zeros((128, 32), np.uint32)}
    return launch(entry(body_of(text, left, right)), arguments, ("Y",), threads, **how).findings


STORES = stores(32)
READ_EARLY = "st.global.b32 [y], d7;"
FAULTS = [
    ("wgmma_registers", "a sum is read", f"{ZERO}{FENCE}{PRODUCT}{COMMIT} add.s32 e, d7, 1; {WAIT}{STORES}",
     "add.s32 e, d7, 1;", "", "reads a sum of the wgmma of"),
    ("wgmma_registers", "a sum is written", f"{ZERO}{FENCE}{PRODUCT}{COMMIT} mov.b32 d31, 0; {WAIT}{STORES}",
     "mov.b32 d31, 0;", "", "writes a sum of the wgmma of"),
    ("wgmma_registers", "a wait that leaves it in flight", f"{ZERO}{FENCE}{PRODUCT}{COMMIT}"
     f" wgmma.wait_group.sync.aligned 1; {STORES} {WAIT}", "aligned 1", "aligned 0", "before wgmma.wait_group"),
    ("wgmma_registers", "it has not been committed", f"{ZERO}{FENCE}{PRODUCT}{WAIT}{STORES}{COMMIT}{WAIT}",
     f"{PRODUCT}{WAIT}", f"{PRODUCT}{COMMIT}{WAIT}", "before wgmma.wait_group"),
    ("wgmma_registers", "rows of A are written", f"{ZERO}{FENCE}{FROM_REGISTERS}{COMMIT} mov.b32 a2, 0;"
     f" {WAIT}{STORES}", "mov.b32 a2, 0;", "", "writes a factor of the wgmma of"),
    ("wgmma_registers", "a product of another shape has the same sums",
     f"{ZERO.replace('d', 'd')}{''.join(f'mov.b32 d{k}, 0;' for k in range(32, 64))}{FENCE}{PRODUCT}"
     f"{product(WIDER, 'l', 'r', (1, 1, 0, 0))}{GROUP}{STORES}", f"{PRODUCT}{product(WIDER, 'l', 'r', (1, 1, 0, 0))}",
     f"{PRODUCT}{PRODUCT}", "writes a sum of the wgmma of"),
    ("wgmma_registers", "a sum is a row of A", f"{ZERO}{FENCE}{PRODUCT}"
     f"{FROM_REGISTERS.replace('a2', 'd3')}{GROUP}{STORES}", "d3, a3}, r", "a2, a3}, r", "reads a sum"),
    ("unfenced_wgmma", "no fence at all", f"{ZERO}{FENCE}{PRODUCT}{GROUP}{STORES}", FENCE, None,
     "no wgmma.fence has been executed"),
    ("unfenced_wgmma", "sums written since", f"{FENCE}{ZERO}{FENCE}{PRODUCT}{GROUP}{STORES}", f"{ZERO}{FENCE}", None,
     "was written by"),
    ("unfenced_wgmma", "rows of A written since", f"{ZERO}{FENCE} mov.b32 a1, 7; {FENCE}{FROM_REGISTERS}{GROUP}"
     f"{STORES}", f"mov.b32 a1, 7; {FENCE}", None, "a factor of it was written by"),
    ("divergent_aligned", "a lane has left", f"setp.eq.u32 q, t, 5; @q exit; {ZERO}{FENCE}{PRODUCT}{GROUP}{STORES}",
     "@q exit;", "", "active lanes 0xffffffdf"),
    ("divergent_aligned", "warps execute different products",
     f"{ZERO}{FENCE} setp.lt.u32 q, t, 32; @q bra ONE; {PRODUCT} bra BOTH; ONE: {PRODUCT} BOTH: {GROUP}{STORES}",
     "@q bra ONE;", "", "different instructions"),
]  # fmt: skip
IDS = [f"{kind}: {what}" for kind, what, *_ in FAULTS]


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("kind, what, body, fault, repair, message", FAULTS, ids=IDS)
def test_a_fault_is_found_and_its_absence_is_not(kind, what, body, fault, repair, message, early):
    """Where the repair is None, the fault is what is left out."""
    assert fault in body
    broken, sound = (body, body.replace(fault, repair, 1)) if repair is not None else (body.replace(fault, "", 1), body)
    if fault.startswith(ZERO):
        broken = body.replace(fault, f"{ZERO}", 1)
    if "a1, 7" in fault:
        broken = body.replace(fault, "mov.b32 a1, 7;", 1)
    finding = next((one for one in found(broken, early=early) if one.kind == kind), None)
    assert finding and message in finding.message, found(broken, early=early)
    assert found(sound, early=early) == ()


def test_products_of_one_shape_need_no_wait_between():
    assert found(f"{ZERO}{FENCE}{PRODUCT}{PRODUCT}{COMMIT}{PRODUCT}{GROUP}{STORES}") == ()


def test_sums_that_start_anew_need_no_value():
    anew = "setp.eq.u32 p, 0, 1;"
    assert found(f"{anew}{FENCE}{PRODUCT}{GROUP}{STORES}") == ()
    kinds = {finding.kind for finding in found(f"{FENCE}{PRODUCT}{GROUP}{STORES}")}
    assert kinds == {"uninitialized"}


# ---- descriptors ---
DESCRIPTORS = [
    ("bits without meaning", LEFT | 1 << 14, "bits are set that have no meaning"),
    ("beyond shared memory", descriptor(ROOM - 1024, 0, 1024, 128), "the last piece ends at byte 72704"),
    ("a base offset without swizzle", descriptor(0, 1024, 128, 0, base=1), "base offset 1 without a swizzle"),
    ("from the middle of a row on", descriptor(112, 0, 1024, 128), "run into the next row"),
    ("between patterns", descriptor(256, 0, 1024, 128), "align the array to 1024 bytes, or say base offset 2"),
    ("another base offset", descriptor(256, 0, 1024, 128, base=3), "base offset 3 does not fit its start: 2 would"),
]


@pytest.mark.parametrize("what, bits, message", DESCRIPTORS, ids=[what for what, *_ in DESCRIPTORS])
@pytest.mark.parametrize("side", ["A", "B"])
def test_descriptors(what, bits, message, side):
    given = {"left": bits} if side == "A" else {"right": bits}
    (finding,) = found(f"{ZERO}{FENCE}{PRODUCT}{GROUP}{STORES}", **given)
    assert finding.kind == "bad_descriptor" and message in finding.message.replace("its last", "the last")
    assert f"the descriptor of {side}" in finding.message


def test_a_base_offset_that_fits():
    assert found(f"{ZERO}{FENCE}{PRODUCT}{GROUP}{STORES}", left=descriptor(256, 0, 1024, 128, base=2)) == ()


@pytest.mark.parametrize("who", ["%warpid", "%laneid"])
def test_descriptors_are_alike(who):
    other = f"mov.u32 e, {who}; setp.eq.u32 q, e, 3; @q add.s64 l, l, 2;"
    (finding,) = found(f"{other}{ZERO}{FENCE}{PRODUCT}{GROUP}{STORES}")
    assert finding.kind == "bad_descriptor" and "different ones" in finding.message


# ---- warpgroups ---
def test_a_block_without_a_whole_warpgroup():
    text = f"{ZERO}{FENCE}{PRODUCT}{GROUP}{STORES}".replace("bra MORE", "bra MORE")
    messages = [one.message for one in found(text, threads=96) if one.kind == "divergent_aligned"]
    assert messages and all("the block has 3 warps" in message for message in messages)


def test_registers_are_shared_out():
    ask = "setmaxnreg.inc.sync.aligned.u32 {};"
    assert found(ask.format(240), threads=256) == ()
    (finding,) = found(ask.format(240), threads=384)
    assert finding.kind == "too_many_registers" and "240 registers" in finding.message
    (finding,) = found(f"setp.lt.u32 q, t, 32; @q bra END; {ask.format(64)} END:")
    assert finding.kind == "divergent_aligned"


REFUSED = [
    ("setmaxnreg.inc.sync.aligned.u32 250;", "250 registers: it has to be a multiple of 8"),
    ("setmaxnreg.dec.sync.aligned.u32 16;", "16 registers"),
    (PRODUCT.replace("n64", "n68"), "shape"),
    (PRODUCT.replace("k16", "k32"), "shape"),
    (PRODUCT.replace("f16.f16", "f16.bf16"), "types"),
    (PRODUCT.replace("f32.f16.f16", "f16.bf16.bf16"), "types"),
    (PRODUCT.replace("d31", "d30, d31"), "number of registers"),
    (PRODUCT.replace("1, 1, 0, 0", "1, 2, 0, 0"), "sign"),
    (PRODUCT.replace("1, 1, 0, 0", "1, 1"), "number of operands"),
    (PRODUCT.replace("l, r", "d0, r"), "64 bits"),
    (PRODUCT.replace("mma_async", "mma_async.sp"), "sparse"),
]


@pytest.mark.parametrize("text, message", REFUSED, ids=[message for _, message in REFUSED])
def test_refusals(text, message):
    with pytest.raises(UnsupportedInstruction, match=message):
        found(text)


def test_without_effect():
    text = "griddepcontrol.wait; griddepcontrol.launch_dependents; prefetch.tensormap [x];"
    assert found(text) == ()
