"""mbarriers, bulk copies and clusters that are used as they should be: what they do, in all orders and with
copies late and early."""

import numpy as np
import pytest
from unit_kernels import DONE, FILL, INIT, LOAD, MEET, MODES, NUMBERS, OUT, STORE, TURNED, WAIT, run, text

from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.cpu.catalogue import entries, expanded
from tir_schedules.machines.cpu.instructions import ROWS
from tir_schedules.machines.cpu.lowering import lower
from tir_schedules.machines.cpu.parser import parse

LOADING = INIT + LOAD + WAIT + OUT
EVERYBODY = INIT.replace("[bar], 1", "[bar], 64")
ROUNDS = f"""{EVERYBODY}mov.u32 n, 0; mov.u32 v, 0;
MORE: mbarrier.arrive.shared.b64 state, [bar];
WAIT: mbarrier.try_wait.shared::cta.b64 p, [bar], state; @!p bra WAIT;
add.u32 v, v, n; add.u32 n, n, 1; setp.lt.u32 p, n, 9; @p bra MORE;
st.global.b32 [yt], v;
"""
"""64 threads meet nine times: 36."""

RING = """.reg .b32 k, phase, full, free; add.u32 full, bar, 0; add.u32 free, bar, 8;
@first mbarrier.init.shared.b64 [full], 1; @first mbarrier.init.shared.b64 [free], 32;
@first fence.mbarrier_init.release.cluster;
bar.sync 0;
setp.lt.u32 q, t, 32; @!q bra CONSUME;
@!first bra END;
mov.u32 k, 0;
PRODUCE: and.b32 phase, k, 1; xor.b32 phase, phase, 1;
FREE: mbarrier.try_wait.parity.shared::cta.b64 p, [free], phase; @!p bra FREE;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [x], 128, [full];
add.s64 x, x, 128; add.u32 k, k, 1; setp.lt.u32 p, k, 2; @p bra PRODUCE;
FREED: mbarrier.try_wait.parity.shared::cta.b64 p, [free], 1; @!p bra FREED;
bra END;
CONSUME: sub.s64 yt, yt, 128; mov.u32 k, 0;
NEXT: and.b32 phase, k, 1;
FULL: mbarrier.try_wait.parity.shared::cta.b64 p, [full], phase; @!p bra FULL;
ld.shared.b32 v, [a+-128]; fence.proxy.async.shared::cta; mbarrier.arrive.shared.b64 _, [free];
st.global.b32 [yt], v; add.s64 yt, yt, 128; add.u32 k, k, 1; setp.lt.u32 p, k, 2; @p bra NEXT;
END:
"""
"""One thread loads a slot twice, and a warp takes it out: mbarriers of both ways."""

RANK = "mov.u32 r, %cluster_ctarank; xor.b32 r, r, 1;\n"
FAR = "mapa.shared::cluster.u32 far, b, r;\n"
MULTICAST = f"""{INIT}{MEET}@first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;
mov.u32 r, %cluster_ctarank; setp.eq.and.u32 p, r, 0, first; .reg .b16 mask; mov.b16 mask, 3;
@p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
  [s], [x], 256, [bar], mask;
{WAIT}{OUT}"""
COPIED_OVER = f"""{INIT}{FILL}{MEET}{RANK}.reg .b32 there; mapa.shared::cluster.u32 far, bar, r;
add.u32 a, s, 0; mapa.shared::cluster.u32 there, a, r;
@first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
add.u32 there, there, 128;
@first cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [there], [s], 128, [far];
{WAIT}mad.lo.u32 a, t, 4, s; ld.shared.b32 v, [a]; st.global.b32 [yt], v;
"""
"""The first half of each block's slot becomes the second half of the other's."""

