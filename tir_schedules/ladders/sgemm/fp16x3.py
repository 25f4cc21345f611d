"""Three products of float16 parts, rows of A and columns of B scaled by powers of two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tir_schedules.ladders.sgemm import bf16x6, split_products
from tir_schedules.model.rung import run_as_script


@dataclass(frozen=True)
class Config(split_products.Config):
    """As there."""

    bn: int = 128
    bk: int = 64

    products: ClassVar[str] = "fp16x3"


CONFIGS = {
    "128x128": Config(),
    "128x192": Config(bn=192, bk=32, stages=5),
    "128x176": Config(bn=176, bk=32, stages=5),
    "128x128_32": Config(bk=32, stages=6),
    "64x64": Config(bm=64, bn=64, consumers=1, stages=4),
}

RUNG = bf16x6.RUNG.followed_by(
    "fp16x3",
    "three products of float16 parts; rows of A and columns of B scaled by powers of two",
    config=Config(),
    configs=CONFIGS,
)

if __name__ == "__main__":
    run_as_script(RUNG)
