"""Faults with mbarriers, bulk copies and clusters: each is found at its line and in words, and its repair is
sound, in all orders and with copies late and early."""

import pytest
from unit_kernels import (
    DONE,
    FILL,
    INIT,
    LOAD,
    MEET,
    MODES,
    OF_UNITS,
    OF_WARPGROUPS,
    OUT,
    STORE,
    WAIT,
    run,
)  # fmt: skip

LOADING, STORING = INIT + LOAD + WAIT + OUT, FILL + STORE + DONE
INVALIDATE = "@first mbarrier.inval.shared.b64 [bar];\n"
PROXY = "fence.proxy.async.shared::cta;\n"
AGAIN = LOADING + PROXY + "bar.sync 0;\n" + LOAD + WAIT.replace("WAIT", "NEXT").replace(", 0;", ", 1;") + OUT
REWRITTEN = STORING + "bar.sync 0; st.shared.b32 [a], 0;\n"
REMOTE = f"""mov.u32 r, %cluster_ctarank; xor.b32 r, r, 1; mapa.shared::cluster.u32 far, b, r;
{MEET}ld.global.b32 v, [xt]; st.shared::cluster.b32 [far], v;
{MEET}ld.shared.b32 v, [a]; st.global.b32 [yt], v;
"""
ARRIVE = "@first mbarrier.arrive.release.cluster.shared::cluster.b64 _, [far];\n"
SIGNAL = f"""{INIT}{MEET}mov.u32 r, %cluster_ctarank; xor.b32 r, r, 1; mapa.shared::cluster.u32 far, bar, r;
{ARRIVE}setp.ne.u32 p, t, 0;
WAIT: @first mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0; @!p bra WAIT;
ld.global.b32 v, [xt]; st.global.b32 [yt], v;
"""
MEETING = f"""{INIT.replace("[bar], 1;", "[bar], 64;")}st.shared.b32 [b], t;
mbarrier.arrive.shared.b64 _, [bar];
{WAIT}{OUT}"""
PRODUCTS = "setp.lt.u32 p, t, 128; @p wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n"
FAULTS = [
    (
        "in_flight",
        "read before the wait",
        LOADING,
        WAIT,
        "",
        "ld.shared",
        "reads slot in shared memory at byte",
    ),
    (
        "unfenced_proxy",
        "mbarrier of a copy",
        LOADING,
        "@first fence.mbarrier_init.release.cluster;\n",
        "",
        "cp.async.bulk",
        "tells the mbarrier bars in shared memory at byte 0 of its bytes, which warp 0 lane 0",
    ),
    (
        "barrier_misuse",
        "no init",
        LOADING,
        "@first mbarrier.init.shared.b64 [bar], 1;\n",
        "",
        "mbarrier",
        "uses the mbarrier bars in shared memory at byte 0, which is not initialised",
    ),
    (
        "barrier_misuse",
        "init of 0",
        LOADING,
        "[bar], 1;",
        "[bar], 0;",
        "mbarrier.init",
        "a count of 0; it can be 1 to 1048575",
    ),
    (
        "barrier_misuse",
        "at no multiple of 8",
        LOADING,
        "init.shared.b64 [bar], 1",
        "init.shared.b64 [bar+4], 1",
        "mbarrier.init",
        "has to be at a multiple of 8 bytes",
    ),
    (
        "deadlock",
        "arrivals are missing",
        LOADING,
        "[bar], 1;",
        "[bar], 3;",
        "@!p bra WAIT",
        "waits for phase 0 of full 0, the mbarrier bars in shared memory at byte 0: 2 arrivals are missing",
    ),
    (
        "deadlock",
        "an arrival and bytes are missing",
        LOADING,
        LOAD,
        "",
        "@!p bra WAIT",
        "1 arrival is missing",
    ),
    (
        "deadlock",
        "bytes are missing",
        LOADING,
        "[bar], 256;\n@first cp",
        "[bar], 272;\n@first cp",
        "@!p bra WAIT",
        "at byte 0: 16 bytes are missing",
    ),
    (
        "deadlock",
        "bytes nobody expects",
        LOADING,
        "[bar], 256;\n@first cp",
        "[bar], 240;\n@first cp",
        "@!p bra WAIT",
        "16 bytes came that no thread has told it to expect",
    ),
    (
        "barrier_misuse",
        "too many bytes",
        LOADING,
        "[bar], 256;\n@first cp",
        "[bar], 1048576;\n@first cp",
        "mbarrier.arrive",
        "is told of 1048576 bytes: more than the 1048575",
    ),
    ("misaligned", "bytes of a copy", LOADING, "[x], 256,", "[x], 250,", "cp.async.bulk", "writes 250 bytes"),
    ("out_of_bounds", "source of a copy", LOADING, "[x], 256,", "[x+512], 256,", "cp.async.bulk", "of X["),
    (
        "out_of_bounds",
        "target of a copy",
        LOADING,
        "complete_tx::bytes [s],",
        "complete_tx::bytes [s+128],",
        "cp.async.bulk",
        "out of bounds",
    ),
    (
        "barrier_misuse",
        "overwritten",
        LOADING,
        "bar.sync 0;\n@first mbarrier.arrive",
        "bar.sync 0; st.shared.b32 [bars+4], 7;\n@first mbarrier.arrive",
        "st.shared.b32 [bars+4]",
        "where an mbarrier is: mbarrier.inval first",
    ),
    (
        "barrier_misuse",
        "initialised in use",
        LOADING,
        "[bar], 256;\n@first cp",
        "[bar], 256;\n@first mbarrier.init.shared.b64 [bar], 1;\n@first cp",
        "mbarrier.init",
        "initialises the mbarrier bars in shared memory at byte 0, which is in use",
    ),
    (
        "barrier_misuse",
        "initialised again",
        LOADING + "bar.sync 0;\n" + INVALIDATE + "@first mbarrier.init.shared.b64 [bar], 1;\n",
        INVALIDATE,
        "",
        "mbarrier.init",
        "initialises the mbarrier bars in shared memory at byte 0, which is one already",
    ),
    (
        "misaligned",
        "a size that is no multiple",
        LOADING,
        "[x], 256, [bar];",
        "[x], 244, [bar];",
        "cp.async.bulk",
        "writes 244 bytes from slot in shared memory at byte 0 on: the size of a bulk copy",
    ),
    (
        "barrier_misuse",
        "too many arrivals",
        LOADING,
        WAIT,
        WAIT + "@first mbarrier.arrive.shared.b64 _, [bar], 2;\n",
        "mbarrier.arrive.shared.b64 _, [bar], 2",
        "more often than the 1 times that a phase takes",
    ),
    (
        "barrier_misuse",
        "an arrival in the next phase",
        MEETING,
        "[bar], 64;",
        "[bar], 63;",
        "mbarrier.arrive.shared.b64 _, [bar]",
        "completes a phase after 63 arrivals; nothing orders this arrival after the phase before",
    ),
    (
        "barrier_misuse",
        "an arrival that completes",
        LOADING,
        WAIT,
        WAIT + "@first mbarrier.arrive.noComplete.shared.b64 _, [bar], 1;\n",
        "noComplete",
        ".noComplete, and this arrival completes the phase",
    ),
    (
        "left_in_flight",
        "nobody waits for a copy",
        INIT + LOAD + WAIT,
        WAIT,
        "",
        "cp.async.bulk",
        "no thread has waited for the mbarrier bars in shared memory at byte 0",
    ),
    (
        "left_in_flight",
        "bytes that never come",
        INIT,
        "bar.sync 0;\n",
        "bar.sync 0;\n@first mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 64;\n",
        "mbarrier.init",
        "expects 64 more bytes",
    ),
    (
        "slot_in_use",
        "a copy reads",
        REWRITTEN,
        DONE,
        "",
        "st.shared.b32 [a], 0",
        "wait for it with cp.async.bulk.wait_group.read",
    ),
    (
        "slot_in_use",
        "no barrier behind the wait",
        REWRITTEN,
        DONE + "bar.sync 0;",
        DONE,
        "st.shared.b32 [a], 0",
        "may still be reading",
    ),
    (
        "left_in_flight",
        "a store",
        STORING,
        DONE,
        "",
        "cp.async.bulk.global",
        "the thread leaves while this copy may still read",
    ),
    (
        "unfenced_proxy",
        "a store",
        STORING,
        "fence.proxy.async.shared::cta;\n",
        "",
        "cp.async.bulk.global",
        "which warp 1 lane 31 at",
    ),
    (
        "unfenced_proxy",
        "a copy over what was read",
        AGAIN,
        PROXY,
        "",
        "cp.async.bulk.shared",
        "has read, with no fence.proxy.async between",
    ),
    (
        "race",
        "a copy over what may still be read",
        AGAIN,
        PROXY + "bar.sync 0;\n",
        PROXY,
        "cp.async.bulk.shared",
        "with no barrier or mbarrier between",
    ),
    (
        "race",
        "a store before the barrier",
        STORING,
        "bar.sync 0;\n@first cp",
        "@first cp",
        "cp.async.bulk.global",
        "with no barrier or mbarrier between",
    ),
    (
        "in_flight",
        "read what a store writes",
        FILL + STORE + DONE.replace(".read", "") + "@first ld.global.b32 v, [y];\n",
        "wait_group 0",
        "wait_group.read 0",
        "ld.global.b32 v, [y]",
        "wait for it with cp.async.bulk.wait_group first",
    ),
    (
        "race",
        "remote store",
        REMOTE,
        "st.shared::cluster.b32 [far], v;\n" + MEET,
        "st.shared::cluster.b32 [far], v;\n",
        "[",
        "nothing orders the two blocks",
    ),
    (
        "cluster_exit",
        "remote store",
        REMOTE,
        MEET + "ld.shared.b32 v, [a];",
        "",
        "st.shared::cluster",
        "which may have left",
    ),
    (
        "deadlock",
        "barrier of the cluster",
        SIGNAL + MEET.replace(".aligned", ""),
        ARRIVE,
        "",
        "barrier.cluster.wait",
        "waits at the barrier of the cluster, which not all threads of its blocks reach",
    ),
    (
        "deadlock",
        "an arrival of another block",
        SIGNAL + MEET.replace(".aligned", ""),
        ARRIVE,
        "",
        "@!p bra WAIT",
        "1 arrival is missing",
    ),
    (
        "deadlock",
        "a warp that commits nothing",
        PRODUCTS,
        "setp.lt.u32 p, t, 128",
        "setp.lt.u32 p, t, 96",
        "wgmma.wait_group",
        "waits for products that not all four warps of the warpgroup have committed",
    ),
    (
        "barrier_misuse",
        "waits without arriving",
        REMOTE,
        MEET + "ld.global",
        "barrier.cluster.wait.aligned; ld.global",
        "barrier.cluster.wait",
        "waits at the barrier of the cluster, where it has not arrived",
    ),
    (
        "barrier_misuse",
        "arrives twice",
        REMOTE,
        MEET + "ld.global",
        "barrier.cluster.arrive.aligned; " + MEET + "ld.global",
        "barrier.cluster.arrive",
        "arrives at the barrier of the cluster again",
    ),
    (
        "cluster_exit",
        "remote arrival",
        SIGNAL,
        "@!p bra WAIT;",
        "",
        "mbarrier.arrive.release.cluster",
        "of block",
    ),
]

