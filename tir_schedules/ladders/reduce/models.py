"""Models of those rungs of Reduce that can be the fastest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tir_schedules.ladders.reduce import bulk
from tir_schedules.model.rung import Rung


@dataclass(frozen=True)
class Read:
    """A sum reads its elements once. once: microseconds of its launches. bytes: that are read. rate: bytes in
    a microsecond."""

    once: float
    bytes: int
    rate: float

    @property
    def microseconds(self) -> float:
        return self.once + self.bytes / self.rate

    def __str__(self) -> str:
        rate = f"{self.rate / 1e6:.2f} TB/s"
        return f"{self.once} us for launches, {self.bytes} bytes at {rate}: {self.microseconds:.1f} us"


@dataclass(frozen=True)
class Launches:
    """The estimator of a kernel whose launches take so many microseconds besides reading at a rate."""

    once: float
    rate: float

    def __call__(self, reduction: Any, rung: Rung) -> Read:
        return Read(self.once, reduction.bytes, self.rate)


@dataclass(frozen=True)
class Rounds(Launches):
    """The same where all blocks take a piece in each round, and the last takes as long as the others."""

    def __call__(self, reduction: Any, rung: Rung) -> Read:
        blocks, turns = bulk.rounds(reduction, rung.config)
        return Read(self.once, blocks * turns * rung.config.piece, self.rate)


SINGLE_PASS = {
    "256x4": Launches(2.4, 4.5e6),
    "512x8": Launches(2.7, 4.51e6),
    "512x16": Launches(4.85, 4.617e6),
}
"""On an H200 they are off by 3 % at most from 2^18 elements to 2^30, each where it is chosen."""


def single_pass(reduction: Any, rung: Rung) -> Read:
    return SINGLE_PASS.get(rung.variant, SINGLE_PASS["256x4"])(reduction, rung)


MODELS = {"single_pass": single_pass, "bulk": Rounds(2.6, 4.652e6), "vectorized": Launches(3.9, 4.58e6)}
"""`bulk` was timed on an H100 alone. There estimates like this one are off by 2 % at most from 2^23 elements
to 2^30, at a rate that is 1.0075 times that of `single_pass:512x16`. So is the rate here, with that of an
H200. Fewer elements take up to half a microsecond more."""
