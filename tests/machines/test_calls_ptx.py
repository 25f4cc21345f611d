"""Calls that nvcc rarely writes, switch tables, and what is refused by name, as PTX written by hand."""

import numpy as np
import pytest
from ptx_kernels import launch

from tir_schedules.machines.cpu.ptx import UnsupportedInstruction

T = np.arange(64)
PTX = """.version 8.3
.target sm_80
.address_size 64
.extern .func (.param .b32 r) unknown (.param .b32 a);
.extern .func cudaDeviceSynchronize ();
.extern .func (.param .b64 r) memcpy (.param .b64 a, .param .b64 b, .param .b64 c);
.extern .func (.param .b64 r) memset (.param .b64 a, .param .b32 b, .param .b64 c);
.visible .func (.param .b32 r) twice (.param .b32 a);
.visible .func (.param .b32 r) same (.param .b32 a);
.alias same, twice;
.visible .func (.param .b32 r) twice (.param .b32 a)
{ .reg .b32 x; ld.param.b32 x, [a]; shl.b32 x, x, 1; st.param.b32 [r], x; ret; }
.func (.param .b32 r) thrice (.param .b32 a)
{ .reg .b32 x; .reg .pred p; ld.param.b32 x, [a];
setp.gt.u32 p, x, 40; mul.lo.u32 x, x, 3; st.param.b32 [r], x;
@p ret; add.u32 x, x, 1; st.param.b32 [r], x; ret; }
.func silent () { ret; }
.func (.param .b32 r) unset (.param .b32 a)
{ .reg .b32 x, none; add.u32 x, none, 1; st.param.b32 [r], x; ret; }
.func (.param .b32 r) again (.param .b32 a)
{ .reg .b32 n, m, x, y, none; .reg .pred p; ld.param.b32 n, [a]; setp.eq.u32 p, n, 0;
mov.u32 x, n; mov.u32 y, 0; @p mov.u32 x, none; @p bra LAST; sub.u32 m, n, 1;
{ .param .b32 given; .param .b32 taken; st.param.b32 [given], m; call (taken), again, (given);
ld.param.b32 y, [taken]; }
add.u32 y, x, y;
LAST: st.param.b32 [r], y; ret; }
.func (.param .b32 r) wide (.param .b32 a)
{ .reg .b32 n, m, y, h; .reg .b64 low, high; .reg .b128 both; .reg .pred p; ld.param.b32 n, [a];
setp.eq.u32 p, n, 0; mov.u32 y, 0; @p bra LAST; sub.u32 m, n, 1;
mov.u64 low, 0; cvt.u64.u32 high, n; mov.b128 both, {low, high};
{ .param .b32 given; .param .b32 taken; st.param.b32 [given], m; call (taken), wide, (given);
ld.param.b32 y, [taken]; }
mov.b128 {low, high}, both; cvt.u32.u64 h, high; add.u32 y, y, h;
LAST: st.param.b32 [r], y; ret; }
.global .u64 pointers[2] = {twice, thrice};
.visible .entry test(.param .u64 Y)
{ .reg .b64 y, f; .reg .b32 t, d, s; .reg .pred p;
ld.param.u64 y, [Y]; mov.u32 t, %tid.x; mov.u32 d, 7; mul.lo.u32 s, t, 4; cvt.u64.u32 f, s; add.u64 y, y, f;
setp.lt.u32 p, t, 8;
BODY
st.global.u32 [y], d; ret; }
"""
STRANGE = """.func (.param .b32 r) strange (.param .b32 a)
{ tex.2d.v4.f32.f32 {%f1, %f2}, [a, {%f1, %f2}]; ret; }
"""
CALL = "{{ .param .b32 a; .param .b32 r; st.param.b32 [a], t; {call}; ld.param.b32 d, [r]; }}"
BYTES = """.local .align 8 .b8 from[8]; .local .align 8 .b8 to[16]; .reg .b64 a, b;
mov.u64 a, from; cvta.local.u64 a, a; mov.u64 b, to; cvta.local.u64 b, b;
{ .param .b64 p; .param .b32 v; .param .b64 n; .param .b64 r; st.param.b64 [p], a; st.param.b32 [v], t;
st.param.b64 [n], LENGTH; call (r), memset, (p, v, n); ld.param.b64 a, [r]; }
{ .param .b64 p; .param .b64 q; .param .b64 n; .param .b64 r; st.param.b64 [p], b; st.param.b64 [q], a;
st.param.b64 [n], 8; call (r), memcpy, (p, q, n); ld.param.b64 b, [r]; }
ld.u32 d, [b+4];"""
SWITCH = """table: .branchtargets L0, L1, L2, L1;
and.b32 s, t, 3; {guard}brx.idx s, table;
L0: add.u32 d, t, 100; bra END;
L1: add.u32 d, t, 200; bra END;
L2: add.u32 d, t, 300;
END:"""


