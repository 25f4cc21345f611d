"""Programs share what is left of whole rounds of tiles, along K: all SMs are done at the same time.

In `serpentine` an SM has two blocks at a time, and the last blocks leave SMs without work: 4096x4096 has 1024
tiles of 128x128, so that 100 SMs have eight of them and 32 have seven; 8192x8192 has 4096, which are 31 for
an SM, and four more:

    serpentine    0  ########  ########       ########  ########           512 tiles of A and B for each
                 99  ########  ########  ...  ########  ########
                100  ########  ########       ########
    stream_k      0  ########  ########       ########  #######
                131  ########  ########       ########  #######

Here there are 264 programs, two blocks for an SM, which compute tile after tile. Whole rounds stay as they
are. What is left, less than a tile for each program, is cut into equal shares: its slabs, tile after tile. A
slab is two tiles of A and B, 16 of K. A share begins within a tile and ends within one. Who has the first
slab of a tile stores its sums to C; who has later ones adds to these. It does so in L2, with `red`, which
reads nothing: to read what others have left takes registers that the loop over K needs. In the order of
programs, so that C does not depend on who was first: a mark for each warp says that the sums before are
there.

**Nobody waits long, and nobody for ever.** A program begins with the tile that its share ends in, which it
has the first slabs of and stores. When it comes to the one that its share begins in, the program before it
has stored that long ago. Programs wait for programs of lower numbers alone, and blocks begin in the order of
their numbers, which CUDA does not promise but GPUs do.

`hgemm/stream_k` goes the other way: there who has the first slab comes last, and reads what others have left.

**One instruction in the loop.** In a loop in which one lane waits for a mark, nvcc does not know that the
warp goes on together, and puts a WARPSYNC into each turn of the loop over K, far from it: 4 % on an H200. So
all lanes ask for the mark, and `__all_sync` says to all of them whether it is there.

Marks lie in a variable of the module; launches of one kernel must follow one another. `red` takes subnormal
sums for zeros, as it does in L2.

Where programs would save less than `worth` slabs each, nothing is shared and the kernel is that of
`serpentine`, or of `split_k` without parts of K where C goes through shared memory.

**Any K, any rows.** Which slab a program begins with is known when it runs. So in the first two tiles that it
reads, and in those of the last slab, copies ask for what is beyond K; the loop between them does not. Rows
that are no multiples of 16 bytes are read float by float, and go through shared memory to C, as in `split_k`:
there `red` adds single floats, 32 neighbours of a warp at a time. With that tile of C an SM has room for two
blocks from sm_90 on.

In the emitted CUDA look for `first_slab` and `slab_behind`, which of a tile's slabs a program has, and for
`add_four`, or `add_one`. The loop over K is that of `serpentine`, but for its end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tir_schedules.ladders.sgemm import pipelined, serpentine, warp_tiles
from tir_schedules.ladders.waves import SMS
from tir_schedules.model.launch import Launch, ceil_div
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.passes import ADDED, PROGRAMS
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.gemm import Gemm

STAGES = 2
"""Tiles of A and B in shared memory, and in a slab: a share of whole slabs ends in the stage that all of K
does, with K rounded up to them."""

MOST_PARTS = 8
"""Of a tile, where there are fewer tiles than programs: their sums are added one after the other."""


@dataclass(frozen=True)
class Config(pipelined.Config):
    """programs: most blocks of the grid, as many as are there at a time. worth: slabs that sharing must save
    a program; else it does not share."""

    programs: int = 2 * SMS
    worth: int = 12


def slab_of(config: Config) -> int:
    """Extent of a slab along K."""
    return STAGES * config.bk


@dataclass(frozen=True)
class Shares:
    """programs: of the grid. tiles: of C, the first `streamed` of them shared, 0 where none is. slabs: of
    each."""

    programs: int
    tiles: int
    streamed: int
    slabs: int

    @classmethod
    def of(cls, gemm: Gemm, config: Config) -> "Shares":
        tiles = ceil_div(gemm.m, config.bm) * ceil_div(gemm.n, config.bn)
        slabs = ceil_div(gemm.k, slab_of(config))
        if config.programs < 1:
            return cls(tiles, tiles, 0, slabs)
        programs = min(config.programs, MOST_PARTS * tiles, slabs * tiles)
        left = tiles % programs
        if not left or (programs - left) * slabs < config.worth * programs:
            return cls(tiles, tiles, 0, slabs)
        return cls(programs, tiles, left, slabs)


def writes_in_rows(gemm: Gemm, config: Config) -> bool:
    """Whether C goes through shared memory."""
    return warp_tiles.writes_in_rows(gemm, config, pipelined.tiles_bytes(config, config.padding))


def launch(gemm: Gemm, config: Config) -> Launch:
    shared = warp_tiles.rows_bytes(config) if writes_in_rows(gemm, config) else 0
    alone, shares = warp_tiles.launch(gemm, config, shared), Shares.of(gemm, config)
    return replace(alone, grid=(shares.programs, 1, 1)) if shares.streamed else alone


def schedule(sch: Schedule, gemm: Gemm, config: Config) -> None:
    shares, slab = Shares.of(gemm, config), slab_of(config)
    padded, in_rows = slab if shares.streamed else 0, writes_in_rows(gemm, config)
    parts = pipelined.double_buffered(sch, gemm, config, config.padding, in_rows=in_rows, slab=padded)
    serpentine.turn_rows(sch, config, parts)
    if shares.streamed:
        rows = sch.get_loops(parts.compute)[0]
        sch.annotate(parts.k_tile, ADDED, [shares.slabs * STAGES, STAGES, slab, slab * gemm.n])
        sch.annotate(rows, PROGRAMS, [shares.programs, 1, 1, shares.streamed, shares.slabs])


RUNG = replace(
    serpentine.RUNG,
    name="stream_k",
    summary="programs share the tiles left of whole rounds along K, and add their sums to C in order",
    config=Config(),
    configs={},
    schedule=schedule,
    launch=launch,
    passes=("persistent_tiles", "streamed_tiles", "added_tiles", *serpentine.RUNG.passes),
)

if __name__ == "__main__":
    run_as_script(RUNG)
