"""Persistent blocks share the tiles that do not fill a round, along K, so that all SMs end at the same time.

In `serpentine` an SM has two blocks at a time, and the last blocks leave SMs without work. 8192x8192 has 4096
tiles of 128x128: 31 for each SM, and four more. 4096x4096 has 1024 tiles: 100 SMs have eight of them, and 32
SMs have seven:

    serpentine    0  ########  ########       ########  ########           512 tiles of A and B for each
                 99  ########  ########  ...  ########  ########
                100  ########  ########       ########
    stream_k      0  ########  ########       ########  #######
                131  ########  ########       ########  #######

This is Stream-K: 264 persistent blocks ("programs"), two for an SM, compute tile after tile. In a round each
program computes one tile, and whole rounds stay as they are. The remaining tiles, fewer than one for each
program, are shared. If a tile would then have more than eight parts, the tiles of one whole round are shared
as well. The K tiles of all shared tiles, in the order of the tiles, are cut into equal shares. A share
consists of pairs of K tiles, and a pair is 16 of K. A share may begin and end within a tile. The program with
the first pair of a tile stores its sums to C; programs with later pairs add theirs. They add in L2, with
`red`, because reading the sums of others would take registers that the loop over K needs. They add in the
order of programs, so that C does not depend on timing. A mark for each warp says that the sums of the program
before are in C.

**Waits are short, and end.** A program begins with the tile in which its share ends, because it has the first
pairs of that tile and stores them. When it comes to the tile in which its share begins, the program before
has stored that tile long ago. Programs wait only for programs of lower numbers. GPUs begin blocks in the
order of their numbers, although CUDA does not promise it. So every wait ends.

In `hgemm/stream_k` the order is reversed: the program with the first K tile comes last, and reads the sums of
the others.

**One instruction in the loop.** If only one lane of a warp loops until a mark is set, nvcc does not know that
the warp stays converged. It then puts a WARPSYNC into each iteration of the loop over K, although that loop
is far away. So all lanes load the mark, and `__all_sync` tells all of them whether it is set. The WARPSYNC
cost 4 % on an H200.

Marks are in a variable of the module, so launches of one kernel must not overlap. `red` flushes subnormal
sums to zero in L2.

If sharing would save a program fewer than `worth` pairs, nothing is shared. The kernel is then that of
`serpentine`, or, if C goes through shared memory, that of `split_k` with one part of K.

**Any K, any rows.** The first pair of a program is known only at run time. So copies have guards along K in
the first two K tiles of a program and in those of the last pair. The loop between them has no guards. Rows of
A and B that are not a multiple of 16 bytes are read float by float. If rows of C are not, sums go through
shared memory to C, as in `split_k`. Then `red` adds single floats, and the lanes of a warp add 32 neighbours
of a row at a time. The tile of C takes shared memory, too, so an SM has room for two blocks only from sm_90
on.

In the emitted CUDA look for `first_k_tile` and `k_tile_end`, the pairs of a tile that a program has, and for
`add_four` or `add_one`. The loop over K is that of `serpentine`, except for its end.

Measured on an H200 at 4096: 54.6 TFLOPS, 1.04 times the 52.4 of `split_k`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tir_schedules.ladders.sgemm import pipelined, serpentine, warp_tiles
from tir_schedules.ladders.waves import SMS
from tir_schedules.model.launch import Launch, ceil_div
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.gemm import Gemm

STAGES = 2
"""K tiles in shared memory, and in a pair: a share of whole pairs ends in the same stage as all of K, rounded
up to pairs."""

MOST_PARTS = 8
"""Most parts of a tile, if there are fewer tiles than programs, because their sums are added one after the
other."""


@dataclass(frozen=True)
class Config(pipelined.Config):
    """programs: most blocks of the grid, as many as are resident at a time. worth: pairs of K tiles that
    sharing must save a program; else it does not share."""

    programs: int = 2 * SMS
    worth: int = 8


def k_pair_extent(config: Config) -> int:
    """Extent of a pair of K tiles along K."""
    return STAGES * config.bk


@dataclass(frozen=True)
class Shares:
    """programs: of the grid. tiles: of C, the first `streamed` of them shared (0: no tile is). k_pairs:
    pairs of K tiles of each."""

    programs: int
    tiles: int
    streamed: int
    k_pairs: int

    @classmethod
    def of(cls, gemm: Gemm, config: Config) -> "Shares":
        tiles = ceil_div(gemm.m, config.bm) * ceil_div(gemm.n, config.bn)
        k_pairs = ceil_div(gemm.k, k_pair_extent(config))
        if config.programs < 1:
            return cls(tiles, tiles, 0, k_pairs)
        programs = min(config.programs, MOST_PARTS * tiles, k_pairs * tiles)
        left = tiles % programs
        if not left or (programs - left) * k_pairs < config.worth * programs:
            return cls(tiles, tiles, 0, k_pairs)
        whole = programs if programs > MOST_PARTS * left else 0
        return cls(programs, tiles, left + whole, k_pairs)


def writes_in_rows(gemm: Gemm, config: Config) -> bool:
    """Whether C goes through shared memory."""
    return warp_tiles.writes_in_rows(gemm, config, pipelined.tiles_bytes(config, config.padding))


def launch(gemm: Gemm, config: Config) -> Launch:
    shared = warp_tiles.rows_bytes(config) if writes_in_rows(gemm, config) else 0
    alone, shares = warp_tiles.launch(gemm, config, shared), Shares.of(gemm, config)
    return replace(alone, grid=(shares.programs, 1, 1)) if shares.streamed else alone


def schedule(sch: Schedule, gemm: Gemm, config: Config) -> None:
    shares, k_pair = Shares.of(gemm, config), k_pair_extent(config)
    padded, in_rows = k_pair if shares.streamed else 0, writes_in_rows(gemm, config)
    parts = pipelined.double_buffered(sch, gemm, config, config.padding, in_rows=in_rows, k_multiple=padded)
    serpentine.reverse_rows(sch, config, parts)
    if shares.streamed:
        rows = sch.get_loops(parts.compute)[0]
        sch.accumulate_shares(parts.k_tile, shares.k_pairs * STAGES, STAGES, k_pair, k_pair * gemm.n)
        sch.make_persistent(rows, shares.programs, shared=(shares.streamed, shares.k_pairs))


RUNG = replace(
    serpentine.RUNG,
    name="stream_k",
    summary="programs share the tiles left of whole rounds along K, and add their sums to C in order",
    config=Config(),
    configs={},
    schedule=schedule,
    launch=launch,
)

if __name__ == "__main__":
    run_as_script(RUNG)
