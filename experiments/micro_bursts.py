"""Probes of loads that nothing hides: the warps of a block ask for a tile at once, store it to shared
memory and meet at a barrier.

What counts in a row is `turn`: the cycles of a whole turn with either number of loads of each thread (or of
FFMA after the barrier). "cold" ones read what is in DRAM alone, each line once; the others what L2 holds and
L1 does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator

from micro_arithmetic import CHAINS, INSTRUCTIONS, filled, setup_of
from micro_probes import WARP, Probe

TILE = ".shared .align 1024 .b8 tile[32768];"
PERIOD = 8
"""Turns after which a probe that is not cold reads the same again."""

DATA_BYTES = 1 << 30
MOST_SMS = 160

FIRST = 40
"""Number of the first register that is loaded into."""


@dataclass(frozen=True)
class Tile:
    """What a block loads in a turn, and where.

    width: bytes of a lane's load. row: bytes next to each other, 0 for all that one load of the block
    reads. pitch: bytes from row to row. loads: most of a thread in a turn. shared_by: blocks that read the
    same, 0 for all. crossed: every second load of a thread is shared by the blocks with the same place
    in their group instead, as B is where A is shared along the other axis. cold: from DRAM. hint: L2 is asked
    for the line of 128 bytes that they lie in. ahead: loads are cp.async, and those of so many turns are on
    their way behind a turn; None for loads into registers.
    """

    width: int = 16
    row: int = 0
    pitch: int = 4096
    loads: int = 6
    shared_by: int = 1
    cold: bool = False
    hint: bool = False
    crossed: bool = False
    ahead: int | None = None
    warps: int = 8
    turns: tuple[int, int] = (20, 120)

    @property
    def title(self) -> str:
        kind = f"rows of {self.row} bytes {self.pitch} apart" if self.row else "contiguous"
        shared = f"shared by {self.shared_by or 'all'}{' crossed' * self.crossed}"
        copied = "" if self.ahead is None else f", by cp.async {self.ahead} ahead"
        return f"{kind}, {shared}{', cold' * self.cold}{', whole lines asked for' * self.hint}{copied}"

    @property
    def at_once(self) -> int:
        """Bytes of one load of the block."""
        return self.width * WARP * self.warps

    @property
    def row_bytes(self) -> int:
        return self.row or self.at_once

    @property
    def step(self) -> int:
        """Bytes from turn to turn."""
        return self.row or self.loads * self.at_once

    @property
    def apart(self) -> int:
        """Bytes from load to load of a thread."""
        return self.at_once // self.row_bytes * self.pitch if self.row else self.at_once

    @property
    def group_bytes(self) -> int:
        """Of the blocks that read the same."""
        along = self.step * (self.turns[1] + 1 if self.cold else PERIOD)
        return self.loads * self.apart if self.row else along

    def check(self, blocks: int) -> None:
        """Whether the array holds it; the last rows go on past their begin."""
        groups = -(-blocks // self.shared_by) + self.shared_by * self.crossed if self.shared_by else 1
        assert groups * self.group_bytes + (1 << 20) <= DATA_BYTES, self.title

    def setup(self) -> str:
        lanes = self.row_bytes // self.width
        group = f"div.u32 %r10, %r10, {self.shared_by}" if self.shared_by else "mov.u32 %r10, 0"
        return f"""\
    mov.u32 smem, tile;
    mad.lo.u32 smem, thread, {self.width}, smem;
    mov.u32 %r10, %ctaid.x;
    {group};
    mul.wide.u32 wide, %r10, {self.group_bytes};
    add.u64 at, data, wide;
    div.u32 %r11, thread, {lanes};
    rem.u32 %r12, thread, {lanes};
    mul.wide.u32 wide, %r11, {self.pitch};
    add.u64 at, at, wide;
    mul.wide.u32 wide, %r12, {self.width};
    add.u64 %d0, at, wide;
{self.across() if self.crossed else ""}"""

    def across(self) -> str:
        """%d2: from a load of the block's group to one of those with its place in theirs."""
        return f"""\
    mov.u32 %r14, %ctaid.x;
    rem.u32 %r14, %r14, {self.shared_by};
    add.u32 %r14, %r14, {-(-MOST_SMS // self.shared_by)};
    sub.u32 %r14, %r14, %r10;
    mul.wide.s32 %d2, %r14, {self.group_bytes};
"""

    def advance(self) -> str:
        """PTX at the begin of a turn."""
        turn = "mov.u32 %r13, turn" if self.cold else f"and.b32 %r13, turn, {PERIOD - 1}"
        text = f"    {turn};\n    mul.wide.u32 wide, %r13, {self.step};\n    add.u64 %d1, %d0, wide;"
        return text + "\n    add.u64 %d3, %d1, %d2;" * self.crossed

    def registers(self, i: int) -> str:
        words = self.width // 4
        names = [f"%r{FIRST + words * i + k}" for k in range(words)]
        return f"{{{', '.join(names)}}}" if words > 1 else names[0]

    def load(self, i: int) -> str:
        base = "%d3" if self.crossed and i % 2 else "%d1"
        at = f"[{base}+{i * self.apart}]"
        if self.ahead is not None:
            form = ".L2::128B" * self.hint
            return (
                f"    cp.async.cg.shared.global{form} [smem+{i * self.at_once % 32768}], {at}, {self.width};"
            )
        form = ("" if self.cold else ".cg") + ".L2::128B" * self.hint
        return f"    ld.global{form}.{self.vector} {self.registers(i)}, {at};"

    def store(self, i: int) -> str:
        return f"    st.volatile.shared.{self.vector} [smem+{i * self.at_once % 32768}], {self.registers(i)};"

    @property
    def vector(self) -> str:
        return f"v{self.width // 4}.u32" if self.width > 4 else "u32"

    def stores(self, count: int) -> str:
        """PTX that waits for what was loaded; from registers it is stored."""
        if self.ahead is not None:
            return f"    cp.async.commit_group;\n    cp.async.wait_group {self.ahead};"
        return "\n".join(self.store(i) for i in range(count))


