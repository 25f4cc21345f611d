"""A K tile has all parts of its elements: it is copied once, and multiplied six times.

Each float32 is the sum of three bfloat16, its parts. `promoted` copies a part of A and one of B for each of
the six products. These are twelve parts, although A and B have only six. Here a K tile (the piece of A and B
that is copied at a time) has all parts of its elements. A stage is three times as large, so there are fewer
stages. But half as many bytes are copied, and warpgroups wait for copies a sixth as often. At 128x128x128,
with tiles of 64x64, TMA copies 384 KiB to shared memory, half as much as in `promoted`. wgmma reads 6,144
wavefronts there, as many as in `promoted`.

In tiles of 128 rows two warpgroups take turns: while one adds its sums to those in float32 registers, the
other multiplies. For a K tile of 64 each has 24 wgmma of 64x128. A tile of 64 rows has only one warpgroup
that multiplies. The schedule is that of `promoted`, and only the configurations are other.

If C has fewer tiles than a GPU has SMs, blocks share a tile along K, as in `split_k`. Each block along z has
the same number of the tile's K tiles, and stores its sums as a part of C. A second launch adds up the parts.
`splits` says how many blocks share a tile, and is chosen for each shape. A sum of fewer terms errs less, so
this costs no accuracy.

**Range.** Parts have the exponents of a float32, so rows and columns of very large or very small elements are
as accurate as others. Elements below 2^-110 lose their bits below 2^-133, because bfloat16 ends there. If an
element of A is infinite or NaN, no element of its row of C is finite, as with FMA. Most of these are NaN
here, also where FMA gives infinity. The same holds for B and columns.

`sgemm/fastest` takes this rung only if `--products` or `--emulated` asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders import split_k_sum
from tir_schedules.ladders.sgemm import promoted, split_products
from tir_schedules.ladders.sgemm.split_costs import chooser
from tir_schedules.model.rung import Around, run_as_script


@dataclass(frozen=True)
class Config(split_products.AlongK):
    """Fields: those of split_products.AlongK."""


CONFIGS = {
    "128x128": Config(),
    "128x160": Config(bn=160, bk=32, stages=4),
    "128x176": Config(bn=176, bk=32, stages=3),
    "128x192": Config(bn=192, bk=32, stages=3),
    "64x128": Config(bm=64, consumers=1, stages=3),
    "64x64": Config(bm=64, bn=64, consumers=1, stages=4),
}

RUNG = promoted.RUNG.followed_by(
    "bf16x6",
    "a K tile has all parts of its elements: loaded once, multiplied six times",
    configs=CONFIGS,
    choose=chooser(CONFIGS),
    around=Around(split_products.before, then=split_k_sum.rung("sgemm")),
)

if __name__ == "__main__":
    run_as_script(RUNG)
