"""Three products of float16 parts in place of six of bfloat16, rows of A and columns of B scaled.

Two parts of float16 have 22 bits. Three of their four products matter, so this is half the work of `bf16x6`.
Counted at the shape and tiles of `promoted`, TMA copies 256 KiB, and wgmma reads 3,072 wavefronts.
Float16 has few exponents. So a launch before this one divides each row of A and each column of B by a power
of two, see `split_scaled`. When sums are stored, they are multiplied by both powers. Divisions and
multiplications by powers of two are exact.

Its accuracy is normwise, row by row. Elements that are 2^17 times smaller than the largest of their row of A
(column of B) lose bits, and elements below 2^-39 of the largest lose all. So the error of an element of C is
small compared with the largest elements of its row of A and column of B. With `bf16x6` it is small compared
with |A| |B| itself. Rows and columns of very large or very small elements are as accurate as others, and rows
of zeros give zeros. If the largest element of a row is below 2^-112, elements lose bits below 2^-150.
Infinities and NaN are treated as in `bf16x6`.

With the sign of the second part, two parts of float16 hold 23 of the 24 bits of a float32. If terms nearly
cancel each other, or if they are few, the error can exceed that of FMA: see "What bounds fp16x3" in
experiments/README.md.

So `sgemm/fastest --emulated` does not choose this rung. `--products fp16x3` asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tir_schedules.ladders.sgemm import bf16x6, split_products
from tir_schedules.ladders.sgemm.split_costs import chooser
from tir_schedules.model.rung import run_as_script


@dataclass(frozen=True)
class Config(split_products.Config):
    """Fields: those of split_products.Config."""

    stages: int = 3

    products: ClassVar[str] = "fp16x3"


CONFIGS = {
    "128x128": Config(),
    "128x160": Config(bn=160),
    "128x192": Config(bn=192, bk=32, stages=5),
    "192x128": Config(bm=192, consumers=3, stages=2),
    "64x128": Config(bm=64, consumers=1, stages=4),
    "64x64": Config(bm=64, bn=64, consumers=1, stages=4),
}

RUNG = bf16x6.RUNG.followed_by(
    "fp16x3",
    "three products of float16 parts; rows of A and columns of B scaled by powers of two",
    configs=CONFIGS,
    choose=chooser(CONFIGS),
)

if __name__ == "__main__":
    run_as_script(RUNG)
