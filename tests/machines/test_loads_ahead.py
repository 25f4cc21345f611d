"""Loads that are made ahead of their condition: what they find unwritten is not a fault where it is dropped,
and one where it is used, with both places."""

import numpy as np
import pytest
from ptx_kernels import SLOTS, module

from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.cpu.kernels import made
from tir_schedules.model.kernel import Binary, Kernel, Resources

HEAD = (
    SLOTS
    + """.reg .b32 a, b, c, d, e, s; .reg .f32 f, g; .reg .b64 w; .reg .pred p, q, r;
.shared .align 16 .b8 tile[1024]; mov.u32 s, tile; mad.lo.u32 s, t, 8, s; mov.u32 b, 5;
setp.lt.u32 p, t, 16; setp.lt.u32 q, t, 99;
"""
)
STORE = "st.global.b32 [x], d;"

DROPPED = {
    "by a choice": "ld.global.b32 a, [y]; selp.b32 d, b, a, q;",
    "the first of two": "ld.global.b32 a, [y]; selp.b32 d, a, b, r;",
    "after arithmetic": "ld.global.b32 a, [y]; mad.lo.u32 a, a, 3, b; selp.b32 d, b, a, q;",
    "by a move": "ld.global.b32 d, [y]; @q mov.b32 d, b;",
    "by a move of something else": "mov.b32 d, 3; ld.global.b32 a, [y]; @r mov.b32 d, a;",
    "after two choices": "ld.global.b32 a, [y]; selp.b32 c, a, 7, p; selp.b32 d, b, c, q;",
    "of shared memory": "ld.shared.b32 a, [s]; selp.b32 d, b, a, q;",
    "by a generic address": "ld.b32 a, [y]; selp.b32 d, b, a, q;",
    "of a vector": "ld.global.v2.b32 {a, c}, [y]; selp.b32 d, b, a, q; selp.b32 d, d, c, q;",
    "half of a vector": "st.global.b32 [y], b; ld.global.v2.b32 {a, c}, [y]; selp.b32 d, b, c, q;"
                        "add.u32 d, d, a; sub.u32 d, d, a;",
    "a number": "ld.global.f32 f, [y]; add.f32 f, f, f; selp.f32 g, 0f3f800000, f, q; mov.b32 d, g;",
    "a predicate of no choice": "ld.global.b32 a, [y]; selp.b32 c, b, a, q; setp.eq.u32 r, c, 5;"
                                "mov.b32 d, 1; @r mov.b32 d, 2;",
    "never used": "ld.global.b32 a, [y]; selp.b32 c, b, a, p; mov.b32 d, 4;",
}  # fmt: skip

USED = {
    "stored": ("ld.global.b32 a, [y];\nselp.b32 d, b, a, p;\n", STORE),
    "by arithmetic": ("ld.global.b32 a, [y];\nselp.b32 c, b, a, p;\n", "add.u32 d, c, 1;"),
    "by arithmetic beside the choice": ("ld.global.b32 a, [y]; selp.b32 d, b, a, q;\n", "add.u32 d, a, 1;"),
    "by a comparison": ("ld.global.b32 a, [y]; selp.b32 c, b, a, p; mov.b32 d, 1;\n",
                        "setp.eq.u32 r, c, 5;\n@r bra ON; ON:"),
    "as an address": ("ld.global.b64 w, [y]; selp.b64 w, x, w, p;\n", "st.global.b32 [w], b;"),
    "by another lane": (
        "ld.global.b32 a, [y]; selp.b32 c, b, a, p;\n", "shfl.sync.bfly.b32 d, c, 16, 31, -1;"),
    "by an atomic": (
        "ld.global.b32 a, [y]; selp.b32 c, b, a, p; mov.b32 d, 1;\n", "red.global.add.u32 [x], c;"),
    "in a vector": ("ld.global.v2.b32 {a, c}, [y]; selp.b32 d, b, a, q; selp.b32 c, b, c, p;\n",
                    "st.global.v2.b32 [x], {d, c};"),
    "put together": ("ld.global.b32 a, [y]; selp.b32 c, b, a, p;\n", "mov.b64 w, {b, c}; cvt.u32.u64 d, w;"),
    "of shared memory": ("ld.shared.b32 a, [s];\nselp.b32 d, b, a, p;\n", STORE),
    "by the next round": ("ld.global.b32 a, [y]; mov.b32 d, 0; mov.b32 e, 0;\nAGAIN: selp.b32 c, b, a, p;\n",
                          "add.u32 d, d, c;\nadd.u32 e, e, 1; setp.lt.u32 r, e, 3; @r bra AGAIN;"),
}  # fmt: skip

AT_ONCE = {
    "no choice": "ld.global.b32 a, [y]; add.u32 d, a, b;",
    "under its own condition": "mov.b32 a, 0; @p ld.global.b32 a, [y]; add.u32 d, a, 1;",
    "an atomic": "atom.global.add.u32 a, [y], 1; selp.b32 d, b, a, q;",
}


def launched(body, written=False):
    """Findings of two warps. Y holds nothing before, unless it is written."""
    arguments = {"X": np.zeros(128, np.uint64), "Y": np.zeros(128, np.uint64)}
    text = module("test", arguments, HEAD.replace("\n", " ") + "\nsetp.ne.u32 r, t, t;\n" + body)
    kernel = Kernel("test", text, "test", tuple(arguments), (1, 1, 1), (64, 1, 1), "sm_80")
    given = ("X", "Y") if written else ("X",)
    done = CpuMachine().run(Binary(kernel, text, b"", Resources(0, 0)), arguments, ("X", "Y"), given=given)
    return done.findings, text


@pytest.mark.parametrize("case", DROPPED)
def test_what_is_dropped_is_no_fault(case):
    findings, _ = launched(DROPPED[case] + STORE)
    assert findings == ()


@pytest.mark.parametrize("case", USED)
def test_what_is_used_is_found_with_both_places(case):
    before, use = USED[case]
    body = before + use + ("" if "st." in use else STORE)
    findings, text = launched(body)
    wild = {"out_of_bounds"} if "address" in case else set()  # it goes wherever the value says
    assert {one.kind for one in findings} - wild == {"uninitialized"}, findings
    first = next(one for one in findings if one.kind == "uninitialized")
    lines = text.split("\n")
    assert "ld." in lines[first.location.ptx_line - 1] and first.other is not None
    assert use.split("\n")[0] in lines[first.other.ptx_line - 1]
    lane = 0 if "beside" in case else 16
    where = f"tile in shared memory at byte {8 * lane}" if "ld.shared" in before else f"Y[{lane}]"
    assert (
        first.message.startswith(f"reads {where}") and "which nothing has written; used at" in first.message
    )
    if "ld.shared" not in before and not wild:
        assert launched(body, written=True)[0] == ()


@pytest.mark.parametrize("case", AT_ONCE)
def test_other_loads_are_at_fault_themselves(case):
    findings, _ = launched(AT_ONCE[case] + STORE)
    (found,) = (one for one in findings if one.kind == "uninitialized")
    assert found.message in (
        "reads Y[0], which nothing has written",
        "updates Y[0], which nothing has written",
    )
    assert found.other is None


def test_a_kernel_without_choices_has_nothing_to_follow():
    text = module("test", ("X", "Y"), HEAD + "ld.global.b32 a, [y]; add.u32 d, a, b;" + STORE)
    assert not any("undefined" in name for name in made(text, "test").functions)
    chosen = text.replace("add.u32 d, a, b", "selp.b32 d, a, b, p")
    assert "undefined.follow" in made(chosen, "test").functions
