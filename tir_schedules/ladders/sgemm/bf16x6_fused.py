"""The split is fused into the product: wgmma takes parts of A from registers, and no launch comes before.

`bf16x6` splits A and B in a launch of its own, which writes 1.5 times the bytes that it reads. `bf16x6_mma`
needs no launch before, but mma has 0.6 times the rate of wgmma, and each warp splits its columns of B for
itself. Here `cp.async` copies tiles of A and B as float32, as in `bf16x6_mma`. Warps split them like this:

    A   tile in shared memory  -->  parts in registers  ------------------------------>  wgmma
    B   tile in shared memory  -->  parts in registers  -->  parts in shared memory  -->  wgmma

wgmma takes A from shared memory or from registers, but B only from shared memory. A warp has 16 of the 64
rows of a wgmma. No other warp needs these rows, so it splits them in registers. All warps need all columns
of B. Each splits a share of them and stores the parts under the swizzle that wgmma reads. A fence makes the
stores visible to wgmma, and a barrier ends them.

Two or three blocks share an SM. So tensor cores multiply for one block while warps of another split, or wait
for copies. `time` shows what is left: at 5376x64x5120 warps wait for products for 22 % of the cycles.

The sums of a lane lie as those of mma, two neighbours in a row of C. So the rest is that of `bf16x6_mma`: the
pipeline of copies, parts of K over blocks, and the stores of C. At 128x128x128 by tiles of 64x64, warps read
2,048 wavefronts of float32 and store 1,536 of parts, and wgmma reads 3,072. In `bf16x6` wgmma reads 6,144,
because it reads A from shared memory, too.

Within a K tile the products of small parts come first, as in `bf16x6`: a tensor core cuts small addends off
that come to a large sum. Infinities, NaN and very small elements are treated as in `bf16x6`.

On an H200 5376x64x5120 took 53 us, where `bf16x6_mma` took 83 and cuBLAS 84. Large products are for
`bf16x6`: 4096x4096x4096 took 1.57 ms here, and 1.03 there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Mapping

from tir_schedules.ladders.hgemm import hopper
from tir_schedules.ladders.sgemm import bf16x6_mma, shapes
from tir_schedules.ladders.sgemm.shapes import Rate
from tir_schedules.model.gpus import WARP
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.split_gemm import FORMS

ROWS = 16
"""Of A that wgmma has from each warp of a warpgroup."""

DEPTHS = (32, 64)
"""Of K in a K tile: rows of parts have 64 or 128 bytes, as the swizzles do."""

REGISTERS, BESIDE, MOST_COLUMNS = 65536, 64, 128
"""Of an SM; those of a thread beside its two sums, which are as many as a tile has columns; and columns for
which 255 registers of a thread are enough."""

MOST = 400
"""Multiply-adds of an SM in a nanosecond, see `shapes.MOST`."""

RATES = {
    "64x64": Rate(328, 0.83, 29, Rate(229, 0.69, 13, parts=18, resident=3), 23, 3),
    "128x64": Rate(314, 0.32, 37, Rate(208, 0.06, 23, parts=17, resident=2), 19, 2),
    "64x128": Rate(316, 0.31, 39, Rate(265, 0.58, 10, parts=20, resident=2), 36, 2),
    "128x128": Rate(459, 0.6, 43, Rate(341, 0.45, 21, parts=18, resident=1), 20, 1),
    "64x32": Rate(241, 0.65, 8, Rate(167, 0.48, 19, parts=27, resident=4), 31, 4),
    "64x16": Rate(163, 0.76, 7, Rate(104, 0.63, 25, parts=25, resident=4), 31, 4),
}
"""Fitted to 323 measurements on an H200 of 66 shapes, with an error of 8 to 13 % (root mean square); those
of odd rows to 195, with an error of 9 to 15 %."""


@dataclass(frozen=True)
class Config(bf16x6_mma.Config):
    """As of `bf16x6_mma`, but a warp computes 16 x bn."""

    wm: int = ROWS
    wn: int = 64
    stages: int = 3

    most: ClassVar[float] = MOST

    @property
    def rates(self) -> Mapping[str, Rate]:
        return RATES

    def near(self, transposed: bool) -> int:
        return 2

    @property
    def parts_bytes(self) -> int:
        """Bytes of the parts of a K tile of B."""
        return FORMS[self.products].parts * FORMS[self.products].size * self.bn * self.bk


def refuses(gemm: Gemm, config: Config) -> str:
    """Why a configuration cannot be, or empty."""
    if config.bk not in DEPTHS:
        return f"bk is {config.bk}: rows of parts have 64 or 128 bytes, so it is 32 or 64"
    if (config.wm, config.wn) != (ROWS, config.bn):
        return f"a warp's tile is {config.wm}x{config.wn}: wm is {ROWS}, and wn is bn, {config.bn}"
    if config.bm % hopper.ROWS or not config.bm:
        return f"bm is {config.bm}: a multiple of {hopper.ROWS}, because wgmma multiplies as many rows"
    if config.bn + BESIDE > REGISTERS // (WARP * config.warps) or config.bn > MOST_COLUMNS:
        return (
            f"two sums of {ROWS}x{config.bn} for each of {config.warps} warps do not fit into registers:"
            f" use a smaller bm, or a bn of at most {MOST_COLUMNS}"
        )
    reason = bf16x6_mma.refuses(gemm, config)
    return reason or hopper.reason_against_shared(bf16x6_mma.shared_bytes(gemm, config) + config.parts_bytes)


def launch(gemm: Gemm, config: Config) -> Launch:
    hopper.check(refuses(gemm, config))
    return bf16x6_mma.launch(gemm, config)


def schedule(sch: Schedule, gemm: Gemm, config: Config) -> None:
    bf16x6_mma.schedule(sch, gemm, config, config.warps)


CONFIGS = {
    "64x64": Config(),
    "64x128": Config(bn=128, wn=128),
    "128x64": Config(bm=128),
    "128x128": Config(bm=128, bn=128, wn=128),
    "64x32": Config(bn=32, wn=32),
    "64x16": Config(bn=16, wn=16, stages=4),
}


def choose(gemm: Gemm) -> str:
    """The configuration that the model of shapes.py says is fastest."""
    return shapes.fastest(gemm, CONFIGS)


RUNG = bf16x6_mma.RUNG.followed_by(
    "bf16x6_fused",
    "wgmma takes parts of A from registers: no launch before, K split over blocks",
    schedule,
    configs=CONFIGS,
    choose=choose,
    launch=launch,
    refuses=refuses,
    arch=hopper.ARCH,
)

if __name__ == "__main__":
    run_as_script(RUNG)
