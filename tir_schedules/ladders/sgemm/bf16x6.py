"""Float32 matrices on tensor cores: six products of bfloat16 parts, more accurate than float32 itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import hopper
from tir_schedules.ladders.sgemm import split_products
from tir_schedules.model.rung import Around, Rung, run_as_script


@dataclass(frozen=True)
class Config(split_products.Config):
    """As there."""


CONFIGS = {
    "128x192": Config(),
    "192x128": Config(bm=192, bn=128, consumers=3),
    "128x176": Config(bn=176),
    "128x160": Config(bn=160, stages=4),
    "128x128": Config(bn=128, stages=4),
    "64x64": Config(bm=64, bn=64, consumers=1, stages=4),
}

RUNG = Rung(
    family="sgemm",
    name="bf16x6",
    summary="six products of bfloat16 parts on tensor cores, sums promoted to float32 registers",
    config=Config(),
    configs=CONFIGS,
    schedule=split_products.schedule,
    launch=split_products.launch,
    refuses=split_products.refuses,
    prim_func=split_products.prim_func,
    around=Around(split_products.before),
    arch=hopper.ARCH,
)

if __name__ == "__main__":
    run_as_script(RUNG)
