"""What is wrong with products of warpgroups: each kernel is caught, and without the fault it is not."""

import numpy as np
import pytest
from warpgroup_kernels import FILL, RIGHT_AT, ROOM, Layout, descriptor, entry, launch, product, stores

from tir_schedules.machines.cpu.ptx import UnsupportedInstruction
from tir_schedules.model.launch import TensorMap

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
BEGIN, END = f"{ZERO}{FENCE}", f"{GROUP}{STORES}"
MORE_ZEROS = "".join(f"mov.b32 d{k}, 0;" for k in range(32, 64))
WIDE = product(WIDER, "l", "r", (1, 1, 0, 0))
SUM_AS_ROW = FROM_REGISTERS.replace("a2", "d3")
ANEW = "setp.eq.u32 p, 0, 1;"
OTHERWISE = "bra BOTH; ONE: {} BOTH:"

# (kind, what, broken, sound, part of the message)
FAULTS = [
    ("wgmma_registers", "a sum is read",
     f"{BEGIN}{PRODUCT}{COMMIT} add.s32 e, d7, 1; {WAIT}{STORES}",
     f"{BEGIN}{PRODUCT}{COMMIT}{WAIT} add.s32 e, d7, 1; {STORES}", "reads a sum of the wgmma of"),
    ("wgmma_registers", "a sum is written",
     f"{BEGIN}{PRODUCT}{COMMIT} mov.b32 d31, 0; {WAIT}{STORES}",
     f"{BEGIN}{PRODUCT}{COMMIT}{WAIT} mov.b32 d31, 0; {STORES}", "writes a sum of the wgmma of"),
    ("wgmma_registers", "a wait that leaves it in flight",
     f"{BEGIN}{PRODUCT}{COMMIT} wgmma.wait_group.sync.aligned 1; {STORES}{WAIT}",
     f"{BEGIN}{PRODUCT}{COMMIT} wgmma.wait_group.sync.aligned 0; {STORES}{WAIT}", "before wgmma.wait_group"),
    ("wgmma_registers", "it has not been committed",
     f"{BEGIN}{PRODUCT}{WAIT}{STORES}{GROUP}", f"{BEGIN}{PRODUCT}{GROUP}{STORES}", "before wgmma.wait_group"),
    ("wgmma_registers", "rows of A are written",
     f"{BEGIN}{FROM_REGISTERS}{COMMIT} mov.b32 a2, 0; {WAIT}{STORES}",
     f"{BEGIN}{FROM_REGISTERS}{COMMIT} mov.b32 e, a2; {WAIT}{STORES}", "writes a factor of the wgmma of"),
    ("wgmma_registers", "a product of another shape has the same sums",
     f"{MORE_ZEROS}{BEGIN}{PRODUCT}{WIDE}{END}", f"{MORE_ZEROS}{BEGIN}{PRODUCT}{GROUP}{WIDE}{END}",
     "writes a sum of the wgmma of"),
    ("wgmma_registers", "a sum is a row of A",
     f"{BEGIN}{PRODUCT}{SUM_AS_ROW}{END}", f"{BEGIN}{PRODUCT}{FROM_REGISTERS}{END}", "reads a sum"),
    ("unfenced_wgmma", "no fence at all",
     f"{ANEW}{PRODUCT}{END}", f"{ANEW}{FENCE}{PRODUCT}{END}", "no wgmma.fence has been executed"),
    ("unfenced_wgmma", "sums written since",
     f"{BEGIN} add.s32 d3, d3, 1; {PRODUCT}{END}", f"{ZERO} add.s32 d3, d3, 1; {FENCE}{PRODUCT}{END}",
     "was written by"),
    ("unfenced_wgmma", "sums set to zero after a product",
     f"{BEGIN}{PRODUCT}{GROUP}{ZERO}{PRODUCT}{END}", f"{BEGIN}{PRODUCT}{GROUP}{ZERO}{FENCE}{PRODUCT}{END}",
     "was written by"),
    ("unfenced_wgmma", "rows of A written since",
     f"{BEGIN} add.s32 a1, a1, 7; {FROM_REGISTERS}{END}",
     f"{BEGIN} add.s32 a1, a1, 7; {FENCE}{FROM_REGISTERS}{END}",
     "a factor of it was written by"),
    ("divergent_aligned", "a lane has left",
     f"setp.eq.u32 q, t, 5; @q exit; {BEGIN}{PRODUCT}{END}", f"setp.eq.u32 q, t, 5; {BEGIN}{PRODUCT}{END}",
     "active lanes 0xffffffdf"),
    ("divergent_aligned", "warps execute different products",
     f"{BEGIN} setp.lt.u32 q, t, 32; @q bra ONE; {PRODUCT} {OTHERWISE.format(PRODUCT)} {END}",
     f"{BEGIN} setp.lt.u32 q, t, 0; @q bra ONE; {PRODUCT} {OTHERWISE.format(PRODUCT)} {END}",
     "different instructions"),
]  # fmt: skip
IDS = [f"{kind}: {what}" for kind, what, *_ in FAULTS]


