"""Float32 matrices on tensor cores: each element as three parts of bfloat16, and six products of parts.

A bfloat16 has a precision of 8 bits, and the exponents of a float32. So a float32, whose precision is 24
bits, is the sum of three bfloat16. Of the nine products of parts, three are smaller than the last bit of a
product of float32, and are left out. A launch before this one splits A and B, see `split_parts`. The rest is
a product of half-precision matrices with a K that is six times as long: each K tile has one part of A and one
of B, and six K tiles multiply the same elements. Tensor cores multiply at twelve times the rate of float32
FMA or more.

**Less accurate than float32.** The products are exact, and are added up in float32. But a tensor core
truncates a sum, while an FMA rounds it to the nearest. Truncation is always towards zero, so if all terms
have one sign, the errors add up instead of cancelling. For a sum of 4096 products between 0 and 1 the error
is over twenty times that of FMA in order; see `experiments/split_precision.py`. The next rung, `promoted`,
mends it.

`--products bf16x6_unpromoted` names this form of product, and the rung is verified with the error bound of
the form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tir_schedules.ladders.sgemm import split_products, tf32
from tir_schedules.ladders.sgemm.split_costs import chooser
from tir_schedules.model.rung import run_as_script


@dataclass(frozen=True)
class Config(split_products.Config):
    """Fields: those of split_products.Config. promote: 0."""

    stages: int = 6
    promote: int = 0
    turns: int = 0

    products: ClassVar[str] = "bf16x6_unpromoted"
    together: ClassVar[bool] = False


CONFIGS = {
    "128x128": Config(),
    "128x192": Config(bn=192, stages=5),
    "64x64": Config(bm=64, bn=64, consumers=1, stages=8),
}

RUNG = tf32.RUNG.followed_by(
    "split_bf16",
    "six products of bfloat16 parts on tensor cores; less accurate than float32",
    configs=CONFIGS,
    choose=chooser(CONFIGS),
)

if __name__ == "__main__":
    run_as_script(RUNG)
