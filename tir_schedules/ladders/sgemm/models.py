"""Models of the rungs of SGEMM that can be the fastest."""

from __future__ import annotations

from tir_schedules.ladders.sgemm.shapes import estimate
from tir_schedules.ladders.waves import Rate

MODELS = {
    "split_k": estimate,
    "serpentine": Rate(211, 0.1, odd=0.73, slow="guards and too few registers for them"),
}
