"""What half-precision GEMMs the tests are about."""

from itertools import product

import pytest

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.twin import load_twin
from tir_schedules.ladders.registry import every_rung
from tir_schedules.workloads import LAYOUTS
from tir_schedules.workloads.half_gemm import HalfGemm

ARCH = "sm_80"
RUNGS = every_rung("hgemm")
CASES = [(rung, kind) for rung in RUNGS for kind in product(LAYOUTS, rung.config.accumulators)]

each_rung = pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.id)
each_case = pytest.mark.parametrize(
    "rung, kind", CASES, ids=[f"{rung.id} {' '.join(kind)}" for rung, kind in CASES]
)
both = pytest.mark.parametrize("make", [lower, load_twin], ids=["schedule", "twin"])


def workload(shape: str, kind) -> HalfGemm:
    """ "256x256x128" and ("nt", "float16")."""
    return HalfGemm(*map(int, shape.split("x")), *kind)


def other_kinds(rung):
    """Two kinds that differ in both layout and accumulation, where the rung takes them."""
    return [("nt", "float16"), ("nn", rung.config.accumulators[-1])]
