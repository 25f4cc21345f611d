"""Values that nothing has written, in registers and local memory: the first use that can be seen is a
finding, moving them is none."""

import pytest
from ptx_kernels import module
from test_ptx_faults import findings, one
from test_warp_instructions import PRELUDE, STORE

from tir_schedules.machines.cpu.kernels import made

VARIABLE = "uses a variable that nothing has written"
LOCAL = (
    ".local .align 16 .b8 place[64]; .reg .b64 i; mul.wide.u32 i, t, 0; mov.u64 w, place; add.s64 w, w, i; "
)
HALF_WARP = "and.b32 s0, t, 31; setp.lt.u32 q, s0, 16; @!q bra OUT; "
PRODUCT = (
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {f0, f1, f2, f3}, {a, a, a, a}, {a, a}, {f4, f4, f4,"
    " f5};"
)

# (what, body, its part at fault, the repair, the message). `none`, `never` and `unset` are registers that
# nothing writes.
FAULTS = [
    ("stored", "mov.u32 d, none;", "none", "t", VARIABLE),
    ("computed with", "add.f32 f0, f1, f1; cvt.rzi.u32.f32 d, f0;", "d, f0", "d, 0f00000000", VARIABLE),
    (
        "summed up",
        "mov.u32 s0, 0; SUM: add.u32 none, none, a; add.u32 s0, s0, 1; setp.lt.u32 q, s0, 3; "
        "@q bra SUM; mov.u32 d, none;",
        "s0, 0;",
        "s0, 0; mov.u32 none, 0;",
        VARIABLE,
    ),
    (
        "in one lane",
        "setp.lt.u32 q, t, 9; setp.lt.u32 r, t, 10; @q mov.u32 none, a; @r mov.u32 d, none;",
        "t, 10",
        "t, 8",
        VARIABLE,
    ),
    ("branched by", "@unset bra SKIP; mov.u32 d, 1; SKIP:", "@unset", "@p", VARIABLE),
    ("a guard", "@unset mov.u32 d, 1;", "@unset", "@p", VARIABLE),
    ("an address", "@p ld.global.u32 d, [never];", "never", "x", VARIABLE),
    ("chosen", "selp.b32 d, none, a, p;", "none, a", "a, a", VARIABLE),
    ("chosen by", "selp.b32 d, t, a, unset;", "unset", "p", VARIABLE),
    ("both parts", "and.b32 d, none, s7;", "none", "t", VARIABLE),
    (
        "an atomic",
        "@p st.shared.u32 [b], a; bar.sync 0; red.shared.add.u32 [b], none;",
        "none",
        "t",
        VARIABLE,
    ),
    (
        "through shared memory",
        "mad.lo.u32 s0, t, 4, b; st.shared.u32 [s0], none; ld.shared.u32 d, [s0];",
        "none",
        "a",
        "reads tile in shared memory at byte 0, "
        "where a value that nothing has written was stored by warp 0 lane 0",
    ),
    (
        "the addend of a product",
        "mov.f32 f4, 0f00000000; " + PRODUCT + "mov.b32 d, f3;",
        "d, f3",
        "d, f2",
        VARIABLE,
    ),
    (
        "local memory",
        LOCAL + "st.local.v4.u32 [w+16], {a, a, a, a}; ld.local.u32 d, [w+32];",
        "+32",
        "+28",
        "reads place in local memory at byte 32, which nothing has written",
    ),
    (
        "local memory, element of a vector",
        LOCAL + "st.local.u64 [w], x; ld.local.v4.u32 {s0, s1, s2, s3}, [w]; mov.u32 d, s2;",
        "d, s2",
        "d, s1",
        "place in local memory at byte 8",
    ),
    (
        "local memory, generic address",
        LOCAL + "st.local.u32 [w], a; cvta.local.u64 w, w; ld.u32 d, [w+4];",
        "+4",
        "+0",
        "place in local memory at byte 4",
    ),
    (
        "local memory, copied first",
        LOCAL + "st.local.u32 [w], a; ld.local.v2.u32 {s0, s1}, [w]; st.local.v2.u32 [w+32], {s0, s1};"
        "ld.local.u32 d, [w+36];",
        "+36",
        "+32",
        "place in local memory at byte 36",
    ),
    (
        "local memory, an index",
        LOCAL + "st.local.u64 [w], x; ld.local.u64 w, [w+8]; @p ld.global.u32 d, [w];",
        "+8",
        "+0",
        "place in local memory at byte 8",
    ),
    (
        "local memory of one lane",
        LOCAL + "setp.ne.u32 q, t, 40; @q st.local.u32 [w], a; ld.local.u32 d, [w];",
        "@q st",
        "st",
        "place in local memory at byte 0",
    ),
    (
        "of a lane outside the mask",
        HALF_WARP + "shfl.sync.bfly.b32 d, a, 16, 31, 65535; OUT:",
        "16, 31",
        "8, 31",
        "takes the value of a lane outside its mask, which is undefined",
    ),
    (
        "of lanes outside a mask in a register",
        HALF_WARP + "mov.u32 s1, 65535; shfl.sync.down.b32 s1, a, 8, 31, s1; add.u32 d, s1, 1; OUT:",
        "31, s1",
        "4127, s1",
        "takes the value of a lane outside its mask, which is undefined",
    ),
]


@pytest.mark.parametrize("what, body, fault, repair, message", FAULTS, ids=[row[0] for row in FAULTS])
def test_the_use_of_what_nothing_has_written(what, body, fault, repair, message):
    assert body.count(fault) == 1
    found = one("uninitialized", body)
    assert message in found, found
    assert findings(body.replace(fault, repair)) == ()


@pytest.mark.parametrize(
    "mask, follows", [("mov.u32 s1, -1;", False), ("activemask.b32 s1;", False), ("mov.u32 s1, 255;", True)]
)
def test_shuffles_of_whole_warps_are_not_followed(mask, follows):
    body = f"{PRELUDE} {mask} shfl.sync.bfly.b32 d, a, 1, 31, s1; {STORE}"
    functions = made(module("test", ("X", "Y"), body), "test").functions
    assert any(name.startswith("undefined") for name in functions) == follows


SOUND = {
    "not looked at": "add.u32 s0, none, a;",
    "on the other way": "setp.lt.u32 q, t, 9; @q mov.u32 none, a; bar.sync 0; @q mov.u32 d, none;",
    "not chosen": "selp.b32 d, none, a, unset; selp.b32 d, a, none, p; selp.b32 s0, a, none, p; "
    "@p mov.u32 d, s0; @!p mov.u32 d, a;",
    "half of a register": ".reg .b16 h, g; cvt.u16.u32 h, a; mov.b32 s0, {h, g}; mov.b32 {h, g}, s0; "
    "cvt.u32.u16 d, h;",
    "bits of an unwritten byte": LOCAL
    + "ld.local.u8 s0, [w]; and.b32 s0, s0, 240; or.b32 s0, s0, 3; st.local.u8 [w], s0;"
    "ld.local.u8 s0, [w]; and.b32 d, s0, 15;",
    "a condition of two": "and.pred q, p, unset; setp.ne.u32 r, t, t; and.pred q, r, unset; @q mov.u32 d, 1;",
    "taken from outside the mask": HALF_WARP + "shfl.sync.down.b32 s1, a, 8, 31, 65535; add.u32 s1, s1, 1; "
    "setp.lt.u32 r, s0, 8; @r mov.u32 d, s1; OUT:",
    "shuffled": "setp.lt.u32 q, t, 64; shfl.sync.down.b32 d, none, 1, 31, -1;",
    "padding copied word by word": LOCAL
    + "st.local.u64 [w], x; ld.local.v2.u64 {i, never}, [w]; st.local.v2.u64 [w+16], {i, never};"
    "@p st.global.v2.u64 [y+512], {i, never};",
    "padding in a word": LOCAL + "st.local.u8 [w], a; ld.local.u32 d, [w];",
    "stored over": "mad.lo.u32 s0, t, 4, b; st.shared.u32 [s0], none; st.shared.u32 [s0], a; "
    "ld.shared.u32 d, [s0];",
    "a copy over it": "mad.lo.u32 s0, t, 4, b; st.shared.u32 [s0], none; "
    "cp.async.ca.shared.global [s0], [x], 4; cp.async.wait_all;"
    "ld.shared.u32 d, [s0];",
    "a factor of a product": "mov.f32 f4, 0f00000000; mov.f32 f5, f4;"
    + PRODUCT.replace("{a, a}", "{a, none}")
    + "mov.b32 d, f0;",
    "the result of an atomic": "@p st.shared.u32 [b], a; bar.sync 0; "
    "@p atom.shared.add.u32 none, [b], 1; @p mov.u32 d, none;",
}


@pytest.mark.parametrize("body", SOUND.values(), ids=SOUND)
def test_what_cannot_be_seen_is_no_fault(body):
    assert findings(body) == ()
