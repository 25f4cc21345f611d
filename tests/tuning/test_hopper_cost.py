"""Predictions of Hopper kernels order them as an H200 does."""

import json
from dataclasses import replace
from math import prod
from pathlib import Path

import pytest

from tir_schedules.insight.metrics.roofline import gpu_for
from tir_schedules.ladders.hgemm import tma_store
from tir_schedules.ladders.hgemm.tile_costs import K_TILE, form_cost, form_of
from tir_schedules.tuning.building.candidate import build
from tir_schedules.tuning.cost import hopper
from tir_schedules.tuning.cost.predictor import estimated_seconds
from tir_schedules.tuning.space.tunable import SPACES, space_of
from tir_schedules.workloads.half_gemm import HalfGemm

RESULTS = Path(__file__).parents[2] / "experiments" / "results"
GPU = gpu_for("sm_90a")
RUNGS = {name: space.rung for name, space in SPACES.items() if space.rung.arch}
DEMAND = hopper.Demand(products=680, lines=336, k_tiles=64, tiles=4, resident=1, stages=4, end=2600)


def micros(name, gemm, held=1, **fields):
    rung = RUNGS[name]
    config = replace(rung.config, **fields)
    return hopper.demand(gemm, config, GPU, prod(rung.launch(gemm, config).grid), held).nanoseconds / 1000


SLOWER = {
    "a wave of few tiles": replace(DEMAND, tiles=5),
    "a shallow ring": replace(DEMAND, stages=2),
    "no ring": replace(DEMAND, stages=1),
    "lines of L2": replace(DEMAND, lines=700),
    "a tile's end": replace(DEMAND, end=4200),
    "more K tiles": replace(DEMAND, k_tiles=65),
}


@pytest.mark.parametrize("slower", SLOWER.values(), ids=list(SLOWER))
def test_what_costs(slower):
    assert slower.nanoseconds > 1.005 * DEMAND.nanoseconds
    assert replace(slower, resident=2).nanoseconds <= slower.nanoseconds, "blocks of an SM hide latency"


@pytest.mark.parametrize("name", tma_store.CONFIGS)
def test_a_k_tile_takes_what_the_choice_of_tiles_has_of_it(name):
    config = tma_store.CONFIGS[name]
    found = hopper.demand(HalfGemm(4096, 4096, 4096), config, GPU, 132, 1)
    full, few = (hopper.CYCLE * form_cost(K_TILE, *form_of(config), way) for way in ("alone", "few"))
    assert 0.92 * min(full, few) <= found.k_tile_time <= 1.08 * max(full, few) + hopper.START


@pytest.mark.parametrize("file, rows", [("bench_hgemm_h200", 24), ("bench_hgemm_mixed_h200", 21)])
def test_rungs_take_about_as_long_as_on_the_h200(file, rows):
    """From 2048 on, where most SMs have a tile, with that which a rung chooses."""

    def predicted(row):
        gemm = HalfGemm(**row["workload"])
        return micros(row["name"], gemm, **vars(RUNGS[row["name"]].fitted(gemm).config))

    both = [
        (predicted(row), row["median_us"], row["name"])
        for row in json.loads((RESULTS / f"{file}.json").read_text())["rows"]
        if row["name"] in RUNGS and row["form"] == "schedule" and row["workload"]["m"] >= 2048
    ]
    assert len(both) == rows and all(0.84 < cost / time < 1.07 for cost, time, _ in both), both


MEASURED = {
    1024: [
        (dict(bm=64, bn=128, consumers=1, stages=8, boxes=2), 5.9),
        (dict(bm=64, bn=128, consumers=1, stages=6), 6.25),
        (dict(bm=64, bn=128, consumers=1, stages=5), 6.81),
        (dict(bm=64, bn=128, consumers=1, stages=4), 7.29),
        (dict(bm=128, bn=128, stages=6), 8.14),
    ],
    1536: [
        (dict(bm=128, bn=192, stages=4, boxes=3), 14.6),
        (dict(bm=64, bn=128, consumers=1, stages=8), 16.4),
        (dict(bm=128, bn=256, stages=4, boxes=2), 18.1),
        (dict(bm=128, bn=128, stages=6), 19.1),
    ],
    2048: [
        (dict(bm=128, bn=256, stages=4, boxes=2), 25.2),
        (dict(bm=128, bn=256, stages=3), 25.7),
        (dict(bm=64, bn=128, consumers=1, stages=8), 28.4),
        (dict(bm=128, bn=192, stages=4, boxes=3), 33.9),
    ],
}
"""Size -> fields of hgemm/tma_store and the microseconds that an H200 took, nt, float32 to float16."""


@pytest.mark.parametrize("size", MEASURED)
def test_tiles_are_ordered_as_on_the_h200(size):
    gemm = HalfGemm(size, size, size, "nt", "float32", output="float16")
    both = [(micros("hgemm/tma_store", gemm, **fields), time) for fields, time in MEASURED[size]]
    assert [cost for cost, _ in both] == sorted(cost for cost, _ in both), both


def test_a_hopper_kernel_is_built_verified_and_predicted():
    """In as few blocks as have tile after tile; predictions are of the whole."""
    space, gemm = space_of("hgemm/tma_store"), HalfGemm(1024, 2048, 256, "nt", "float16")
    tile = {"bm": 64, "bn": 64, "consumers": 1, "stages": 2, "boxes": 1}
    candidate = build(space.rung_at(space.point_of(space.rung.config) | tile), gemm, "sm_90a")
    assert candidate.metrics[0].binary.kernel.grid == (2, 1, 1) and candidate.kernels[0].grid == (128, 1, 1)
    seconds = estimated_seconds(candidate)
    assert seconds * 1e6 == pytest.approx(micros("hgemm/tma_store", gemm, **tile), rel=1e-6)
