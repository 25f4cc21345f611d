"""What half-precision GEMMs the tests of the rungs before Hopper's instructions are about; the others have
theirs in hopper_rungs.py.

A schedule is lowered and compiled for one shape and kind, a twin for one kind. So that this is done once, the
tests of the default layer ask for the same ones.
"""

from itertools import product

import pytest

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.twin import load_twin
from tir_schedules.ladders.registry import every_rung, ladder
from tir_schedules.workloads import LAYOUTS
from tir_schedules.workloads.half_gemm import HalfGemm

ARCH = "sm_80"
RUNGS = [rung for rung in every_rung("hgemm") if not rung.arch]
LADDER = [rung for rung in ladder("hgemm") if not rung.arch]
CASES = [(rung, kind) for rung in RUNGS for kind in product(LAYOUTS, rung.config.accumulators)]

# So many tiles along K that no compiler unrolls the loop over them.
WHOLE = "256x256x1536"
# Several blocks, ragged along M, N and K, with rows that 16-byte copies can take; and with rows they cannot.
RAGGED, ODD = "264x264x136", "257x129x65"

each_case = pytest.mark.parametrize(
    "rung, kind", CASES, ids=[f"{rung.id} {' '.join(kind)}" for rung, kind in CASES]
)
MAKERS = {"schedule": lower, "twin": load_twin}
both = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def workload(shape: str, kind) -> HalfGemm:
    """ "256x256x128" and ("nt", "float16")."""
    return HalfGemm(*map(int, shape.split("x")), *kind)


def other_kinds(rung):
    """Two kinds that differ in both layout and accumulation, where the rung takes them."""
    return [("nt", "float16"), ("nn", rung.config.accumulators[-1])]


def kinds_of(rung):
    """The same two, first the one that the rung has aligned rows in by default: every other rung has the one,
    and of the rungs of article 004 those that its figures are about."""
    return other_kinds(rung)[:: -1 if rung.name in NN else 1]


NN = (
    "wmma_naive",
    "wmma_async",
    "wmma_register_pipelined",
    "wmma_swizzled_grid",
    "mma_ldmatrix",
    "mma_xor_swizzle",
)
EVERY = [
    (rung, gemm)
    for rung in LADDER
    for aligned, odd in [kinds_of(rung)]
    for gemm in (workload(WHOLE, aligned), workload(RAGGED, aligned), workload(ODD, odd))
]
# Of rows that start anywhere, which are copied by the same steps, every other rung has some.
SHARED = [
    (rung, gemm) for rung, gemm in EVERY if rung in LADDER[::2] or gemm != workload(ODD, kinds_of(rung)[1])
]
