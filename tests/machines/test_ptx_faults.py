"""Faults of single PTX instructions, each beside a sound form of it: bounds of one variable, alignment,
values nothing has written."""

import numpy as np
import pytest
from ptx_kernels import launch, module
from test_warp_instructions import PRELUDE, STORE

MORE = """.shared .align 16 .b8 odd[24]; .shared .align 16 .b8 last[64]; .reg .b64 w, never; .reg .b32 none;
.reg .pred r, unset;
mov.u32 b, tile; mov.u32 c, last; mov.u32 d, 0; setp.eq.u32 p, t, 0;
"""
EIGHT = "{f0, f1, f2, f3, f4, f5, f6, f7}"
FILL = (
    "mad.lo.u32 s0, t, 64, b; mov.u32 s1, 0; FILL: st.shared.u32 [s0], d; add.u32 s0, s0, 4; "
    "add.u32 s1, s1, 4; setp.lt.u32 q, s1, 64; @q bra FILL; bar.sync 0;"
)


def findings(body, threads=64, words=96, dynamic=0):
    """Findings of a body in which a is X[tid], d goes to Y[tid], b and c are the addresses of tile and last;
    p is for thread 0."""
    arguments = {"X": np.arange(words, dtype=np.uint32), "Y": np.zeros(256, np.uint32)}
    text = module("test", arguments, PRELUDE + MORE + body + STORE)
    text = text.replace(".visible", ".extern .shared .align 16 .b8 dynamic[];\n.visible")
    return launch(text, arguments, ("Y",), block=(threads, 1, 1), dynamic_shared=dynamic).findings


def one(kind, body, **options):
    found = findings(body, **options)
    assert kind in {finding.kind for finding in found}, found
    return next(finding.message for finding in found if finding.kind == kind)


# (what, body, its part at fault, the repair, the variable and byte at fault). After tile (4096 bytes) lie odd
# (24) and last (64).
OVERRUNS = [
    ("constant", "@p st.shared.u32 [tile+4096], a;", "+4096", "+4092", "tile in shared memory at byte 4096"),
    ("register", "@p st.shared.u32 [b+4096], a;", "+4096", "+4092", "tile in shared memory at byte 4096"),
    ("before it", "@p st.shared.u32 [c+-4], a;", "+-4", "+4", "last in shared memory at byte -4"),
    (
        "computed",
        "shl.b32 s0, t, 3; sub.u32 s0, s0, 252; add.u32 s0, s0, c; setp.eq.u32 p, t, 40; "
        "@p st.shared.u32 [s0], a;",
        "t, 40",
        "t, 32",
        "last in shared memory at byte 68",
    ),
    (
        "a vector across the end",
        "@p st.shared.v4.u32 [odd+16], {a, a, a, a};",
        "v4.u32 [odd+16], {a, a, a, a}",
        "v2.u32 [odd+16], {a, a}",
        "odd in shared memory at byte 16",
    ),
    (
        "generic address",
        "cvt.u64.u32 w, b; cvta.shared.u64 w, w; @p st.u32 [w+4100], a;",
        "4100",
        "4000",
        "tile in shared memory at byte 4100",
    ),
    (
        "loop",
        "mov.u32 s0, b; mov.u32 s1, 0; L: @p st.shared.u32 [s0], a; add.u32 s0, s0, 256; "
        "add.u32 s1, s1, 1; setp.lt.u32 q, s1, 17;"
        "@q bra L;",
        "17",
        "16",
        "tile in shared memory at byte 4096",
    ),
    (
        "atomic",
        "@p st.shared.u32 [odd+20], a; @p st.shared.u32 [last], a; @p red.shared.add.u32 [odd+32], 1;",
        "+32",
        "+20",
        "odd in shared memory at byte 32",
    ),
    (
        "cp.async",
        "@p cp.async.cg.shared.global [odd+16], [x], 16; cp.async.wait_all;",
        "odd+16",
        "odd",
        "odd in shared memory at byte 16",
    ),
    (
        "dynamic shared memory from below",
        "mov.u32 s0, dynamic; @p st.shared.u32 [s0+-16], a;",
        "+-16",
        "+12",
        "dynamic in shared memory at byte -16",
    ),
    (
        "past the end of dynamic shared memory",
        "mov.u32 s0, dynamic; @p st.shared.u32 [s0+16], a;",
        "+16",
        "+12",
        "dynamic in shared memory at byte 16",
    ),
    (
        "ldmatrix",
        FILL + "mad.lo.u32 s0, t, 16, b; setp.lt.u32 q, t, 32; @!q bra END;"
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {d}, [s0+4000]; END:",
        "4000",
        "3968",
        "tile in shared memory at byte 4096",
    ),
    (
        "wmma",
        FILL + "wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 " + EIGHT + ", [tile+3104], 16;",
        "3104",
        "3072",
        "tile in shared memory at byte 4096",
    ),
    (
        "local variable",
        ".local .align 8 .b8 one[8]; .local .align 8 .b8 two[8]; st.local.u64 [two], x; "
        "st.local.u32 [one+8], a;",
        "+8",
        "+4",
        "one in local memory at byte 8",
    ),
    (
        "array in the depot",
        ".local .align 8 .b8 __local_depot0[32]; .reg .b64 %SP, %SPL; mov.u64 %SPL, __local_depot0; "
        "cvta.local.u64 %SP, %SPL;"
        "add.u64 w, %SPL, 0; add.u64 never, %SP, 16; st.u32 [never], a; st.local.u32 [w+16], a;",
        "[w+16]",
        "[w+12]",
        "an array in local memory at byte 16",
    ),
    (
        "stack",
        ".local .align 4 .b8 __local_depot0[20]; .reg .b64 %SPL; mov.u64 %SPL, __local_depot0; "
        "st.local.u32 [%SPL+20], a;",
        "+20",
        "+16",
        "local memory at byte 20",
    ),
]


