"""What stays in a cache: rings of L2 that all SMs read again and again, of more bytes than one partition or
the whole of it holds, and a thread's own memory, which L1 keeps."""

from __future__ import annotations

from typing import Iterator

from micro_probes import Probe

ROW = 16384
"""Bytes that a block of 1024 threads reads at once, 16 by each."""

RINGS = (4, 8, 10, 12, 14, 16, 20, 24, 28, 32)
"""Rows of a block's ring. With 132 SMs that is 9 to 72 MB."""


def rings() -> Iterator[Probe]:
    """Each SM reads a ring of rows, and where told writes one as well."""
    for rows in RINGS:
        yield ring(rows, False)
    for rows in RINGS[:6]:
        yield ring(rows, True)


def at_own_ring(number: str, size: int, index: str) -> str:
    """%d0: where a thread, `index` of those that share a ring, begins to read, and %d1: how far on it is.
    number: PTX that sets %r10 to the number of the ring; size: bytes from one ring to the next."""
    return f"""\
{number}
    mul.wide.u32 wide, %r10, {size};
    add.u64 at, data, wide;
    mul.wide.u32 wide, {index}, 16;
    add.u64 %d0, at, wide;
    mov.u64 %d1, 0;
    mov.u32 %r0, y;"""


def ring(rows: int, writes: bool) -> Probe:
    size = rows * ROW
    begin = at_own_ring("    mov.u32 %r10, %ctaid.x;", size * (1 + writes), "thread")

    def body(i: int) -> str:
        names = ", ".join(f"%r{20 + 4 * (i % 4) + k}" for k in range(4))
        store = f"    st.global.v4.u32 [%d2+{size}], {{{names}}};\n" if writes else ""
        return f"""\
    add.u64 %d2, %d0, %d1;
    ld.global.cg.v4.u32 {{{names}}}, [%d2];
{store}\
    xor.b32 %r0, %r0, %r{20 + 4 * (i % 4)};
    add.u64 %d1, %d1, {ROW};
    setp.eq.u64 %p0, %d1, {size};
    selp.b64 %d1, 0, %d1, %p0;"""

    return Probe(
        f"L2 {'copy' if writes else 'read'}, again and again, {rows} rows of each SM", "residency", "LDG",
        body, begin, sink=("%r0",), copies=(4, 12), warps=32, blocks=0,
        data_bytes=256 * size * (1 + writes), notes={"bytes": ROW, "ring": size},
    )  # fmt: skip


KIB = (16, 32, 64, 96, 112, 128, 144, 160, 192, 208, 224, 240)
"""Of a ring that the 32 warps of an SM read, each a part of its own."""


def near() -> Iterator[Probe]:
    """Rings that L1 may hold, read by a block of 32 warps on each SM, by 32 blocks of a warp, and beside
    stores to as many lines elsewhere."""
    for kib in KIB:
        yield near_ring(kib, 32, False)
        yield near_ring(kib, 1, False)
    for kib in KIB[:9]:
        yield near_ring(kib, 32, True)


def near_ring(kib: int, warps: int, writes: bool) -> Probe:
    size = kib * 32
    number = f"    mov.u32 %r10, %ctaid.x;\n    mad.lo.u32 %r10, %r10, {warps}, warp;"
    setup = at_own_ring(number, size * (1 + writes), "lane")

    def body(i: int) -> str:
        store = f"    st.global.v4.u32 [%d2+{size}], {{y, z, y, z}};\n" if writes else ""
        return f"""\
    add.u64 %d2, %d0, %d1;
    ld.global.ca.v4.u32 {{%r20, %r21, %r22, %r23}}, [%d2];
{store}\
    xor.b32 %r0, %r0, %r20;
    add.u64 %d1, %d1, 512;
    setp.eq.u64 %p0, %d1, {size};
    selp.b64 %d1, 0, %d1, %p0;"""

    blocks = "a block of 32 warps" if warps == 32 else "32 blocks of a warp"
    return Probe(
        f"L1 {'copy' if writes else 'read'}, again and again, {kib} KiB by {blocks}", "residency", "LDG",
        body, setup, sink=("%r0",), copies=(4, 12), warps=warps, blocks=0 if warps == 32 else 132 * 32,
        data_bytes=256 * 32 * size * (1 + writes), notes={"ring": kib << 10},
    )  # fmt: skip


STACKS = (64, 1024, 4096)
"""Bytes of a thread's own memory. 32 warps have 64 KiB, 1 MiB and 4 MiB of it."""


def stacks() -> Iterator[Probe]:
    """Words of a thread's own memory, each copy the next one."""
    for size in STACKS:
        for warps in (1, 4, 16, 32):
            for form in ("load", "store"):
                yield stack(size, warps, form)


def stack(size: int, warps: int, form: str) -> Probe:
    setup = f"""\
    .local .align 16 .b8 stack[{size}];
    mov.u64 %d0, stack;
    mov.u32 %r10, 0;
    mov.u32 %r0, y;
    mov.u32 %r1, z;"""

    def body(i: int) -> str:
        access = "st.local.u32 [%d1], %r1;"
        if form == "load":
            access = f"ld.local.u32 %r{20 + i}, [%d1];\n    xor.b32 %r0, %r0, %r{20 + i};"
        return f"""\
    cvt.u64.u32 wide, %r10;
    add.u64 %d1, %d0, wide;
    {access}
    add.u32 %r10, %r10, 4;
    and.b32 %r10, %r10, {size - 1};"""

    return Probe(
        f"local memory, {form} of {size} bytes, {warps} warps", "residency",
        "LDL" if form == "load" else "STL", body, setup, sink=("%r0",), copies=(8, 24), warps=warps,
    )  # fmt: skip


def probes() -> Iterator[Probe]:
    yield from near()
    yield from rings()
    yield from stacks()