def burst(tile: Tile, copies: tuple[int, int], blocks: int) -> Probe:
    """So many loads of each thread, as many stores, a barrier."""
    tile.check(blocks or MOST_SMS)
    return Probe(
        f"burst of {copies[0]} and {copies[1]} x {tile.at_once} bytes, {tile.title}, {tile.warps} warps,"
        f" {blocks or 'all'} SMs",
        "burst", "LDG" if tile.ahead is None else "LDGSTS", tile.load, tile.setup(),
        before=lambda n: tile.advance(),
        after=lambda n: tile.stores(n) + "\n    bar.sync 0;", declare=TILE, copies=copies, warps=tile.warps,
        blocks=blocks, turns=tile.turns, data_bytes=DATA_BYTES, cold=tile.cold,
        notes={"bytes": [n * tile.at_once for n in copies]}, needs="sm_75" if tile.ahead is None else "sm_80",
    )  # fmt: skip


PLACES = ((1, 1), (66, 1), (66, 8), (0, 1), (0, 2), (0, 8), (0, 16), (0, 0))
"""Blocks (0: one on each SM), and how many read the same."""


def contiguous() -> Iterator[Probe]:
    """Whole lines, from L2 and from DRAM."""
    for blocks, shared in PLACES:
        for copies in ((1, 4), (2, 6)):
            yield burst(Tile(shared_by=shared, loads=copies[1]), copies, blocks)
    for warps in (1, 4, 16):
        yield burst(Tile(warps=warps, loads=4, shared_by=1), (1, 4), 1)
    for blocks, shared in ((1, 1), (66, 8), (0, 1), (0, 8), (0, 0)):
        yield burst(Tile(shared_by=shared, cold=True), (2, 6), blocks)
    for blocks in (1, 32, 64, 0):  # a share of the SMs that asks for as much as each holds
        yield burst(Tile(loads=16, shared_by=1, cold=True, warps=16, turns=(10, 40)), (8, 16), blocks)
    yield from under_way()


def under_way() -> Iterator[Probe]:
    """The same with fewer bytes at once, from DRAM and from L2, and by cp.async: is there a number of lines
    that an SM can wait for?"""
    for copies in ((2, 4), (4, 8)):
        for blocks in (1, 32, 0):
            yield burst(Tile(loads=16, shared_by=1, cold=True, warps=16, turns=(10, 40)), copies, blocks)
    for copies in ((2, 4), (4, 8), (8, 16)):
        for blocks in (1, 32):
            yield burst(Tile(loads=16, shared_by=1, warps=16), copies, blocks)
        copied = Tile(loads=16, shared_by=1, cold=True, warps=16, turns=(10, 40), ahead=0)
        yield burst(copied, copies, 1)


