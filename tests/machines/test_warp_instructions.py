"""Instructions in which lanes meet: branches, shuffles, votes, atomics, memory in all its widths, cp.async,
tensor cores."""

import numpy as np
import pytest
from ptx_kernels import NUMPY, launch, memory_type, module, register_type

from tir_schedules.machines.cpu import UnsupportedInstruction
from tir_schedules.machines.cpu.parser import parse

LANES = np.arange(32)
PRELUDE = """
.reg .pred p, q; .reg .b32 t, a, b, c, d, s<8>, f<16>; .reg .b64 x, y, at, off; .reg .f32 g<4>;
.shared .align 16 .b8 tile[4096];
mov.u32 t, %tid.x; mul.wide.u32 off, t, 4;
ld.param.u64 x, [X]; ld.param.u64 y, [Y]; add.s64 at, x, off; ld.global.u32 a, [at]; add.s64 at, y, off;
"""
STORE = "\nst.global.u32 [at], d;"


def run(body, x=LANES, threads=32, size=None, kind="u4", **options):
    """Run a body in which a is X[tid] and d, when stored, goes to Y[tid]."""
    arguments = {"X": np.ascontiguousarray(x, kind), "Y": np.zeros(size or threads, np.uint32)}
    execution = launch(
        module("test", ("X", "Y"), PRELUDE + body), arguments, ("Y",), block=(threads, 1, 1), **options
    )
    assert execution.findings == (), execution.findings
    return arguments["Y"]


def test_lanes_take_different_branches_and_meet_again():
    body = (
        "setp.lt.u32 p, t, 10; @p bra LESS; mov.u32 d, 7; bra END; LESS: mov.u32 d, 3; END: add.u32 d, d, t;"
        + STORE
    )
    assert (run(body) == np.where(LANES < 10, 3, 7) + LANES).all()


def test_lanes_leave_a_loop_one_by_one():
    body = (
        "mov.u32 d, 0; mov.u32 b, 0; LOOP: add.u32 d, d, b; add.u32 b, b, 1; setp.le.u32 p, b, t; @p bra"
        " LOOP;" + STORE
    )
    assert (run(body) == LANES * (LANES + 1) // 2).all()


def test_lanes_leave_the_kernel_early():
    assert (run("mov.u32 d, 5; setp.gt.u32 p, t, 20; @p ret;" + STORE) == np.where(LANES > 20, 0, 5)).all()


def shuffled(mode, operand, width):
    segment = LANES // width * width
    source = {
        "up": LANES - operand,
        "down": LANES + operand,
        "bfly": LANES ^ operand,
        "idx": segment + operand % width,
    }[mode]
    valid = source >= segment if mode == "up" else source < segment + width
    return np.where(valid, source, LANES), valid


@pytest.mark.parametrize("width", [32, 8, 4])
@pytest.mark.parametrize("operand", [0, 1, 5, 16, 31])
@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles(mode, operand, width):
    clamp = (32 - width) << 8 | (0 if mode == "up" else 31)
    body = (
        f"shfl.sync.{mode}.b32 d|p, a, {operand}, {clamp}, -1; selp.u32 b, 1000, 0, p; add.u32 d, d, b;"
        + STORE
    )
    source, valid = shuffled(mode, operand, width)
    assert (run(body, LANES * 3) == source * 3 + 1000 * valid).all()


def test_votes():
    x = np.where(LANES % 3 == 0, 1, 0)
    mask = sum(1 << int(lane) for lane in LANES[x > 0])
    set_p = "setp.ne.u32 p, a, 0; "
    assert (run(set_p + "vote.sync.ballot.b32 d, p, -1;" + STORE, x) == mask).all()
    assert (run(set_p + "vote.sync.ballot.b32 d, !p, -1;" + STORE, x) == mask ^ 0xFFFFFFFF).all()
    for name, expected in (("any", 1), ("all", 0), ("uni", 0)):
        assert (
            run(set_p + f"vote.sync.{name}.pred q, p, -1; selp.u32 d, 1, 0, q;" + STORE, x) == expected
        ).all()
    assert (run("activemask.b32 d;" + STORE) == 0xFFFFFFFF).all()
    assert (
        run("setp.lt.u32 p, t, 4; mov.u32 d, 0; @p activemask.b32 d;" + STORE) == np.where(LANES < 4, 15, 0)
    ).all()


@pytest.mark.parametrize(
    "barrier, result",
    [
        ("bar.red.popc.u32 d, 0, p;", 22),
        ("bar.cta.red.popc.u32 d, 3, 64, !p;", 42),
        ("barrier.red.and.pred q, 0, p; selp.u32 d, 5, 6, q;", 6),
        ("barrier.cta.red.or.pred q, 1, p; selp.u32 d, 5, 6, q;", 5),
        ("membar.gl; fence.sc.cta; bar.sync 0; mov.u32 d, 9;", 9),
        ("bar.arrive 2, 96; bar.sync 0; mov.u32 d, 9;", 9),
    ],
)
def test_barriers_that_vote_or_only_arrive(barrier, result):
    body = f"rem.u32 b, t, 3; setp.eq.u32 p, b, 0; {barrier}"
    assert (run(body + STORE, x=np.arange(64), threads=64) == result).all()


@pytest.mark.parametrize(
    "name", ["add.u32", "min.s32", "max.s32", "min.u32", "max.u32", "and.b32", "or.b32", "xor.b32"]
)
def test_reductions_over_a_warp(name):
    x = np.random.default_rng(0).integers(0, 2**32, 32, dtype=np.uint32)
    y = x.view(np.int32) if ".s32" in name else x
    functions = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }
    expected = functions[name[:-4]].reduce(y, dtype=y.dtype).astype(np.uint32)
    assert (run(f"redux.sync.{name} d, a, -1;" + STORE, x) == expected).all()


