"""Long loops are cut to a few turns: exact where a turn is like the next."""

from dataclasses import replace

import numpy as np
import pytest

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.model.kernel import Kernel
from tir_schedules.timing.gpus import find_table
from tir_schedules.timing.paths import follow
from tir_schedules.timing.prediction import Beyond, run
from tir_schedules.timing.shortening import KEPT, LAST, shortened
from tir_schedules.timing.simulation import simulate

SOURCE = """\
extern "C" __global__ void tile(const float *x, float *y, int n) {
    __shared__ float part[256];
    float sum = 0;
    #pragma unroll 1
    for (int i = 0; i < n; ++i) {
        part[threadIdx.x] = x[i * 256 + threadIdx.x];
        BARRIER
        for (int k = 0; k < 16; ++k) sum += part[threadIdx.x / 16 * 16 + k] * part[k];
        BARRIER
    }
    y[threadIdx.x] = sum;
}
"""
TURNS = 64
TABLE = find_table("h100")
BEYOND = Beyond("l2", 1.0, 64.0, "l2")


def paths_of(barrier):
    source = SOURCE.replace("BARRIER", barrier)
    kernel = Kernel("tile", source, "tile", ("x", "y", "n"), (1, 1, 1), (256, 1, 1), "sm_80")
    given = {"x": np.ones(256 * TURNS, np.float32), "y": np.zeros(256, np.float32), "n": TURNS}
    return follow(compile_kernel(kernel), given, ["y"])


@pytest.fixture(scope="module")
def paths():
    return paths_of("__syncthreads();")


@pytest.mark.parametrize("blocks", [1, 2])
def test_a_few_turns_tell_the_cycles_of_all(paths, blocks):
    whole = simulate(paths.code, paths.warps, paths.steps, TABLE, blocks, 0, 1 << 17, read_bytes=64.0)
    short = shortened(paths)
    cycles, simulated = run(short, blocks, blocks, TABLE, 1 << 17, BEYOND)
    assert short.dropped > TURNS // 2
    assert cycles == pytest.approx(whole.cycles, rel=0.01)
    assert simulated.issued.sum() == whole.issued.sum()
    assert simulated.stalls.sum() == pytest.approx(whole.stalls.sum(), rel=0.02)


def test_what_is_left_out_is_turns_of_the_loop(paths):
    short = shortened(paths)
    few, more = ([len(path.numbers) for path in each.warps] for each in short.paths)
    all_ = [len(path.numbers) for path in paths.warps]
    turn = (more[0] - few[0]) // (KEPT[1] - KEPT[0])
    assert {a - b for a, b in zip(all_, more)} == {turn * short.dropped}
    ends = [(path.numbers[0], path.numbers[-1]) for path in paths.warps]
    assert ends == [(path.numbers[0], path.numbers[-1]) for path in short.paths[0].warps]


def test_turns_that_cost_more_than_others_stay(paths):
    """One access in the middle of the loop has conflicts: the run of alike turns ends there."""
    first = paths.warps[0]
    places = np.flatnonzero(first.accesses >= 0)
    paths.steps.made["cost"][first.accesses[places[len(places) // 2]]] += 31
    changed = shortened(paths)
    paths.steps.made["cost"][first.accesses[places[len(places) // 2]]] -= 31
    assert changed.dropped == 0 < shortened(paths).dropped


def test_without_a_barrier_nothing_is_left_out():
    assert shortened(paths_of("__syncwarp();")).dropped == 0


def test_a_short_loop_stays_whole(paths):
    begin = KEPT[1] + LAST
    cut = [replace(path, numbers=path.numbers[:300], accesses=path.accesses[:300]) for path in paths.warps]
    short = shortened(replace(paths, warps=tuple(cut)))
    assert short.dropped == 0 and short.paths[0].warps == tuple(cut) and begin < TURNS