def thrice(t):
    return 3 * t + (t <= 40)


BODIES = {
    "direct": (CALL.format(call="call.uni (r), twice, (a)"), lambda t: 2 * t),
    "alias": (CALL.format(call="call (r), same, (a)"), lambda t: 2 * t),
    "undefined in the innermost": (
        "and.b32 t, t, 7; " + CALL.format(call="call (r), again, (a)"),
        lambda t: t % 8 * (t % 8 + 1) // 2,
    ),
    "registers of 128 bits": (
        "and.b32 t, t, 7; " + CALL.format(call="call (r), wide, (a)"),
        lambda t: t % 8 * (t % 8 + 1) // 2,
    ),
    "guarded ret": (CALL.format(call="call (r), thrice, (a)"), thrice),
    "guarded call": (
        CALL.format(call="st.param.b32 [a], 5; @!p call (r), thrice, (a)").replace(
            "ld.param.b32 d, [r]", "ld.param.b32 s, [r]; @!p mov.u32 d, s"
        ),
        lambda t: 7 if t < 8 else 16,
    ),
    "no arguments": ("call.uni silent; call silent, ();", lambda t: 7),
    "named targets": (
        "{ T: .calltargets twice, thrice; .param .b32 a; .param .b32 r; st.param.b32 [a], t;"
        "and.b32 s, t, 1; mul.wide.u32 f, s, 8; .reg .b64 q; mov.u64 q, pointers; add.u64 q, q, f;"
        "ld.global.u64 q, [q]; call (r), q, (a), T; ld.param.b32 d, [r]; }",
        lambda t: thrice(t) if t % 2 else 2 * t,
    ),
    "memset and memcpy": (BYTES.replace("LENGTH", "8"), lambda t: 0x01010101 * t),
    "switch": (SWITCH.format(guard=""), lambda t: t + (100, 200, 300, 200)[t % 4]),
    "guarded switch": (
        SWITCH.format(guard="@!p "),
        lambda t: t + (100 if t < 8 else (100, 200, 300, 200)[t % 4]),
    ),
}


def of_ptx(body, functions=""):
    y = np.zeros(64, np.uint32)
    text = PTX.replace("BODY", body).replace(".global", f"{functions}.global", 1)
    execution = launch(text, {"Y": y}, ("Y",), block=(64, 1, 1))
    return y, execution.findings


@pytest.mark.parametrize("what", BODIES)
def test_ptx_written_by_hand(what):
    body, expected = BODIES[what]
    result, findings = of_ptx(body)
    assert findings == () and result.tolist() == [expected(int(t)) for t in T]


def test_a_switch_past_its_table_is_found():
    _, findings = of_ptx(SWITCH.format(guard="").replace("and.b32 s, t, 3", "shr.u32 s, t, 3"))
    assert [finding.kind for finding in findings] == ["trap"]
    assert "entry 4 of a table of branches" in findings[0].message