def in_rows() -> Iterator[Probe]:
    """Rows as of a tile of a matrix: a sector, two or four of a line."""
    for blocks, shared in ((1, 1), (0, 1), (0, 8), (0, 0)):
        yield burst(Tile(width=4, row=32, loads=8, shared_by=shared), (2, 8), blocks)
        for row in (32, 64, 128):
            yield burst(Tile(row=row, loads=4, shared_by=shared), (1, 4), blocks)
    for pitch in (4096 + 128, 8192, 16384):
        yield burst(Tile(row=32, pitch=pitch, loads=4, shared_by=8), (1, 4), 0)
    for blocks, shared in ((1, 1), (0, 1), (0, 8), (0, 0)):
        yield burst(Tile(width=4, row=32, loads=8, shared_by=shared, cold=True), (2, 8), blocks)
        yield burst(Tile(row=32, loads=4, shared_by=shared, cold=True), (1, 4), blocks)
        for row, pitch, hint in ((64, 4096, False), (64, 2048, False), (64, 4096, True), (128, 4096, False)):
            turns = (10, pitch // row - 4)  # a row is read to its end, and no further
            tile = Tile(row=row, pitch=pitch, loads=4, shared_by=shared, cold=True, hint=hint, turns=turns)
            yield burst(tile, (1, 4), blocks)


def copied() -> Iterator[Probe]:
    """The same by cp.async: rows that L2 holds, and cold ones that blocks share along one axis or two."""
    for ahead in (0, 1):
        for row in (64, 128):
            yield burst(Tile(row=row, loads=4, shared_by=8, ahead=ahead), (1, 4), 0)
        for blocks, shared, crossed in ((1, 1, False), (0, 8, False), (0, 12, True), (0, 0, False)):
            for row, pitch, hint in (
                (64, 4096, False),
                (64, 4096, True),
                (64, 8192, True),
                (128, 8192, False),
            ):
                turns = (10, min(60, pitch // row - 4))
                tile = Tile(
                    row=row, pitch=pitch, loads=4, shared_by=shared, crossed=crossed, cold=True, hint=hint,
                    turns=turns, ahead=ahead,
                )  # fmt: skip
                yield burst(tile, (1, 4), blocks)


def loops() -> Iterator[Probe]:
    """A whole loop: load, barrier, store, barrier, and so many FFMA that need what was stored."""
    needed = "    ld.volatile.shared.f32 %f100, [smem];\n" + "\n".join(
        f"    add.rn.f32 %f{n}, %f{n}, %f100;" for n in range(CHAINS)
    )

    def loaded(tile: Tile) -> str:
        loads = [tile.load(0), tile.load(1)]
        lines = [tile.advance(), *loads, "    bar.sync 0;", tile.stores(2), "    bar.sync 0;", needed]
        return "\n".join(lines)

    for cold in (False, True):
        for blocks, shared in ((1, 1), (0, 1), (0, 8), (264, 8)):
            tile = Tile(shared_by=shared, loads=2, cold=cold)
            for copies in ((64, 512), (256, 2048)):
                yield Probe(
                    f"loop of 8 KiB and {copies[0]} and {copies[1]} FFMA, {tile.title}, 8 warps,"
                    f" {blocks or 'all'} blocks",
                    "loop", "FFMA", lambda i: filled(INSTRUCTIONS["ffma"][1], "%f", i % CHAINS),
                    tile.setup() + setup_of("%f", CHAINS),
                    before=lambda n, t=tile: loaded(t),
                    declare=TILE, sink=tuple(f"%f{n}" for n in range(CHAINS)), copies=copies, warps=8,
                    blocks=blocks, data_bytes=DATA_BYTES, cold=cold,
                )  # fmt: skip


LATE = """\
    @%p1 bra late{0};
{1}
late{0}:
    bar.sync 0;"""


def late_warps() -> Iterator[Probe]:
    """Barriers at which some warps come later than the others: 32 dependent FFMA later."""
    chain = "\n".join(filled(INSTRUCTIONS["ffma"][1], "%f", 0) for _ in range(32))
    for warps in (4, 8, 16, 32):
        for title, test in (
            ("one warp", "ne.u32 %p1, warp, 0"), ("half of the warps", f"ge.u32 %p1, warp, {warps // 2}"),
            ("no warp", "ge.u32 %p1, warp, 0"),
        ):  # fmt: skip
            yield Probe(
                f"{title} late by 32 FFMA, bar.sync of {warps} warps", "barrier", "BAR",
                lambda i: LATE.format(i, chain), f"    setp.{test};\n{setup_of('%f', 1)}", sink=("%f0",),
                copies=(4, 12), warps=warps,
            )  # fmt: skip


def probes() -> Iterator[Probe]:
    for family in (contiguous, in_rows, copied, loops, late_warps):
        yield from family()
