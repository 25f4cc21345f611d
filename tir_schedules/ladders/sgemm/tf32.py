"""Float32 matrices on tensor cores in one product: elements are rounded to tf32, 11 bits of their 24.

A tf32 is a float32 that has 10 fraction bits in place of 23. Tensor cores multiply tf32 at half of
their rate for 16-bit formats. This is six times the rate of float32 FMA. They ignore the last 13 bits of an
element, so they truncate it. A launch before this one rounds A and B to the nearest tf32 (`split_parts`),
which halves the error. It also stores B in rows along K, because wgmma takes tf32 in no other order. The rest
is as in `hgemm/persistent`: there are as many blocks as SMs, a producer warpgroup copies, and two warpgroups
multiply.

**Not accurate.** The relative error of a product is up to 2^-10, compared with 2^-24 in float32: three of
seven decimal digits are left. A library's TF32 mode does the same. Elements from 2^128 - 2^116 on become
infinite. The next rungs keep all bits.

`--products tf32` names this form of product, and the rung is verified with the error bound of the form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tir_schedules.ladders.hgemm import hopper
from tir_schedules.ladders.sgemm import split_products
from tir_schedules.ladders.sgemm.split_costs import chooser
from tir_schedules.model.rung import Around, Rung, run_as_script


@dataclass(frozen=True)
class Config(split_products.Config):
    """Fields: those of split_products.Config. promote: 0."""

    bk: int = 32
    stages: int = 6
    promote: int = 0
    turns: int = 0

    products: ClassVar[str] = "tf32"


CONFIGS = {
    "128x128": Config(),
    "128x192": Config(bn=192, stages=5),
    "64x64": Config(bm=64, bn=64, consumers=1, stages=6),
}

RUNG = Rung(
    family="sgemm",
    name="tf32",
    summary="one product of elements rounded to tf32 on tensor cores; not accurate",
    config=Config(),
    configs=CONFIGS,
    choose=chooser(CONFIGS),
    schedule=split_products.schedule,
    launch=split_products.launch,
    refuses=split_products.refuses,
    prim_func=split_products.prim_func,
    around=Around(split_products.before),
    arch=hopper.ARCH,
)

if __name__ == "__main__":
    run_as_script(RUNG)
