"""Models of the rungs of SGEMM that can be the fastest."""

from __future__ import annotations

from tir_schedules.ladders.sgemm.shapes import estimate
from tir_schedules.ladders.waves import Rate

# Rates of the last three are fitted to 256..8192 of bench_sgemm_h200.json, and off by up to 9 %. They read
# single floats at any shape.
MODELS = {
    "split_k": estimate,
    "serpentine": Rate(211, 0.1, odd=0.73, slow="guards and too few registers for them"),
    "thread_tile_1d": Rate(48.2, 0.1),
    "shared_tile": Rate(36.4, 0.4),
    "coalesced": Rate(24.7, 0.4),
}
