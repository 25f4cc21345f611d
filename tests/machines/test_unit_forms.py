"""Every opcode of mbarriers, bulk copies and clusters that the table has, executed in kernels that need what
it does. experiments/instructions_on_gpu.py holds the same launches against a GPU."""

import re

import numpy as np
import pytest
from test_tensor_map import box_bytes, box_of, loading, map_of, numbered, prefetched, storing
from test_units import (
    COUNTS,
    DROPPED,
    EVERYBODY,
    FAR,
    GENERIC,
    LOADING,
    MULTICAST,
    PUT,
    RANK,
    ROUNDS,
    SWAPPED,
    TAKE,
    WITH_COPIES,
)
from unit_kernels import DONE, FILL, INIT, MEET, NUMBERS, STORE, TURNED, WAIT, run
from warpgroup_kernels import entry, launch

from tir_schedules.machines.cpu.catalogue import entries, expanded

GENERIC_BAR = ".reg .b64 gbar; cvt.u64.u32 gbar, bar; cvta.shared.u64 gbar, gbar;\n"
POLICY = ".reg .b64 policy; createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
WAITED = f"{WAIT}mov.u32 v, 5; st.global.b32 [yt], v;\n"
MEETING = f"{EVERYBODY}ARRIVE _, [bar];\n{WAITED}"
TOLD = f"""{INIT}@first EXPECT [bar], 256;
@first COMPLETE [bar], 256;
@first mbarrier.arrive.shared.b64 _, [bar];
{WAITED}"""
COUNTED_ARRIVE = "mbarrier.arrive.noComplete.shared.b64 state, [bar], 3"
FIRST_WAIT = "mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0"
STATE_WAIT = "mbarrier.try_wait.shared::cta.b64 p, [bar], state"
EXPECT = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256"
COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [x], 256, [bar]"
MULTICAST_COPY = COPY.replace("bytes [s]", "bytes.multicast::cluster\n  [s]") + ", mask"
GROUP_COPY = "cp.async.bulk.global.shared::cta.bulk_group [y], [s], 256"
FIVE, COUNTS_OUT = np.full_like(NUMBERS, 5), np.full_like(NUMBERS, 0)
COUNTS_OUT[:, :4] = [5, 2, 7, 9]
LEFT = np.repeat([[2, 1]], 4, 0).repeat(32, 1)
STORED = FILL + STORE + DONE


def opcodes(*starts):
    """Of the table, those that begin so."""
    return [
        opcode
        for line in entries()
        if line.precision != "refused"
        for opcode in expanded(line.opcodes)
        if opcode.startswith(starts)
    ]


def changed(body, old, new):
    """A body with another instruction; without a state space its mbarrier has a generic address."""
    assert body.count(old) == 1, old
    if "shared" not in new.partition("[")[0]:
        new = new.replace("[bar]", "[gbar]", 1)
    return GENERIC_BAR + body.replace(old, new)


def cases():
    """(opcode, body, blocks of a cluster, Y)."""
    for opcode in opcodes("mbarrier.init"):
        yield opcode, changed(LOADING, "mbarrier.init.shared.b64 [bar]", f"{opcode} [bar]"), 1, TURNED
    for opcode in opcodes("mbarrier.inval"):
        yield opcode, changed(COUNTS, "mbarrier.inval.shared.b64 [bar]", f"{opcode} [bar]"), 1, COUNTS_OUT
    for opcode in opcodes("mbarrier.arrive."):
        far = "shared::cluster" in opcode
        if "noComplete" in opcode:
            yield opcode, changed(COUNTS, COUNTED_ARRIVE, f"{opcode} state, [bar], 3"), 1, COUNTS_OUT
        elif "expect_tx" in opcode:
            yield opcode, changed(LOADING, EXPECT, f"{opcode} _, [bar], 256"), 1, TURNED
        else:
            yield opcode, changed(MEETING, "ARRIVE _, [bar]", f"{opcode} _, [bar]"), 1, FIVE
            if not far:
                body = changed(ROUNDS, "mbarrier.arrive.shared.b64 state, [bar]", f"{opcode} state, [bar]")
                yield f"{opcode} of rounds", body, 1, 36
    dropping = "@!q mbarrier.arrive_drop.shared.b64 _, [bar]"
    for opcode in opcodes("mbarrier.arrive_drop"):
        if "noComplete" in opcode:
            body = changed(DROPPED, dropping, f"@!q {opcode} state, [bar], 1; bar.sync 0")
            yield opcode, body, 1, LEFT
        elif "expect_tx" in opcode:
            yield opcode, changed(LOADING, EXPECT, f"{opcode} _, [bar], 256"), 1, TURNED
        else:
            yield opcode, changed(DROPPED, dropping, f"@!q {opcode} _, [bar]"), 1, LEFT
    for expect, complete in zip(opcodes("mbarrier.expect_tx"), opcodes("mbarrier.complete_tx")):
        body = changed(TOLD, "EXPECT [bar]", f"{expect} [bar]")
        body = changed(body, "COMPLETE [bar]", f"{complete} [bar]").replace(GENERIC_BAR, "", 1)
        yield f"{expect}, {complete}", body, 1, FIVE
    for opcode in opcodes("mbarrier.test_wait", "mbarrier.try_wait"):
        if "parity.relaxed" in opcode:
            body = MEETING.replace("ARRIVE", "mbarrier.arrive.shared.b64")
            yield opcode, changed(body, FIRST_WAIT, f"{opcode} p, [bar], 0"), 1, FIVE
        elif "parity" in opcode:
            yield opcode, changed(LOADING, FIRST_WAIT, f"{opcode} p, [bar], 0"), 1, TURNED
        else:
            yield opcode, changed(ROUNDS, STATE_WAIT, f"{opcode} p, [bar], state"), 1, 36
    yield "mbarrier.pending_count.b64", COUNTS, 1, COUNTS_OUT
    arrive = "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];"
    for opcode in opcodes("cp.async.mbarrier"):
        alone = "" if "noinc" in opcode else " mbarrier.arrive.shared.b64 _, [bar];"
        yield opcode, changed(WITH_COPIES, arrive, f"{opcode} [bar];{alone}"), 1, TURNED
    for opcode in opcodes("fence.proxy.async"):
        yield opcode, STORED.replace("fence.proxy", f"{opcode}; fence.proxy", 1), 1, TURNED
    yield from of_clusters()
    yield from of_copies()


