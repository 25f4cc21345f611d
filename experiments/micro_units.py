"""Probes of Hopper's units: wgmma, mbarriers, TMA, clusters and their shared memory."""

from __future__ import annotations

from itertools import product
from typing import Iterator

from micro_probes import Probe

from tir_schedules.model.launch import TensorMap

HOPPER = "sm_90a"
ARRAY = ".shared .align 1024 .b8 buffer[40960];\n.shared .align 8 .b64 bars[8];"
SWIZZLE_128 = 1 << 62
PITCH = 1024 >> 4
"""Of groups of eight rows of 128 bytes, as a descriptor has it."""

DESCRIPTORS = f"""\
    mov.u32 smem, buffer;
    shr.u32 %r20, smem, 4;
    and.b32 %r20, %r20, 0x3fff;
    cvt.u64.u32 %d0, %r20;
    or.b64 %d0, %d0, {SWIZZLE_128 | PITCH << 32 | 1 << 16};
    add.u64 %d1, %d0, {8192 >> 4};
    mov.u32 %r100, 0;
    mov.u32 %r101, 0;
    mov.u32 %r102, 0;
    mov.u32 %r103, 0;
"""
"""PTX: %d0 describes a tile of A at the start of shared memory, %d1 one of B behind it."""

OPERANDS = {
    "f32.f16": ("f32.f16.f16", 16, True), "f16.f16": ("f16.f16.f16", 16, True),
    "f32.bf16": ("f32.bf16.bf16", 16, True), "f32.tf32": ("f32.tf32.tf32", 8, False),
    "f32.e4m3": ("f32.e4m3.e4m3", 32, False), "s32.s8": ("s32.s8.s8", 32, False),
}  # fmt: skip
"""Name -> types in PTX, length along K, whether B may be transposed."""


def wgmma(operands: str, n: int, from_registers: bool) -> str:
    """PTX of one product, whose sums are the first registers."""
    types, k, transposable = OPERANDS[operands]
    words = n // 4 if types.startswith("f16") else n // 2
    kind = "%f" if types.startswith("f32") else "%r"
    first = 110 if kind == "%r" and words > 40 else 0
    sums = ", ".join(f"{kind}{first + at}" for at in range(words))
    a = "{%r100, %r101, %r102, %r103}" if from_registers else "%d0"
    scales = "" if types.startswith("s32") else ", 1, 1"
    transposed = (", 0" if from_registers else ", 0, 0") if transposable else ""
    return (
        f"    wgmma.mma_async.sync.aligned.m64n{n}k{k}.{types} {{{sums}}}, {a}, %d1, 1{scales}{transposed};"
    )


