"""What the model takes for a shape: a tile, and parts of K."""

from dataclasses import replace

import pytest

from tir_schedules.ladders.sgemm import shapes, split_k
from tir_schedules.ladders.sgemm.split_k import CONFIGS, RUNG, part_of_k, parts_of
from tir_schedules.model.launch import MOST_BLOCKS, ceil_div
from tir_schedules.workloads.gemm import Gemm

CHOSEN = {
    (17, 4096, 4096): ("32x256", 16),
    (4096, 17, 4096): ("64x32", 10),
    (512, 512, 512): ("64x128", 4),
    (1000, 1000, 1000): ("128x128", 4),
    (16384, 4096, 256): ("128x128", 1),
    (2047, 2047, 2047): ("128x128", 1),
    (511, 513, 515): ("64x128", 3),
    (699, 1001, 825): ("64x64", 3),
    (5148, 214, 1707): ("80x128", 2),
    (3072, 1, 3072): ("128x16", 22),
    (37, 4096, 11008): ("40x128", 16),
}


@pytest.mark.parametrize("shape, chosen", CHOSEN.items(), ids=str)
def test_the_model_chooses(shape, chosen):
    gemm = Gemm(*shape)
    assert split_k.choose(gemm) == chosen[0]
    assert parts_of(gemm, CONFIGS[chosen[0]]) == chosen[1] == RUNG.fitted(gemm).declared(gemm).parts


@pytest.mark.parametrize("shape", [(1, 1, 1), (33, 65, 77), (96, 96, 65536), (5000, 3, 777)], ids=str)
def test_parts_are_whole_tiles_and_none_is_empty(shape):
    gemm = Gemm(*shape)
    for config in CONFIGS.values():
        part, parts = part_of_k(gemm, config), parts_of(gemm, config)
        assert part % config.bk == 0 and (parts - 1) * part < gemm.k <= parts * part


def test_no_other_number_of_parts_is_faster_by_the_model():
    gemm, config = Gemm(64, 64, 16384), CONFIGS["32x32"]
    best = shapes.splits(gemm, config)
    deep = ceil_div(gemm.k, config.bk)
    times = {parts: shapes.microseconds(gemm, config, parts) for parts in range(1, deep // 8 + 1)}
    assert best > 32 and times[best] == min(times.values()) and times[1] > 10 * times[best]


def test_every_tile_that_is_chosen_from_has_a_measured_rate():
    assert CONFIGS.keys() == shapes.RATES.keys()
    assert all(shapes.rate_of(config) is shapes.RATES[name] for name, config in CONFIGS.items())
    assert shapes.THIN.keys() <= CONFIGS.keys()


def test_a_tile_is_so_large_that_a_grid_has_its_rows():
    """CUDA has 65535 blocks along y; tiles of 64x32 of this C are more."""
    gemm = Gemm(6_919_462, 3, 12)
    assert RUNG.fitted(gemm).declared(gemm).grid[1] <= MOST_BLOCKS[1] < ceil_div(gemm.m, 64)
    assert split_k.choose(Gemm(100_000_000, 3, 12)) == next(iter(split_k.CHOICES))


def test_thin_tiles_are_for_thin_matrices_alone():
    for size in (33, 64, 1000, 1001):
        assert split_k.choose(Gemm(size, size, 4096)) not in shapes.THIN


@pytest.mark.parametrize("shape, name, measured", [
    ((9, 8192, 28672), "48x256", 208.7),
    ((18, 4096, 11008), "48x256", 57.2),
    ((9, 8192, 28672), "32x256", 225.5),
    ((3, 4096, 14336), "32x256", 57.5),
    ((6, 5120, 20480), "48x256", 118.3),
    ((8, 4096, 16384), "32x256", 69.5),
    ((27, 4096, 11008), "32x256", 76.3),
    ((15, 8192, 28672), "16x128", 306.6),
], ids=str)  # fmt: skip
def test_sums_that_no_thread_stores_take_no_time(shape, name, measured):
    """What an H200 took by tiles that are higher than C, and by one that reads slowly."""
    gemm = Gemm(*shape)
    rung = replace(RUNG, config=CONFIGS[name], variant=name)
    assert shapes.estimate(gemm, rung).microseconds == pytest.approx(measured, rel=0.16)


@pytest.mark.parametrize("parts, measured", [(4, 305.2), (6, 299.7), (8, 225.5)])
def test_an_sm_with_one_block_of_few_products_reads_slowly(parts, measured):
    """So does the grid in which some SMs have twice the blocks of others."""
    estimated = shapes.microseconds(Gemm(9, 8192, 28672), CONFIGS["32x256"], parts)
    assert estimated == pytest.approx(measured, rel=0.1)


def test_rows_that_are_left():
    """48x256: a thread has four rows each from 0, 16 and 32 on."""
    rows = [shapes.live_rows(rows, CONFIGS["48x256"]) for rows in (3, 18, 33, 48, 100)]
    assert rows == [shapes.LEAST, 6 / 12, 9 / 12, 1, 1]
    assert shapes.live_rows(3, CONFIGS["64x256"]) == 1