STORED_OVER = f"""{INIT}{MEET}{RANK}.reg .b32 there; mapa.shared::cluster.u32 far, bar, r;
mapa.shared::cluster.u32 there, b, r;
@first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;
ld.global.b32 v, [xt];
st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [there], v, [far];
{WAIT}ld.shared.b32 v, [a]; st.global.b32 [yt], v;
"""
SWAPPED = NUMBERS[[1, 0, 3, 2]]
PUT = f"{RANK}{FAR}{MEET}ld.global.b32 v, [xt]; st.shared::cluster.b32 [far], v;\n{MEET}"
TAKE = "ld.shared.b32 v, [a]; st.global.b32 [yt], v;\n"
COUNTED = f"""{INIT}@first st.shared.b32 [s], 0;
{MEET}mov.u32 r, 0; mapa.shared::cluster.u32 far, s, r; red.relaxed.cluster.shared::cluster.add.u32 [far], 1;
{MEET}ld.shared::cluster.u32 v, [far]; st.global.b32 [yt], v;
{MEET}"""
GENERIC = f"""{RANK}.reg .b64 g; cvt.u64.u32 g, b; cvta.shared.u64 g, g; mapa.u64 g, g, r;
{MEET}ld.global.b32 v, [xt]; st.b32 [g], v;
{MEET}ld.shared.b32 v, [a]; getctarank.u64 r, g; isspacep.shared::cluster p, g; isspacep.shared::cta q, g;
@!p mov.u32 v, 0; @q mov.u32 v, 0; st.global.b32 [yt], v;
"""
REGISTERS = """mov.u32 v, %cluster_ctarank; mov.u32 a, %cluster_nctarank; mad.lo.u32 v, v, 10, a;
mov.u32 a, %clusterid.x; mad.lo.u32 v, v, 10, a; mov.u32 a, %nclusterid.x; mad.lo.u32 v, v, 10, a;
mov.u32 a, %cluster_ctaid.x; mad.lo.u32 v, v, 10, a; mov.u32 a, %cluster_nctaid.x; mad.lo.u32 v, v, 10, a;
mov.pred p, %is_explicit_cluster; selp.u32 a, 1, 0, p; mad.lo.u32 v, v, 10, a; st.global.b32 [yt], v;
"""
WITH_COPIES = f"""{EVERYBODY}cp.async.ca.shared.global [b], [xt], 4;
cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
{WAIT}ld.shared.b32 v, [a]; st.global.b32 [yt], v;
"""
DROPPED = f"""{EVERYBODY}setp.lt.u32 q, t, 32;
@!q mbarrier.arrive_drop.shared.b64 _, [bar];
@!q st.global.b32 [yt], 1; @!q bra END;
mbarrier.arrive.shared.b64 state, [bar];
WAIT: mbarrier.try_wait.shared::cta.b64 p, [bar], state; @!p bra WAIT;
mbarrier.arrive.shared.b64 state, [bar];
NEXT: mbarrier.test_wait.shared.b64 p, [bar], state; @!p bra NEXT;
st.global.b32 [yt], 2;
END:
"""
COUNTS = f"""{INIT.replace("[bar], 1", "[bar], 5")}@!first bra END;
mbarrier.arrive.noComplete.shared.b64 state, [bar], 3;
mbarrier.pending_count.b64 v, state; st.global.b32 [y], v;
mbarrier.arrive.noComplete.shared.b64 state, [bar], 1;
mbarrier.pending_count.b64 v, state; st.global.b32 [y+4], v;
mbarrier.arrive.shared.b64 state, [bar]; mbarrier.test_wait.shared.b64 p, [bar], state; selp.u32 v, 7, 0, p;
st.global.b32 [y+8], v; mbarrier.inval.shared.b64 [bar]; st.shared.b64 [bar], 9; ld.shared.b32 v, [bar];
st.global.b32 [y+12], v;
END:
"""
PEEKED = INIT + "mbarrier.test_wait.parity.shared::cta.b64 p, [bar], 0;\n" + LOAD + WAIT + OUT
"""A test that fails is not a wait."""

CODES = np.array([[int(f"{block % 2}2{block // 2}2{block % 2}21")] for block in range(4)])
KERNELS = {
    "a copy is loaded": (LOADING, 1, TURNED),
    "a copy is stored": (FILL + STORE + DONE, 1, TURNED),
    "64 threads meet by states": (ROUNDS, 1, 36),
    "a ring of one slot": (RING, 1, NUMBERS),
    "a copy to both blocks": (MULTICAST, 2, TURNED[[0, 0, 2, 2]]),
    "a copy from block to block": (COPIED_OVER, 2, np.hstack([TURNED[:, :32], TURNED[[1, 0, 3, 2], :32]])),
    "st.async": (STORED_OVER, 2, SWAPPED[:, ::-1]),
    "a remote store": (PUT + TAKE, 2, SWAPPED[:, ::-1]),
    "remote atomics": (COUNTED, 4, 256),
    "generic addresses": (GENERIC, 2, SWAPPED[:, ::-1]),
    "special registers": (REGISTERS, 2, CODES),
    "cp.async": (WITH_COPIES, 1, TURNED),
    "threads that leave": (DROPPED, 1, np.repeat([[2, 1]], 4, 0).repeat(32, 1)),
    "a test that fails": (PEEKED, 1, TURNED),
}


@pytest.mark.parametrize("copies, order", MODES)
@pytest.mark.parametrize("name", KERNELS)
def test_what_they_do(name, copies, order):
    body, cluster, expected = KERNELS[name]
    execution, out = run(body, cluster, copies=copies, warp_order=order)
    assert execution.findings == () and execution.notes == ()
    np.testing.assert_array_equal(out, np.broadcast_to(expected, out.shape))


def test_counts_of_arrivals():
    execution, out = run(COUNTS)
    assert execution.findings == () and out[0, :4].tolist() == [5, 2, 7, 9]