@pytest.mark.parametrize("order", ["forward", "reverse"])
@pytest.mark.parametrize("kind, what, broken, sound, message", FAULTS, ids=IDS)
def test_a_fault_is_found_and_its_absence_is_not(kind, what, broken, sound, message, order):
    findings = found(broken, warp_order=order)
    assert any(one.kind == kind and message in one.message for one in findings), findings
    assert found(sound, warp_order=order) == ()


def test_products_of_one_shape_need_no_wait_between():
    assert found(f"{ZERO}{FENCE}{PRODUCT}{PRODUCT}{COMMIT}{PRODUCT}{GROUP}{STORES}") == ()


def test_nvcc_moves_what_only_moves_a_number_behind_a_fence():
    assert found(f"{FENCE}{ZERO}{PRODUCT}{END}") == ()


def test_sums_that_start_anew_need_no_value():
    assert found(f"{ANEW}{FENCE}{PRODUCT}{GROUP}{STORES}") == ()
    kinds = {finding.kind for finding in found(f"{FENCE}{PRODUCT}{GROUP}{STORES}")}
    assert kinds == {"uninitialized"}


# ---- shared memory ---
SOUND = f"{BEGIN}{PRODUCT}{END}"
PROXY, MEETING = "fence.proxy.async.shared::cta;", "bar.sync 0;"


def kinds_of(text):
    arguments = {"X": np.zeros(ROOM, np.uint8), "Y": np.zeros((128, 32), np.uint32)}
    return {finding.kind for finding in launch(text, arguments, ("Y",)).findings}


@pytest.mark.parametrize("missing, kind", [(PROXY, "unfenced_proxy"), (MEETING, "race")])
def test_threads_that_write_factors(missing, kind):
    sound = entry(body_of(SOUND))
    assert sound.count(missing) == 1
    assert kinds_of(sound) == set() and kind in kinds_of(sound.replace(missing, ""))


@pytest.mark.parametrize("at", [0, RIGHT_AT], ids="AB")
def test_factors_are_read_until_somebody_has_waited(at):
    store = f"mov.u64 wide, s; setp.eq.u32 q, t, 0; @q st.shared.b32 [wide+{at}], t;"
    sound, broken = f"{BEGIN}{PRODUCT}{GROUP}bar.sync 0;{store}", f"{BEGIN}{PRODUCT}{COMMIT}{store}{WAIT}"
    assert kinds_of(entry(body_of(sound))) == set()
    found_kinds = kinds_of(entry(body_of(broken)))  # other warps begin theirs after the store
    assert "slot_in_use" in found_kinds if at == 0 else found_kinds and found_kinds <= {"slot_in_use", "race"}


@pytest.mark.parametrize("column", [0, 16, 32, 48])
def test_each_part_of_b_is_looked_at_within_four_products(column):
    at = RIGHT_AT + column // 8 * 1024
    store = f"mov.u64 wide, s; setp.eq.u32 q, t, 0; @q st.shared.b32 [wide+{at}], t; {PROXY}"
    assert "race" in kinds_of(entry(body_of(f"{store}{BEGIN}{4 * PRODUCT}{END}")))
    assert kinds_of(entry(body_of(f"{store}bar.sync 0;{BEGIN}{4 * PRODUCT}{END}"))) == set()


