"""Promotion: sums of tensor cores are added to sums in float32 registers, and begin from 0 again.

A tensor core truncates its sums. The loss is a share of the sum so far, so sums of few terms lose less. Here
each thread has two sets of sums: those that wgmma adds to, and others in float32 registers. After each
`promote` elements along K it adds the first to the second, with rounding. Then wgmma begins from 0 again (its
operand scale-d). DeepGEMM does so for 8-bit floats, after 128 elements along K.

Within a K tile the products of second and third parts come first, because they are small and lose nothing
while the sum is small. That helps only within one K tile. If sums are promoted after 256 elements, sums of
256 terms are five times worse than by FMA in order. If sums are promoted after each 32 or 64, they are better
than by FMA, for every kind of input and every length of `experiments/split_precision.py`. For 4096 terms the
error is a sixth of that of FMA, for normal and for positive inputs.

In the schedule this is `rfactor`: the loop over K is split, and the sum of a part of K becomes a separate
block of TensorIR (not of threads). The other block of TensorIR adds up these sums. In the emitted CUDA look
for the loop around the loop over K tiles.

Counted at 128x128x128 by tiles of 64x64, TMA copies 768 KiB to shared memory, and wgmma reads 6,144
wavefronts of 128 bytes.

Both sets have to fit into registers. If each of two warpgroups multiplies 64x192, a thread has 96 registers
for each set, of its 240.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tir_schedules.ladders.sgemm import split_bf16, split_products
from tir_schedules.ladders.sgemm.split_costs import chooser
from tir_schedules.model.rung import run_as_script


@dataclass(frozen=True)
class Config(split_products.Config):
    """Fields: those of split_products.Config."""

    stages: int = 6
    turns: int = 0

    together: ClassVar[bool] = False


CONFIGS = {
    "128x128": Config(),
    "128x192": Config(bn=192, stages=5),
    "64x64": Config(bm=64, bn=64, consumers=1, stages=8),
}

RUNG = split_bf16.RUNG.followed_by(
    "promoted",
    "sums of tensor cores are promoted to float32 registers: more accurate than float32",
    configs=CONFIGS,
    choose=chooser(CONFIGS),
)

if __name__ == "__main__":
    run_as_script(RUNG)
