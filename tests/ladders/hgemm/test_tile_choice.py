"""Which configuration of a Hopper rung a gemm takes: one that it can have, and the fastest measured."""

from dataclasses import replace

import pytest
from hopper_rungs import LADDER
from hypothesis import given, settings
from hypothesis import strategies as some

from tir_schedules.errors import BadInput
from tir_schedules.ladders.hgemm import specialization, tile_choice
from tir_schedules.ladders.hgemm.tile_costs import (
    CLOCK,
    K_TILE,
    K_TILE_AGAIN,
    Estimate,
    clock_of,
    crowding,
    estimate,
    form_cost,
    nanoseconds_of_writing,
)
from tir_schedules.ladders.hgemm.tile_shape import Config
from tir_schedules.ladders.registry import find_one
from tir_schedules.model.launch import check_grid
from tir_schedules.workloads.half_gemm import HalfGemm

SIZES = some.one_of(some.integers(1, 40), some.integers(1, 40).map(lambda n: n * 264))
ROWS = some.one_of(SIZES, some.integers(1, 1 << 24))
FORMATS = [("float16", "float16"), ("float32", "float16"), ("float32", "float32")]
STORE = find_one("hgemm/tma_store", "run")
PAIRS = find_one("hgemm/cluster", "run")


def refused(rung, gemm, config):
    try:
        check_grid(rung.id, rung.launch(gemm, config).grid)
    except BadInput:
        return True
    return False


@settings(max_examples=40, deadline=None)
@given(m=ROWS, n=SIZES, k=SIZES, formats=some.sampled_from(FORMATS), layout=some.sampled_from(["nt", "nn"]))
def test_what_is_chosen_is_refused_only_where_all_are(m, n, k, formats, layout):
    try:
        gemm = HalfGemm(m, n, k, layout, formats[0], "float16", formats[1])
    except BadInput:  # a matrix of more elements than an index counts
        return
    for rung in LADDER:
        if refused(rung, gemm, rung.fitted(gemm).config):
            names = [name for name in rung.configs if name in ("128x256", "128x128") or rung.id == STORE.id]
            assert all(refused(rung, gemm, rung.configs[name]) for name in names), rung.id


@pytest.mark.parametrize(
    "size, sums, name",
    [
        (64, "float32", "64x64"),
        (512, "float32", "64x64"),
        (1024, "float16", "64x128"),
        (1024, "float32", "64x128"),
        (1536, "float32", "128x192"),
        (2048, "float16", "128x256_4_stages"),
        (4096, "float32", "128x256"),
        (4096, "float16", "256x256"),
        (8192, "float16", "256x256"),
    ],
)
def test_the_fastest_of_those_measured_is_chosen(size, sums, name):
    assert STORE.fitted(HalfGemm(size, size, size, "nt", sums, output="float16")).variant == name


def test_rows_that_no_line_begins_with_cost_two():
    """64x128 took 35.0 us at 3000x1000x2000, and 128x256_4_stages 23.7. Neither begins early."""
    slow = HalfGemm(3000, 1000, 2000, "nt", "float32", output="float16")
    assert STORE.fitted(slow).variant == "128x256_4_stages"
    lines = HalfGemm(3008, 1024, 2048, "nt", "float32", output="float16")
    rung = find_one("hgemm/tma_store:64x128", "run")
    times = [estimate(gemm, rung, early=False).microseconds for gemm in (slow, lines)]
    assert times[0] > 1.15 * times[1]


def test_skinny_matrices_take_what_covers_them_in_one_round():
    """By an SM of each pair, where that is enough: two share a way to L2."""

    def chosen(m, n):
        return STORE.fitted(HalfGemm(m, n, 1024, "nt", "float32")).variant

    assert chosen(64, 64 * 66) == chosen(64 * 66, 64) == "64x64"
    assert chosen(64, 64 * 133) == "64x128" and chosen(64 * 133, 64) == "128x64"


def test_a_form_that_was_not_measured_takes_as_long_for_each_element():
    measured = K_TILE[192, 3, 0]["alone"]
    assert form_cost(K_TILE, 192, 3, 0, 192, "alone") == measured[192]
    assert form_cost(K_TILE, 64, 3, 1, 288, "alone") == measured[96]
    assert form_cost(K_TILE, 192, 3, 0, 176, "alone") == pytest.approx((measured[160] + measured[192]) / 2)
    assert form_cost(K_TILE, 192, 3, 0, 192, "swapped, rows shared") == K_TILE[192, 3, 0]["rows shared"][192]


