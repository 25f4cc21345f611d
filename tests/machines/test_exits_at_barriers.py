"""Threads that have left the kernel are not waited for at a barrier: what an H100 does with each of these."""

import numpy as np
import pytest
from ptx_kernels import SLOTS, module

from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.kernel import Binary, Kernel, Resources

THREADS = 128
HEAD = SLOTS + ".reg .b32 l, a, b, d; .reg .pred p, q, r; and.b32 l, t, 31; mov.u32 d, 7;"
FROM_64, FROM_84, FROM_96 = (f"setp.ge.u32 p, t, {first}; @p ret;" for first in (64, 84, 96))
PART = "setp.ge.u32 p, l, 20; @p ret;"
LATE = "setp.ne.u32 p, t, 5; @p bra ON; mov.u32 a, 9; ROUND: sub.u32 a, a, 1; setp.gt.s32 q, a, 0;"
LATE += "@q bra ROUND; ret; ON:"
IN_PIECES = "setp.lt.u32 q, l, 9; @q bra FEW; {0}; bra MET; FEW: {0}; MET:"
LEAVE = "setp.ge.u32 p, l, 20; @p bra END; {} bra ON; END: ret; ON:"
SKIP = "mov.u32 a, 0; setp.lt.u32 q, l, 9; @q bra ON; {0} ON: add.u32 d, d, a;"

SOUND = {
    "whole warps": (FROM_64 + "bar.sync 0;", 64),
    "part of each warp": (PART + "bar.sync 0;", 80),
    "warps and part of one": (FROM_84 + "bar.sync 0;", 84),
    "a named barrier of all": (PART + "bar.sync 1;", 80),
    "two of them": (PART + "bar.sync 1; bar.sync 2;", 80),
    "a count, part of each warp": (PART + "bar.sync 1, 128;", 80),
    "a count, part of the last warp": (FROM_84 + "bar.sync 1, 96;", 84),
    "a count of those who are there": (FROM_64 + "barrier.sync 2, 64;", 64),
    "late, at a barrier of all": (LATE + "bar.sync 0;", 127),
    "late, at a named one": (LATE + "barrier.sync 5;", 127),
    "late, at a count": (LATE + "barrier.sync 4, 128;", 127),
    "lanes that come in pieces": (PART + IN_PIECES.format("barrier.sync 7, 128"), 80),
    "lanes that skip one for each lane by itself": (SKIP.format("barrier.sync 1;"), 128),
    "a warp that skips one": (SKIP.format("bar.sync 0;").replace("q, l, 9", "q, t, 32"), 128),
    "work before they leave": ("setp.lt.u32 q, l, 9; @q bra OTHERS; bar.sync 0; bra ON;"
                               "OTHERS: st.global.u32 [y], 0; ret; ON:", 92),
    "votes": (PART + "setp.ge.u32 r, t, 0; bar.red.popc.u32 d, 3, r; sub.u32 d, d, 73;", 80),
    "lanes that leave at the end, a vote": (LEAVE.format("vote.sync.ballot.b32 a, p, -1;"), 80),
    "lanes that leave at the end, a warp's barrier": (LEAVE.format("bar.warp.sync -1;"), 80),
    "lanes that leave at the end, a shuffle": (LEAVE.format("shfl.sync.idx.b32 a, l, 0, 31, -1;"), 80),
    "who only arrives": (PART + "setp.ge.u32 q, t, 64; @q bra ARRIVE; bar.sync 1, 128; bra MET; "
                         "ARRIVE: bar.arrive 1, 128; MET:", 80),
}  # fmt: skip

FAULTY = {
    "the rest of a warp goes on": (SKIP.format("bar.sync 0;"), "divergent_aligned", "lanes 0xfffffe00 of"),
    "at a named barrier": (SKIP.format("bar.sync 1, 128;"), "divergent_aligned", "go on without them"),
    "out of a loop": ("mov.u32 a, 0; AGAIN: setp.gt.u32 q, a, l; @q bra ON; bar.sync 0; add.u32 a, a, 1;"
                      "bra AGAIN; ON: add.u32 d, d, a;", "divergent_aligned", "go on without them"),
    "a count of warps that have left": (FROM_96 + "bar.sync 1, 128;", "deadlock", "for 128 threads, 96 have"),
    "late, a count of more": (LATE + "barrier.sync 4, 160;", "deadlock", "for 160 threads, 128 have"),
    "two barriers": (FROM_96 + "setp.lt.u32 q, t, 32; @q bra FEW; bar.sync 1; bra MET; FEW: bar.sync 2; MET:",
                     "deadlock", "waits at barrier"),
    "instructions": (FROM_96 + "setp.lt.u32 q, t, 32; @q bra FEW;\nbar.sync 0;\nbra MET;\n"
                     "FEW: bar.sync 0; MET:", "divergent_barrier", "waits at another barrier"),
    "a shuffle from who has left": (LEAVE.format("shfl.sync.idx.b32 a, l, 25, 31, -1; add.u32 d, d, a;"),
                                    "divergent_aligned", "active lanes 0x000fffff"),
    "a loop that the rest never leaves": (
        "setp.lt.u32 q, t, 32; @q bra MEET; AGAIN: ld.volatile.global.u32 a, [x]; setp.eq.u32 r, a, 0;"
        "@r bra AGAIN; MEET: bar.sync 0;", "deadlock", "this barrier, which the others never reach"),
}  # fmt: skip


def run(body, order):
    arguments = {"X": np.zeros(2 * THREADS, np.uint32), "Y": np.zeros(2 * THREADS, np.uint32)}
    text = module("test", arguments, HEAD + body + "st.global.u32 [y], d;")
    kernel = Kernel("test", "", "test", tuple(arguments), (1, 1, 1), (THREADS, 1, 1), "sm_80")
    machine = CpuMachine(warp_order=order, seed=3)
    return machine.run(Binary(kernel, text, b"", Resources(0, 0)), arguments, ("Y",)).findings, arguments["Y"]


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
@pytest.mark.parametrize("case", SOUND)
def test_who_has_left_is_not_waited_for(case, order):
    body, passed = SOUND[case]
    findings, y = run(body, order)
    assert findings == () and (y == 7).sum() == passed


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
@pytest.mark.parametrize("case", FAULTY)
def test_what_a_barrier_still_lacks_is_found(case, order):
    body, kind, message = FAULTY[case]
    findings, _ = run(body, order)
    assert {one.kind for one in findings} == {kind} and any(message in one.message for one in findings), (
        findings
    )