def test_two_orders_are_two_kinds_of_copies():
    """The second order copies early: it sees what the first one does not."""
    late, early = (
        run(LOADING.replace(WAIT, "bar.sync 0;\n"), copies=copies)[1] for copies in ("late", "early")
    )
    assert not np.array_equal(late, TURNED) and np.array_equal(early, TURNED)
    kinds = {finding.kind for finding in run(LOADING.replace(WAIT, ""), orders=2)[0].findings}
    assert {"in_flight", "order_dependent"} <= kinds


def test_who_waits_spends_no_budget():
    """A warp that waits for an mbarrier executes its loop twice, however long it takes."""
    slow = "mov.u32 n, 0; SLOW: add.u32 n, n, 1; setp.lt.u32 p, n, 3000; @p bra SLOW;\n"
    arrive = "setp.eq.u32 q, t, 32; @q mbarrier.arrive.shared.b64 _, [bar];\n"
    body = f"{INIT}setp.lt.u32 q, t, 32; @q bra WAIT;\n{slow}{arrive}"
    execution, _ = run(f"{body}{WAIT}", budget=10_000)
    assert execution.findings == ()


def test_a_loop_that_gives_up_is_no_deadlock():
    """Others may change what else it looks at."""
    body = f"""{INIT}setp.lt.u32 q, t, 32; mov.u32 n, 0; @q bra WAIT; bra END;
WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0; add.u32 n, n, 1;
setp.gt.u32 q, n, 50; or.pred p, p, q;
@!p bra WAIT;
END: st.global.b32 [yt], n;
"""
    execution, out = run(body)
    assert execution.findings == () and set(out[0, :32]) == {51}


@pytest.mark.parametrize(
    "cluster, words",
    [
        (
            3,
            "clusters of 3,1,1, and it is launched with a grid of 4,1,1: each extent of the grid must be",
        ),
        (16, "16 blocks; CUDA launches clusters of at most 8"),
    ],
)
def test_clusters_that_cuda_refuses(cluster, words):
    with pytest.raises(CheckFailed, match=words):
        run(LOADING, cluster)


def test_options():
    with pytest.raises(BadInput, match="copies is 'soon'; it can be late or early"):
        CpuMachine(copies="soon")


OPERANDS = {
    "mbarrier.init": "[a], v",
    "mbarrier.inval": "[a]",
    "mbarrier.arrive": "_, [a]",
    "mbarrier.arrive_drop": "_, [a]",
    "mbarrier.expect_tx": "[a], v",
    "mbarrier.complete_tx": "[a], v",
    "mbarrier.test_wait": "p, [a], {parity}",
    "mbarrier.try_wait": "p, [a], {parity}",
    "mbarrier.pending_count": "v, w",
    "cp.async.mbarrier": "[a]",
    "cp.async.bulk": "[a], [w], v, [a]",
    "cp.async.bulk.wait_group": "0",
    "st.async": "[a], {value}, [a]",
    "mapa": "{address}, {address}, v",
    "getctarank": "v, {address}",
}
LISTED = [
    (name, opcode)
    for entry in entries()
    if entry.family in ("mbarrier", "bulk", "cluster") and entry.precision != "refused"
    for opcode in expanded(entry.opcodes)
    for name in [
        next(name for name in sorted(ROWS, key=len, reverse=True) if f"{opcode}.".startswith(f"{name}."))
    ]
]


def operands_of(name, opcode):
    """Of the kinds that the opcode asks for."""
    more = (", h" if "multicast" in opcode else "") + (", w" if "cache_hint" in opcode else "")
    rank = next((int(part[0]) for part in opcode.split(".") if part in ("1d", "2d", "3d", "4d", "5d")), 0)
    box = f"[w, {{{', '.join('v' * rank)}}}]"
    if "bulk_group" in opcode:
        return (f"{box}, [a]" if rank else "[w], [a], v") + more
    if "prefetch" in name:
        return box if rank else "[w], v"
    if rank:
        return f"[a], {box}, [a]{more}"
    if "noComplete" in opcode or "arrive" in opcode and "expect_tx" in opcode:
        return "_, [a], v"
    register = "w" if opcode.endswith("64") else "v"
    count = next((int(part[1]) for part in opcode.split(".") if part in ("v2", "v4")), 1)
    value = f"{{{', '.join([register] * count)}}}" if count > 1 else register
    parity = "v" if "parity" in opcode else "w"
    return OPERANDS.get(name, "").format(parity=parity, value=value, address=register) + more


def test_every_opcode_of_the_table_is_lowered():
    lines = [f"{opcode} {operands_of(name, opcode)};" for name, opcode in LISTED]
    assert len(lines) > 100
    module = parse(text(".reg .b64 w; .reg .b16 h;\n" + "\n".join(lines)))
    lower(module, module.kernels["k"])