def test_match_and_elect():
    x = LANES % 5
    expected = [sum(1 << int(lane) for lane in LANES[x == value]) for value in x]
    assert (run("match.any.sync.b32 d, a, -1;" + STORE, x) == expected).all()
    assert (run("elect.sync b|p, -1; selp.u32 d, 1, 0, p; add.u32 d, d, b;" + STORE) == (LANES == 0)).all()


def test_groups_of_lanes_with_masks_of_their_own():
    groups = "shr.u32 b, t, 3; shl.b32 b, b, 3; shl.b32 c, 255, b; "
    first = LANES // 8 * 8
    assert (run(groups + "redux.sync.add.u32 d, a, c;" + STORE) == first * 8 + 28).all()
    assert (run(groups + "redux.sync.min.s32 d, a, c;" + STORE) == first).all()
    assert (run(groups + "match.any.sync.b32 d, 5, c;" + STORE) == 255 << first).all()
    odd = groups + "and.b32 s0, t, 1; setp.eq.u32 p, s0, 1; setp.lt.and.u32 q, t, 16, p; "
    assert (
        run(odd + "vote.sync.ballot.b32 d, q, c;" + STORE) == np.where(LANES < 16, 0xAA << first, 0)
    ).all()
    assert (run(odd + "vote.sync.any.pred p, q, c; selp.u32 d, 1, 0, p;" + STORE) == (LANES < 16)).all()


def test_a_shuffle_from_a_lane_that_takes_no_part_harms_who_uses_the_value():
    body = "setp.lt.u32 p, t, 8; mov.u32 d, a; @p shfl.sync.down.b32 d, a, 4, 31, 255; setp.lt.u32 p, t, 4;"
    assert (run(body + STORE.replace("st.", "@p st."))[:4] == LANES[:4] + 4).all()
    with pytest.raises(AssertionError, match="takes the value of a lane outside its mask"):
        run(body + STORE)


ATOMICS = {
    "add.u32": np.sum,
    "min.u32": np.min,
    "max.u32": np.max,
    "and.b32": np.bitwise_and.reduce,
    "or.b32": np.bitwise_or.reduce,
    "xor.b32": np.bitwise_xor.reduce,
    "min.s32": lambda v: v.astype("u4").view("i4").min(),
    "max.s32": lambda v: v.astype("u4").view("i4").max(),
}


@pytest.mark.parametrize("name", ATOMICS)
def test_atomics_in_shared_memory(name):
    x = np.random.default_rng(1).integers(0, 2**32, 64, dtype=np.uint32)
    first = int(x[0])
    operation, kind = name.split(".")
    body = (
        f"""setp.eq.u32 p, t, 0; @p st.shared.u32 [tile], {first}; bar.sync 0;
    red.shared.{operation}.{kind} [tile], a; bar.sync 0; ld.shared.u32 d, [tile];"""
        + STORE
    )
    values = np.append(x, np.uint32(first))
    assert (run(body, x, threads=64) == np.array(int(ATOMICS[name](values)) & 0xFFFFFFFF, np.uint32)).all()


