"""Float32 matrices on tensor cores: each element as three parts of bfloat16, and six products of parts.

A bfloat16 has 8 bits and the exponents of a float32, so a float32 is the sum of three: 24 bits. Of the nine
products of parts three are smaller than the last bit of a product of float32, and are left out. A launch
before splits A and B, see `split_parts`. The copy engine brings all parts of a K tile to shared memory, and
they are multiplied there six times by the tensor cores, which have twelve times the rate of float32 FMA and
more. The rest is `hgemm/persistent`: a producer warpgroup copies, two multiply, as many blocks as SMs.

**Less accurate than float32.** The products are exact, and are added up in float32. But a tensor core cuts a
sum off where an FMA rounds it to the nearest. Cut-off is always towards zero: where all terms have one sign,
the errors add up instead of cancelling. Of 4096 products between 0 and 1 the error is over twenty times that
of FMA in order; see `experiments/split_precision.py`. `bf16x6` mends it.

It computes a form of its own, `--products bf16x6_unpromoted`, and is verified with the bound of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tir_schedules.ladders.hgemm import hopper
from tir_schedules.ladders.sgemm import split_products
from tir_schedules.model.rung import Around, Rung, run_as_script


@dataclass(frozen=True)
class Config(split_products.Config):
    """As there. promote: 0."""

    promote: int = 0

    products: ClassVar[str] = "bf16x6_unpromoted"


CONFIGS = {
    "128x192": Config(),
    "128x128": Config(bn=128, stages=4),
    "64x64": Config(bm=64, bn=64, consumers=1, stages=4),
}

RUNG = Rung(
    family="sgemm",
    name="split_bf16",
    summary="six products of bfloat16 parts on tensor cores; less accurate than float32",
    config=Config(),
    configs=CONFIGS,
    choose=split_products.fewest_rounds(CONFIGS),
    schedule=split_products.schedule,
    launch=split_products.launch,
    refuses=split_products.refuses,
    prim_func=split_products.prim_func,
    around=Around(split_products.before),
    arch=hopper.ARCH,
)

if __name__ == "__main__":
    run_as_script(RUNG)