# ---- descriptors ---
DESCRIPTORS = [
    ("bits without meaning", LEFT | 1 << 14, "bits are set that have no meaning"),
    ("beyond shared memory", descriptor(ROOM - 1024, 0, 1024, 128), "ends at byte 72704, behind the end"),
    ("a base offset without swizzle", descriptor(0, 1024, 128, 0, base=1), "base offset 1 without a swizzle"),
    (
        "from the middle of a row on",
        descriptor(112, 0, 1024, 128),
        "begins 112 bytes into a row of 128, and takes 32",
    ),
    (
        "8 rows within those before",
        descriptor(0, 0, 512, 128),
        "one takes 1024 bytes, and by its stride byte offset of 512 the next begins within it",
    ),
    (
        "between patterns",
        descriptor(256, 0, 1024, 128),
        "in its row 2, though s is aligned: begin a tile at a multiple of 1024 bytes; a step along K within a"
        " row adds 32 bytes to the start, which is 2 to the descriptor",
    ),
    (
        "another base offset",
        descriptor(256, 0, 1024, 128, base=3),
        "base offset 3 does not fit its start: 2 would",
    ),
]


@pytest.mark.parametrize("what, bits, message", DESCRIPTORS, ids=[what for what, *_ in DESCRIPTORS])
@pytest.mark.parametrize("side", ["A", "B"])
def test_descriptors(what, bits, message, side):
    given = {"left": bits} if side == "A" else {"right": bits}
    (finding,) = found(f"{ZERO}{FENCE}{PRODUCT}{GROUP}{STORES}", **given)
    assert finding.kind == "bad_descriptor" and message in finding.message
    assert f"the descriptor of {side}" in finding.message


def test_a_descriptor_between_patterns_of_an_array_that_is_not_aligned():
    body = f"setp.eq.u32 q, t, 0; @q st.shared.b32 [before], t;{ZERO}{FENCE}{PRODUCT}{GROUP}{STORES}"
    text = entry(body_of(body, left=descriptor(256, 0, 1024, 128)))
    text = text.replace(
        ".extern .shared .align 1024", ".shared .align 16 .b8 before[16];\n.extern .shared .align 16"
    )
    arguments = {"X": np.zeros(ROOM, np.uint8), "Y": np.zeros((128, 32), np.uint32)}
    messages = [finding.message for finding in launch(text, arguments, ("Y",), 128).findings]
    assert any("align the array to 1024 bytes, or say base offset 2" in one for one in messages), messages


@pytest.mark.parametrize("leading, kinds", [(16, {"bad_descriptor"}), (0, set()), (8192, set())])
def test_columns_within_those_before(leading, kinds):
    """B of 128 columns, whose rows are along k: two parts of 64."""
    wide = product(WIDER, "l", "r", (1, 1, 0, 1))
    text = f"{ZERO}{MORE_ZEROS}{FENCE}{wide}{GROUP}{STORES}"
    assert {one.kind for one in found(text, right=descriptor(RIGHT_AT, leading, 1024, 128))} == kinds


def test_a_base_offset_that_fits():
    assert found(f"{ZERO}{FENCE}{PRODUCT}{GROUP}{STORES}", left=descriptor(256, 0, 1024, 128, base=2)) == ()


BOX = f"""setp.ne.u32 q, t, 0; @q bra LOADED; add.s32 e, v0, {ROOM - 8};
mbarrier.init.shared::cta.b64 [e], 1; fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [e], 8192; .reg .b64 m; mov.b64 m, A_map; cvta.param.u64 m, m;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [v0], [m, {{0, 0}}], [e];
BACK: mbarrier.try_wait.parity.shared::cta.b64 p, [e], 0; @!p bra BACK;
LOADED: bar.sync 0; setp.eq.u32 p, 0, 0;
"""


@pytest.mark.parametrize("swizzle, box, rows", [(128, 64, 1), (0, 64, 1), (64, 32, 2)])
def test_a_box_in_another_swizzle_than_the_descriptor(swizzle, box, rows):
    tensor = TensorMap("A_map", "A", "float16", (128, 64), (128,), (64 * rows, box), swizzle)
    arguments = {name: np.zeros(ROOM, np.uint8) for name in "XA"} | {"Y": np.zeros((128, 32), np.uint32)}
    text = entry(body_of(f"{BOX}{BEGIN}{PRODUCT}{END}"), maps=("A_map",))
    findings = launch(text, arguments, ("Y",), maps=(tensor,), params=("X", "Y")).findings
    if swizzle == 128:
        assert findings == ()
    else:
        (finding,) = findings
        says = f"has a swizzle of 128 bytes, and the tensor map one of {swizzle or 'no'} bytes"
        assert finding.kind == "bad_descriptor" and says in finding.message


