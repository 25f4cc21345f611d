"""Streams through arrays far larger than L2: reads, writes and both, by some SMs or all, by blocks that stay
or short ones, in whole lines or in rows that are written or read in part.

A figure is gigabytes of DRAM a second, read and written, of a whole launch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, Iterator

from micro_probes import DATA, Probe, arguments

from tir_schedules.files import Json
from tir_schedules.machines.gpu import GpuMachine
from tir_schedules.model.kernel import Binary

Build = Callable[[Probe, int], Binary]
"""A probe and its copies -> its binary."""

GROUP = "gpu"
ROW = 16384
"""Bytes that a block of 1024 threads reads at once, 16 by each."""

SIZE = 4 << 30
RUNS = 4


def timed(machine: GpuMachine, build: Build, probe: Probe, turns: int, data: Any, size: int) -> Json:
    """A row of a launch that reads and writes so many bytes."""
    given = arguments(machine, probe, probe.blocks, turns) | {DATA: data}
    call = partial(machine.enqueue, build(probe, probe.copies[0]), given)
    seconds = min(machine.seconds(call) for _ in range(RUNS))
    return {"name": probe.name, "gb_per_s": size / seconds / 1e9, "microseconds": seconds * 1e6}


def in_a_row(machine: GpuMachine, build: Build, probe: Probe, data: Any, size: int) -> Json:
    """A row of launches that follow each other, each on a part of the array of its own."""
    given, binary = arguments(machine, probe, probe.blocks, 1), build(probe, probe.copies[0])
    count = min(LAUNCHES, data.nbytes // size)

    def all_of_them(stream: Any) -> None:
        for number in range(count):
            machine.enqueue(binary, given | {DATA: data[number * size // 4 :]}, stream)

    all_of_them(machine.stream)
    graph = machine.capture(all_of_them)
    seconds = min(machine.seconds(graph) for _ in range(RUNS)) / count
    return {"name": probe.name, "gb_per_s": size / seconds / 1e9, "microseconds": seconds * 1e6}


@dataclass(frozen=True)
class Stream:
    """Blocks of 1024 threads, each thread so many loads and then so many stores of 16 bytes, steps times in a
    turn. Each load and each store has a region of the array; in place, stores go where loads come from."""

    blocks: int
    reads: int
    writes: int
    steps: int
    in_place: bool = False

    @property
    def regions(self) -> int:
        return self.reads + self.writes * (not self.in_place)

    @property
    def turn_bytes(self) -> int:
        """Of a region, a turn."""
        return self.steps * self.blocks * ROW

    @property
    def turns(self) -> int:
        return min(SIZE // self.regions, 4096 * self.turn_bytes) // self.turn_bytes

    @property
    def bytes(self) -> int:
        return (self.reads + self.writes) * self.turns * self.turn_bytes

    def body(self, i: int) -> str:
        region = self.turns * self.turn_bytes
        lines, loaded = [], []
        for step in range(self.steps):
            for n in range(self.reads):
                at = 4 * (step * self.reads + n) + 20
                loaded.append(at)
                names = ", ".join(f"%r{at + k}" for k in range(4))
                lines.append(f"    ld.global.v4.u32 {{{names}}}, [%d{n}+{step * self.blocks * ROW}];")
        for step in range(self.steps):
            for n in range(self.writes):
                at = 4 * step * self.reads + 20
                names = ", ".join(f"%r{at + k}" for k in range(4)) if self.reads else "y, z, y, z"
                base = n if self.in_place else self.reads + n
                lines.append(f"    st.global.v4.u32 [%d{base}+{step * self.blocks * ROW}], {{{names}}};")
        lines += [f"    xor.b32 %r0, %r0, %r{at + k};" for at in loaded for k in range(4)]
        lines += [f"    add.u64 %d{n}, %d{n}, {self.turn_bytes};" for n in range(self.regions)]
        assert region * self.regions <= SIZE
        return "\n".join(lines)

    def probe(self, name: str) -> Probe:
        region = self.turns * self.turn_bytes
        begin = "\n".join(f"    add.u64 %d{n}, %d0, {n * region};" for n in range(1, self.regions))
        return Probe(
            name, GROUP, "LDG" if self.reads else "STG", self.body,
            f"    mov.u32 %r10, %ctaid.x;\n    mul.wide.u32 wide, %r10, {ROW};\n    add.u64 at, data, wide;\n"
            f"    mul.wide.u32 wide, thread, 16;\n    add.u64 %d0, at, wide;\n    mov.u32 %r0, y;\n{begin}",
            sink=("%r0",), copies=(1, 1), warps=32, blocks=self.blocks,
            per_copy=self.steps * (self.reads or self.writes),
        )  # fmt: skip


MIXES = ((1, 0, 4), (0, 1, 4), (1, 1, 4), (2, 1, 2), (3, 1, 1), (1, 2, 2))
"""Loads, stores, and steps of each."""


def streams(multiprocessors: int) -> Iterator[tuple[Stream, Probe]]:
    """Mixes of two blocks on each SM, and reads or copies by some SMs, a block of each."""
    for reads, writes, steps in MIXES:
        one = Stream(2 * multiprocessors, reads, writes, steps)
        yield one, one.probe(f"DRAM stream, {reads} read and {writes} written")
    one = Stream(2 * multiprocessors, 1, 1, 4, in_place=True)
    yield one, one.probe("DRAM stream, 1 read and written in place")
    for blocks in (1, 8, 32, 64, multiprocessors):
        for reads, writes in ((1, 0), (1, 1)):
            for steps in (1, 4):
                one = Stream(blocks, reads, writes, steps)
                name = f"DRAM stream, {reads} read and {writes} written"
                yield one, one.probe(f"{name}, {steps} x 16 KiB of a block, {blocks} blocks")


class Short(Probe):
    """Blocks that load, store and end, without a loop."""

    def ptx(self, copies: int, arch: str) -> str:
        """`setup` and a copy of the body alone."""
        head, _, rest = super().ptx(copies, arch).partition("    and.b32 lane, thread, 31;\n")
        assert rest
        return f"{head}    and.b32 lane, thread, 31;\n{self.setup}\n{self.body(0)}\n    ret;\n}}\n"


SHORT_BYTES = (1 << 24, 1 << 29)
"""Of each array."""

LAUNCHES = 24


def short_blocks(size: int) -> Iterator[tuple[int, Probe]]:
    """A grid of blocks that read so many arrays of a size and write one, a load of each for a thread; the
    bytes of all arrays."""
    for reads, width, warps in ((1, 4, 8), (1, 16, 8), (2, 4, 8), (2, 16, 8), (1, 16, 32)):
        kind, words = ("v4.u32", range(4)) if width == 16 else ("u32", range(1))

        def names(n: int, words: range = words) -> str:
            listed = ", ".join(f"%r{20 + 4 * n + k}" for k in words)
            return f"{{{listed}}}" if len(words) > 1 else listed

        loads = [f"    ld.global.{kind} {names(n)}, [%d0+{n * size}];" for n in range(reads)]
        sums = [f"    xor.b32 %r20, %r20, %r{20 + 4 * n};" for n in range(1, reads)]
        store = f"    st.global.{kind} [%d0+{reads * size}], {names(0)};"
        body = "\n".join([*loads, *sums, store])
        yield (reads + 1) * size, Short(
            f"DRAM stream by blocks of {warps} warps, a thread reads {reads} x {width} bytes,"
            f" arrays of {size >> 20} MiB",
            GROUP, "LDG", lambda i, b=body: b,
            f"    mov.u32 %r10, %ctaid.x;\n    mad.lo.u32 %r10, %r10, {32 * warps}, thread;\n"
            f"    mul.wide.u32 wide, %r10, {width};\n    add.u64 %d0, data, wide;",
            copies=(1, 1), warps=warps, blocks=size // (32 * warps * width), per_copy=reads,
        )  # fmt: skip


PITCH = 1 << 14
"""Bytes from row to row of the matrix whose tiles are written."""

TILES_A_TURN = 4


def tiles(form: str, width: int, down: bool, size: int, multiprocessors: int) -> Probe:
    """Blocks of 1024 threads that read or write tiles of 32 rows of 128 bytes, 4 bytes a lane, where a warp
    has so many bytes of a row. Tiles follow each other down the rows, or across."""
    lanes, chunks = width // 4, 128 // width
    blocks = 2 * multiprocessors
    row_bits, column_bits = (size // PITCH // 32).bit_length() - 1, (PITCH // 128).bit_length() - 1
    setup = f"""\
    mov.u32 %r10, %ctaid.x;
    and.b32 %r11, warp, {chunks - 1};
    shr.u32 %r12, warp, {chunks.bit_length() - 1};
    mul.lo.u32 %r12, %r12, {32 // lanes};
    shr.u32 %r13, lane, {lanes.bit_length() - 1};
    add.u32 %r12, %r12, %r13;
    and.b32 %r13, lane, {lanes - 1};
    shl.b32 %r13, %r13, 2;
    mad.lo.u32 %r13, %r11, {width}, %r13;
    mad.lo.u32 %r13, %r12, {PITCH}, %r13;
    cvt.u64.u32 wide, %r13;
    add.u64 %d0, data, wide;
    mov.u32 %r0, y;
"""
    fast, slow = (row_bits, column_bits) if down else (column_bits, row_bits)
    column, row = ("%r15", "%r14") if down else ("%r14", "%r15")

    def body(i: int) -> str:
        action = f"ld.global.u32 %r{20 + i}, [at];" if form == "read" else "st.global.u32 [at], y;"
        return f"""\
    and.b32 %r14, %r10, {(1 << fast) - 1};
    shr.u32 %r15, %r10, {fast};
    and.b32 %r15, %r15, {(1 << slow) - 1};
    mul.wide.u32 wide, {row}, {32 * PITCH};
    add.u64 at, %d0, wide;
    mul.wide.u32 wide, {column}, 128;
    add.u64 at, at, wide;
    {action}
    add.u32 %r10, %r10, {blocks};"""

    loaded = range(TILES_A_TURN if form == "read" else 0)
    used = "\n".join(f"    xor.b32 %r0, %r0, %r{20 + i};" for i in loaded)
    where = "DRAM" if size > 1 << 30 else "L2"
    return Probe(
        f"{where} {form} of tiles, {width} bytes of a row by a warp, tiles {'down' if down else 'across'}",
        GROUP, "LDG" if form == "read" else "STG", body, setup, after=lambda n: used, sink=("%r0",),
        copies=(TILES_A_TURN, TILES_A_TURN), warps=32, blocks=blocks,
    )  # fmt: skip


def tiled(multiprocessors: int) -> Iterator[tuple[int, Probe]]:
    """All of these with the bytes of their matrix: of DRAM, and of L2."""
    for size in (SIZE, 1 << 24):
        for width in (4, 16, 32, 128):
            for down in (True, False):
                yield size, tiles("write", width, down, size, multiprocessors)
        for width in (4, 32):
            yield size, tiles("read", width, True, size, multiprocessors)


def dram_streams(machine: GpuMachine, build: Build) -> Iterator[Json]:
    """All of them."""
    multiprocessors = machine.attribute("MultiProcessorCount")
    data = machine.xp.zeros(SIZE // 4, "int32")
    for one, probe in streams(multiprocessors):
        yield timed(machine, build, probe, one.turns, data, one.bytes)
    for array in SHORT_BYTES:
        for size, probe in short_blocks(array):
            yield in_a_row(machine, build, probe, data, size)
    for size, probe in tiled(multiprocessors):
        turn = TILES_A_TURN * probe.blocks * 4096
        turns = min(size if size == SIZE else 64 * size, SIZE) // turn
        yield timed(machine, build, probe, turns, data, turns * turn)