@pytest.mark.parametrize("form", ["and.b32 s, t, 3; brx.idx none, table;", "@p brx.idx none, table;"])
def test_a_table_indexed_by_what_nothing_has_written(form):
    body = ".reg .b32 none; " + SWITCH.format(guard="").replace("and.b32 s, t, 3; brx.idx s, table;", form)
    _, findings = of_ptx(body)
    assert "uninitialized" in {finding.kind for finding in findings}


@pytest.mark.parametrize("instruction", ["trap", "brkpt"])
def test_what_ends_a_launch(instruction):
    y, findings = of_ptx(f"@p {instruction};")
    assert [(finding.kind, finding.count) for finding in findings] == [("trap", 8)] and not y.any()
    assert f"a {instruction} was executed" in findings[0].message


def test_memset_past_the_end_is_found():
    _, findings = of_ptx(BYTES.replace("LENGTH", "900"))
    assert [finding.kind for finding in findings] == ["out_of_bounds"]
    assert "writes 1 bytes of local memory" in findings[0].message


def test_a_variable_of_a_function_that_nothing_has_written_is_found():
    _, findings = of_ptx(CALL.format(call="call (r), unset, (a)"))
    assert [finding.message for finding in findings] == ["uses what a function returned without a value"]


REFUSED = {
    "call (r), unknown, (a)": "unknown, which the PTX does not define; define it in the same file",
    "call cudaDeviceSynchronize": "cudaDeviceSynchronize, .*a kernel cannot wait for its own launches",
    "call (r), strange, (a)": "tex.2d.*read the array through a pointer",
    "call (r), twice, (a, a)": "2 arguments of calls where the function has 1",
    "call (r), twice, (t)": "passed in registers: use .param",
    "call": "what test calls, or how",
    "call (r), twice, (a); bra NOWHERE": "a branch to NOWHERE",
    "call (r), f, (a)": "without a .callprototype",
    "call (r), thrice, (a); st.param.b32 [a], t; call silent": "a call between a st.param",
    "call (r), thrice, (a); call silent": "read after another call",
}


@pytest.mark.parametrize("call", REFUSED)
def test_what_cannot_be_called_is_refused_by_name(call):
    with pytest.raises(UnsupportedInstruction, match=rf"PTX line \d+: .*{REFUSED[call]}"):
        of_ptx(CALL.format(call=call), STRANGE)


@pytest.mark.parametrize(
    "instruction, remedy",
    [
        ("tex.2d.v4.f32.s32 {d, d, d, d}, [y, {t, t}];", "textures: read the array through a pointer"),
        ("txq.width.b32 d, [y];", "textures"),
        ("suld.b.1d.b32.trap d, [y, {t}];", "surfaces: write the array through a pointer"),
        ("sust.b.1d.b32.trap [y, {t}], d;", "surfaces"),
        ("red.async.relaxed.cluster.global.add.u32 [y], d, [y];", "use red.shared::cluster"),
        ("tensormap.replace.tile.rank.global.b1024.b32 [y], 1;", "tensor maps are those of the launch"),
        ("fence.proxy.tensormap::generic.release.gpu;", "tensor maps are those of the launch"),
    ],
)
def test_what_is_refused_on_purpose_says_what_would_be_right(instruction, remedy):
    with pytest.raises(
        UnsupportedInstruction, match=rf"PTX line \d+: .*{instruction.split()[0].strip(';')} \({remedy}"
    ):
        of_ptx(instruction)


def test_a_kernel_is_not_refused_for_what_another_has():
    head, entry, kernel = PTX.partition(".visible .entry")
    other = kernel.replace(" test(", " other(").replace(
        "BODY", "tex.2d.v4.f32.s32 {d, d, d, d}, [y, {t, t}];"
    )
    text = head + entry + other + entry + kernel.replace("BODY", "")
    y = np.zeros(64, np.uint32)
    assert launch(text, {"Y": y}, ("Y",), block=(64, 1, 1)).findings == () and (y == 7).all()


def test_a_function_that_nothing_calls_may_hold_anything():
    assert of_ptx("", STRANGE)[1] == ()
