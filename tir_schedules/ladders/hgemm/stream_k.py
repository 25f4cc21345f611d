"""Programs share what is left of whole rounds of tiles, slab by slab: all end at the same time.

In `tma_store` SMs take tiles in rounds, and in the last round some have none: 1536 x 1536 has 144 tiles of
128x128 for 132 SMs, so that 120 of them rest for half of the time:

    tma_store     0  ########################  ########################        24 slabs of a tile
                 11  ########################  ########################
                 12  ########################
                131  ########################
    stream_k      0  ##########################                                26 or 27 slabs for each
                131  ##########################

Whole rounds stay as they are, but for the last of them: what is left and one round, between one and two
tiles for each program, are streamed. Their slabs, tile after tile, are cut into equal shares. So a share
begins and ends within a tile. A program that has the end of a tile leaves its sums in memory, in the format
of sums, with a mark for each warp. The one that has the first slab waits for the marks, adds those sums in
the order of programs, and stores the tile: C does not depend on who was first. Ends of tiles come first in
a share, and beginnings last, so that what is waited for was left a tile ago. Where there are fewer tiles
than SMs, a tile has more than two parts.

A launch that adds up parts, as in `hgemm/split_k`, would have to read and write all parts of shared tiles:
at 1536 that is twice the sums of 131 tiles, 17 MB, and a launch. Here it is half of them, and no launch.

A program that shares saves `(programs - tiles left) / programs` of a tile, and pays for sums that are
written once and read once, which is about `worth` slabs: where it saves less tiles are not streamed.
`choose` takes the tile with the fewest nanoseconds, as `tile_choice` estimates them, with shares in place
of rounds.

Blocks wait for blocks of lower numbers, so that they come to an end whether or not all are on an SM at the
same time. What programs leave lies in variables of the module, whose marks are 0 before a launch and after
it; launches of one kernel must follow one another."""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import hopper, roles, tile_choice
from tir_schedules.model.launch import Launch, ceil_div
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.passes import PROGRAMS
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads import OPERANDS, RESULTS
from tir_schedules.workloads.half_gemm import HalfGemm

MOST_PARTS = 8
"""Of a tile, where there are fewer tiles than programs: their sums are added one after the other."""


@dataclass(frozen=True)
class Config(roles.Stored):
    """As Stored. worth: slabs that sharing must save a program, else it does not."""

    bm: int = 128
    bn: int = 256
    bk: int = 64
    consumers: int = 2
    stages: int = 3
    programs: int = hopper.WAVE
    group: int = 16
    boxes: int = 4
    worth: int = 4


@dataclass(frozen=True)
class Shares:
    """programs: of the grid. tiles: of C, the first `streamed` of them shared. slabs: of each."""

    programs: int
    tiles: int
    streamed: int
    slabs: int

    @classmethod
    def of(cls, gemm: HalfGemm, config: Config) -> "Shares":
        tiles = ceil_div(gemm.m, config.bm) * ceil_div(gemm.n, config.bn)
        slabs = ceil_div(gemm.k, hopper.DEPTH)
        programs = min(max(config.programs, 1), tiles * min(slabs, MOST_PARTS))
        left = tiles % programs
        if not left or (programs - left) * slabs < config.worth * programs:
            return cls(min(programs, tiles), tiles, 0, slabs)
        return cls(programs, tiles, left + (programs if tiles > programs else 0), slabs)

    @property
    def busiest(self) -> int:
        """Slabs of the program that has most."""
        alone = ceil_div(self.tiles - self.streamed, self.programs) * self.slabs
        return alone + ceil_div(self.streamed * self.slabs, self.programs)


def refuses(gemm: HalfGemm, config: Config) -> str:
    return roles.reason_against_roles(gemm, config)


def launch(gemm: HalfGemm, config: Config) -> Launch:
    hopper.checked(refuses(gemm, config))
    launched = roles.launch_programs(gemm, config)
    return Launch((Shares.of(gemm, config).programs, 1, 1), launched.block, launched.dynamic_shared,
                  maps=launched.maps)  # fmt: skip


def prim_func(gemm: HalfGemm, config: Config, name: str) -> PrimFunc:
    return hopper.over_tiles(gemm, config, name, boxes=True, stored=True)


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    shares = Shares.of(gemm, config)
    tiles = roles.share_by_roles(sch, gemm, config)
    streamed = [shares.streamed, shares.slabs] if shares.streamed else []
    sch.annotate(tiles.block_i, PROGRAMS, [shares.programs, config.group, 1, *streamed])
    if streamed:
        roles.store_whole_boxes(sch, gemm, config, tiles, shares.programs)
    else:
        roles.store_boxes(sch, gemm, config, tiles)
    hopper.multiply(sch, gemm, config, tiles, "given")


CONFIGS = {
    "128x256": Config(),
    "256x256": Config(bm=256, boxes=2),
    "128x192": Config(bn=192, stages=4, boxes=3),
    "128x128": Config(bn=128, stages=6, boxes=2),
}


SHARING = {4: 5000, 2: 2500}
"""Bytes of a sum -> nanoseconds that parts of a tile of 128x256 cost, estimated: written and read at 64 bytes
per cycle of an SM, and two latencies of memory."""


def nanoseconds(gemm: HalfGemm, name: str, config: Config) -> float:
    """What the model says of a configuration."""
    shares = Shares.of(gemm, config)
    estimate = tile_choice.Estimate.of(gemm, name, config)
    parts = ceil_div(shares.programs, shares.tiles) if shares.streamed else 0
    share = SHARING[hopper.SIZES[gemm.accumulate]] * config.bm * config.bn / (128 * 256)
    return estimate.once + shares.busiest * estimate.each + parts * share


def choose(gemm: HalfGemm) -> str:
    """The configuration with the fewest nanoseconds; the first where none can be, which is refused."""
    able = [name for name, config in CONFIGS.items() if not refuses(gemm, config)] or [*CONFIGS][:1]
    return min(able, key=lambda name: nanoseconds(gemm, name, CONFIGS[name]))


RUNG = Rung(
    family="hgemm",
    name="stream_k",
    summary="programs share the tiles left of whole rounds slab by slab, and add up the parts in order",
    article="beyond 001 and 004",
    config=CONFIGS["128x256"],
    configs=CONFIGS,
    choose=choose,
    shapes=hopper.SHAPES_STORED,
    schedule=schedule,
    launch=launch,
    refuses=refuses,
    prim_func=prim_func,
    arch=hopper.ARCH,
    warp_size=hopper.WARPGROUP,
    dtypes=OPERANDS,
    outputs=RESULTS,
    passes=("persistent_tiles", "streamed_tiles", "warp_roles", "tensor_maps"),
)

if __name__ == "__main__":
    run_as_script(RUNG)
