"""Probes of when a register that a request to memory reads may be written again.

A warp asks shared memory for words that all lie in one bank, so that requests wait in the queue. Behind them
comes one more request. Then the warp adds to a register that the last request reads, and reads the clock when
the sum is there. If registers are read at issue, the figure grows by what it takes to issue one more request.
If they are read when the data path takes the request, it grows by the wavefronts of one more.
"""

from __future__ import annotations

from typing import Iterator

from micro_memory import SHARED_ARRAY, lanes_apart, pointers
from micro_probes import Probe

REQUESTS = {
    "address of lds.32": ("LDS", "ld.volatile.shared.u32 %r39, [{0}];", "%r1"),
    "address of lds.32 of 16 wavefronts": ("LDS", "ld.volatile.shared.u32 %r39, [{0}];", "%r4"),
    "address of ldsm.x4": (
        "LDSM", "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r36, %r37, %r38, %r39}}, [{0}];", "%r1"
    ),
    "address of sts.32": ("STS", "st.volatile.shared.u32 [{0}], %r2;", "%r1"),
    "word of sts.32": ("STS", "st.volatile.shared.u32 [%r2], {0};", "%r1"),
    "word of sts.32 of 16 wavefronts": ("STS", "st.volatile.shared.u32 [%r0], {0};", "%r1"),
    "address of ldg.128": ("LDG", "ld.volatile.global.v4.u32 {{%r36, %r37, %r38, %r39}}, [{0}];", "%d1"),
    "source of cp.async": ("LDGSTS", "cp.async.cg.shared.global [%r2], [{0}], 16;", "%d1"),
    "target of cp.async": ("LDGSTS", "cp.async.cg.shared.global [{0}], [%d2], 16;", "%r1"),
}  # fmt: skip
"""Name -> what SASS calls the request, its PTX, and the register that is added to."""

AHEAD = (0, 1, 2, 3)
"""Requests that the data path has to do first; a sub-core's queue holds more."""

SETUP = f"""\
{pointers(16)}
{lanes_apart(64)}
    mad.lo.u32 %r1, lane, 16, smem;
    mov.u32 %r2, %r1;
    mov.u32 %r4, %r0;
    mov.u64 %d1, %d0;
    mov.u64 %d2, %d0;
    cvt.u64.u32 %d4, y;
    mov.u32 %r30, 0;
    mov.u32 %r35, y;"""
"""PTX: lanes 16 bytes apart at %r1, 64 bytes and so in one bank at %r0. y is 0, which ptxas does not know."""


def turn(ahead: int, request: str, register: str) -> str:
    """PTX of a turn."""
    bits, nothing = ("u64", "%d4") if register.startswith("%d") else ("u32", "y")
    words = [*(f"%r{40 + n}" for n in range(ahead)), *["%r39"] * ("%r39" in request)]
    return "\n".join([
        "    mov.u32 %r31, %clock;",
        *(f"    ld.volatile.shared.u32 %r{40 + n}, [%r0];" for n in range(ahead)),
        f"    {request.format(register)}", f"    add.{bits} {register}, {register}, {nothing};",
        f"    setp.ne.{bits} %p1, {register}, 0;", "    @%p1 mov.u32 %r32, %clock;",
        "    sub.u32 %r30, %r32, %r31;", *["    cp.async.wait_all;"] * ("cp.async" in request),
        "    bar.sync 0;", *(f"    xor.b32 %r35, %r35, {word};" for word in words),
        "    st.volatile.shared.u32 [smem+8192], %r35;", "    bar.sync 0;",
    ])  # fmt: skip


def probes() -> Iterator[Probe]:
    for name, (opcode, request, register) in REQUESTS.items():
        for ahead in AHEAD:
            others = ahead if opcode == "LDS" else opcode == "STS"
            yield Probe(
                f"{name}, behind {ahead} requests", "addresses", opcode,
                lambda i, a=ahead, t=request, r=register: turn(a, t, r), SETUP, declare=SHARED_ARRAY,
                sink=("%r30",), copies=(1, 1), needs="sm_80", per_copy=1 + others,
            )  # fmt: skip