def of_clusters():
    """The same of clusters' own instructions."""
    waits = opcodes("barrier.cluster.wait")
    for k, arrive in enumerate(opcodes("barrier.cluster.arrive")):
        alike = [w for w in waits if w.endswith("aligned") == arrive.endswith("aligned")]
        meet = f"fence.acq_rel.cluster; {arrive}; {alike[k % len(alike)]};\n"
        yield f"{arrive}, {meet.split()[-1]}", (PUT + TAKE).replace(MEET, meet), 2, SWAPPED[:, ::-1]
    wide = ".reg .b64 w, q64; cvt.u64.u32 w, b; "
    for opcode in opcodes("mapa"):
        new = {
            "mapa.shared::cluster.u32": "OPCODE far, b, r;\n",
            "mapa.shared::cluster.u64": f"{wide}OPCODE w, w, r; cvt.u32.u64 far, w;\n",
            "mapa.u64": (
                f"{wide}cvta.shared.u64 w, w; OPCODE w, w, r; cvta.to.shared.u64 w, w; cvt.u32.u64 far, w;\n"
            ),
        }.get(opcode)
        if new:
            yield opcode, (PUT + TAKE).replace(FAR, new.replace("OPCODE", opcode)), 2, SWAPPED[:, ::-1]
    both = "mul.lo.u32 v, v, 10; add.u32 v, v, r; st.global.b32 [yt], v;\n"
    others = np.array([1, 0, 1, 0]).repeat(64).reshape(4, 64)
    for opcode in opcodes("getctarank"):
        operand = {
            "getctarank.shared::cluster.u32": "far",
            "getctarank.shared::cluster.u64": "w",
            "getctarank.u64": "w",
        }.get(opcode)
        if operand:
            generic = "" if "shared" in opcode else "cvta.shared.u64 w, w; "
            body = f"{RANK}{FAR}{wide}cvt.u64.u32 w, far; {generic}{opcode} v, {operand};\n{both}"
            yield opcode, body, 2, others * 11
    yield "isspacep.shared::cluster", GENERIC, 2, SWAPPED[:, ::-1]
    for opcode in opcodes("st.async"):
        kind = opcode.rpartition(".")[2]
        count = int((re.search(r"\.v(\d)\.", opcode) or [1, 1])[1])
        size = int(kind[1:]) // 8
        values = [f"z{k}" for k in range(count)]
        value = f"{{{', '.join(values)}}}" if count > 1 else "z0"
        vector = f"v{count}." if count > 1 else ""
        yield (
            opcode,
            f"""{INIT}{MEET}{RANK}.reg .b32 there; .reg .{kind} z<4>;
mapa.shared::cluster.u32 far, bar, r; mad.lo.u32 a, t, {count * size}, s;
mapa.shared::cluster.u32 there, a, r;
@first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;
mul.wide.u32 off, t, {count * size}; add.s64 x, x, off; setp.lt.u32 q, t, {256 // (count * size)};
@q ld.global.{vector}{kind} {value}, [x];
@q {opcode} [there], {value}, [far];
{WAIT}mad.lo.u32 a, t, 4, s; ld.shared.b32 v, [a]; st.global.b32 [yt], v;
""",
            2,
            SWAPPED,
        )


