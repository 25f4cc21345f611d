"""Predictions order kernels as an H200 does."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.ladders.registry import find
from tir_schedules.timing import prediction
from tir_schedules.tuning.building.candidate import build
from tir_schedules.tuning.cost import gemm, reduction
from tir_schedules.tuning.cost.gemm import LOOP_BYTES, clock, loop_bytes
from tir_schedules.tuning.cost.predictor import (
    estimated_seconds,
    predicted_seconds,
    simulated_seconds,
    stand_in,
    table_for,
)  # fmt: skip
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.reduction import Reduction

RESULTS = Path(__file__).parents[2] / "experiments" / "results"
PIPES = {"issue": 40000.0, "tensor": 0.0, "shared": 20000.0, "memory": 5000.0}
DEMAND = gemm.Demand(PIPES, loop=1 << 14, blocks=8, resident=2, warps=4, tiles=64, ahead=2, asynchronous=True)
TENSOR = replace(DEMAND, pipes={"issue": 5000.0, "tensor": 20000.0, "shared": 20000.0, "memory": 10000.0})

SLOWER = {
    "bank conflicts": (replace(DEMAND, pipes=PIPES | {"shared": 30000.0}), DEMAND),
    "more traffic": (replace(DEMAND, pipes=PIPES | {"memory": 30000.0}), DEMAND),
    "a loop beyond the instruction cache": (
        replace(DEMAND, loop=LOOP_BYTES * 2),
        replace(DEMAND, loop=LOOP_BYTES),
    ),
    "a tail": (replace(DEMAND, blocks=9), DEMAND),
    "few warps": (TENSOR, replace(TENSOR, resident=4)),
    "copies through registers": (replace(TENSOR, asynchronous=False), TENSOR),
    "no copy ahead of a small tile": (
        replace(DEMAND, tiles=4000, ahead=1),
        replace(DEMAND, tiles=4000, ahead=3),
    ),
}


@pytest.mark.parametrize("slower, faster", SLOWER.values(), ids=list(SLOWER))
def test_what_costs(slower, faster):
    assert slower.cycles > faster.cycles


def test_no_pipe_is_faster_than_its_own_work_and_a_start_comes_on_top():
    alone = replace(DEMAND, pipes={"issue": 40000.0, "tensor": 0.0, "shared": 0.0, "memory": 0.0})
    assert 8 * 40000 < alone.cycles < 8 * 40000 + 2000


REDUCTION = reduction.Demand(1 << 27, blocks=4096, resident=8, warps=8, turns=8, ahead=8)
SMALLER = replace(REDUCTION, bytes=1 << 24, blocks=512)
SLOWER_REDUCTIONS = {
    "more bytes": (replace(REDUCTION, bytes=1 << 28), REDUCTION),
    "few bytes in flight": (replace(REDUCTION, resident=1, ahead=1), replace(REDUCTION, resident=1)),
    "few warps": (
        replace(REDUCTION, blocks=16384, turns=2, ahead=2, resident=3),
        replace(REDUCTION, blocks=16384, turns=2, ahead=2),
    ),
    "many instructions": (replace(REDUCTION, warps=32), REDUCTION),
    "many trees": (replace(REDUCTION, blocks=65536, warps=4, turns=1, ahead=1), REDUCTION),
    "a tail of a few blocks": (
        replace(SMALLER, resident=1, blocks=133, turns=32),
        replace(SMALLER, resident=1, blocks=132, turns=32),
    ),
    "stragglers": (replace(REDUCTION, blocks=1056, turns=31, ahead=8), REDUCTION),
}


@pytest.mark.parametrize("slower, faster", SLOWER_REDUCTIONS.values(), ids=list(SLOWER_REDUCTIONS))
def test_what_costs_a_reduction(slower, faster):
    assert slower.cycles(132, 2350) > 1.005 * faster.cycles(132, 2350)


def test_no_reduction_is_faster_than_its_bytes_through_the_memory_and_a_further_launch_costs():
    assert REDUCTION.bytes / 2350 < REDUCTION.cycles(132, 2350) < 1.1 * REDUCTION.bytes / 2350
    assert reduction.Demand(4 * 4096, 1, 8, 8, 4, 4).cycles(132, 2350) > 1500


@pytest.mark.parametrize(
    "rung_id, turns", [("reduce/shuffle", 2), ("reduce/cross_thread", 8), ("reduce/vectorized", 8)]
)
def test_reductions_take_about_as_long_as_on_the_h200(rung_id, turns):
    """Rungs that load as the model has it, turns of 4 or 16 bytes, at the lengths they were timed at."""
    (rung,) = find(rung_id)
    rows = [
        row
        for row in json.loads((RESULTS / "bench_reduce_h200.json").read_text())["rows"]
        if row["name"] == rung_id
    ]
    gpu = stand_in("sm_90")
    rate, found = clock(gpu, "sm_90"), []
    for row in rows:
        rest, micros = Reduction(**row["workload"]), 0
        while rest:
            grid = rung.launch(rest, rung.config).grid
            one = reduction.Demand(rest.bytes, grid[0], 6 if turns == 8 else 8, 8, turns, turns)
            micros += (
                one.cycles(132, reduction.MEMORY * gpu.bandwidth * 1e9 / rate) / rate + reduction.LAUNCH
            ) * 1e6
            rest = rest.rest(grid)
        found.append((micros, row["median_us"]))
    assert len(found) >= 6 and all(0.8 < cost / time < 1.25 for cost, time in found), found


def test_a_candidate_is_simulated_and_what_the_model_refuses_is_estimated(monkeypatch):
    candidate = build(find("sgemm/multistage:32x32")[0], Gemm(256, 256, 256), "sm_90")
    simulated = simulated_seconds(candidate)
    assert simulated > 0 and predicted_seconds(candidate) == simulated

    def refuses(*given):
        raise CheckFailed("not this")

    monkeypatch.setattr(prediction, "predict", refuses)
    assert predicted_seconds(candidate) == estimated_seconds(candidate) != simulated
    monkeypatch.undo()
    spilled = replace(candidate.binaries[0].resources, spill_loads=8)
    changed = replace(candidate, binaries=(replace(candidate.binaries[0], resources=spilled),))
    assert predicted_seconds(changed) == max(simulated, estimated_seconds(candidate))
    with pytest.raises(CheckFailed, match="no table of a GPU for sm_86"):
        table_for("sm_86")


def cost_of_vectorized(n, variant=""):
    (rung,) = [rung for rung in find("reduce/vectorized")[0].variants() if rung.variant == variant]
    return estimated_seconds(build(rung, Reduction(n), "sm_90"))


def test_a_sum_of_2_to_the_20_takes_about_as_long_as_was_measured():
    assert cost_of_vectorized(1 << 20) == pytest.approx(4.63e-6, rel=0.1)


@pytest.mark.slow
def test_few_blocks_with_many_turns_are_slower_on_long_arrays_and_no_slower_on_short_ones():
    """As reduce/vectorized says of its configuration `resident`."""
    whole, resident = (cost_of_vectorized(1 << 28, variant) for variant in ("", "resident"))
    assert resident > 1.01 * whole > 1.01 * 2**28 * 4 / 4.8e12
    assert whole == pytest.approx(234.8e-6, rel=0.02), "measured"
    assert cost_of_vectorized(1 << 20, "resident") == pytest.approx(cost_of_vectorized(1 << 20), rel=0.02)


def micros_of_split_k(gemm, **fields):
    (rung,) = find("sgemm/split_k:32x64")
    tuned = replace(rung, config=replace(rung.config, **fields), choose=None)
    return 1e6 * estimated_seconds(build(tuned, gemm, "sm_90"))


def test_parts_of_a_long_k_are_worth_their_sum_and_those_of_a_short_one_are_not():
    """The fastest of the first took 9.4 us on an H200; see experiments/results/shapes_sgemm_h200.json."""

    long, short = Gemm(64, 64, 16384), Gemm(64, 64, 32)
    assert 8 < micros_of_split_k(long, splits=0) < 12 < micros_of_split_k(long, splits=1) / 5
    assert micros_of_split_k(short, splits=1) < micros_of_split_k(short, splits=2)


def test_the_longest_loop_is_counted_in_what_ptxas_keeps():
    ptx = (
        "\tadd.s32 %r1, %r2, 1;\n$L1:\n\tmov.u32 %r1, %r2;\n\tfma.rn.f32 %f1, %f2, %f3, %f1;\n\t.loc 1 2"
        " 3\n$L2:\n\tadd.s32 %r1, %r1, 1;\n"
    )
    ptx += "\t@%p1 bra $L2;\n\t@%p2 bra $L1;\n\tbra.uni $L3;\n$L3:\n\tret;\n"
    assert loop_bytes(ptx) == 16 * 4  # fma, add, and the two branches


def test_an_sm_of_the_h200():
    assert stand_in("sm_90a").multiprocessors == 132
    assert clock(stand_in("sm_90"), "sm_90") == pytest.approx(1.98e9, rel=1e-3)


def test_an_architecture_without_figures_is_refused_in_one_line():
    with pytest.raises(BadInput, match="no predictions for sm_87; there are for sm_75, "):
        stand_in("sm_87")


@pytest.mark.slow
@pytest.mark.parametrize(
    "rung_id, size, field",
    [("sgemm/multistage:32x32", 1024, "padding"), ("sgemm/multistage:128x256", 4096, "stages")],
)
def test_the_order_is_that_of_the_h200(rung_id, size, field):
    (rung,) = find(rung_id)
    both = []
    for row in json.loads((RESULTS / "sweeps_h200.json").read_text())["rows"]:
        if (
            row["name"].startswith(f"{rung_id},")
            and row["form"] == "schedule"
            and row["workload"]["m"] == size
        ):
            changed = replace(
                rung, config=replace(rung.config, **{field: int(row["name"].partition("=")[2])})
            )
            both.append(
                (estimated_seconds(build(changed, Gemm(size, size, size), "sm_90")) * 1e6, row["median_us"])
            )
    predicted, measured = (np.argsort(np.argsort(column)) for column in zip(*both))
    assert len(both) >= 4
    assert np.corrcoef(predicted, measured)[0, 1] >= 0.75, both
    assert all(0.75 < cost / time < 1.25 for cost, time in both), both
