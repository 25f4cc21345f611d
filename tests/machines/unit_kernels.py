"""PTX of kernels with mbarriers, bulk copies and clusters: 64 threads, X to Y."""

import numpy as np

from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.kernel import Binary, Kernel, Resources

THREADS, BLOCKS = 64, 4

START = """.reg .b32 t, a, b, v, s, bar, n, r, far; .reg .b64 x, y, xt, yt, off, state;
.reg .pred p, q, first;
.shared .align 128 .b8 slot[256]; .shared .align 8 .b8 bars[32];
ld.param.u64 x, [X]; ld.param.u64 y, [Y]; mov.u32 t, %ctaid.x; mul.wide.u32 off, t, 256;
add.s64 x, x, off; add.s64 y, y, off;
mov.u32 t, %tid.x; setp.eq.u32 first, t, 0; mul.wide.u32 off, t, 4; add.s64 xt, x, off; add.s64 yt, y, off;
mov.u32 s, slot; mov.u32 bar, bars; mad.lo.u32 a, t, 4, s; xor.b32 b, t, 63; mad.lo.u32 b, b, 4, s;
"""
"""x, y: of the block; xt, yt: of the thread. s: the slot; a, b: the thread's word there, and another's."""

INIT = """@first mbarrier.init.shared.b64 [bar], 1;
@first fence.mbarrier_init.release.cluster;
bar.sync 0;
"""
LOAD = """@first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;
@first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [x], 256, [bar];
"""
WAIT = "WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0; @!p bra WAIT;\n"
OUT = "ld.shared.b32 v, [b]; st.global.b32 [yt], v;\n"
"""Each thread writes the word of another."""

FILL = """ld.global.b32 v, [xt]; st.shared.b32 [b], v;
fence.proxy.async.shared::cta;
bar.sync 0;
"""
STORE = """@first cp.async.bulk.global.shared::cta.bulk_group [y], [s], 256;
@first cp.async.bulk.commit_group;
"""
DONE = "@first cp.async.bulk.wait_group.read 0;\n"
MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"


def text(body):
    return (
        ".version 8.5\n.target sm_90a\n.address_size 64\n"
        f".visible .entry k(.param .u64 X, .param .u64 Y)\n{{\n{START}{body}ret;\n}}\n"
    )


def run(body, cluster=1, threads=THREADS, blocks=BLOCKS, **how):
    """The execution, and Y by blocks."""
    source = text(body)
    kernel = Kernel(
        "test", source, "k", ("X", "Y"), (blocks, 1, 1), (threads, 1, 1), "sm_90a", cluster=(cluster, 1, 1)
    )
    numbers = np.arange(1, blocks * THREADS + 1, dtype=np.uint32)
    out = np.zeros_like(numbers)
    execution = CpuMachine(**how).run(
        Binary(kernel, source, b"", Resources(0, 0)), {"X": numbers, "Y": out}, ("Y",)
    )
    return execution, out.reshape(blocks, THREADS)


NUMBERS = np.arange(1, BLOCKS * THREADS + 1, dtype=np.uint32).reshape(BLOCKS, THREADS)
TURNED = NUMBERS[:, ::-1]
OF_WARPGROUPS = {
    "bad_tensor_map",
    "bad_descriptor",
    "unfenced_wgmma",
    "wgmma_registers",
    "too_many_registers",
}
"""Kinds of finding that test_warpgroup_faults.py and test_tensor_map.py are about."""

OF_UNITS = OF_WARPGROUPS | {
    "barrier_misuse",
    "slot_in_use",
    "unfenced_proxy",
    "cluster_exit",
    "left_in_flight",
}
"""Kinds that only kernels with asynchronous units have."""

MODES = [(copies, order) for copies in ("late", "early") for order in ("forward", "reverse", "random")]