def of_copies():
    """The same of bulk copies."""
    for opcode in opcodes("cp.async.bulk.shared::c"):
        copy = COPY.replace(COPY.split()[0], opcode)
        if "shared::cta.mbarrier" in opcode:
            continue  # from block to block, which test_units.py has
        hint = ", policy" if "cache_hint" in opcode else ""
        if "multicast" in opcode:
            body = MULTICAST.replace(MULTICAST_COPY, f"{opcode}\n  [s], [x], 256, [bar], mask{hint}")
            assert opcode in body
            yield opcode, POLICY + body, 2, TURNED[[0, 0, 2, 2]]
        else:
            yield opcode, POLICY + LOADING.replace(COPY, copy + hint), 1, TURNED
    for opcode in opcodes("cp.async.bulk.global.shared"):
        hint = ", policy" if "cache_hint" in opcode else ""
        yield opcode, POLICY + STORED.replace(GROUP_COPY, f"{opcode} [y], [s], 256{hint}"), 1, TURNED
    for opcode in opcodes("cp.async.bulk.wait_group"):
        yield opcode, STORED.replace("cp.async.bulk.wait_group.read", opcode), 1, TURNED
    for opcode in opcodes("cp.async.bulk.prefetch.L2"):
        yield opcode, f"@first {opcode} [x], 256;\n{LOADING}", 1, TURNED


CASES = list(cases())


@pytest.mark.parametrize("name, body, cluster, expected", CASES, ids=[name for name, *_ in CASES])
def test_forms(name, body, cluster, expected):
    execution, out = run(body, cluster)
    assert execution.findings == ()
    np.testing.assert_array_equal(out, np.broadcast_to(expected, out.shape))


SHAPES = {
    1: ((40,), (16,), (8,)),
    2: ((24, 96), (8, 32), (-3, 40)),
    3: ((5, 6, 48), (2, 3, 32), (4, -1, 16)),
    4: ((3, 4, 5, 16), (2, 2, 2, 16), (1, 3, -1, 0)),
    5: ((2, 3, 4, 5, 16), (1, 2, 2, 2, 16), (1, 2, 3, 4, 0)),
}
BOXES = [o for o in opcodes("cp.async.bulk.tensor", "cp.async.bulk.prefetch.tensor")]


@pytest.mark.parametrize("opcode", BOXES)
def test_forms_of_boxes(opcode):
    rank = int(re.search(r"(\d)d\.", opcode)[1])
    shape, box, at = SHAPES[rank]
    array = numbered(shape, np.float16)
    tensor = map_of(array, box)
    if "global.shared" in opcode:
        at = tuple(max(0, first) for first in at)
        tiles = numbered(box, np.float16)
        text = re.sub(r"cp\.async\.bulk\.tensor\S+", opcode, storing(tensor, at, tiles.nbytes))
        array[...] = 0
        arguments = {"X": tiles.view(np.uint8).ravel(), "A": array}
        execution = launch(text, arguments, ("A",), 32, (tensor,), params=("X",), given=("A",))
        np.testing.assert_array_equal(box_of(array, box, at) != 0, box_of(numbered(shape, bool), box, at))
    else:
        got = np.zeros(box_bytes(tensor), np.uint8)
        text = loading(tensor, at)
        if "prefetch" in opcode:
            text = prefetched(text, opcode, at)
        else:
            text = re.sub(r"cp\.async\.bulk\.tensor\S+", opcode, text)
        if "multicast" in opcode:
            text = text.replace("[f];\nWAIT", "[f], mask;\nWAIT").replace(
                ".reg .b64 m;", ".reg .b64 m; .reg .b16 mask; mov.b16 mask, 1;", 1
            )
        execution = launch(text, {"Y": got, "A": array}, ("Y",), 32, (tensor,), params=("Y",))
        np.testing.assert_array_equal(got, box_of(array, box, at).view(np.uint8).ravel())
    assert opcode in text and execution.findings == ()


def test_registers_from_one_warpgroup_to_another():
    body = """setp.lt.u32 p, t, 128; @p bra FEWER;
setmaxnreg.inc.sync.aligned.u32 208; bra BOTH;
FEWER: setmaxnreg.dec.sync.aligned.u32 40;
BOTH: griddepcontrol.wait; griddepcontrol.launch_dependents;
shl.b32 o, t, 2; cvt.u64.u32 wide, o; add.s64 at, y, wide; st.global.b32 [at], t;"""
    text = entry(body, ("Y",)).replace(")\n{", ")\n.reqntid 256 .maxnreg 128\n{", 1)
    out = np.zeros(256, np.uint32)
    assert launch(text, {"Y": out}, ("Y",), 256).findings == ()
    assert out.tolist() == list(range(256))
