"""Stream-K: persistent blocks share the tiles that whole rounds leave, by K tiles, and end at the same time.

In `tma_store` SMs take tiles in rounds, and in the last round some SMs have no tile. 1536 x 1536 has 144
tiles of 128x128 for 132 SMs, so that 120 of them rest for half of the time:

    tma_store     0  ########################  ########################        24 K tiles of a tile
                 11  ########################  ########################
                 12  ########################
                131  ########################
    stream_k      0  ##########################                                26 or 27 K tiles for each
                131  ##########################

Whole rounds stay as they are, except for the last. The last whole round and the remaining tiles, between one
and two tiles for each persistent block ("program"), are shared. Their K tiles, in the order of the tiles, are
cut into equal shares. So a share may begin and end within a tile. A program that has the end of a tile, but
not its first K tile, leaves its sums in memory, with a mark for each warp. The program that has the first K
tile waits for the marks, adds those sums in the order of programs, and stores the tile. So C does not depend
on timing. A program begins with the end of one tile, and comes last to the beginning of another. So the sums
that it waits for were left about one tile earlier. If there are fewer tiles than SMs, a tile has more than
two parts.

With a second launch, as in `hgemm/split_k`, all parts of shared tiles would be written and read: at 1536
these are 264 parts of 64 KiB, 17 MB. Here only the 120 parts without a tile's first K tile are written, and
there is no second launch.

Sharing costs time, because the sums of each part of a tile except the first are written, waited for and read.
`worth` is that time in K tiles. If a program would save less, nothing is shared, and the kernel is that of
`tma_store`. For most shapes sharing costs more than it saves. If matrices are large, K tiles also come from
memory and not from L2, see `NEAR`. Sharing pays if K is long and tiles are small.

On an H200 sharing costs 7 us for parts of 128x128 in float32, and 11 for those of 128x256. The
1536x1536x1536 above took 18.7 us with shared tiles, and 14.7 with 96 tiles of 128x192 for 132 SMs.
496x496x4192 took 10.3 us with shared tiles, and 12.0 with one SM for each of 64 tiles.

**Order.** The lanes of a warp leave their sums by plain stores and meet at a `__syncwarp`. Then one lane
stores the mark by `st.release.gpu`. In the warp that waits, one lane loads the mark by `ld.acquire.gpu`, and
then all lanes pass a `__syncwarp` before they load sums. The release and the acquire, each with its
`__syncwarp`, order the sums. No fence and no barrier of the block is needed. A program leaves at most one
part, the end of the tile in which its share begins, so the number of the program is the place of the part. A
mark has one reader, which sets it to 0 again. So all marks are 0 before and after a launch. The end of a
launch orders the stores of 0 before the marks of the next launch.

**No deadlock.** A program leaves its part before it waits for anything, so a part arrives as soon as its
program has begun. By default there are at most as many programs as an H200 has SMs, and each SM holds one, so
all of them run at once. On a GPU with fewer SMs, blocks begin in the order of their numbers, although CUDA
does not promise it. So programs are numbered backwards, and a block waits only for blocks of lower numbers.

The parts are in variables of the module. So a launch that begins early waits until the one before has ended.

In the emitted CUDA look for `share_begin` and `share_end`, the share of a program, and for `share_sums`.

Measured on an H200 at 4096 nt float16: 827 TFLOPS, 1.00 times the 828 of `split_k`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tir_schedules.ladders.hgemm import hopper, specialization, tile_costs, tma_store
from tir_schedules.ladders.waves import MOST_WORTH
from tir_schedules.model.launch import Launch, ceil_div
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.half_gemm import HalfGemm

MOST_PARTS = 8
"""Most parts of a tile, if there are fewer tiles than programs, because their sums are added one after the
other. Each has at least two K tiles, because ptxas lets products of a loop that ends at once wait for each
other."""


@dataclass(frozen=True)
class Config(specialization.Stored):
    """As Stored. worth: K tiles that sharing must save a program, for each part of a tile besides the first;
    else it does not share."""

    stages: int = 3
    worth: int = 16


@dataclass(frozen=True)
class Shares:
    """programs: of the grid. tiles: of C, the first `streamed` of them shared. k_tiles: of each."""

    programs: int
    tiles: int
    streamed: int
    k_tiles: int

    @classmethod
    def of(cls, gemm: HalfGemm, config: Config) -> "Shares":
        tiles = ceil_div(gemm.m, config.bm) * ceil_div(gemm.n, config.bn)
        k_tiles, most = ceil_div(gemm.k, hopper.DEPTH), max(config.programs, 1)
        parts = range(2, min(k_tiles // 2, MOST_PARTS) + 1)
        counts = {most} if tiles > most else {min(most, tiles * each) for each in parts}
        found = [cls(count, tiles, 0, k_tiles) for count in sorted(counts)]
        able = [each for each in found if each.worth_sharing(config.worth)]
        if not able:
            return cls(min(most, tiles), tiles, 0, k_tiles)
        best = min(able, key=lambda each: tiles * k_tiles / each.programs + config.worth * each.others)
        whole = best.programs if tiles > best.programs else 0
        return replace(best, streamed=tiles % best.programs + whole)

    def worth_sharing(self, worth: int) -> bool:
        """Whether each program saves so many K tiles for each other part of a tile; as in the twin."""
        left = self.tiles % self.programs
        return left > 0 and (self.programs - left) * self.k_tiles >= worth * self.others * self.programs

    @property
    def others(self) -> int:
        """Parts of a tile, besides the one with its first K tile, where tiles are shared: about so many."""
        return max(1, (self.programs - 1) // self.tiles)

    @property
    def busiest(self) -> int:
        """K tiles of the program that has most."""
        alone = ceil_div(self.tiles - self.streamed, self.programs) * self.k_tiles
        return alone + ceil_div(self.streamed * self.k_tiles, self.programs)


def refuses(gemm: HalfGemm, config: Config) -> str:
    if not config.worth:
        return "worth is 0: programs that save nothing would share tiles; use worth=1 or more"
    if config.worth > MOST_WORTH:
        return (
            f"worth is {config.worth} K tiles, more than a program ever saves: use worth={MOST_WORTH} or less"
        )
    return specialization.reason_against_specialization(gemm, config)


def launch(gemm: HalfGemm, config: Config) -> Launch:
    hopper.check(refuses(gemm, config))
    launched = specialization.launch_programs(gemm, config)
    return Launch((Shares.of(gemm, config).programs, 1, 1), launched.block, launched.dynamic_shared,
                  maps=launched.maps)  # fmt: skip


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    shares = Shares.of(gemm, config)
    tiles = specialization.specialize_warps(sch, gemm, config)
    shared = (shares.streamed, shares.k_tiles) if shares.streamed else None
    sch.make_persistent(tiles.block_i, shares.programs, config.group, shared=shared)
    if shared:
        specialization.store_whole_boxes(sch, gemm, config, tiles, shares.programs)
    else:
        specialization.store_boxes(sch, gemm, config, tiles)
    hopper.multiply(sch, gemm, config, tiles, "given")
    sch.overlap_launches()


CONFIGS = {
    "128x256": Config(),
    "256x256": Config(bm=256, boxes=2, worth=8),
    "192x192": Config(bm=192, bn=192, consumers=3, stages=4, boxes=1, worth=15),
    "128x192": Config(bn=192, stages=4, boxes=3, worth=17),
    "128x128": Config(bn=128, stages=6, boxes=2, worth=18),
    "64x128": Config(bm=64, bn=128, consumers=1, stages=8, boxes=2, group=2, worth=24),
    "64x64": Config(bm=64, bn=64, consumers=1, stages=8, boxes=2, worth=23),
}

START, PART, BYTE = 2000, 830, 0.061
"""Nanoseconds that sharing costs a program: once, where it has K tiles of two tiles; for each part that is
added to a tile; and for each byte of a part, which one program writes and another one reads. Fitted to 45
measurements on an H200 of nine shapes, to 8 %. `worth` of a configuration is what they make of float32 sums,
of 256x256 of float16 ones, over the nanoseconds of a K tile in `tile_costs`."""

LATE = 1.05
"""How many times as long as all that a kernel takes whose programs share tiles: some are late, and others
wait. What is less certain must promise more to be chosen, too: 2560x2560x2560 is sooner multiplied in whole
rounds."""

NEAR, FAR = 12e6, 4.56e6
"""Programs that share tiles are not at the same K tile at a time. Of the rows and columns that they all
multiply L2 must hold all of K, then, and where that is more than NEAR bytes K tiles come from memory, FAR
bytes in a microsecond for all programs. In whole rounds all are in the same K tile, and neighbours read it
together. So the 120 K tiles that each program streams at 4096x4096x4096 took 0.94 us each and not 0.69: 213
us, where 178 are enough without sharing; at 8192 they took 1.2."""


@dataclass(frozen=True)
class Estimate:
    """What the model says. alone, each: K tiles of whole tiles for the busiest program, and nanoseconds of
    one. together, far: of those that are shared. adding: nanoseconds for parts. once: those that come
    once."""

    shares: Shares
    alone: int
    each: float
    together: int
    far: float
    adding: float
    once: int

    @classmethod
    def of(cls, gemm: HalfGemm, config: Config) -> "Estimate":
        shares = Shares.of(gemm, config)
        whole = tile_costs.Estimate.of(gemm, config)
        once = round(whole.besides)
        if not shares.streamed:
            k_tiles = whole.rounds * whole.k_tiles
            slowest = max(whole.multiplying, whole.reading) / k_tiles
            return cls(shares, k_tiles, slowest, 0, 0, 0, once)
        each = tile_costs.cycles_per_k_tile(gemm, config, shares.programs / hopper.WAVE) / whole.clock
        missed = max(0, 1 - NEAR / bytes_at_a_time(gemm, config, shares.programs))
        far = max(each, 1000 * missed * config.stage_bytes * shares.programs / FAR)
        reading = tile_costs.nanoseconds_of_reading(gemm, config, shares.programs) / shares.busiest
        alone = ceil_div(shares.tiles - shares.streamed, shares.programs) * shares.k_tiles
        adding = PART * shares.others + BYTE * config.bm * config.bn * hopper.SIZES[gemm.accumulate]
        adding += START if shares.programs % shares.tiles else 0
        ends = whole.stored / whole.clock / shares.k_tiles
        each, far, together = max(each + ends, reading), max(far, reading), shares.busiest - alone
        return cls(shares, alone, each, together, far, adding, once)

    @property
    def microseconds(self) -> float:
        busy = self.once + self.alone * self.each + self.together * self.far + self.adding
        return busy / 1000 * (LATE if self.together else 1)

    def __str__(self) -> str:
        whole = f"{self.alone} K tiles for an SM in {self.each:.0f} ns each"
        shared = f"{self.together} K tiles of shared tiles for an SM in {self.far:.0f} ns each"
        which = (whole, shared) if self.alone and self.together else (shared,) if self.together else (whole,)
        parts = f", {self.adding:.0f} ns for their parts" if self.together else ""
        tiles = f"{self.shares.tiles} tiles, {', '.join(which)}{parts}"
        return f"{tiles}, and {self.once} ns once: {self.microseconds:.1f} us"


def bytes_at_a_time(gemm: HalfGemm, config: Config, programs: int) -> int:
    """Bytes of A and B in the rows and columns of so many neighbouring tiles."""
    across = ceil_div(gemm.n, config.bn)
    tall = min(config.group, ceil_div(gemm.m, config.bm))
    stripes = ceil_div(ceil_div(programs, tall), across)
    rows, columns = stripes * tall * config.bm, ceil_div(programs, tall) * config.bn
    return 2 * gemm.k * (min(gemm.m, rows) + min(gemm.n, columns))


def choose(gemm: HalfGemm) -> str:
    """The configuration that is estimated to be the fastest; the first where all are refused."""
    able = [name for name, config in CONFIGS.items() if not refuses(gemm, config)] or [*CONFIGS][:1]
    return min(able, key=lambda name: Estimate.of(gemm, CONFIGS[name]).microseconds)


def estimate(gemm: HalfGemm, rung: Rung) -> Estimate:
    """The estimate for a rung in a configuration, which `choose` compares."""
    return Estimate.of(gemm, rung.config)


RUNG = tma_store.RUNG.followed_by(
    "stream_k",
    "programs share the tiles left of whole rounds K tile by K tile, and add up the parts in order",
    schedule,
    configs=CONFIGS,
    choose=choose,
    launch=launch,
    refuses=refuses,
)

if __name__ == "__main__":
    run_as_script(RUNG)
