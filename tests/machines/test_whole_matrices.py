"""Accesses that the machine looks at as a whole, a matrix or a warp at once: what single ones would show is
found, and values are theirs."""

import numpy as np
import pytest
from ptx_kernels import launch, module
from test_ptx_faults import EIGHT, FILL, findings, one
from test_warp_instructions import PRELUDE

# (kind, what, body, its part at fault, the repair)
FAULTS = [
    (
        "race",
        "ldmatrix of rows that another warp stores",
        FILL + "mad.lo.u32 s0, t, 16, b; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {s0, s1, s2, s3}, [s0];"
        "mov.u32 s4, 0; @p st.shared.u32 [tile+512], a;",
        "mov.u32 s4, 0;",
        "bar.sync 0;",
    ),
    (
        "race",
        "wmma.load of a second half that another warp stores",
        FILL + f"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {EIGHT}, [tile], 16; mov.u32 s4, 0;"
        ".reg .b16 h; cvt.u16.u32 h, a; setp.eq.u32 q, t, 32; @q st.shared.u16 [tile+2], h;",
        "mov.u32 s4, 0;",
        "bar.sync 0;",
    ),
    (
        "uninitialized",
        "wmma.load of an output",
        f"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {EIGHT}, [y], 16;",
        "[y]",
        "[x]",
    ),
    (
        "out_of_bounds",
        "the last row of a wmma.load",
        f"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {EIGHT}, [x+32], 16;",
        "[x+32]",
        "[x]",
    ),
    (
        "out_of_bounds",
        "rows of a wmma.load that go backwards",
        FILL + f"mov.u32 s4, -16; wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {EIGHT}, [tile+448], s4;",
        "-16",
        "16",
    ),
]


@pytest.mark.parametrize("kind, what, body, fault, repair", FAULTS, ids=[row[1] for row in FAULTS])
def test_what_is_wrong_with_a_part_is_found(kind, what, body, fault, repair):
    assert body.count(fault) == 1
    one(kind, body, words=256)
    assert findings(body.replace(fault, repair), words=256) == ()


@pytest.mark.parametrize("matrix", ["a", "b"])
def test_a_matrix_has_the_same_registers_in_both_layouts(matrix):
    content = np.arange(256, dtype=np.uint16).reshape(16, 16)
    loaded = []
    for layout, stored in (("row", content), ("col", content.T)):
        arguments = {"X": np.ascontiguousarray(stored).view(np.uint32), "Y": np.zeros((8, 32), np.uint32)}
        body = PRELUDE + f"wmma.load.{matrix}.sync.aligned.{layout}.m16n16k16.global.f16 {EIGHT}, [x], 16;"
        body += "".join(f"st.global.b32 [at+{128 * k}], f{k};" for k in range(8))
        execution = launch(module("test", arguments, body), arguments, ("Y",), block=(32, 1, 1))
        assert execution.findings == ()
        loaded.append(arguments["Y"])
    assert (loaded[0] == loaded[1]).all() and (loaded[0][:4] == loaded[0][4:]).all()
    assert sorted(loaded[0][:4].reshape(-1).view(np.uint16)) == [*range(256)]


def test_a_block_knows_nothing_of_the_one_before():
    arguments = {"X": np.zeros(64, np.uint32), "Y": np.zeros(64, np.uint32)}
    body = """mov.u32 b, tile; mov.u32 s0, %ctaid.x; mad.lo.u32 s0, s0, 32, t; and.b32 s0, s0, 63;
    mad.lo.u32 s0, s0, 4, b; st.shared.u32 [s0], a;"""
    text = module("test", arguments, PRELUDE + body)
    assert launch(text, arguments, ("Y",), grid=(2, 1, 1), block=(64, 1, 1)).findings == ()
