"""The small workload that a candidate is verified on takes the paths of the whole one."""

import random

import pytest

from tir_schedules.ladders.registry import find, find_one
from tir_schedules.ladders.sgemm import split_k
from tir_schedules.tuning.building.small_workload import small
from tir_schedules.tuning.space.tunable import space_of
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction

ARCH = "sm_80"


@pytest.mark.parametrize("workload, expected", [
    (Gemm(4096, 4096, 4096), (256, 384, 32)),  # 512 tiles along K are an even number, as 4 are
    (Gemm(1000, 130, 65), (232, 130, 17)),  # 9 tiles, as 3
    (Gemm(100, 90, 7), (100, 90, 7)),
])  # fmt: skip
def test_a_small_workload_has_the_same_ragged_ends(workload, expected):
    rung = find_one("sgemm/pipelined", "tune")
    assert small(rung, workload) == (rung, Gemm(*expected))


@pytest.mark.parametrize("columns, expected", [(64, 6), (48, 6), (63, 3), (16, 2), (4, 2), (20, 6), (1, 1)])
def test_a_small_gemm_keeps_its_kind_and_its_threadblock_swizzle(columns, expected):
    """A stripe of mma_multistage has at most 16 columns of blocks, as many as divide the number of all."""
    rung = find_one("hgemm/mma_multistage", "tune")
    whole = HalfGemm(8192, 128 * columns, 8192, "nn", "float32")
    reduced, found = small(rung, whole)
    assert reduced == rung
    assert found == HalfGemm(512, 128 * expected, 64 * 5, "nn", "float32")
    several = [rung.launch(gemm, rung.config).grid[2] > 1 for gemm in (whole, found)]
    assert several[0] == several[1]


def paths(rung, reduction):
    """What the first launch of a reduction does, whether there is a next one, and how wide that one loads."""
    config, grid = rung.config, rung.launch(reduction, rung.config).grid[0]
    wide = 4 if reduction.n % 4 == 0 else 1
    chunk = config.block * wide
    turns, last = -(-reduction.n // (grid * chunk)), (reduction.n - 1) % (grid * chunk) + 1
    further = grid > 1 and (4 if grid % 4 == 0 else 1)
    return (
        wide,
        further,
        turns > config.unroll,
        (turns - 1) % config.unroll,
        -(-last // chunk) == grid,
        (last - 1) % chunk,
    )


def test_a_small_reduction_takes_the_paths_of_the_whole_one():
    space, rng, looped = space_of("reduce/vectorized"), random.Random(4), 0
    for _ in range(600):
        n = rng.randrange(1, rng.choice([2**31 - 2**16, 1 << 24, 1 << 17]))
        power = 1 << (n - 1).bit_length() if n <= 1 << 30 else n
        whole = Reduction(rng.choice([n, 4 * -(-n // 4), power]) % (2**31 - 2**16), "float32")
        rung = space.rung_at(space.sample(rng, whole, ARCH))
        reduced, part = small(rung, whole)
        assert paths(reduced, part) == paths(rung, whole), f"{rung.config} on {whole}"
        assert part.n <= min(whole.n, 1 << 19) and part.dtype == "float32" and reduced.id == rung.id
        looped += paths(rung, whole)[2]
    assert looped > 60


def parts(gemm, config):
    """Tiles of each part of K, and elements of the last tile along each axis."""
    each, deep = split_k.part_of_k(gemm, config) // config.bk, -(-gemm.k // config.bk)
    ends = [(extent - 1) % tile for extent, tile in zip(gemm.shape, (config.bm, config.bn, config.bk))]
    return [min(each, deep - first) for first in range(0, deep, each)], ends


@pytest.mark.parametrize("k", [4096, 4097, 100])
def test_a_small_gemm_has_parts_of_k_like_the_whole_one(k):
    space, rng, seen = space_of("sgemm/split_k"), random.Random(5), set()
    for _ in range(60):
        whole = Gemm(rng.choice((70, 128)), rng.choice((150, 256)), k)
        rung = space.rung_at({name: rng.choice(values) for name, values in space.fields.items()})
        reduced, found = small(rung, whole)
        (tiles, ends), (few, same) = parts(whole, rung.config), parts(found, reduced.config)
        assert ends == same and len(few) == min(2, len(tiles)) and few[-1] in (few[0], few[0] - 1)
        assert (few[0] > few[-1]) == (tiles[0] > tiles[-1]) and few[0] <= tiles[0] and max(few) <= 12
        seen.add((len(few), few[0] > few[-1], rung.config.asynchronous))
    assert len(seen) > 3


@pytest.mark.parametrize(
    "name, rows, columns, programs",
    [
        ("hgemm/persistent", 2, 3, 2),
        ("hgemm/cluster", 4, 3, 4),
        ("hgemm/tile_shapes:128x256,cluster_m=2", 4, 3, 4),
        ("hgemm/tile_shapes:128x256,cluster_n=2", 2, 6, 4),
    ],
)
def test_few_blocks_compute_tile_after_tile_of_a_small_gemm_where_they_did_of_the_whole(
    name, rows, columns, programs
):
    (rung,) = find(name)
    reduced, found = small(rung, HalfGemm(4096, 4096, 4096, "nt"))
    launch = reduced.launch(found, reduced.config)
    assert (found.m, found.n) == (rows * 128, columns * 256)
    assert launch.grid[0] == programs == reduced.config.programs
    assert small(rung, HalfGemm(512, 512, 4096, "nt"))[0] == rung