IDS = [f"{kind}: {what}" for kind, what, *_ in FAULTS]


def executed(body, copies, order):
    cluster = (
        2 if "cluster" in body.replace("shared::cluster.global", "").replace("release.cluster;", "") else 1
    )
    return run(body, cluster, 128 if body.startswith(PRODUCTS[:12]) else 64, copies=copies, warp_order=order)[
        0
    ]


@pytest.mark.parametrize("copies, order", MODES)
@pytest.mark.parametrize("kind, what, body, fault, broken, line, words", FAULTS, ids=IDS)
def test_a_fault_is_found_and_its_absence_is_not(kind, what, body, fault, broken, line, words, copies, order):
    assert body.count(fault) == 1
    findings = executed(body.replace(fault, broken), copies, order).findings
    told = [finding for finding in findings if finding.kind == kind and line in finding.location.text]
    assert any(words in finding.message for finding in told), "\n".join(map(str, findings))
    assert executed(body, copies, order).findings == ()


def test_a_wait_for_the_wrong_parity_goes_on_too_early_or_never():
    body = AGAIN.replace("[bar], 1; @!p", "[bar], 0; @!p")
    early, late = (executed(body, copies, "forward").findings for copies in ("early", "late"))
    assert late[0].kind == "in_flight" and "wait for it at its mbarrier first" in late[0].message
    assert "phase 1 is over, and this thread has not waited for it" in early[0].message
    for copies, order in MODES:
        assert executed(AGAIN, copies, order).findings == ()


def test_every_kind_has_its_faulty_kernel():
    assert {fault[0] for fault in FAULTS} >= OF_UNITS - OF_WARPGROUPS
