"""Bulk copies: one thread copies pieces of the array to a ring in shared memory, and all threads add.

Memory is busy if enough bytes are under way. In `single_pass` a load needs registers for its bytes, and
blocks come and go. Here one instruction, `cp.async.bulk`, copies a whole piece, and its bytes arrive in
shared memory. Each SM has one block, which stays to the end and has six stages of 32 KiB. A stage has two
mbarriers (barriers in shared memory that count arrivals and bytes). The first says that all bytes of a piece
have arrived. The second says that every warp has read them. Only the thread that starts copies waits for the
second, so the other warps do not wait for each other.

In the schedule a piece is cached in shared memory. An intrinsic makes that copy a bulk copy. The pass
`tma_prefetch` makes the ring, as it does for boxes of a matrix in `sgemm/tma`. A bulk copy takes no tensor
map. Threads fill pieces with zeros behind the end of the array, so that no loop has a guard and every block
adds the same number of pieces.

A short sum takes longer than by `single_pass`, because a block adds nothing before a whole piece has arrived.

On an H100, rates of 2^25, 2^28 and 2^30 int32 in one run:

- `single_pass`, with its best configuration at each length: 2889, 3119 and 3153 GB/s.
- This rung: 2948, 3153 and 3181 GB/s; with seven stages 2940, 3154 and 3187.
- Pieces half as long in two blocks for each SM, `:4x16k`: 2959, 3145 and 3152 GB/s.
- Eight stages of 8 KiB in two blocks, by the twin: 2900, 3084 and 3106 GB/s.
- A sum of 2^20 takes 4.3 us, and 4.1 us by `single_pass`.

In another run on an H100, kernels by hand with 6 stages of 32 KiB:

- Two mbarriers, as here: 2959, 3162 and 3179 GB/s.
- One mbarrier, and a __syncthreads for each piece: 2951, 3149 and 3151 GB/s.
- A warp that only copies: 2938, 3154 and 3176 GB/s.
- 264 blocks with 6 stages of 16 KiB: 2941, 3136 and 3146 GB/s if each takes every 264th piece, and 2890, 3086
  and 3121 if its pieces follow one another.
- 32768 blocks with 4 stages, which come and go: 2831, 3099 and 3157 GB/s.

Measured on an H200 at 2^25 int32: 4188 GB/s, 1.00 times the 4205 of `single_pass`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tir_schedules.ladders.reduce import single_pass, steps
from tir_schedules.ladders.reduce.cross_thread import sum_per_thread
from tir_schedules.ladders.reduce.steps import WARP, BlocksFrom, ceil_div
from tir_schedules.ladders.reduce.vectorized import VECTOR
from tir_schedules.model.gpus import find_sm
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.reduction import Reduction

FEWEST, MOST = 2, 8  # stages
BARRIERS = 1024
"""Bytes of static shared memory: the barriers of stages, and sums of warps."""

ARCH = "sm_90a"
SHARED = "shared.dyn"


@dataclass(frozen=True)
class Config(steps.Config):
    """piece: bytes of a copy. stages: pieces that shared memory holds. most_blocks, fenced: as of
    `single_pass`."""

    block: int = 512
    piece: int = 32 << 10
    stages: int = 6
    most_blocks: int = 132
    fenced: int = 0

    @property
    def elements(self) -> int:
        """Elements of a piece."""
        return self.piece // 4


SMALL = Config(block=256, piece=16 << 10, stages=4, most_blocks=2 * 132)


@dataclass(frozen=True)
class InPieces(BlocksFrom):
    """`refuses` of this rung."""

    def __call__(self, reduction: Reduction, config: Config) -> str:
        share, held = 4 * VECTOR * config.block, config.stages * config.piece
        limit = find_sm(ARCH).shared_limit - BARRIERS
        if reason := super().__call__(reduction, config):
            return reason
        if config.piece < 1 or config.piece % share:
            return f"piece is {config.piece}: {config.block} threads share a multiple of {share} bytes evenly"
        if not FEWEST <= config.stages <= MOST:
            return f"stages is {config.stages}: the ring has {FEWEST} to {MOST} stages"
        if held > limit:
            return f"it takes {held} bytes of shared memory, and {ARCH} has {limit} for it"
        return ""


def rounds(reduction: Reduction, config: Config) -> tuple[int, int]:
    """How many blocks there are, and how many pieces each has in turn."""
    pieces = ceil_div(reduction.n, config.elements)
    blocks = min(pieces, config.most_blocks)
    return blocks, ceil_div(pieces, blocks)


def launch(reduction: Reduction, config: Config) -> Launch:
    """Blocks along y share a sum. Few pieces need no more stages than that."""
    blocks, turns = rounds(reduction, config)
    return Launch((1, blocks, 1), (config.block, 1, 1), min(config.stages, turns) * config.piece)


def prim_func(reduction: Reduction, config: Config, name: str) -> PrimFunc:
    """The algorithm over as many pieces for each block, as copies show X: zero behind its end."""
    (blocks, turns), chunk = rounds(reduction, config), config.block * VECTOR
    loads = config.elements // chunk

    def read(X: Any, block: Any, iteration: Any, i: Any) -> Any:
        return X[iteration // loads, block, iteration % loads * chunk + i]

    shape = turns, blocks, config.elements
    extents = blocks, turns * loads, chunk
    return single_pass.sum_of_sums(name, reduction.dtype, shape, extents, config.block, read)


def schedule(sch: Schedule, reduction: Reduction, config: Config) -> None:
    from tir_schedules.tir.intrinsics import pieces

    _, turns = rounds(reduction, config)
    partial, iteration, vector = sum_per_thread(sch, config.block, VECTOR, "part", "blockIdx.y")
    turn, load = sch.split(iteration, [turns, None])
    copy = sch.cache_read(partial, 0, SHARED)
    sch.compute_at(copy, turn, preserve_unit_loops=True)
    sch.tensorize(sch.get_loops(copy)[-1], pieces.load(config.elements, reduction.n, reduction.dtype))
    sch.unroll(load)
    sch.vectorize(vector)
    sch.decompose_reduction(partial, turn)
    sch.annotate(turn, "disable_unroll", True)
    sch.prefetch_boxes(turn, min(config.stages, turns))
    single_pass.add_in_last_block(sch, config.block, config.fenced)


RUNG = single_pass.RUNG.followed_by(
    "bulk",
    "bulk copies of pieces to a ring in shared memory, which one thread starts",
    schedule,
    config=Config(),
    configs={"4x16k": SMALL},
    shapes="any",
    launch=launch,
    prim_func=prim_func,
    refuses=InPieces(WARP),
    arch=ARCH,
)

if __name__ == "__main__":
    run_as_script(RUNG)
