"""Every rung of the SGEMM ladder, schedule and twin, in every configuration, on shapes chosen and drawn."""

import pytest
import shape_cases
from drawing import drawn
from hypothesis import given
from hypothesis import strategies as st
from layers import layers
from sgemm_cases import ARCH, BASE, EVERY, LADDER, RUNGS, SHARED, each_and_in_turn, takes

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.twin import load_twin
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import launches, outcome_of, run
from tir_schedules.workloads.gemm import Gemm

# By default every rung meets one of these besides the shapes that tests share.
ONE_EACH = {
    "naive": (1, 1, 1),
    "coalesced": (1, 300, 1),
    "shared_tile": (300, 1, 5),
    "thread_tile_1d": (3, 3, 431),
    "thread_tile_2d": (128, 132, 64),  # ragged along N alone
    "vectorized": (257, 100, 511),  # 16-byte accesses to B and C, not to A
    "transposed": (130, 68, 44),  # ragged along all, 16-byte accesses to all
    "warp_tiling": (64, 67, 40),  # to A, not to B and C
    "lane_quads": (64, 64, 4),  # less than a tile
    "pipelined": (128, 128, 20),  # ragged along K alone
    "serpentine": (130, 132, 12),  # ragged along all, an odd number of tiles along K
    "multistage": (36, 64, 16),  # ragged along M alone, fewer tiles along K than stages
    "tma": (70, 300, 164),  # ragged along all, more K tiles than stages
    "split_k": (40, 9, 2051),  # many parts, the last of them short
    "stream_k": (100, 260, 1024),  # three tiles for 24 programs
}
# One element; thin matrices; K ragged and prime; less than a tile.
FURTHER = [(1, 1, 1), (1, 300, 1), (300, 1, 5), (3, 3, 431), (257, 100, 511), (64, 64, 4)]

extents = st.integers(1, 150)


def near(rung, gemm):
    """A shape that the rung takes: that one, or with rows of whole multiples of 16 bytes."""
    return gemm if takes(rung, gemm) else Gemm(gemm.m, -(-gemm.n // 4) * 4, -(-gemm.k // 4) * 4)


def check(rung, gemm):
    (verdict,) = run([(rung, gemm)], ARCH, CpuMachine())
    assert verdict.faults == ()
    assert verdict.identical


@layers("rung, gemm", SHARED, EVERY)
def test_schedule_and_twin_are_right_and_equal_bit_for_bit(rung, gemm):
    check(rung, gemm)


@layers(
    "rung, gemm",
    [(rung, Gemm(*ONE_EACH[rung.name])) for rung in LADDER],
    each_and_in_turn([Gemm(*shape) for shape in FURTHER], 2),
)
def test_other_shapes_are_right_and_equal_bit_for_bit(rung, gemm):
    check(rung, gemm)


# All pairs of what two extents can be to a tile, spread over the rungs.
@pytest.mark.slow
@pytest.mark.parametrize(
    "number", range(len(shape_cases.PAIRWISE)), ids=lambda number: "-".join(shape_cases.PAIRWISE[number])
)
def test_every_two_kinds_of_extents(number):
    rung = RUNGS[number % len(RUNGS)]
    check(rung, near(rung, Gemm(*shape_cases.shape_of(rung, shape_cases.PAIRWISE[number]))))


@layers(
    "rung",
    [rung for rung in BASE if hasattr(rung.config, "tm")],
    [rung for rung in RUNGS if hasattr(rung.config, "tm")],
)
def test_tiles_of_threads_as_shapes(rung):
    for rows, columns in [("tm", "bn"), ("bm", "tn")]:
        gemm = Gemm(getattr(rung.config, rows), getattr(rung.config, columns), rung.config.bk)
        lower(rung, near(rung, gemm), ARCH)


def check_twin(rung, gemm):
    assert outcome_of(launches(load_twin, rung, gemm, ARCH), gemm, CpuMachine()).faults == ()


@layers("rung", BASE, [])
@drawn(8)
@given(m=extents, n=extents, k=extents)
def test_twin_is_right_on_any_shape(rung, m, n, k):
    check_twin(rung, near(rung, Gemm(m, n, k)))


@pytest.mark.slow
@layers("rung", RUNGS, [])
@drawn(10)
@given(m=extents, n=extents, k=extents)
def test_twin_is_right_on_many_shapes(rung, m, n, k):
    check_twin(rung, near(rung, Gemm(m, n, k)))


@pytest.mark.slow
@layers("rung", BASE, [])
@drawn(4)
@given(m=extents, n=extents, k=extents)
def test_schedule_is_right_on_any_shape(rung, m, n, k):
    (verdict,) = run([(rung, near(rung, Gemm(m, n, k)))], ARCH, CpuMachine())
    assert verdict.faults == ()


@layers(
    "text, make",
    [("tn=2,wniter=8", lower), ("tm=1,wmiter=8", load_twin)],
    [("tn=1,wniter=16", lower), ("tn=8,wniter=2", lower), ("tm=2,wmiter=4", load_twin)],
)
def test_lanes_of_fewer_than_four_neighbours(text, make):
    """Rows of C take float4s here, which a lane of two neighbours has not; those of A do not."""
    gemm = Gemm(132, 136, 35)
    (rung,) = find(f"sgemm/serpentine:{text}")
    assert not outcome_of(launches(make, rung, gemm, ARCH), gemm, CpuMachine()).faults
