"""Probes of memory: loads that give the address of the next load, and many of them at once.

Setup fills memory with addresses: each word holds its own, so that a chain of loads stays where it is.
"""

from __future__ import annotations

from typing import Iterator

from micro_probes import Probe

WARPS = (1, 4, 16, 32)
CHAINS = 8
SHARED = 32768
SHARED_ARRAY = f".shared .align 1024 .b8 buffer[{SHARED}];"


def lanes_apart(stride: int, width: int = 4, chains: int = 1) -> str:
    """PTX: chain n of each lane is at its own address in shared memory, `stride` bytes from lane to lane, and
    finds its own address there. Warps share the addresses. A stride of 0 is y, which ptxas does not know."""
    lines = ["    mov.u32 smem, buffer;", "    shr.u32 y, turn, 20;"]
    for n in range(chains):
        lines += [
            f"    mad.lo.u32 %r{n}, lane, {stride or 'y'}, smem;",
            f"    add.u32 %r{n}, %r{n}, {n * max(width * 32, 128) if stride * 32 <= 1024 else 0};",
            f"    st.volatile.shared.u32 [%r{n}], %r{n};",
        ]
    return "\n".join(lines)


def loads(width: int, n: int) -> str:
    """PTX of a load of `width` bytes whose first word is the next address of chain n."""
    if width == 4:
        return f"    ld.volatile.shared.u32 %r{n}, [%r{n}];"
    words = [f"%r{n}"] + [f"%r{40 + 4 * n + k}" for k in range(width // 4 - 1)]
    return f"    ld.volatile.shared.v{width // 4}.u32 {{{', '.join(words)}}}, [%r{n}];"


def sums(chains: int) -> tuple[str, ...]:
    return tuple(f"%r{n}" for n in range(chains))


def shared_loads() -> Iterator[Probe]:
    """ld.shared of 4, 8 and 16 bytes, without conflicts and with."""
    opcodes = {4: "LDS", 8: "LDS.64", 16: "LDS.128"}
    for width, opcode in opcodes.items():
        yield Probe(
            f"lds.{8 * width} latency", "shared", opcode, lambda i, w=width: loads(w, 0),
            lanes_apart(width, width), declare=SHARED_ARRAY, sink=sums(1), copies=(16, 48),
        )  # fmt: skip
        for warps in WARPS:
            yield Probe(
                f"lds.{8 * width} rate, {warps} warps", "shared", opcode,
                lambda i, w=width: loads(w, i % CHAINS), lanes_apart(width, width, CHAINS),
                declare=SHARED_ARRAY, sink=sums(CHAINS), copies=(16, 48), warps=warps,
            )  # fmt: skip
    for ways in (2, 4, 8, 16, 32):
        for title, warps, chains in (("latency", 1, 1), ("rate, 16 warps", 16, 2)):
            yield Probe(
                f"lds.32 of {ways} wavefronts {title}", "shared", "LDS",
                lambda i, c=chains: loads(4, i % c), lanes_apart(4 * ways, 4, chains), declare=SHARED_ARRAY,
                sink=sums(chains), copies=(8, 24), warps=warps,
            )  # fmt: skip
    yield Probe(
        "lds.32 of one word latency", "shared", "LDS", lambda i: loads(4, 0), lanes_apart(0),
        declare=SHARED_ARRAY, sink=sums(1), copies=(16, 48),
    )  # fmt: skip


def loads_beside_ffma() -> Iterator[Probe]:
    """Eight FFMA and a load of shared memory: what these cost more by the registers that the load fills."""
    floats = "\n".join(f"    add.rn.f32 %f{n}, fy, 0f{0x3F800000 + (n << 16):08X};" for n in range(CHAINS))
    products = [f"    fma.rn.f32 %f{n}, %f{n}, fy, fz;" for n in range(CHAINS)]
    for name, width in {"no load": 0, "lds.32": 4, "lds.64": 8, "lds.128": 16}.items():
        for warps in (8, 16):
            yield Probe(
                f"8 ffma beside {name} rate, {warps} warps", "mixed rate", "FFMA",
                lambda i, w=width: "\n".join([*products, *[loads(w, i % CHAINS)] * bool(w)]),
                f"{lanes_apart(width or 4, width or 4, CHAINS)}\n{floats}", declare=SHARED_ARRAY,
                sink=(*sums(CHAINS), *(f"%f{n}" for n in range(CHAINS))), copies=(8, 24), warps=warps,
                per_copy=CHAINS,
            )  # fmt: skip


SPREAD = """\
    mov.u32 smem, buffer;
    and.b32 %r20, lane, {0};
    mad.lo.u32 %r0, %r20, {1}, smem;
"""
"""PTX: lanes whose number has the same last bits read the same; other lanes what is next to it."""


def shared_broadcasts() -> Iterator[Probe]:
    """ld.shared whose lanes read few different words, as in an outer product."""
    for width, opcode in ((4, "LDS"), (16, "LDS.128")):
        for places in (1, 2, 4, 8, 16):
            chained = "\n".join(
                f"    add.u32 %r{n}, %r0, {n * 512};\n    st.volatile.shared.u32 [%r{n}], %r{n};"
                for n in range(1, CHAINS)
            )
            for warps in (1, 4, 16):
                yield Probe(
                    f"lds.{8 * width} of {places} places rate, {warps} warps", "shared", opcode,
                    lambda i, w=width: loads(w, i % CHAINS),
                    SPREAD.format(places - 1, width) + "    st.volatile.shared.u32 [%r0], %r0;\n" + chained,
                    declare=SHARED_ARRAY, sink=sums(CHAINS), copies=(16, 48), warps=warps,
                )  # fmt: skip


def shared_stores() -> Iterator[Probe]:
    """st.shared, a store and its load, and atomics of shared memory."""
    vectors = {4: "u32 [%r{0}], y", 8: "v2.u32 [%r{0}], {{y, z}}", 16: "v4.u32 [%r{0}], {{y, z, y, z}}"}
    for width, operands in vectors.items():
        for warps in WARPS:
            yield Probe(
                f"sts.{8 * width} rate, {warps} warps", "shared", "STS",
                lambda i, o=operands: f"    st.volatile.shared.{o.format(i % CHAINS)};",
                lanes_apart(width, width, CHAINS), declare=SHARED_ARRAY, copies=(16, 48), warps=warps,
            )  # fmt: skip
    yield Probe(
        "sts.32 of 8 wavefronts rate, 16 warps", "shared", "STS",
        lambda i: "    st.volatile.shared.u32 [%r0], y;", lanes_apart(32), declare=SHARED_ARRAY,
        copies=(8, 24), warps=16,
    )  # fmt: skip
    yield Probe(
        "sts.32+lds.32 latency", "shared", "LDS",
        lambda i: "    st.volatile.shared.u32 [%r0], %r1;\n    ld.volatile.shared.u32 %r1, [%r0];",
        lanes_apart(4) + "\n    mov.u32 %r1, y;", declare=SHARED_ARRAY, sink=("%r1",), copies=(16, 48),
    )  # fmt: skip
    for title, stride in (("", 4), (" of one word", 0)):
        for name, warps in (("latency", 1), ("rate, 16 warps", 16)):
            yield Probe(
                f"atoms.add{title} {name}", "shared", "ATOMS",
                lambda i: "    atom.shared.add.u32 %r1, [%r0], %r1;",
                lanes_apart(stride) + "\n    mov.u32 %r1, y;", declare=SHARED_ARRAY, sink=("%r1",),
                copies=(8, 24), warps=warps,
            )  # fmt: skip


MATRIX_ROWS = """\
    mov.u32 smem, buffer;
    shl.b32 %r20, lane, 4;
    add.u32 %r0, smem, %r20;
    shr.u32 %r21, lane, 2;
    shl.b32 %r21, %r21, 4;
    and.b32 %r22, lane, 3;
    shl.b32 %r22, %r22, 2;
    add.u32 %r21, %r21, %r22;
    add.u32 %r21, %r21, smem;
    st.volatile.shared.u32 [%r21], %r0;
    add.u32 %r1, %r0, 512;
    st.volatile.shared.u32 [%r21+512], %r1;
    add.u32 %r2, %r0, 1024;
    st.volatile.shared.u32 [%r21+1024], %r2;
    add.u32 %r3, %r0, 1536;
    st.volatile.shared.u32 [%r21+1536], %r3;
"""
"""PTX: lane t's row begins at address t of the matrices, and word t of the first matrix holds that."""


def matrix(form: str, n: int) -> str:
    """PTX of an ldmatrix whose first result is the next address of chain n."""
    count = int(form[1])
    words = [f"%r{n}"] + [f"%r{40 + 4 * n + k}" for k in range(count - 1)]
    trans = ".trans" if form.endswith("t") else ""
    return f"    ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{', '.join(words)}}}, [%r{n}];"


def matrices() -> Iterator[Probe]:
    """ldmatrix and stmatrix."""
    for form in ("x1", "x2", "x4"):
        yield Probe(
            f"ldsm.{form} latency", "shared", "LDSM", lambda i, f=form: matrix(f, 0), MATRIX_ROWS,
            declare=SHARED_ARRAY, sink=sums(1), copies=(16, 48),
        )  # fmt: skip
        for warps in WARPS:
            yield Probe(
                f"ldsm.{form} rate, {warps} warps", "shared", "LDSM", lambda i, f=form: matrix(f, i % 4),
                MATRIX_ROWS, declare=SHARED_ARRAY, sink=sums(4), copies=(16, 48), warps=warps,
            )  # fmt: skip
    yield Probe(
        "ldsm.x4.trans rate, 16 warps", "shared", "LDSM",
        lambda i: "    ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r4, %r5, %r6, %r7}, [%r0];\n"
        "    xor.b32 %r8, %r8, %r4;", MATRIX_ROWS + "    mov.u32 %r8, y;", declare=SHARED_ARRAY,
        sink=("%r8", "%r5", "%r6", "%r7"), copies=(1, 2), warps=16,
    )  # fmt: skip
    for warps in (1, 16):
        yield Probe(
            f"stsm.x4 rate, {warps} warps", "shared", "STSM",
            lambda i: f"    stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r{i % 4}], {{y, z, y, z}};",
            MATRIX_ROWS, declare=SHARED_ARRAY, copies=(16, 48), warps=warps, needs="sm_90",
        )  # fmt: skip


CONSTANTS = f".const .align 4 .b32 table[64] = {{{', '.join(str(4 * n) for n in range(64))}}};"


def constants() -> Iterator[Probe]:
    """ld.const with an address from a register."""
    yield Probe(
        "ldc latency", "constant", "LDC",
        lambda i: "    ld.const.u32 %r0, [%r1];\n    add.u32 %r1, %r2, %r0;",
        "    mov.u32 %r2, table;\n    and.b32 %r0, y, 0;\n    mov.u32 %r1, %r2;", declare=CONSTANTS,
        sink=("%r0",), copies=(16, 48),
    )  # fmt: skip


def pointers(stride: int, chains: int = 1, apart: int = 512) -> str:
    """PTX: each lane's chain n starts at its own address in global memory, which holds itself."""
    lines = [
        "    shr.u32 y, turn, 20;",
        f"    mul.wide.u32 wide, lane, {stride or 'y'};",
        "    add.u64 at, data, wide;",
    ]
    for n in range(chains):
        lines += [f"    add.u64 %d{n}, at, {n * apart};", f"    st.volatile.global.u64 [%d{n}], %d{n};"]
        lines += [f"    st.volatile.global.u64 [%d{n}+8], 0;"] * (stride == 16)
    return "\n".join([*lines, "    membar.gl;"])


def global_loads() -> Iterator[Probe]:
    """ld.global that hits L1, or goes to L2."""
    for where, form in (("l1", ""), ("l2", ".cg")):
        yield Probe(
            f"ldg.64 latency, {where}", "global", "LDG",
            lambda i, f=form: f"    ld.global{f}.u64 %d0, [%d0];", pointers(8), sink=("%d0",), copies=(4, 12),
        )  # fmt: skip
        for warps in WARPS:
            yield Probe(
                f"ldg.64 rate, {where}, {warps} warps", "global", "LDG",
                lambda i, f=form: f"    ld.global{f}.u64 %d{i % CHAINS}, [%d{i % CHAINS}];",
                pointers(8, CHAINS), sink=tuple(f"%d{n}" for n in range(CHAINS)), copies=(8, 24), warps=warps,
            )  # fmt: skip
            yield Probe(
                f"ldg.128 rate, {where}, {warps} warps", "global", "LDG",
                lambda i, f=form: (
                    f"    ld.global{f}.v2.u64 {{%d{i % CHAINS}, %d{20 + i % CHAINS}}}, [%d{i % CHAINS}];\n"
                    f"    add.u64 %d{i % CHAINS}, %d{i % CHAINS}, %d{20 + i % CHAINS};"
                ),
                pointers(16, CHAINS), sink=tuple(f"%d{n}" for n in range(CHAINS)), copies=(8, 24),
                warps=warps,
            )  # fmt: skip
    for stride in (16, 32, 64, 128, 256):
        for title, warps, chains in (("latency", 1, 1), ("rate, 16 warps", 16, 2)):
            yield Probe(
                f"ldg.64, lanes {stride} bytes apart, l1 {title}", "global", "LDG",
                lambda i, c=chains: f"    ld.global.u64 %d{i % c}, [%d{i % c}];",
                pointers(stride, chains, 8192), sink=("%d0", f"%d{chains - 1}"), copies=(8, 24), warps=warps,
            )  # fmt: skip


def cached_words() -> Iterator[Probe]:
    """ld.global of 4 bytes that hit L1: each lane its own, all the same, and one of either for each FFMA, as
    in a matrix product that uses no shared memory. Warps read the same."""
    begin = "    mul.wide.u32 wide, lane, 4;\n    add.u64 %d1, data, wide;\n    mov.f32 %f0, fy;"
    own, same = "    ld.global.f32 %f{0}, [%d2+{1}];", "    ld.global.f32 %f{0}, [%d3+{1}];"
    used = "    fma.rn.f32 %f0, %f{0}, %f{1}, %f0;"

    def body(i: int, what: str) -> str:
        a, b = 10 + 2 * i, 11 + 2 * i
        text = {
            "own words": [own.format(a, 128 * i), used.format(a, a)],
            "one word": [same.format(a, 4 * i), used.format(a, a)],
            "one word and own words": [same.format(b, 4 * i), own.format(a, 128 * i), used.format(a, b)],
        }[what]
        return "\n".join(text)

    for what in ("own words", "one word", "one word and own words"):
        for warps in (1, 4, 16, 32):
            yield Probe(
                f"ldg.32 and ffma, {what}, l1 rate, {warps} warps", "global", "LDG",
                lambda i, w=what: body(i, w), begin,
                before=lambda n: (
                    "    and.b32 %r10, turn, 1;\n    mul.wide.u32 wide, %r10, 8192;\n"
                    "    add.u64 %d2, %d1, wide;\n    add.u64 %d3, data, wide;"
                ),
                sink=("%f0",), copies=(8, 24), warps=warps, per_copy=1 + ("and" in what),
            )  # fmt: skip


def words_of_l2() -> Iterator[Probe]:
    """The last of these where L1 has nothing: in each turn all warps read the same lines for the first time,
    and each a line of its own."""
    for warps in (8, 32):
        yield Probe(
            f"ldg.32 and ffma, a word of each warp's and own words, lines of l2, {warps} warps", "global",
            "LDG",
            lambda i: (
                f"    ld.global.f32 %f{10 + 2 * i}, [%d2+{128 * i}];\n"
                f"    ld.global.f32 %f{11 + 2 * i}, [%d3+{4 * i}];\n"
                f"    fma.rn.f32 %f0, %f{10 + 2 * i}, %f{11 + 2 * i}, %f0;"
            ),
            "    mul.wide.u32 wide, lane, 4;\n    add.u64 %d1, data, wide;\n    mov.f32 %f0, fy;\n"
            "    mul.lo.u32 %r11, warp, 65536;\n    add.u32 %r11, %r11, 1048576;",
            before=lambda n: (
                "    mul.wide.u32 wide, turn, 4096;\n    add.u64 %d2, %d1, wide;\n"
                "    mad.lo.u32 %r12, turn, 128, %r11;\n    cvt.u64.u32 wide, %r12;\n"
                "    add.u64 %d3, data, wide;"
            ),
            sink=("%f0",), copies=(8, 24), warps=warps, per_copy=2, data_bytes=1 << 22,
        )  # fmt: skip


def global_stores() -> Iterator[Probe]:
    """st.global and atomics of global memory."""
    for warps in (1, 16):
        yield Probe(
            f"stg.32 rate, {warps} warps", "global", "STG",
            lambda i: f"    st.volatile.global.u32 [%d{i % CHAINS}], y;", pointers(8, CHAINS), copies=(8, 24),
            warps=warps,
        )  # fmt: skip
        yield Probe(
            f"stg.128 rate, {warps} warps", "global", "STG",
            lambda i: f"    st.volatile.global.v4.u32 [%d{i % CHAINS}], {{y, z, y, z}};",
            pointers(16, CHAINS), copies=(8, 24), warps=warps,
        )  # fmt: skip
    for title, stride in (("", 8), (" of one word", 0)):
        yield Probe(
            f"atomg.add{title} latency", "global", "ATOMG",
            lambda i: "    atom.global.add.u32 %r0, [%d0], %r0;",
            pointers(stride) + "\n    mov.u32 %r0, y;", sink=("%r0",), copies=(4, 12),
        )  # fmt: skip
        yield Probe(
            f"red.add{title} rate, 16 warps", "global", "RED",
            lambda i: "    red.global.add.u32 [%d0], y;", pointers(stride), copies=(4, 12), warps=16,
        )  # fmt: skip


def shared_words() -> Iterator[Probe]:
    """Atomics of global memory that meet: the lanes of a warp, or one of each, at one word of all SMs; one of
    each, of SMs at words of one line, of warps at lines; and those of SMs with lines of their own."""
    lane = "    setp.eq.u32 %p1, lane, 0;\n"
    for add, value in (("add", "u32 [%d0], y"), ("add.f32", "f32 [%d0], fy")):
        for what, guard in (("", ""), (" of one lane", "@%p1 ")):
            for blocks in (1, 0):
                yield Probe(
                    f"red.{add} of one word{what} rate, 8 warps, {blocks or 'all'} SMs", "global", "RED",
                    lambda i, g=guard, v=value: f"    {g}red.global.add.{v};", pointers(0) + "\n" + lane,
                    copies=(4, 12), warps=8, blocks=blocks,
                )  # fmt: skip
    block = f"{pointers(0)}\n{lane}    mov.u32 %r10, %ctaid.x;\n"
    offset = "\n    shl.b32 %r10, %r10, {};\n    cvt.u64.u32 wide, %r10;\n    add.u64 %d0, %d0, wide;"
    for what, guard, place in (
        ("own words of one line of one lane", "@%p1 ", "    and.b32 %r10, %r10, 31;" + offset.format(2)),
        ("eight lines of one lane", "@%p1 ", "    mov.u32 %r10, warp;" + offset.format(7)),
        ("own lines", "", "    mad.lo.u32 %r10, %r10, 256, thread;" + offset.format(2)),
    ):  # fmt: skip
        for blocks in (1, 0):
            yield Probe(
                f"red.add of {what} rate, 8 warps, {blocks or 'all'} SMs", "global", "RED",
                lambda i, g=guard: f"    {g}red.global.add.u32 [%d0], y;", block + place, copies=(4, 12),
                warps=8, blocks=blocks, data_bytes=1 << 20,
            )  # fmt: skip
    for blocks in (1, 0):
        yield Probe(
            f"atomg.add of one word of one lane rate, 8 warps, {blocks or 'all'} SMs", "global", "ATOMG",
            lambda i: "    @%p1 atom.global.add.u32 %r0, [%d0], %r0;",
            pointers(0) + "\n    mov.u32 %r0, y;\n" + lane, sink=("%r0",), copies=(4, 12), warps=8,
            blocks=blocks,
        )  # fmt: skip


def queue() -> Iterator[Probe]:
    """How many requests of shared memory a warp may have under way before it waits: the clock is read as soon
    as the last is issued. A turn ends when all are done."""
    for kind, body in (
        ("sts.32", lambda i: f"    st.volatile.shared.u32 [%r0+{4 * (i % 2)}], y;"),
        ("lds.32", lambda i: f"    ld.volatile.shared.u32 %r{40 + i}, [%r0];"),
    ):
        for count in (*range(1, 17), 20, 24, 32):
            used = "".join(f"    xor.b32 %r35, %r35, %r{40 + n};\n" for n in range(count) if kind == "lds.32")
            yield Probe(
                f"{count} {kind} of 16 wavefronts", "queue", kind[:3].upper(), body,
                lanes_apart(64) + "\n    mov.u32 %r30, 0;\n    mov.u32 %r35, y;",
                before=lambda copies: "    mov.u32 %r31, %clock;",
                after=lambda copies, used=used: (
                    "    mov.u32 %r32, %clock;\n    sub.u32 %r30, %r32, %r31;\n    bar.sync 0;\n" + used
                    + ("    st.volatile.shared.u32 [smem+8192], %r35;\n" if used else "")
                    + "    bar.sync 0;"
                ),
                declare=SHARED_ARRAY, sink=("%r30",), copies=(count, count), notes={"requests": count},
            )  # fmt: skip


def barriers() -> Iterator[Probe]:
    """bar.sync of blocks of several sizes; warp barriers and fences."""
    for warps in (1, 2, 4, 8, 16, 32):
        yield Probe(
            f"bar.sync, {warps} warps",
            "barrier",
            "BAR",
            lambda i: "    bar.sync 0;",
            copies=(8, 24),
            warps=warps,
        )
    for name, opcode, body in (
        ("membar.cta", "MEMBAR", "membar.cta;"),
        ("membar.gl", "MEMBAR", "membar.gl;"),
        ("fence.proxy.async", "FENCE", "fence.proxy.async.shared::cta;"),
    ):
        needs = "sm_90" if "proxy" in name else "sm_75"
        yield Probe(name, "barrier", opcode, lambda i, b=body: f"    {b}", copies=(4, 12), needs=needs)


def async_copies() -> Iterator[Probe]:
    """cp.async of 16 bytes from L2: a turn issues so many, and waits for all."""
    for where, form, width in (("l2", "cg", 16), ("l1", "ca", 4)):
        for warps in (1, 4, 16):
            yield Probe(
                f"cp.async.{form} of {width}, {where}, {warps} warps", "cp.async", "LDGSTS",
                lambda i, f=form, w=width: (
                    f"    cp.async.{f}.shared.global [%r0+{(i % 8) * 512}], [%d{i % 8}], {w};"
                ),
                pointers(max(width, 8), 8) + "\n" + lanes_apart(width),
                after=lambda copies: "    cp.async.commit_group;\n    cp.async.wait_group 0;",
                declare=SHARED_ARRAY, copies=(1, 8), warps=warps, needs="sm_80",
            )  # fmt: skip


def copies_beside_matrices() -> Iterator[Probe]:
    """cp.async of 16 bytes from L2, and so many ldmatrix.x4 from elsewhere for each copy."""
    setup = pointers(16, 8) + "\n" + MATRIX_ROWS + "    mad.lo.u32 %r30, thread, 16, smem;"
    for each in (0, 1, 2, 4):
        for warps in (4, 8, 16):
            yield Probe(
                f"cp.async.cg of 16, each with {each} ldsm.x4, {warps} warps", "cp.async", "LDGSTS",
                lambda i, n=each: "\n".join(
                    [f"    cp.async.cg.shared.global [%r30+{8192 + (i % 2) * 8192}], [%d{i % 8}], 16;"]
                    + [matrix("x4", (i + k) % 4) for k in range(n)]
                ),
                setup, before=lambda n: "    cp.async.commit_group;\n    cp.async.wait_group 0;",
                declare=SHARED_ARRAY, sink=sums(4), copies=(2, 8), warps=warps, needs="sm_80",
            )  # fmt: skip


SWIZZLE = "    shr.u32 %r31, %r20, 1;\n    and.b32 %r31, %r31, 3;\n    xor.b32 %r21, %r21, %r31;\n"
SCATTERED = {
    "512 bytes to rows of 80": (64, 80, ""),
    "rows of 64 to 512 bytes": (4096, 64, ""),
    "rows of 64 to rows of 80": (4096, 80, ""),
    "rows of 64 to 512 bytes, swizzled": (4096, 64, SWIZZLE),
}  # fmt: skip
"""What four lanes each of a cp.async read, and where it goes -> bytes from row to row there, and here; PTX
that changes the lane's place %r21 in its row %r20 here."""


def scattered(source: int, target: int, swizzle: str) -> str:
    """PTX: where copies come from, %d0 to %d7, and %r30, where they go."""
    lines = [f"    add.u64 %d{n}, %d0, {512 * n if source == 64 else 64 * n};" for n in range(1, 8)]
    return "\n".join([
        MATRIX_ROWS, "    shr.u32 %r20, lane, 2;\n    and.b32 %r21, lane, 3;",
        f"    mul.wide.u32 wide, %r20, {source};\n    add.u64 at, data, wide;",
        "    mul.wide.u32 wide, %r21, 16;\n    add.u64 %d0, at, wide;", *lines, swizzle,
        f"    shr.u32 %r22, thread, 2;\n    mad.lo.u32 %r30, %r22, {target}, smem;",
        "    mad.lo.u32 %r30, %r21, 16, %r30;",
    ])  # fmt: skip


def copies_to_rows() -> Iterator[Probe]:
    """The same of copies whose lanes read or write rows: a wavefront moves fewer of their sectors."""
    for name, places in SCATTERED.items():
        for each in (2, 4):
            for warps in (8, 16):
                yield Probe(
                    f"cp.async.cg of 16, {name}, each with {each} ldsm.x4, {warps} warps", "cp.async",
                    "LDGSTS",
                    lambda i, n=each: "\n".join(
                        [f"    cp.async.cg.shared.global [%r30+{8192 + (i % 2) * 10240}], [%d{i % 8}], 16;"]
                        + [matrix("x4", (i + k) % 4) for k in range(n)]
                    ),
                    scattered(*places),
                    before=lambda n: "    cp.async.commit_group;\n    cp.async.wait_group 0;",
                    declare=SHARED_ARRAY, sink=sums(4), copies=(2, 8), warps=warps, needs="sm_80",
                )  # fmt: skip


def copies_under_way() -> Iterator[Probe]:
    """Copies to rows of 80 bytes, without other loads, each to a place of its own. If the moves have a rate,
    each further copy takes as long. If so many can be under way, those beyond take longer."""
    for name in ("512 bytes to rows of 80", "rows of 64 to rows of 80"):
        for warps, copies in (
            (4, (2, 6)),
            (4, (6, 10)),
            (8, (1, 3)),
            (8, (3, 5)),
            (16, (1, 2)),
            (16, (2, 3)),
        ):
            yield Probe(
                f"cp.async.cg of 16, {name}, {copies[0]} and {copies[1]} under way, {warps} warps",
                "cp.async", "LDGSTS",
                lambda i, w=warps: (
                    f"    cp.async.cg.shared.global [%r30+{2048 + i * w * 640}], [%d{i % 8}], 16;"
                ),
                scattered(*SCATTERED[name]), declare=SHARED_ARRAY, copies=copies, warps=warps, needs="sm_80",
                after=lambda n: (
                    "    cp.async.commit_group;\n    cp.async.wait_group 0;"
                ),
            )  # fmt: skip


def copies_of_own() -> Iterator[Probe]:
    """Copies beside ldmatrix, where no two copies of a turn read or write the same place: do their moves and
    ldmatrix take turns at the data path, or does the slower of the two decide?"""
    for name, (source, target) in OWN_PLACES.items():
        for each in (0, 2, 4):
            for warps, copies in ((8, (3, 6)), (16, (2, 3))):
                yield Probe(
                    f"cp.async.cg of 16, own places, {name}, each with {each} ldsm.x4, {warps} warps",
                    "cp.async", "LDGSTS",
                    lambda i, n=each, size=8 * warps * target: "\n".join(
                        [f"    cp.async.cg.shared.global [%r30+{2048 + i * size}], [%d{i}], 16;"]
                        + [matrix("x4", (i + k) % 4) for k in range(n)]
                    ),
                    own_sources(source, target), declare=SHARED_ARRAY, sink=sums(4), copies=copies,
                    warps=warps, needs="sm_80", data_bytes=1 << 20,
                    after=lambda n: "    cp.async.commit_group;\n    cp.async.wait_group 0;",
                )  # fmt: skip


def copies_issued() -> Iterator[Probe]:
    """How long a warp takes to issue its copies: the clock is read as soon as the last is issued. Then all
    warps of the block wait for all copies."""
    for name, (source, target) in OWN_PLACES.items():
        for warps, counts in ((1, range(1, 9)), (8, range(1, 7)), (16, range(1, 4))):
            for count in counts:
                yield Probe(
                    f"{count} cp.async.cg of 16, {name}, {warps} warps", "copies issued", "LDGSTS",
                    lambda i, size=8 * warps * target: (
                        f"    cp.async.cg.shared.global [%r30+{2048 + i * size}], [%d{i}], 16;"
                    ),
                    own_sources(source, target) + "\n    mov.u32 %r102, 0;",
                    before=lambda n: "    bar.sync 0;\n    mov.u32 %r100, %clock;",
                    after=lambda n: (
                        "    mov.u32 %r101, %clock;\n    sub.u32 %r102, %r101, %r100;\n"
                        "    cp.async.commit_group;\n    cp.async.wait_group 0;"
                    ),
                    declare=SHARED_ARRAY, sink=("%r102",), copies=(count, count), warps=warps,
                    needs="sm_80", data_bytes=1 << 20, notes={"requests": count},
                )  # fmt: skip


OWN_PLACES = {
    "512 bytes to 512": (64, 64),
    "512 bytes to rows of 80": (64, 80),
    "rows of 64 to rows of 80": (4096, 80),
}
"""As SCATTERED, without changed places."""


def own_sources(source: int, target: int) -> str:
    """PTX as `scattered` has it, with lines of each warp's own."""
    lines = [f"    mul.wide.u32 wide, warp, {8 * max(source, 512)};"]
    lines += [f"    add.u64 %d{n}, %d{n}, wide;" for n in range(8)]
    return "\n".join([scattered(source, target, ""), *lines])


def probes() -> Iterator[Probe]:
    for family in (
        shared_loads, loads_beside_ffma, shared_broadcasts, shared_stores, matrices, constants, global_loads,
        cached_words, words_of_l2, global_stores, shared_words, queue, barriers, async_copies,
        copies_beside_matrices, copies_to_rows, copies_under_way, copies_of_own, copies_issued,
    ):  # fmt: skip
        yield from family()
