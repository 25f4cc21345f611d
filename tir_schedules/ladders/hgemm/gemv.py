"""C is one column or one row, of matrices in 16-bit formats: the kernels of `sgemm/gemv`.

With B stored as N x K (`nt`) its rows are what elements of C are products of, also where M = 1. With `nn` and
M = 1 threads have columns. A load of 16 bytes has eight elements. Tensor cores have nothing to do here: an
element of the matrix is multiplied once. Sums are in the format that the kind says, and a C in another is
rounded once. Lanes and blocks hand on sums in float16 as float32, the word of a shuffle: that is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tir_schedules.ladders.sgemm import gemv
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


CONFIGS = configs_as(Config, gemv.CONFIGS)

RUNG = replace(
    gemv.RUNG,
    family="hgemm",
    article="beyond 001 and 004",
    config=CONFIGS["4x2"],
    configs=CONFIGS,
    shapes="M = 1 or N = 1; others are for hgemm/repacked",
    refuses=refuses,
    dtypes=OPERANDS,
    outputs=RESULTS,
)

if __name__ == "__main__":
    run_as_script(RUNG)
