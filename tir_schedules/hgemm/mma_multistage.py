"""Four stages, and the ring of shared memory written out: the best of the ladder before Hopper's own instructions.

Without padding a fourth pair of tiles has room, and a copy the time of three products to arrive. In `mma_permuted` every address in
shared memory holds the number of the tile modulo the number of stages; here as many turns of the loop as there are stages are
written out, so that a place in the ring is a constant which ldmatrix adds by itself, and the instructions between two mma are loads
and copies alone (passes/unroll_ring.py). Look for `k_0_turn`, the unrolled loop in the loop over rounds.

Configuration "256x256": a warp tile of 128x64 needs 3/4 of the shared-memory reads per product, and has room in registers when the
sums are float16. Of what a multiprocessor can read from shared memory, 64x64 tiles take about 85 %, these about 60 %.
"""
from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.hgemm import mma_permuted
from tir_schedules.passes import RING
from tir_schedules.rung import Rung
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(mma_permuted.Config):
    """stages: tiles of A and of B in shared memory at a time."""

    bk: int = 64
    stages: int = 3


launch = mma_permuted.launch


def schedule(sch, gemm: HalfGemm, config: Config) -> None:
    parts = mma_permuted.schedule(sch, gemm, config)
    sch.annotate(parts.k_tile, RING, config.stages)


RUNG = Rung(
    family="hgemm",
    name="mma_multistage",
    summary="four stages, the turns of the ring written out: addresses are constants",
    article="beyond 001 and 004",
    config=Config(),
    configs={"256x256": Config(bn=256, wm=128, bk=32, stages=4), "128x128": Config(bm=128, bk=32, stages=4)},
    shapes=mma_permuted.RUNG.shapes,
    schedule=schedule,
    launch=launch,
    min_arch=80,
    pass_config=mma_permuted.RUNG.pass_config,
    passes=("unroll_ring", *mma_permuted.RUNG.passes),
)

if __name__ == "__main__":
    from tir_schedules.cli import script

    script(RUNG)
