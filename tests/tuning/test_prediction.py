"""Predictions order kernels as an H200 does."""
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tir_schedules.errors import BadInput
from tir_schedules.rung import find
from tir_schedules.tuning.prediction import LOOP_BYTES, Load, clock, loop_bytes, predicted_seconds, stand_in
from tir_schedules.workloads.gemm import Gemm

RESULTS = Path(__file__).parents[2] / "experiments" / "results"
PIPES = {"issue": 40000.0, "tensor": 0.0, "shared": 20000.0, "memory": 5000.0}
LOAD = Load(PIPES, loop=1 << 14, blocks=8, resident=2, warps=4, tiles=64, ahead=2, asynchronous=True)
TENSOR = replace(LOAD, pipes={"issue": 5000.0, "tensor": 20000.0, "shared": 20000.0, "memory": 10000.0})

SLOWER = {
    "bank conflicts": (replace(LOAD, pipes=PIPES | {"shared": 30000.0}), LOAD),
    "more traffic": (replace(LOAD, pipes=PIPES | {"memory": 30000.0}), LOAD),
    "a loop beyond the instruction cache": (replace(LOAD, loop=LOOP_BYTES * 2), replace(LOAD, loop=LOOP_BYTES)),
    "a tail": (replace(LOAD, blocks=9), LOAD),
    "few warps": (TENSOR, replace(TENSOR, resident=4)),
    "copies through registers": (replace(TENSOR, asynchronous=False), TENSOR),
    "no copy ahead of a small tile": (replace(LOAD, tiles=4000, ahead=1), replace(LOAD, tiles=4000, ahead=3)),
}


@pytest.mark.parametrize("slower, faster", SLOWER.values(), ids=list(SLOWER))
def test_what_costs(slower, faster):
    assert slower.cycles > faster.cycles


def test_no_pipe_is_faster_than_its_own_work_and_a_start_comes_on_top():
    alone = replace(LOAD, pipes={"issue": 40000.0, "tensor": 0.0, "shared": 0.0, "memory": 0.0})
    assert 8 * 40000 < alone.cycles < 8 * 40000 + 2000


def test_the_longest_loop_is_counted_in_what_ptxas_keeps():
    ptx = "\tadd.s32 %r1, %r2, 1;\n$L1:\n\tmov.u32 %r1, %r2;\n\tfma.rn.f32 %f1, %f2, %f3, %f1;\n\t.loc 1 2 3\n$L2:\n\tadd.s32 %r1, %r1, 1;\n"
    ptx += "\t@%p1 bra $L2;\n\t@%p2 bra $L1;\n\tbra.uni $L3;\n$L3:\n\tret;\n"
    assert loop_bytes(ptx) == 16 * 4  # fma, add, and the two branches


def test_a_multiprocessor_of_the_h200():
    assert stand_in("sm_90a").multiprocessors == 132
    assert clock("sm_90", stand_in("sm_90")) == pytest.approx(1.98e9, rel=1e-3)


def test_an_architecture_without_figures_is_refused_in_one_line():
    with pytest.raises(BadInput, match="no predictions for sm_87; there are for sm_75, "):
        stand_in("sm_87")


@pytest.mark.slow
@pytest.mark.parametrize("rung_id, size, field", [("sgemm/multistage:32x32", 1024, "skew"), ("sgemm/multistage:128x256", 4096, "stages")])
def test_the_order_is_that_of_the_h200(rung_id, size, field):
    from tir_schedules.tuning.building import built

    (rung,) = find(rung_id)
    both = []
    for row in json.loads((RESULTS / "sweeps_h200.json").read_text())["rows"]:
        if row["name"].startswith(f"{rung_id},") and row["form"] == "schedule" and row["workload"]["m"] == size:
            changed = replace(rung, config=replace(rung.config, **{field: int(row["name"].partition("=")[2])}))
            both.append((predicted_seconds(built(changed, Gemm(size, size, size), "sm_90", whole=False)) * 1e6, row["median_us"]))
    predicted, measured = (np.argsort(np.argsort(column)) for column in zip(*both))
    assert len(both) >= 4
    assert np.corrcoef(predicted, measured)[0, 1] >= 0.75, both
    assert all(0.75 < cost / time < 1.25 for cost, time in both), both