@pytest.mark.parametrize("who", ["%warpid", "%laneid"])
def test_descriptors_are_alike(who):
    other = f"mov.u32 e, {who}; setp.eq.u32 q, e, 3; @q add.s64 l, l, 2;"
    (finding,) = found(f"{other}{ZERO}{FENCE}{PRODUCT}{GROUP}{STORES}")
    assert finding.kind == "bad_descriptor" and "different ones" in finding.message


# ---- warpgroups ---
def test_a_block_without_a_whole_warpgroup():
    text = f"{ZERO}{FENCE}{PRODUCT}{GROUP}{STORES}".replace("bra MORE", "bra MORE")
    messages = [one.message for one in found(text, threads=96) if one.kind == "divergent_aligned"]
    assert messages and all("the block has 3 warps, and a warpgroup four" in message for message in messages)


def test_registers_are_shared_out():
    ask = "setmaxnreg.inc.sync.aligned.u32 {};"
    assert found(ask.format(240), threads=256) == ()
    assert found("setmaxnreg.dec.sync.aligned.u32 24;", threads=256) == ()
    (finding,) = found(ask.format(240), threads=384)
    assert finding.kind == "too_many_registers" and "240 registers" in finding.message
    (finding,) = found(f"setp.lt.u32 q, t, 32; @q bra END; {ask.format(64)} END:")
    assert finding.kind == "divergent_aligned"


def test_what_ptxas_ignores_takes_no_registers():
    """It does not know how many there are where neither __maxnreg__ nor a least number of blocks says so."""
    text = body_of("setmaxnreg.inc.sync.aligned.u32 240;", LEFT, RIGHT)
    arguments = {"X": np.zeros(ROOM, np.uint8), "Y": np.zeros((128, 32), np.uint32)}
    for directives, kinds in (("", set()), (".maxntid 384\n.minnctapersm 1\n", {"too_many_registers"})):
        execution = launch(entry(text, directives=directives), arguments, ("Y",), 384, registers=168)
        assert {finding.kind for finding in execution.findings} == kinds


def test_a_warpgroup_takes_registers_that_another_has_given_up():
    take, give = "setmaxnreg.inc.sync.aligned.u32 {};", "setmaxnreg.dec.sync.aligned.u32 24;"
    roles = "setp.lt.u32 q, t, 128; @q bra TAKE; {} bra DONE; TAKE: {} DONE:"
    kept, more, shared = (
        roles.format(given, take.format(count)) for given, count in (("", 136), (give, 240), (give, 232))
    )
    for order in ("forward", "reverse"):
        assert found(shared, threads=256, registers=128, warp_order=order) == ()
        assert found(kept, threads=256, warp_order=order) == ()
        for text in (kept, more):
            (finding,) = found(text, threads=256, registers=128, warp_order=order)
            assert finding.kind == "too_many_registers" and "launched with 32768" in finding.message


@pytest.mark.parametrize("seed", range(4))
def test_products_of_the_same_sums_take_place_one_after_another(seed):
    text = f"{BEGIN}{ANEW}{PRODUCT}setp.eq.u32 p, 0, 0;{PRODUCT}{PRODUCT}{END}"
    ones, sums = np.ones(ROOM // 2, np.float16).view(np.uint8), np.zeros((128, 32), np.float32)
    launch(entry(body_of(text)), {"X": ones, "Y": sums}, ("Y",), warp_order="random", seed=seed)
    assert (sums == 48).all()


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
    (f"wgmma.fence.aligned.shared; {PRODUCT}", "modifier .shared"),
]


@pytest.mark.parametrize("text, message", REFUSED, ids=[message for _, message in REFUSED])
def test_refusals(text, message):
    with pytest.raises(UnsupportedInstruction, match=message):
        found(text)


def test_without_effect():
    text = "griddepcontrol.wait; griddepcontrol.launch_dependents; prefetch.tensormap [x];"
    assert found(text) == ()