def test_the_second_round_of_a_form_that_was_timed_in_one_takes_as_long():
    assert 96 not in K_TILE_AGAIN[192, 3, 0]["alone"]
    assert form_cost(K_TILE_AGAIN, 192, 3, 0, 96, "alone") == K_TILE[192, 3, 0]["alone"][96]
    assert form_cost(K_TILE_AGAIN, 192, 1, 0, 96, "alone") == K_TILE[192, 1, 0]["alone"][96]


def test_the_clock_falls_with_what_is_multiplied_copied_fetched_and_written():
    falling = [(0, 0, 0, 0), (0.9, 40, 5, 1), (1, 40, 5, 1), (1, 60, 5, 1), (1, 60, 8, 1), (1, 60, 8, 3)]
    clocks = [clock_of(*each) for each in falling]
    assert clocks == sorted(set(clocks), reverse=True) and clocks[0] == CLOCK and clocks[-1] > 1.2


def test_low_stripes_lower_the_clock_where_l2_does_not_hold_a_and_b():
    """1783x28672x8192 by 128x256 had 1292 MHz in stripes of 2 rows, and 1489 in one of 14."""
    gemm, tile = HalfGemm(1783, 28672, 8192, "nt", "float32", output="float16"), Config(bm=128, bn=256)
    low, high = (Estimate.of(gemm, replace(tile, group=height)).clock for height in (2, 14))
    assert low == pytest.approx(1.292, abs=0.06) and high == pytest.approx(1.489, abs=0.06)


def test_tiles_are_taken_in_rounds_of_whole_clusters():
    estimate = Estimate.of(HalfGemm(2048, 2048, 2048), STORE.configs["128x256"])
    assert (estimate.tiles, estimate.rounds, estimate.k_tiles) == (128, 1, 32)
    cluster = find_one("hgemm/cluster", "run")
    pairs = Estimate.of(HalfGemm(128 * 3, 256 * 66, 64), cluster.configs["128x256"])
    assert (pairs.tiles, pairs.rounds) == (2 * 2 * 66, 2)


@pytest.mark.parametrize(
    "tiles, cluster, programs",
    [(512, 1, 128), (264, 1, 132), (133, 1, 67), (7, 1, 7), (264, 2, 132), (134, 2, 68)],
)
def test_programs_are_as_few_as_take_the_tiles_in_as_many_rounds(tiles, cluster, programs):
    """Of 133 tiles one SM has two anyway. Of a cluster each block has a tile."""
    gemm = HalfGemm(128 * tiles, 256, 64, "nt")
    config = replace(PAIRS.configs["128x256"], cluster=cluster)
    assert specialization.programs_of(gemm, config) == programs


@pytest.mark.parametrize("n, k, stages", [
    (4096, 11008, 12),  # 64 of 132 SMs have a tile, and shared memory has room for 12 stages
    (4096, 640, 10),  # as many as there are K tiles
    (4096, 192, 8),
    (8192, 11008, 8),  # 128 SMs have a tile
])  # fmt: skip
def test_few_sms_have_more_bytes_under_way(n, k, stages):
    gemm = HalfGemm(79, n, k, "nt", "float32", output="float16")
    form = Config(bm=80, bn=64, consumers=1, swap=1, boxes=1)
    assert [config.stages for config in tile_choice.settle(gemm, form)] == [stages]


def test_rows_that_many_read_cost_more_where_they_begin_anywhere():
    """144 rows of A that 89 SMs read, or fewer in clusters of four; whole lines and rounds cost no more."""
    form = Config(bm=144, bn=64, consumers=1, stages=8, swap=1, boxes=1)

    def more(form, k, rounds=1):
        return crowding(HalfGemm(144, 5664, k, "nt", "float32", output="float16"), form, rounds)

    assert more(form, 88)[0] == 144 * 17 and more(form, 80)[0] == 144 * 13
    assert more(replace(form, cluster_n=4), 88) == more(form, 64) == more(form, 88, 2) == (0, 0)


def test_memory_takes_swapped_columns_of_a_large_c_more_slowly():
    large, small = HalfGemm(12864, 6208, 64, accumulate="float16"), HalfGemm(1024, 1024, 64)
    assert nanoseconds_of_writing(large, 2, True) == pytest.approx(1.1 * nanoseconds_of_writing(large, 2))
    assert nanoseconds_of_writing(small, 2, True) == nanoseconds_of_writing(small, 2)