@pytest.mark.parametrize("what, body, fault, repair, where", OVERRUNS, ids=[row[0] for row in OVERRUNS])
def test_an_access_stays_in_the_variable_its_address_comes_from(what, body, fault, repair, where):
    assert body.count(fault) == 1
    message = one("out_of_bounds", body, dynamic=16)
    assert where in message, message
    assert findings(body.replace(fault, repair), dynamic=16) == ()


def test_what_may_come_from_several_variables_reaches_from_the_first_to_the_last():
    body = "mov.u32 s0, odd; selp.b32 s0, b, s0, p; st.shared.u32 [s0+OFFSET], a;"
    assert findings(body.replace("OFFSET", "4096"), threads=1) == ()
    message = one("out_of_bounds", body.replace("OFFSET", "4120"), threads=1)
    assert "tile or odd in shared memory at byte 4120, out of bounds; tile or odd has 4120 bytes" in message


def test_an_address_that_went_through_memory_reaches_every_variable():
    body = (
        "@p st.shared.u32 [b], c; bar.sync 0; ld.shared.u32 s0, [b]; @p st.shared.u32 [s0], a; ld.shared.u32"
        " d, [s0+OFFSET];"
    )
    assert findings(body.replace("OFFSET", "0"), threads=1) == ()


ALIGNMENT = [
    (
        "wmma: pointer into shared memory",
        FILL + "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 " + EIGHT + ", [b+16], 24;",
        "+16",
        "+32",
        "reads 32 bytes of tile in shared memory at byte 16, which is not a multiple of 32 bytes",
    ),
    (
        "wmma: rows of halves",
        FILL + "wmma.load.b.sync.aligned.col.m16n16k16.shared.f16 " + EIGHT + ", [b], 20;",
        "20",
        "24",
        "reads a tile at tile in shared memory at byte 0 whose rows are 40 bytes apart, "
        "which is not a multiple of 16 bytes",
    ),
    (
        "wmma: pointer into global memory",
        "wmma.load.c.sync.aligned.row.m16n16k16.global.f32 " + EIGHT + ", [x+4], 4;",
        "+4",
        "+32",
        "X[1]",
    ),
    (
        "wmma: rows of floats",
        "wmma.load.c.sync.aligned.row.m16n16k16.global.f32 " + EIGHT + ", [x], 5;",
        ", 5",
        ", 4",
        "20 bytes apart",
    ),
    (
        "wmma: generic address",
        FILL
        + "cvt.u64.u32 w, b; cvta.shared.u64 w, w; wmma.load.c.sync.aligned.row.m16n16k16.f32 "
        + EIGHT
        + ", [w+8], 16;",
        "+8",
        "+64",
        "tile in shared memory at byte 8",
    ),
    (
        "wmma: store",
        "mov.f32 f0, 0f00000000; "
        "wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [b], {f0, f0, f0, f0, f0, f0, f0, f0}, 18;",
        "18",
        "20",
        "writes a tile",
    ),
    (
        "ldmatrix",
        FILL + "mad.lo.u32 s0, t, 16, b; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {s0, s1, s2, s3}, [s0+8];",
        "+8",
        "+16",
        "reads 16 bytes of tile in shared memory at byte 8",
    ),
    (
        "ldmatrix: rows",
        FILL + "mad.lo.u32 s0, t, 40, b; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {s0, s1, s2, s3}, [s0];",
        "40",
        "48",
        "tile in shared memory at byte 40",
    ),
    (
        "the source of a part of a cp.async",
        "@p cp.async.cg.shared.global [b], [x+8], 16, 4; cp.async.wait_all;",
        "x+8",
        "x+16",
        "16 bytes of X[2]",
    ),
]


@pytest.mark.parametrize("what, body, fault, repair, message", ALIGNMENT, ids=[row[0] for row in ALIGNMENT])
def test_alignment(what, body, fault, repair, message):
    assert body.count(fault) == 1
    found = one("misaligned", body, threads=32, words=512)
    assert message in found, found
    assert findings(body.replace(fault, repair), threads=32, words=512) == ()