def test_atomics_return_what_was_there():
    body = (
        """setp.eq.u32 p, t, 0; @p st.shared.u32 [tile], 100; bar.warp.sync -1;
    atom.shared.add.u32 d, [tile], 2;"""
        + STORE
    )
    assert sorted(run(body)) == [100 + 2 * k for k in range(32)]
    body = "@!p st.shared.u32 [tile], 0; bar.warp.sync -1; atom.shared.cas.b32 d, [tile], 0, t;".replace(
        "@!p", "setp.ne.u32 p, t, 1; @!p"
    )
    got = run("setp.lt.u32 q, t, 0; " + body + STORE)
    assert (got == 0).sum() == 2 and len(
        set(got)
    ) == 2  # lane 0 puts 0 in, lane 1 itself, the others see lane 1
    body = (
        "setp.ne.u32 p, t, 0; @!p st.shared.u32 [tile], 9; bar.warp.sync -1; atom.shared.exch.b32 d,"
        " [tile], t;"
    )
    assert sorted(run(body + STORE)) == sorted([9, *range(31)])


def test_atomics_on_floats_and_wide_integers():
    body = """cvt.rn.f32.u32 g0, t; setp.ne.u32 p, t, 0; @!p st.shared.f32 [tile], 0f00000000;
    @!p st.shared.u64 [tile+8], 5;
    bar.warp.sync -1; red.shared.add.f32 [tile], g0; cvt.u64.u32 x, t; red.shared.add.u64 [tile+8], x;
    bar.warp.sync -1;
    ld.shared.f32 g1, [tile]; cvt.rzi.u32.f32 d, g1; ld.shared.u64 x, [tile+8]; cvt.u32.u64 b, x;
    sub.u32 d, d, b;"""
    assert (run(body + STORE) == np.uint32(-5 & 0xFFFFFFFF)).all()


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("kind", ["u8", "s8", "u16", "s16", "u32", "f32", "u64"])
def test_loads_and_stores_of_every_width(kind, count):
    if NUMPY[kind][1] == "8" and count == 4:
        pytest.skip("32 bytes")
    size, suffix = int(NUMPY[kind][1]), f".v{count}" if count > 1 else ""
    registers = ", ".join(f"v{k}" for k in range(count))
    operand = f"{{{registers}}}" if count > 1 else registers
    x = np.random.default_rng(2).integers(0, 256, 32 * count * size, dtype=np.uint8)
    for space, copy in (("global", ""), ("shared", "through"), ("local", "through"), ("generic", "")):
        y = np.zeros_like(x)
        stride, start = (size * count, "tile") if space == "shared" else (0, "stack")
        store, load = f"st.{space}{suffix}.{kind}", f"ld.{space}{suffix}.{memory_type(kind)}"
        through = f"{store} [way], {operand}; {load} {operand}, [way];" if copy else ""
        prefix = "" if space == "generic" else ".global"
        body = f""".reg .b32 t, way; .reg .b64 x, y, off, wide; .reg .{register_type(kind)} {registers};
        .shared .align 16 .b8 tile[4096]; .local .align 16 .b8 stack[64];
        mov.u32 t, %tid.x; mul.wide.u32 off, t, {size * count}; ld.param.u64 x, [X]; ld.param.u64 y, [Y];
        add.s64 x, x, off; add.s64 y, y, off; ld{prefix}{suffix}.{kind} {operand}, [x];
        mad.lo.s32 way, t, {stride}, {start}; {through}
        st{prefix}{suffix}.{kind} [y], {operand};"""
        arguments = {"X": x.view(NUMPY[kind]), "Y": y.view(NUMPY[kind])}
        execution = launch(module("test", ("X", "Y"), body), arguments, ("Y",), block=(32, 1, 1))
        assert execution.findings == () and (x == y).all(), space


