"""Parameters, address spaces, atomics, partial asynchronous copies and divergent warp instructions."""

import numpy as np
import pytest
from ptx_kernels import NUMPY, launch, module
from test_warp_instructions import LANES, PRELUDE, STORE, run

PARAMETERS = {
    "u8": 200,
    "u16": 60000,
    "s16": -5,
    "u32": 2**32 - 3,
    "s32": -7,
    "f32": 1.5,
    "u64": 2**64 - 9,
    "s64": -(2**40),
    "f64": -0.1,
}


@pytest.mark.parametrize("kind", PARAMETERS)
def test_parameters_of_every_type(kind):
    """Between parameters of one byte, so that alignment counts; narrow ones extend to 32 bits."""
    value, size = PARAMETERS[kind], int(NUMPY[kind][1])
    wide = kind if size >= 4 else kind[0] + "32"
    bits = max(32, 8 * size)
    text = f""".version 8.0\n.target sm_80\n.address_size 64\n
    .visible .entry test(.param .u8 A, .param .{kind} B, .param .u8 C, .param .u64 Y)
    {{ .reg .b64 y; .reg .b32 a, c; .reg .{wide if kind[0] == "f" else f"b{bits}"} b;
    ld.param.u64 y, [Y]; ld.param.{kind} b, [B];
    ld.param.u8 a, [A]; ld.param.u8 c, [C]; shl.b32 a, a, 8; or.b32 a, a, c;
    st.global.{wide} [y], b; st.global.u32 [y+8], a; ret; }}"""
    y = np.zeros(16, np.uint8)
    assert launch(text, {"A": 3, "B": value, "C": 4, "Y": y}, ("Y",), block=(1, 1, 1)).findings == ()
    assert y[:8].view(NUMPY[wide])[0] == np.array(value, NUMPY[wide]) and y[8:].view("u4")[0] == 0x304


@pytest.mark.parametrize("space", ["local", "shared", "global", "const"])
def test_generic_addresses(space):
    """A variable read through a generic address, and through the address that cvta.to makes of it again."""
    declared = f".{space} .align 8 .u32 place[4]" + (" = {7, 8, 9, 10};" if space == "const" else ";")
    narrow = space in ("local", "shared")
    own = "mov.u32 b, place; cvt.u64.u32 x, b;" if narrow else "mov.u64 x, place;"
    written = (
        "" if space == "const" else f"st.{space}.v2.u32 [x], {{7, 8}}; st.{space}.v2.u32 [x+8], {{9, 10}};"
    )
    body = (
        f"""{declared if narrow else ""} .reg .b64 w; {own} {written} cvta.{space}.u64 w, x; ld.u32 d, [w+4];
    cvta.to.{space}.u64 x, w; ld.{space}.u32 b, [x+8]; mad.lo.u32 d, d, 100, b;"""
        + STORE
    )
    if narrow:
        return np.testing.assert_array_equal(run(body, threads=1), 809)
    text = module("test", ("X", "Y"), PRELUDE + body).replace(".visible", declared + "\n.visible")
    arguments = {"X": LANES.astype("u4"), "Y": np.zeros(1, "u4")}
    assert launch(text, arguments, ("Y",), block=(1, 1, 1)).findings == () and arguments["Y"][0] == 809


def test_local_memory_is_each_lanes_own():
    body = """.local .align 4 .b8 stack[16]; .reg .b64 w; mov.u64 w, stack; cvta.local.u64 w, w;
    st.u32 [w+4], a;
    bar.warp.sync -1; ld.local.u32 d, [stack+4];"""
    assert (run(body + STORE, LANES * 3) == LANES * 3).all()


