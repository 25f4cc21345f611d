"""Launches of short blocks on 16 MiB: rows that a warp reads again, tiles of a matrix, and atomics at one
word behind loads. Each launch follows the one before, on arrays of its own.

A figure is gigabytes of DRAM a second, read and written, and the time of a launch.
"""

from __future__ import annotations

from typing import Iterator

from micro_probes import Probe
from micro_streams import GROUP, SIZE, Build, Short, in_a_row

from tir_schedules.files import Json
from tir_schedules.machines.gpu import GpuMachine

ARRAY = 1 << 24
"""Bytes that a launch reads, and writes where it does."""

BEGIN = """\
    shr.u32 warp, thread, 5;
    mov.u32 %r10, %ctaid.x;
    mov.u32 %r0, turn;"""

ROW_BYTES = 4096
"""Bytes of a row. A warp reads it in turns of four loads of 128 bytes, and waits for those of each turn."""


def again(times: int, warps: int) -> Probe:
    """A warp reads its row so many times. The last time it writes each word as well; where there is no other
    time, it writes 128 bytes at the end."""
    parts = []
    for number in range(times):
        writes = times > 1 and number == times - 1
        parts.append("\n".join([
            f"    mov.u64 at, %d0;\n    mov.u32 turn, {ROW_BYTES // 512};",
            f'turns_{number}:\n    .pragma "nounroll";',
            *(f"    ld.global.u32 %r{20 + k}, [at+{128 * k}];" for k in range(4)),
            *(f"    st.global.u32 [at+{ARRAY + 128 * k}], %r{20 + k};" for k in range(4) if writes),
            *(f"    xor.b32 %r0, %r0, %r{20 + k};" for k in range(4)),
            "    add.u64 at, at, 512;\n    sub.u32 turn, turn, 1;\n    setp.ne.u32 %p0, turn, 0;",
            f"    @%p0 bra turns_{number};",
        ]))  # fmt: skip
    parts.append(f"    st.global.u32 [%d0+{ARRAY}], %r0;")
    return Short(
        f"DRAM rows of {ROW_BYTES} bytes, {times} x by a warp, blocks of {warps} warps", GROUP, "LDG",
        lambda i: "\n".join(parts),
        f"{BEGIN}\n    mad.lo.u32 %r10, %r10, {warps}, warp;\n"
        f"    mul.wide.u32 wide, %r10, {ROW_BYTES};\n    add.u64 %d0, data, wide;\n"
        "    mul.wide.u32 wide, lane, 4;\n    add.u64 %d0, %d0, wide;",
        copies=(1, 1), warps=warps, blocks=ARRAY // ROW_BYTES // warps, per_copy=4 * times,
    )  # fmt: skip


SIDE, TILE = 2048, 32
"""Words of a side of the matrix, and of a tile."""

PLACES = {
    "rows of a tile": f"    mul.lo.u32 {{0}}, %r13, {SIDE};\n    mad.lo.u32 {{0}}, %r12, {TILE}, {{0}};",
    "rows of the tile across": (
        f"    mul.lo.u32 {{0}}, %r12, {TILE * SIDE};\n    mad.lo.u32 {{0}}, warp, {SIDE}, {{0}};\n"
        f"    mad.lo.u32 {{0}}, %r11, {TILE}, {{0}};"
    ),
    "bytes in a row": (
        f"    mul.lo.u32 {{0}}, %r10, {TILE * TILE};\n    mad.lo.u32 {{0}}, warp, {TILE}, {{0}};"
    ),
}
"""Where a warp's words of a tile are -> PTX that sets the number of the first. The next are STEPS further."""

STEPS = {name: 8 * (TILE if name == "bytes in a row" else SIDE) for name in PLACES}


