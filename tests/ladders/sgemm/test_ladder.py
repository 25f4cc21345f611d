"""Every rung of the SGEMM ladder, schedule and twin, in every configuration, on shapes chosen and drawn."""

import pytest
import shape_cases
from drawing import drawn
from hypothesis import given
from hypothesis import strategies as st

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.twin import load_twin
from tir_schedules.ladders.registry import every_rung
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import outcome_of, run
from tir_schedules.workloads.gemm import Gemm

ARCH = "sm_80"
RUNGS = every_rung("sgemm")
# Whole tiles; one element; thin matrices; ragged with and without rows that 16-byte accesses can take; K of
# one tile and less.
SHAPES = [
    "256,256,256",
    "1,1,1",
    "1,300,1",
    "300,1,5",
    "3,3,431",
    "132,100,36",
    "129,127,65",
    "257,100,511",
    "64,64,4",
]

each_rung = pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.id)
extents = st.integers(1, 150)


def workload(text):
    return Gemm(*map(int, text.split(",")))


@each_rung
@pytest.mark.parametrize("shape", SHAPES)
def test_schedule_and_twin_are_right_and_equal_bit_for_bit(rung, shape):
    (verdict,) = run([(rung, workload(shape))], ARCH, CpuMachine())
    assert verdict.faults == ()
    assert verdict.identical


# All pairs of what two extents can be to a tile, spread over the rungs.
@pytest.mark.parametrize(
    "number", range(len(shape_cases.PAIRWISE)), ids=lambda number: "-".join(shape_cases.PAIRWISE[number])
)
def test_every_two_kinds_of_extents(number):
    rung = RUNGS[number % len(RUNGS)]
    (verdict,) = run(
        [(rung, Gemm(*shape_cases.shape_of(rung, shape_cases.PAIRWISE[number])))], ARCH, CpuMachine()
    )
    assert verdict.faults == () and verdict.identical


@pytest.mark.parametrize(
    "rung", [rung for rung in RUNGS if hasattr(rung.config, "tm")], ids=lambda rung: rung.id
)
def test_tiles_of_threads_as_shapes(rung):
    for rows, columns in [("tm", "bn"), ("bm", "tn")]:
        lower(rung, Gemm(getattr(rung.config, rows), getattr(rung.config, columns), rung.config.bk), ARCH)


@each_rung
@drawn(30)
@given(m=extents, n=extents, k=extents)
def test_twin_is_right_on_any_shape(rung, m, n, k):
    gemm = Gemm(m, n, k)
    assert outcome_of([load_twin(rung, gemm, ARCH)], gemm, CpuMachine()).faults == ()


@pytest.mark.slow
@each_rung
@drawn(4)
@given(m=extents, n=extents, k=extents)
def test_schedule_is_right_on_any_shape(rung, m, n, k):
    (verdict,) = run([(rung, Gemm(m, n, k))], ARCH, CpuMachine())
    assert verdict.faults == ()