def warpgroup_products() -> Iterator[Probe]:
    """wgmma: a turn issues so many and waits for them."""
    cases = [
        ("f32.f16", n, registers)
        for n in (8, 16, 24, 32, 64, 96, 128, 192, 256)
        for registers in (False, True)
    ]
    cases += [("f16.f16", 128, False), ("f16.f16", 256, False), ("f32.bf16", 128, False)]
    cases += [
        ("f32.tf32", 64, False),
        ("f32.tf32", 128, False),
        ("f32.tf32", 256, False),
        ("f32.e4m3", 128, False),
    ]
    for operands, n, registers in cases:
        for groups in (1, 2):
            where = "registers" if registers else "shared memory"
            opcode = {"e4m3": "QGMMA", "s8": "IGMMA"}.get(operands.partition(".")[2], "HGMMA")
            sums = tuple(f"%f{at}" for at in range(n // 2)) if operands.startswith("f32") else ()
            zero = "\n".join(f"    mov.f32 {name}, 0f00000000;" for name in sums)
            zero = zero or "\n".join(f"    mov.u32 %r{at}, 0;" for at in wide_sums(n))
            yield Probe(
                f"wgmma.n{n}.{operands}, A from {where}, {groups} warpgroups", "wgmma", opcode,
                lambda i, o=operands, n=n, r=registers: wgmma(o, n, r), DESCRIPTORS + zero,
                before=lambda copies: "    wgmma.fence.sync.aligned;",
                after=lambda copies: (
                    "    wgmma.commit_group.sync.aligned;\n    wgmma.wait_group.sync.aligned 0;"
                ),
                declare=ARRAY, sink=sums or tuple(f"%r{at}" for at in wide_sums(n)), copies=(1, 9),
                warps=4 * groups, needs=HOPPER, notes={"n": n, "operands": operands, "a": where},
            )  # fmt: skip


def wide_sums(n: int) -> range:
    """Numbers of the b32 registers of sums of 16 bits."""
    words = n // 4
    first = 110 if words > 40 else 0
    return range(first, first + words)


START = """\
    mov.u32 smem, buffer;
    mov.u32 %r10, bars;
    mov.u32 %r11, 0;
    setp.ne.u32 %p1, thread, 0;
    @%p1 bra ready;
    mbarrier.init.shared.b64 [%r10], {count};
    mbarrier.init.shared.b64 [%r10+8], {count};
    fence.mbarrier_init.release.cluster;
    fence.proxy.async.shared::cta;
ready:
    setp.eq.u32 %p1, thread, 0;
"""


def wait(number: str, parity: str = "%r11") -> str:
    """PTX that waits for the phase of an mbarrier, and fails where it never ends."""
    return f"""\
    mov.u32 %r15, 0;
wait{number}:
    mbarrier.try_wait.parity.shared.b64 %p2, [%r10], {parity};
    @%p2 bra over{number};
    add.u32 %r15, %r15, 1;
    setp.lt.u32 %p3, %r15, 1000000;
    @%p3 bra wait{number};
    trap;
over{number}:"""


def mbarriers() -> Iterator[Probe]:
    """Arrive and wait, by one warp and by several."""
    for warps in (1, 4, 8):
        yield Probe(
            f"mbarrier arrive and wait, {warps} warps", "mbarrier", "SYNCS",
            lambda i: "    mbarrier.arrive.shared.b64 %d5, [%r10];\n" + turned(f"_{i}"),
            START.format(count=32 * warps), declare=ARRAY, copies=(4, 12), warps=warps, needs="sm_90",
            per_copy=2,
        )  # fmt: skip
    yield Probe(
        "mbarrier.try_wait of a phase that is over", "mbarrier", "SYNCS", lambda i: wait(f"_{i}", "%r12"),
        START.format(count=1) + "    mov.u32 %r12, 1;", declare=ARRAY, copies=(4, 12), needs="sm_90",
    )  # fmt: skip
    yield Probe(
        "mbarrier.arrive", "mbarrier", "SYNCS", lambda i: "    mbarrier.arrive.shared.b64 %d5, [%r10];",
        START.format(count=32), declare=ARRAY, copies=(4, 12), needs="sm_90",
    )  # fmt: skip


def bulk_load(size: int, number: int) -> str:
    return (
        "    @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        f" [smem], [%d4], {size}, [%r10];"
    )


def expect(size: int, copies: int) -> str:
    return f"    @%p1 mbarrier.arrive.expect_tx.shared.b64 %d5, [%r10], {size * copies};"


def turned(number: str) -> str:
    """PTX at the end of a turn: wait, and the next phase."""
    return wait(number) + "\n    xor.b32 %r11, %r11, 1;"


SIZES = (16, 128, 512, 1024, 2048, 4096, 8192, 16384, 32768)


def bulk_copies() -> Iterator[Probe]:
    """Copies of a row of bytes by TMA, to shared memory and from it: a turn starts so many of a size and
    waits for them."""
    begin = START.format(count=1) + "    mov.u64 %d4, data;"
    for size in SIZES:
        yield Probe(
            f"bulk load of {size} bytes", "tma", "UBLKCP", lambda i, s=size: bulk_load(s, i), begin,
            before=lambda copies, s=size: expect(s, copies), after=lambda copies: turned("_end"),
            declare=ARRAY, copies=(1, 5), needs="sm_90", notes={"bytes": size},
        )  # fmt: skip
        for name, kind in (("", ""), (", sources read", ".read")):
            yield Probe(
                f"bulk store of {size} bytes{name}", "tma", "UBLKCP",
                lambda i, s=size: f"    @%p1 cp.async.bulk.global.shared::cta.bulk_group [%d4], [smem], {s};",
                begin,
                after=lambda copies, k=kind: (
                    f"    cp.async.bulk.commit_group;\n    cp.async.bulk.wait_group{k} 0;\n"
                    "    bar.warp.sync -1;"
                ),
                declare=ARRAY, copies=(1, 5), needs="sm_90", notes={"bytes": size},
            )  # fmt: skip


BOXES = (
    (8, 64, 128), (32, 64, 128), (64, 64, 128), (128, 64, 128), (256, 64, 128), (64, 64, 0), (128, 32, 64),
    (256, 16, 32),
)  # fmt: skip
"""Rows, elements of 16 bits in each, and the swizzle in bytes."""


def boxes() -> Iterator[Probe]:
    """Copies of boxes of a matrix of 16-bit elements by a tensor map."""
    for rows, columns, swizzle in BOXES:
        for multiprocessors in (1, 0):
            yield box(rows, columns, swizzle, multiprocessors)
        yield box(rows, columns, swizzle, 1, stores=True)


APART = (4096, 4112, 4128, 4160)
"""Bytes from row to row: where lines begin, and at any 16, 32 or 64 bytes of them."""

OWN_BOX = """
    mov.u32 %r18, %ctaid.x;
    shr.u32 %r19, %r18, 5;
    shl.b32 %r19, %r19, 7;
    and.b32 %r18, %r18, 31;
    shl.b32 %r18, %r18, 6;"""


def boxes_of_ragged_rows() -> Iterator[Probe]:
    """The same of boxes of each SM's own, by where rows begin."""
    for apart in APART:
        for rows in (64, 128):
            for multiprocessors in (1, 0):
                for stores in (False, True):
                    yield box(rows, 64, 128, multiprocessors, stores, apart)


def box(
    rows: int, columns: int, swizzle: int, multiprocessors: int, stores: bool = False, apart: int = 0
) -> Probe:
    """A box of a matrix, of all SMs where multiprocessors is 0: the same, or one of each where its rows are
    so many bytes apart."""
    size = rows * columns * 2
    tensor = TensorMap("map", "data", "float16", (1024, 2048), (apart or 4096,), (rows, columns), swizzle)
    name = f"tensor {'store' if stores else 'load'} of a box of {rows}x{columns}, swizzle {swizzle}"
    name += (f", own, rows {apart} apart" if apart else "") + ("" if multiprocessors else ", every SM")
    begin = (
        START.format(count=1) + "    mov.b64 %d6, map;\n    cvta.param.u64 %d6, %d6;\n    mov.u32 %r13, 0;"
    )
    place = "[%d6, {%r18, %r19}]" if apart else "[%d6, {%r13, %r13}]"
    kind, loading = "shared::cluster.global.mbarrier::complete_tx::bytes", f"[smem], {place}, [%r10]"
    before, after = (lambda copies: expect(size, copies)), (lambda copies: turned("_end"))
    if stores:
        kind, loading = "global.shared::cta.bulk_group", f"{place}, [smem]"
        before, after = (lambda copies: ""), (lambda copies: DRAINED)
    return Probe(
        name, "tma", "UTMASTG" if stores else "UTMALDG",
        lambda i: f"    @%p1 cp.async.bulk.tensor.2d.{kind} {loading};", begin + OWN_BOX * bool(apart),
        before=before, after=after, declare=ARRAY, copies=(1, 5), needs="sm_90",
        data_bytes=1 << 23 if apart else 1 << 22, maps=(tensor,), blocks=multiprocessors,
        notes={"bytes": size},
    )  # fmt: skip


SPREAD_ROWS = 69632
"""Rows of 4096 bytes, 512 for each SM: more than its boxes take in all turns."""


def boxes_of_dram() -> Iterator[Probe]:
    """Boxes of 8 KiB in rows of a matrix that L2 does not have, other ones in each turn: of each SM's own, or
    the same for 8 SMs. What one takes is a latency, and what further ones add a rate."""
    tensor = TensorMap("map", "data", "float16", (SPREAD_ROWS, 2048), (4096,), (64, 64), 128)
    begin = START.format(count=1) + "    mov.b64 %d6, map;\n    cvta.param.u64 %d6, %d6;\n"
    for shared, copies, cold in product((1, 8), ((1, 5), (2, 4)), (False, True)):
        place = "    mov.u32 %r17, %ctaid.x;\n" + f"    div.u32 %r17, %r17, {shared};\n" * (shared > 1)
        yield Probe(
            f"{copies[0]} and {copies[1]} tensor loads of boxes of 8192 bytes, shared by {shared}"
            + (", cold" if cold else "") + ", every SM", "tma", "UTMALDG",
            lambda i: (
                f"    mad.lo.u32 %r16, turn, 8, {i};\n    and.b32 %r18, %r16, 31;\n"
                "    shl.b32 %r18, %r18, 6;\n    shr.u32 %r19, %r16, 5;\n"
                "    mad.lo.u32 %r19, %r17, 8, %r19;\n    shl.b32 %r19, %r19, 6;\n"
                "    @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                f" [smem+{8192 * i}], [%d6, {{%r18, %r19}}], [%r10];"
            ),
            begin + place, before=lambda n: expect(8192, n), after=lambda n: turned("_end"), declare=ARRAY,
            copies=copies, turns=(8, 24), needs="sm_90", data_bytes=4096 * SPREAD_ROWS, cold=cold,
            maps=(tensor,), blocks=0, notes={"bytes": 8192},
        )  # fmt: skip


FIRST_BOX = (
    "    @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
    " [smem], [{map}, {{%r13, %r13}}], [%r10];"
)


def first_uses() -> Iterator[Probe]:
    """Cycles of one box of 8 KiB, by the first use of a tensor map in a launch and by later ones; two maps
    take turns. A copy of as many bytes without a map, and a map that was prefetched, tell what the map
    costs."""
    begin = START.format(count=1) + "    mov.u64 %d4, data;\n    mov.u32 %r13, 0;\n"
    begin += "\n".join(
        f"    mov.b64 %d{6 + k}, map{k};\n    cvta.param.u64 %d{6 + k}, %d{6 + k};" for k in (0, 1)
    )
    ahead = "\n".join(f"    prefetch.tensormap [%d{6 + k}];" for k in (0, 1)) + "\n    nanosleep.u32 20000;"
    maps = tuple(
        TensorMap(f"map{k}", "data", "float16", (1024, 2048), (4096,), (64, 64), 128) for k in (0, 1)
    )
    for name, copy, prefetched in (
        ("box", FIRST_BOX, False), ("box, map prefetched", FIRST_BOX, True), ("bulk load", "", False),
    ):  # fmt: skip
        for number, cold, multiprocessors in product((1, 2, 3, 4), (False, True), (1, 0)):
            where = ("L2 cold" if cold else "L2 warm") + ("" if multiprocessors else ", every SM")
            yield Probe(
                f"{name} of 8192 bytes, number {number} of a launch, {where}", "tma first use",
                "UTMALDG" if copy else "UBLKCP",
                lambda i, c=copy: (
                    "    mov.u32 %r30, %clock;\n" + expect(8192, 1) + "\n"
                    + (c.format(map=f"%d{6 + i % 2}") if c else bulk_load(8192, i)) + "\n"
                    + turned(f"_{i}") + "\n    mov.u32 %r31, %clock;\n    sub.u32 %r31, %r31, %r30;"
                ),
                begin + ("\n" + ahead) * prefetched, declare=ARRAY, sink=("%r31",), copies=(number, number),
                turns=(1, 1), needs="sm_90", data_bytes=1 << 22, cold=cold, maps=maps, blocks=multiprocessors,
                notes={"number": number, "cold": cold},
            )  # fmt: skip


DRAINED = "    cp.async.bulk.commit_group;\n    cp.async.bulk.wait_group 0;\n    bar.warp.sync -1;"


REMOTE = """\
    mov.u32 smem, buffer;
    mov.u32 %r14, %cluster_ctarank;
    xor.b32 %r14, %r14, 1;
    mad.lo.u32 %r0, lane, {width}, smem;
    mapa.shared::cluster.u32 %r0, %r0, %r14;
    mov.u32 %r1, y;
    st.volatile.shared::cluster.u32 [%r0], %r0;
    st.volatile.shared::cluster.u32 [%r0+4096], %r0;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.u32 %r2, %r0;
    mov.u32 %r3, %r0;
    mov.u32 %r4, %r0;
"""


def clusters() -> Iterator[Probe]:
    """Barriers of clusters, and shared memory of another block of the cluster."""
    relaxed = "    barrier.cluster.arrive.relaxed.aligned;\n    barrier.cluster.wait.aligned;"
    both = "    barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;"
    for size in (2, 4, 8):
        for name, text in (("", both), (", relaxed", relaxed)):
            yield Probe(
                f"barrier.cluster of {size} blocks{name}", "cluster", "UCGABAR", lambda i, t=text: t,
                copies=(4, 12), blocks=size, cluster=size, needs="sm_90", per_copy=2,
            )  # fmt: skip
    for width, form in ((4, "u32 %r{0}, [%r{0}]"), (16, "v4.u32 {{%r{0}, %r20, %r21, %r22}}, [%r{0}]")):
        for title, warps, chains in (("latency", 1, 1), ("rate, 4 warps", 4, 4), ("rate, 16 warps", 16, 4)):
            yield Probe(
                f"ld.shared::cluster of {width} bytes {title}", "cluster", "LD",
                lambda i, f=form, c=chains: f"    ld.shared::cluster.{f.format((0, 2, 3, 4)[i % c])};",
                REMOTE.format(width=width), declare=ARRAY, sink=("%r0", "%r2", "%r3", "%r4"), copies=(4, 12),
                warps=warps, blocks=2, cluster=2, needs="sm_90", after=lambda copies: both,
            )  # fmt: skip
    yield Probe(
        "atom.shared::cluster latency", "cluster", "ATOM",
        lambda i: "    atom.shared::cluster.add.u32 %r1, [%r0], %r1;", REMOTE.format(width=4), declare=ARRAY,
        sink=("%r1",), copies=(4, 12), blocks=2, cluster=2, needs="sm_90", after=lambda copies: both,
    )  # fmt: skip
    yield Probe(
        "st.shared::cluster rate, 16 warps", "cluster", "ST",
        lambda i: "    st.volatile.shared::cluster.u32 [%r0], y;", REMOTE.format(width=4), declare=ARRAY,
        copies=(4, 12), warps=16, blocks=2, cluster=2, needs="sm_90", after=lambda copies: both,
    )  # fmt: skip


def beside() -> Iterator[Probe]:
    """Products of two warpgroups while copies come into shared memory, or while warps load from it: do they
    share its bandwidth? A copy of the body is a product of each warpgroup and the rest beside it."""
    sums = tuple(f"%f{at}" for at in range(128))
    begin = (
        START.format(count=1) + DESCRIPTORS + "    mov.u64 %d4, data;\n    shl.b32 %r16, thread, 4;\n"
        "    and.b32 %r16, %r16, 0xfff;\n    add.u32 %r16, %r16, smem;\n"
        + "\n".join(f"    mov.f32 {one}, 0f00000000;" for one in sums)
    )  # fmt: skip
    fence = "    wgmma.fence.sync.aligned;"
    wait_ = "    wgmma.commit_group.sync.aligned;\n    wgmma.wait_group.sync.aligned 0;"
    for n in (128, 256):
        for size in (8192, 16384, 24576):
            yield Probe(
                f"wgmma.n{n} by 2 warpgroups beside bulk loads of {size} bytes", "beside wgmma", "HGMMA",
                lambda i, n=n: wgmma("f32.f16", n, False), begin,
                before=lambda copies, s=size: "\n".join(
                    [expect(s, copies), *(bulk_load(s, k) for k in range(copies)), fence]
                ),
                after=lambda copies: wait_ + "\n" + turned("_end"), declare=ARRAY, sink=sums[: n // 2],
                copies=(1, 9), warps=8, needs=HOPPER, notes={"n": n, "bytes": size},
            )  # fmt: skip
        for loads in (2, 4, 8):
            yield Probe(
                f"wgmma.n{n} by 2 warpgroups beside {loads} lds.128 of each warp", "beside wgmma", "HGMMA",
                lambda i, n=n, k=loads: wgmma("f32.f16", n, False) + "".join(
                    "\n    ld.volatile.shared.v4.u32 {%r20, %r21, %r22, %r23}, [%r16];" for _ in range(k)
                ),
                begin, before=lambda copies: fence, after=lambda copies: wait_, declare=ARRAY,
                sink=sums[: n // 2], copies=(1, 9), warps=8, needs=HOPPER, notes={"n": n, "loads": loads},
            )  # fmt: skip


TO_THE_OTHER = """\
    mov.u32 %r14, %cluster_ctarank;
    xor.b32 %r14, %r14, 1;
    mapa.shared::cluster.u32 %r17, %r10, %r14;
    mov.u16 %h1, 3;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
"""


def between_blocks() -> Iterator[Probe]:
    """Arrivals at the mbarrier of the other block of a cluster, and boxes that go to both."""
    begin = START.format(count=32) + TO_THE_OTHER
    yield Probe(
        "mbarrier arrive at the other block and wait", "cluster", "SYNCS.PHASECHK",
        lambda i: (
            "    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r17];\n" + turned(f"_{i}")
        ),
        begin, declare=ARRAY, copies=(4, 12), blocks=2, cluster=2, needs="sm_90",
    )  # fmt: skip
    together = "    barrier.cluster.arrive.relaxed.aligned;\n    barrier.cluster.wait.aligned;"
    for rows in (32, 64, 128):
        size = rows * 128
        tensor = TensorMap("map", "data", "float16", (1024, 2048), (4096,), (rows, 64), 128)
        for blocks in (2, 0):
            everywhere = "" if blocks else ", every SM"
            name = f"tensor load of a box of {rows}x64 to both blocks of a cluster{everywhere}"
            yield Probe(
                name, "cluster", "UTMALDG",
                lambda i: (
                    "    @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                    ".multicast::cluster [smem], [%d6, {%r13, %r13}], [%r10], %h1;"
                ),
                START.format(count=1)
                + "    mov.b64 %d6, map;\n    cvta.param.u64 %d6, %d6;\n    mov.u32 %r13, 0;\n"
                + TO_THE_OTHER,
                before=lambda copies, s=size: expect(2 * s, copies),
                after=lambda copies: turned("_end") + "\n" + together, declare=ARRAY, copies=(1, 5),
                needs="sm_90", data_bytes=1 << 22, maps=(tensor,), blocks=blocks, cluster=2,
                notes={"bytes": size},
            )  # fmt: skip


def probes() -> Iterator[Probe]:
    families = (
        warpgroup_products,
        mbarriers,
        bulk_copies,
        boxes,
        boxes_of_ragged_rows,
        boxes_of_dram,
        first_uses,
        clusters,
        beside,
        between_blocks,
    )
    for family in families:
        yield from family()