def test_narrow_loads_extend():
    x = np.arange(0, 256, 8, dtype=np.uint8)
    load = "cvt.u64.u32 off, t; ld.param.u64 x, [X]; add.s64 x, x, off; "
    assert (
        run(load + "ld.global.s8 d, [x];" + STORE, np.resize(x, 128), kind="u1").view("i4") == x.view("i1")
    ).all()
    assert (run(load + "ld.global.u8 d, [x];" + STORE, np.resize(x, 128), kind="u1") == x).all()


def test_shared_memory_through_a_generic_address():
    body = """.reg .b64 w; mul.lo.u32 b, t, 4; mov.u32 c, tile; add.u32 b, b, c; cvt.u64.u32 x, b;
    cvta.shared.u64 w, x;
    st.u32 [w], a; ld.shared.u32 d, [b];"""
    assert (run(body + STORE, LANES + 5) == LANES + 5).all()


def test_dynamic_shared_memory_lies_behind_the_static():
    text = module(
        "test",
        ("X", "Y"),
        PRELUDE + "mov.u32 b, dynamic; st.shared.u32 [tile+4092], a; st.shared.u32 [dynamic], b;"
        "ld.shared.u32 d, [dynamic];" + STORE,
    )
    text = text.replace(".visible", ".extern .shared .align 16 .b8 dynamic[];\n.visible")
    arguments = {"X": LANES.astype("u4"), "Y": np.zeros(1, "u4")}
    execution = launch(text, arguments, ("Y",), block=(1, 1, 1), dynamic_shared=16)
    assert execution.findings == () and arguments["Y"][0] == 4096
    assert (
        launch(text, arguments, ("Y",), block=(1, 1, 1), dynamic_shared=0).findings[0].kind == "out_of_bounds"
    )


def test_constants_and_module_variables():
    text = module(
        "test", ("X", "Y"), PRELUDE + "mov.u64 x, table; add.s64 x, x, off; ld.const.u32 d, [x];" + STORE
    )
    text = text.replace(".visible", ".const .align 4 .u32 table[4] = {5, 6, 7, 8};\n.visible")
    arguments = {"X": LANES.astype("u4"), "Y": np.zeros(4, "u4")}
    assert launch(text, arguments, ("Y",), block=(4, 1, 1)).findings == ()
    assert list(arguments["Y"]) == [5, 6, 7, 8]


def test_special_registers():
    names = [
        "%tid.x",
        "%tid.y",
        "%tid.z",
        "%ctaid.x",
        "%ctaid.y",
        "%ctaid.z",
        "%ntid.x",
        "%ntid.y",
        "%nctaid.z",
        "%laneid",
        "%lanemask_lt",
    ]
    body = """.reg .b32 d, i; .reg .b64 y, off; .reg .b32 w<9>; ld.param.u64 y, [Y]; mov.u32 w0, %tid.x;
    mov.u32 w1, %tid.y;
    mov.u32 w2, %tid.z; mov.u32 w3, %ctaid.x; mov.u32 w4, %ctaid.y; mov.u32 w5, %ctaid.z;
    mad.lo.s32 i, w5, 3, w4; mad.lo.s32 i, i, 2, w3; mad.lo.s32 i, i, 2, w2; mad.lo.s32 i, i, 3, w1;
    mad.lo.s32 i, i, 5, w0;
    mul.wide.u32 off, i, 4; add.s64 y, y, off; mov.u32 d, NAME; st.global.u32 [y], d;"""
    grid, block = (2, 3, 4), (5, 3, 2)
    z, y, x, tz, ty, tx = np.indices((*grid[::-1], *block[::-1])).reshape(6, -1)
    lane = (tx + 5 * ty + 15 * tz) % 32
    expected = [tx, ty, tz, x, y, z, 5 + 0 * x, 3 + 0 * x, 4 + 0 * x, lane, (1 << lane) - 1]
    for name, values in zip(names, expected):
        arguments = {"X": np.zeros(1, "u4"), "Y": np.zeros(720, "u4")}
        execution = launch(
            module("test", ("X", "Y"), body.replace("NAME", name)), arguments, ("Y",), grid, block
        )
        assert execution.findings == () and (arguments["Y"] == values).all(), name