def tile(source: str, target: str) -> Probe:
    """A block of 8 warps moves 32 x 32 words, each warp four times 32. %r11, %r12: row and column of the
    tile; %r13: of the warp's first row in the matrix."""
    setup = "\n".join([
        BEGIN,
        f"    shr.u32 %r11, %r10, {(SIDE // TILE).bit_length() - 1};",
        f"    and.b32 %r12, %r10, {SIDE // TILE - 1};",
        f"    mad.lo.u32 %r13, %r11, {TILE}, warp;",
        PLACES[source].format("%r14"), PLACES[target].format("%r15"),
        "    add.u32 %r14, %r14, lane;\n    add.u32 %r15, %r15, lane;",
        "    mul.wide.u32 wide, %r14, 4;\n    add.u64 %d0, data, wide;",
        "    mul.wide.u32 wide, %r15, 4;\n    add.u64 %d1, data, wide;",
    ])  # fmt: skip
    body = "\n".join([
        *(f"    ld.global.u32 %r{20 + k}, [%d0+{4 * k * STEPS[source]}];" for k in range(4)),
        *(f"    st.global.u32 [%d1+{ARRAY + 4 * k * STEPS[target]}], %r{20 + k};" for k in range(4)),
    ])  # fmt: skip
    return Short(
        f"DRAM tiles of 128 bytes by 32, from {source} to {target}", GROUP, "LDG", lambda i: body, setup,
        copies=(1, 1), warps=8, blocks=(SIDE // TILE) ** 2, per_copy=4,
    )  # fmt: skip


ADDING_BLOCKS, ADDING_WARPS = 2048, 8


def adding(loads: int, does: str) -> Probe:
    """Each warp loads some words of a lane, all blocks together those next to each other, and then one of its
    lanes does something to one word."""
    threads = ADDING_BLOCKS * ADDING_WARPS * 32
    body = "\n".join([
        *(f"    ld.global.u32 %r{20 + k}, [%d0+{4 * k * threads}];" for k in range(loads)),
        *(f"    xor.b32 %r0, %r0, %r{20 + k};" for k in range(loads)),
        *["    cvt.rn.f32.u32 %f0, %r0;"] * (does == "a float added"),
        "    setp.eq.u32 %p0, lane, 0;", f"    @%p0 {ADDS[does]}",
    ])  # fmt: skip
    return Short(
        f"DRAM, {loads} loads of a lane and then {does} by a lane of {ADDING_BLOCKS} x {ADDING_WARPS} warps",
        GROUP, "LDG" if loads else "STG" if does == "a store" else "RED", lambda i: body,
        f"{BEGIN}\n    mad.lo.u32 %r10, %r10, {32 * ADDING_WARPS}, thread;\n"
        "    mul.wide.u32 wide, %r10, 4;\n    add.u64 %d0, data, wide;",
        copies=(1, 1), warps=ADDING_WARPS, blocks=ADDING_BLOCKS, per_copy=loads or 1,
    )  # fmt: skip


ADDS = {
    "an integer added": "red.global.add.u32 [sink], %r0;",
    "a float added": "red.global.add.f32 [sink], %f0;",
    "a store": "st.global.u32 [sink], %r0;",
}
"""What a lane does -> PTX; all to one word."""


def short_launches() -> Iterator[tuple[int, Probe]]:
    """All of these, with the bytes that they read and write."""
    for warps in (1, 8):
        for times in (1, 3):
            yield 2 * ARRAY if times > 1 else ARRAY + ARRAY // ROW_BYTES * 128, again(times, warps)
    for source in ("rows of a tile", "bytes in a row"):
        for target in PLACES:
            yield 2 * ARRAY, tile(source, target)
    for loads in (0, 8):
        for does in ADDS:
            yield loads * ARRAY // 8, adding(loads, does)


def measured(machine: GpuMachine, build: Build) -> Iterator[Json]:
    """A row of each. A launch has 32 MiB of its own, whatever it touches of these."""
    data = machine.xp.zeros(SIZE // 4, "int32")
    for size, probe in short_launches():
        row = in_a_row(machine, build, probe, data, 2 * ARRAY)
        yield row | {"gb_per_s": size / row["microseconds"] / 1e3}
