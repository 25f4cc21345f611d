"""Models of the rungs of SGEMM.

Those of rungs before `multistage` are fitted to 256..8192 of bench_sgemm_h200.json. They are off by up to
9 %, transposed, lane_quads and warp_tiling by up to 19 %. Rungs before `vectorized` read single floats at any
shape; of the others' shares at odd rows that of `serpentine` alone was measured.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tir_schedules.ladders.sgemm import shapes, split_k
from tir_schedules.ladders.waves import Rate
from tir_schedules.model.rung import Rung
from tir_schedules.workloads.gemm import Gemm

quads = partial(Rate, odd=0.73, slow="guards and too few registers for them")


def unsplit(gemm: Gemm, rung: Rung) -> shapes.Estimate:
    """Of `multistage`, whose kernel `split_k` has for one part."""
    return shapes.estimate(gemm, replace(rung, config=split_k.Config(**vars(rung.config), splits=1)))


MODELS = {
    "split_k": shapes.estimate,
    "multistage": unsplit,
    "serpentine": quads(211, 0.1),
    "pipelined": quads(210, 0.2),
    "lane_quads": quads(184, 0.6),
    "warp_tiling": quads(142, 2),
    "transposed": quads(169, 0.6),
    "vectorized": quads(130, 0),
    "thread_tile_2d": Rate(128, 0.05),
    "thread_tile_1d": Rate(48.2, 0.1),
    "shared_tile": Rate(36.4, 0.4),
    "coalesced": Rate(24.7, 0.4),
    "naive": Rate(1.9, 0),
}
