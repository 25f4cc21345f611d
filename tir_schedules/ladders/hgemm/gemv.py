"""C is one column or one row, or a few, of matrices in 16-bit formats: the kernels of `sgemm/gemv`.

If B is stored as N x K (`nt`), an element of C is the product of a row of B and the vector, also if M = 1. If
B is stored as K x N (`nn`) and M = 1, threads have columns of B. A load of 16 bytes has eight elements.
Tensor cores do not help, because an element of the matrix is multiplied once. The kind of GEMM names the
format of sums. If C has another format, sums are rounded to it once. Lanes and blocks convert sums in float16
to float32 before they pass them on, because a shuffle moves words of 32 bits. This conversion is exact.

Tiles of `split_k` read rows by TMA, and a launch before copies rows that are not multiples of 16 bytes. Here
the matrix is read once at any length of its rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tir_schedules.ladders.sgemm import gemv
from tir_schedules.model.gpus import WARP
from tir_schedules.model.rung import configs_as, run_as_script
from tir_schedules.workloads import ACCUMULATORS, OPERANDS, RESULTS
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(gemv.Config):
    """As of `sgemm/gemv`."""

    @property
    def accumulators(self) -> tuple[str, ...]:
        """Formats of the sums."""
        return ACCUMULATORS


def refuses(gemm: HalfGemm, config: Config) -> str:
    return gemv.reason_against(gemm, config, "hgemm/repacked")


CONFIGS = {
    **configs_as(Config, gemv.CONFIGS),
    "1x16": Config(tm=1, loads=16),
    "few_8x16": Config(tm=8, loads=16, vectors=8),
}


def choose(gemm: HalfGemm) -> str | Config:
    """Where C has a few rows or columns, a configuration for several vectors, of just so many as there are.
    Where rows are read in small pieces, a thread has eight of them, so that it loads less of the vectors: on
    an H200 2613x6x15133 took 36 us, and 126 with four; 16152x6x2502 took 30.7 and 32.2."""
    count = min(gemm.m, gemm.n)
    if count == 1:
        return choose_of_one(gemm)
    narrow = "few" if gemv.width_of(gemm) == gemm.vector else "few_8x16"
    most = CONFIGS[narrow if gemv.by_rows(gemm) else "few_rows"]
    return replace(most, vectors=min(count, most.vectors))


def choose_of_one(gemm: HalfGemm) -> str:
    """Where C has one row or one column. By rows one row to a thread, with 16 loads of it under way where
    there are many rows, because DRAM is read fastest in long pieces: on an H200 1x11008x4096 took 23.1 us,
    24.0 with 8 loads, and 25.5 with two of each of four rows. All 16 should be needed at least once. At
    1x12984x2280 a lane needs nine, the other seven read the end of the row again, and the kernel took 33.2
    us. A row that is too short for the lanes of a warp is read in shorter pieces by all of them."""
    if not gemv.by_rows(gemm):
        return gemv.choose_of_one(gemm)
    names = ("1x16", "1x8") if gemm.m * gemm.n >= ROWS_FROM else ("1x8",)
    able = [name for name in names if gemv.plan_of(gemm, CONFIGS[name]).lanes >= WARP]
    at_once = WARP * gemv.width_of(gemm)  # elements of a row that a warp loads by one instruction
    whole = (name for name in able if CONFIGS[name].loads * at_once <= gemm.k)
    return next(whole, None) or next(reversed(able), None) or gemv.of_four_rows(gemm, CONFIGS)


ROWS_FROM = 8 * gemv.BLOCKS
"""So many rows make enough blocks of eight warps, with a row each."""

RUNG = replace(
    gemv.RUNG,
    family="hgemm",
    article="beyond 001 and 004",
    config=CONFIGS["4x2"],
    configs=CONFIGS,
    choose=choose,
    shapes="M or N up to 8; others are for hgemm/repacked",
    refuses=refuses,
    dtypes=OPERANDS,
    outputs=RESULTS,
)

if __name__ == "__main__":
    run_as_script(RUNG)