@pytest.mark.parametrize("size", [4, 8, 16])
def test_cp_async_with_groups_and_zero_fill(size):
    body = f"""mul.lo.u32 b, t, {size}; mov.u32 c, tile; add.u32 b, b, c; mul.wide.u32 off, t, {size};
    add.s64 x, x, off;
    cp.async.{"cg" if size == 16 else "ca"}.shared.global [b], [x], {size}; cp.async.commit_group;
    and.b32 c, t, 1; mul.lo.u32 c, c, {size};
    cp.async.ca.shared.global [b+1024], [x], {size}, c; cp.async.commit_group;
    cp.async.wait_group 1; ld.shared.u32 d, [b]; cp.async.wait_all; ld.shared.u32 s0, [b+1024];
    mad.lo.u32 d, s0, 1000, d;"""
    words = size // 4
    got = run(body + STORE, np.arange(32 * words) + 1)
    first = LANES * words + 1
    assert (got == first + 1000 * np.where(LANES % 2, first, 0)).all()


UNKNOWN = [
    "sub.u16x2 d, a, a;",
    "addc.u16 d, a, a;",
    "barrier.cluster.arrive d;",
    "mov.u32 d, %pm0;",
    "tex.1d.v4.u32.s32 d, a;",
    "ld.global.u32 d, [at], x;",
    "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 d, a, a, a;",
    "cvt.rn.e4m3x2.f32 d, g0, g1;",
    "call (d), f, (a);",
    "setp.gt.f16x2 p, a, a;",
    "setp.eq.ftz.f64 p, x, x;",
    "cvt.rp.tf32.f32 d, g0;",
    "cvt.rna.f32.f64 g0, x;",
    "cvt.rn.sat.f32.s32 g0, a;",
    "cvt.relu.f32.f32 g0, g0;",
    "add.sat.u32 d, a, a;",
    "add.rz.f16 d, a, a;",
    "mad.hi.sat.u32 d, a, a, a;",
    "prmt.b32.f5e d, a, a, a;",
    "lop3.b32 d|p, a, a, a, 8;",
    "vsad.u32 d, a, a, a;",
    "max.relu.f32 g0, g0, g0;",
    "ld.global.v4.u64 {x, x, x, x}, [at];",
    "ld.global.v8.u32 d, [at];",
    "ld.global.b128 x, [at];",
    "atom.shared.inc.s32 d, [tile], a;",
    "red.global.add.f16x2 [at], a;",
    "red.global.add.v2.u32 [at], {a, a};",
    "atom.exch.b16 d, [at], a;",
    "match.all.sync.b32 d|p, a, -1;",
    "redux.sync.min.f32 g0, g0, -1;",
    "cp.async.ca.shared.global [tile], [x], 4, 4, p;",
    "cp.async.ca.shared.global [tile], [x], 12;",
    "cp.async.bulk.shared::cta.shared::cta.mbarrier::complete_tx::bytes [tile], [tile], 16, [tile];",
    "mbarrier.test_wait.parity.shared::cluster.b64 p, [tile], 0;",
    "mbarrier.arrive.expect_tx.noComplete.shared.b64 _, [tile], 1;",
    "bar.arrive 0;",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 d, a, a, a;",
    "mma.sync.aligned.m16n8k16.col.col.f32.f16.f16.f32 d, a, a, a;",
    "ldmatrix.sync.aligned.m8n8.x4.trans.shared::cluster.b16 {a, b, c, d}, [tile];",
]


@pytest.mark.parametrize("instruction", UNKNOWN)
def test_an_unknown_instruction_is_refused_by_name_and_line(instruction):
    text = module("test", ("X", "Y"), PRELUDE + instruction + STORE)
    line = next(number for number, line in enumerate(text.split("\n"), 1) if instruction in line)
    with pytest.raises(UnsupportedInstruction, match=f"PTX line {line}: ") as error:
        launch(text, {"X": LANES.astype("u4"), "Y": np.zeros(32, "u4")}, ("Y",))
    assert instruction.split(" ")[0].rstrip(";") in str(error.value)


def test_scopes_of_inline_assembly():
    body = (
        "{ .reg .b32 a; .reg .pred p; mov.u32 a, 9; setp.eq.u32 p, t, 3; @p bra SKIP; mov.u32 d, a; bra END;"
        " SKIP: mov.u32 d, 1; END: }\n"
    )
    assert (run(body + body + "add.u32 d, d, a;" + STORE) == np.where(LANES == 3, 1, 9) + LANES).all()
    assert len(parse(module("test", ("X", "Y"), PRELUDE + body + body)).kernels["test"].blocks) > 6
