"""C is one column or one row, of matrices in 16-bit formats: the kernels of `sgemm/gemv`.

If B is stored as N x K (`nt`), an element of C is the product of a row of B and the vector, also where M = 1.
With `nn` and M = 1 threads have columns. A load of 16 bytes has eight elements. Tensor cores do not help,
because an element of the matrix is multiplied once. Sums have the format that the kind names. If C has
another format, it is rounded once. Lanes and blocks pass sums in float16 as float32, because a shuffle moves
words of 32 bits. This is exact.
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