@pytest.mark.parametrize("kind", ["s8", "u8", "s16", "u16", "s32", "u32"])
def test_loads_extend_to_64_bits(kind):
    size, wide = int(NUMPY[kind][1]), np.int64 if kind[0] == "s" else np.uint64
    x = np.random.default_rng(3).integers(0, 256, 32 * size, dtype=np.uint8).view(NUMPY[kind])
    body = (
        f"""mul.wide.u32 off, t, {size}; add.s64 x, x, off; ld.global.{kind} x, [x];
    mov.b64 {{b, d}}, x; xor.b32 d, d, b;"""
        + STORE
    )
    words = x.astype(wide).view(np.uint32).reshape(-1, 2)
    assert (run(body, np.resize(x, 128 // size * 2), kind=NUMPY[kind]) == words[:, 0] ^ words[:, 1]).all()


def test_unwanted_elements_and_constants_in_vectors():
    body = """mul.lo.u32 b, t, 16; mov.u32 c, tile; add.u32 b, b, c; st.shared.v4.u32 [b], {a, 5, -1, t};
    ld.shared.v4.u32 {_, s0, _, s1}, [b]; st.shared.u8 [b+8], 77; ld.shared.u32 s2, [b+8];
    mad.lo.u32 d, s0, 100, s1; xor.b32 d, d, s2;"""
    assert (run(body + STORE) == (500 + LANES) ^ 0xFFFFFF4D).all()


def test_a_load_may_overwrite_its_own_address():
    body = (
        "ld.global.v2.u32 {c, d}, [x+8]; ld.global.u64 x, [x]; cvt.u32.u64 b, x; add.u32 d, d, b; add.u32 d,"
        " d, c;"
    )
    assert run(body + STORE, [10, 20, 30, 40], threads=1)[0] == 80


OPERATIONS = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
ATOMICS = [(name, kind) for name in ("add", "min", "max") for kind in ("u32", "s32", "u64")]
ATOMICS += [("min", "s64"), ("max", "s64")] + [
    (name, kind) for name in ("and", "or", "xor") for kind in ("b32", "b64")
]
ATOMICS += [("add", "f32"), ("add", "f64")]


@pytest.mark.parametrize("space", [".global", ".shared", ""], ids=["global", "shared", "generic"])
@pytest.mark.parametrize("name, kind", ATOMICS, ids=".".join)
def test_atomics(name, kind, space):
    """All lanes update one place; `atom` returns what was there before each of them, `red` nothing."""
    number = np.dtype(NUMPY[kind])
    x = np.random.default_rng(4).integers(0, 256, 32 * number.itemsize, dtype=np.uint8).view(number)
    x = (LANES - 7).astype(number) if number.kind == "f" else x
    size, register = number.itemsize, kind if kind[0] == "f" else f"b{8 * number.itemsize}"
    shared = space == ".shared"
    place, data = ("tile", ".shared") if shared else ("y", ".global")
    body = f""".reg .b32 t; .reg .pred p; .reg .b64 x, y, z, off; .reg .{register} a, old;
    .shared .align 8 .b8 tile[8];
    mov.u32 t, %tid.x; mul.wide.u32 off, t, {size}; ld.param.u64 x, [X]; ld.param.u64 y, [Y];
    ld.param.u64 z, [Z];
    add.s64 x, x, off; add.s64 z, z, off; ld.global.{kind} a, [x]; setp.eq.u32 p, t, 0;
    @p st{data}.{kind} [{place}], a;
    bar.sync 0; atom{space}.{name}.{kind} old, [{place}], a; red{space}.{name}.{kind} [{place}], a;
    bar.sync 0;
    st.global.{kind} [z], old; ld{data}.{kind} old, [{place}]; bar.sync 0; @p st.global.{kind} [y], old;"""
    arguments = {"X": x, "Y": np.zeros(1, number), "Z": np.zeros(32, number)}
    launch(module("test", arguments, body), arguments, ("Y", "Z"), block=(32, 1, 1))
    before = [x[0]]
    for value in [*x, *x]:
        before.append(OPERATIONS[name](before[-1], value))
    assert (arguments["Z"] == before[:32]).all() and arguments["Y"][0] == before[-1]


@pytest.mark.parametrize("kind", ["b32", "b64"])
def test_exchange_and_compare_and_swap(kind):
    wide = "cvt.u64.u32 v, t; cvt.u64.u32 w, b;" if kind == "b64" else "mov.u32 v, t; mov.u32 w, b;"
    body = f""".reg .{kind} v, w, o; add.u32 b, t, 1; {wide} setp.eq.u32 p, t, 0;
    @p st.shared.{kind} [tile], 0;
    bar.warp.sync -1; atom.shared.cas.{kind} o, [tile], v, w; cvt.u32.u{kind[1:]} d, o; bar.warp.sync -1;
    atom.shared.exch.{kind} o, [tile], v;
    cvt.u32.u{kind[1:]} c, o; mad.lo.u32 d, d, 100, c;"""
    got = run(
        body + STORE
    )  # every lane finds its own number and puts the next; then 32 goes to the first that exchanges
    assert (got == LANES * 100 + np.roll(LANES, 1) + np.where(LANES == 0, 1, 0)).all()


@pytest.mark.parametrize("available", [0, 1, 4, 8, 15, 16])
def test_cp_async_fills_the_rest_with_zeros(available):
    body = f"""mul.lo.u32 b, t, 16; mov.u32 c, tile; add.u32 b, b, c; mul.wide.u32 off, t, 16;
    add.s64 x, x, off;
    cp.async.cg.shared.global [b], [x], 16, {available}; cp.async.wait_all;
    ld.shared.v4.u32 {{s0, s1, s2, s3}}, [b]; mul.lo.u32 s1, s1, 3; mul.lo.u32 s2, s2, 5;
    mul.lo.u32 s3, s3, 7;
    add.u32 d, s0, s1; add.u32 d, d, s2; add.u32 d, d, s3;"""
    x = np.random.default_rng(5).integers(1, 256, (32, 16), dtype=np.uint8)
    kept = np.where(np.arange(16) < available, x, 0).astype(np.uint8)
    expected = (kept.view(np.uint32) * np.array([1, 3, 5, 7], np.uint32)).sum(1, dtype=np.uint32)
    assert (run(body + STORE, x.view(np.uint32)) == expected).all()


@pytest.mark.parametrize("ignoring", ["setp.gt.u32 p, t, 15;|p", "setp.le.u32 p, t, 15;|!p"])
def test_cp_async_may_ignore_its_source(ignoring):
    """Half of the lanes do, get zeros and read nothing: their source is out of bounds."""
    test, predicate = ignoring.split("|")
    body = f"""{test} mul.lo.u32 b, t, 4; mov.u32 c, tile; add.u32 b, b, c; add.s64 x, x, off;
    st.shared.u32 [b], 7; cp.async.ca.shared.global [b], [x+64], 4, {predicate}; cp.async.wait_all;
    ld.shared.u32 d, [b];"""
    assert (run(body + STORE) == np.where(LANES > 15, 0, LANES + 16)).all()


@pytest.mark.parametrize("pending, arrived", [(0, 3), (1, 2), (2, 1), (3, 0)])
def test_cp_async_wait_group_leaves_the_last_groups_in_flight(pending, arrived):
    """What has not been waited for still reads as before; reading it is a finding."""
    copies = "".join(
        f"cp.async.ca.shared.global [b+{128 * k}], [x+{128 * k}], 4; cp.async.commit_group;" for k in range(3)
    )
    body = f"""mul.lo.u32 b, t, 4; mov.u32 c, tile; add.u32 b, b, c; add.s64 x, x, off;
    st.shared.u32 [b], 1000;
    st.shared.u32 [b+128], 1000; st.shared.u32 [b+256], 1000; {copies} cp.async.wait_group {pending};
    ld.shared.u32 s0, [b]; ld.shared.u32 s1, [b+128]; ld.shared.u32 s2, [b+256]; add.u32 d, s0, s1;
    add.u32 d, d, s2;"""
    arguments = {"X": np.arange(96, dtype=np.uint32) % 32, "Y": np.zeros(32, np.uint32)}
    text = module("test", ("X", "Y"), PRELUDE + body + STORE)
    execution = launch(text, arguments, ("Y",), block=(32, 1, 1))
    assert (arguments["Y"] == arrived * LANES + 1000 * (3 - arrived)).all()
    assert {finding.kind for finding in execution.findings} == ({"in_flight"} if pending else set())


@pytest.mark.parametrize("waits_first", [True, False])
def test_a_store_to_where_an_own_copy_is_under_way_is_found(waits_first):
    steps = ["cp.async.wait_all;", "st.shared.u32 [b], 1;"]
    body = f"""mul.lo.u32 b, t, 4; mov.u32 c, tile; add.u32 b, b, c; add.s64 x, x, off;
    cp.async.ca.shared.global [b], [x], 4; {"".join(steps if waits_first else steps[::-1])} mov.u32 d, 0;"""
    arguments = {"X": np.arange(32, dtype=np.uint32), "Y": np.zeros(32, np.uint32)}
    execution = launch(
        module("test", ("X", "Y"), PRELUDE + body + STORE), arguments, ("Y",), block=(32, 1, 1)
    )
    assert {finding.kind for finding in execution.findings} == (set() if waits_first else {"in_flight"})


def test_nested_branches_and_a_loop_left_in_the_middle():
    """The Collatz steps of each lane, counted apart for even and odd numbers, at most 40."""
    body = """mov.u32 c, 0; add.u32 a, a, 1; LOOP: setp.le.u32 p, a, 1; @p bra DONE; and.b32 b, a, 1;
    setp.eq.u32 q, b, 0; @q bra EVEN; mad.lo.u32 a, a, 3, 1; add.u32 c, c, 1000; bra NEXT;
    EVEN: shr.u32 a, a, 1; add.u32 c, c, 1; NEXT: setp.ge.u32 p, c, 15000;
    @!p bra LOOP; add.u32 c, c, 500000; DONE: mov.u32 d, c;"""

    def steps(n):
        count = 0
        while n > 1:
            n, count = (n // 2, count + 1) if n % 2 == 0 else (3 * n + 1, count + 1000)
            if count >= 15000:
                return count + 500000
        return count

    assert list(run(body + STORE)) == [steps(n + 1) for n in range(32)]


def test_warp_instructions_of_some_lanes():
    """In a branch that only lanes 8 to 15 take, the others are not asked."""
    body = """mov.u32 d, 0; and.b32 b, t, 24; setp.ne.u32 p, b, 8; @p bra END; setp.gt.u32 q, t, 11;
    vote.sync.ballot.b32 d, q, 65280;
    redux.sync.add.u32 b, a, 65280; add.u32 d, d, b; shfl.sync.down.b32 b, a, 4, 6175, 65280;
    mad.lo.u32 d, b, 65536, d;
    vote.sync.all.pred q, !p, 65280; @q add.u32 d, d, 1; elect.sync b|q, 65280; @q add.u32 d, d, 7; END:"""
    inside = (LANES >= 8) & (LANES < 16)
    base = (
        0xF000
        + LANES[inside].sum()
        + np.where(LANES + 4 < 16, LANES + 4, LANES) * 65536
        + 1
        + 7 * (LANES == 8)
    )
    assert (run(body + STORE) == np.where(inside, base, 0)).all()


def test_shuffles_take_lanes_from_registers():
    x = np.random.default_rng(6).integers(0, 32, 32, dtype=np.uint32)
    assert (run("shfl.sync.idx.b32 d, t, a, 31, -1;" + STORE, x) == x).all()
    segment = LANES // 8 * 8
    assert (run("shfl.sync.idx.b32 d, t, a, 6175, -1;" + STORE, x) == segment + x % 8).all()


def test_match_of_64_bits():
    body = "cvt.u64.u32 x, a; shl.b64 x, x, 33; match.any.sync.b64 d, x, -1;"
    x = LANES % 3
    assert (run(body + STORE, x) == [sum(1 << int(lane) for lane in LANES[x == value]) for value in x]).all()