# (kind, what, body, its part at fault, the repair)
CONFLICTS = [
    (
        "race",
        "an atomic after a plain store of another warp",
        "@p st.shared.u32 [b], a; red.shared.add.u32 [b], 1; bar.sync 0;",
        "; red",
        "; bar.sync 0; red",
    ),
    (
        "lockstep",
        "an atomic after a plain store of another lane",
        "@p st.shared.u32 [b], a; red.shared.add.u32 [b], 1; bar.sync 0;",
        "; red",
        "; bar.sync 0; red",
    ),
    (
        "race",
        "__syncwarp does not order warps",
        "@p st.shared.u32 [b], a; bar.warp.sync -1; red.shared.add.u32 [b], 1; bar.sync 0;",
        "bar.warp.sync -1",
        "bar.sync 0",
    ),
    (
        "race",
        "a plain store after an atomic of another warp",
        "@p st.shared.u32 [b], a; bar.sync 0; @p red.shared.add.u32 [b], 1;"
        "setp.eq.u32 q, t, 40; @q st.shared.u32 [b], a;",
        ";setp",
        "; bar.sync 0; setp",
    ),
    (
        "lockstep",
        "an atomic on an output after a plain store of another thread",
        "@p st.global.u32 [y+800], a; setp.eq.u32 q, t, 1; @q red.global.add.u32 [y+800], 1;",
        "; setp",
        "; bar.sync 0; setp",
    ),
    (
        "uninitialized",
        "an atomic on an output that nothing has written",
        "@p red.global.add.u32 [y+800], 1;",
        "red.global.add",
        "st.global",
    ),
    (
        "race",
        "a copy lands when it is waited for, not when it is issued",
        "add.u32 s0, b, 252; shl.b32 s1, t, 2; sub.u32 s0, s0, s1;"
        "add.u32 s1, s1, b; cp.async.ca.shared.global [s1], [x], 4; bar.sync 0; cp.async.wait_all; "
        "ld.shared.u32 d, [s0];",
        "bar.sync 0; cp.async.wait_all;",
        "cp.async.wait_all; bar.sync 0;",
    ),
    (
        "out_of_bounds",
        "the end of a part of a cp.async",
        "@p cp.async.cg.shared.global [b], [x+368], 16, 15; cp.async.wait_all;",
        "15",
        "12",
    ),
    (
        "lockstep",
        "one lane stores what all lanes load",
        "@p st.shared.u32 [b], a; setp.lt.u32 q, t, 32; @q ld.shared.u32 d, [b];",
        "; setp",
        "; bar.sync 0; setp",
    ),
    (
        "race",
        "one lane of a warp stores what another warp and itself have loaded",
        "@p st.shared.u32 [b], a; bar.sync 0; ld.shared.u32 d, [b]; setp.eq.u32 q, t, 32"
        "; @q st.shared.u32 [b], a;",
        "; @q st",
        "; bar.sync 0; @q st",
    ),
    (
        "lockstep",
        "the last lane stores what it and others have loaded",
        "@p st.shared.v2.u32 [b], {a, a}; bar.sync 0; setp.lt.u32 q, t, 32; @q ld.shared.v2.u32 {c, d}, [b];"
        "setp.eq.u32 q, t, 31; @q st.shared.u32 [b], a;",
        "; @q st",
        "; bar.sync 0; @q st",
    ),
    (
        "uninitialized",
        "a value that nothing has written, loaded after a __syncthreads",
        "@p st.shared.u32 [b], none; bar.sync 0; ld.shared.u32 d, [b];",
        "none",
        "a",
    ),
    (
        "lockstep",
        "__syncwarp of each lane with itself",
        "shl.b32 s0, t, 2; add.u32 s0, s0, b; shl.b32 s1, 1, t; xor.b32 s2, s0, 4;"
        "st.shared.u32 [s0], a; bar.warp.sync s1; ld.shared.u32 d, [s2];",
        "sync s1",
        "sync -1",
    ),
    (
        "lockstep",
        "__syncwarp without the lane that stores",
        "setp.lt.u32 q, t, 16; setp.eq.u32 p, t, 20; @p st.shared.u32 [b], a;"
        "@q bar.warp.sync 65535; @q ld.shared.u32 d, [b];",
        "@q bar.warp.sync 65535",
        "bar.warp.sync -1",
    ),
    (
        "divergent_aligned",
        "a lane that is not in its own mask",
        "shfl.sync.idx.b32 d, a, 1, 31, -2;",
        "-2",
        "-1",
    ),
    (
        "divergent_aligned",
        "a lane that waits for others only",
        "bar.warp.sync 2147483647;",
        "2147483647",
        "-1",
    ),
]


@pytest.mark.parametrize("kind, what, body, fault, repair", CONFLICTS, ids=[row[1] for row in CONFLICTS])
def test_conflicts_of_single_instructions(kind, what, body, fault, repair):
    assert body.count(fault) == 1
    one(kind, body, words=95)
    assert findings(body.replace(fault, repair), words=95) == ()
