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
from tir_schedules.timing.simulation import Outside, simulate

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
OUTSIDE = Outside(64.0)
BEYOND = Beyond("l2", 1.0, 64.0, "l2", OUTSIDE)


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
    whole = simulate(paths.code, paths.warps, paths.steps, TABLE, blocks, 0, 1 << 17, OUTSIDE)
    short = shortened(paths)
    cycles, simulated = run(short, blocks, blocks, TABLE, 1 << 17, BEYOND)
    assert short.dropped > TURNS // 2
    assert cycles == pytest.approx(whole.cycles, rel=0.01)
    assert simulated.issued.sum() == whole.issued.sum()
    assert simulated.stalls.sum() == pytest.approx(whole.stalls.sum(), rel=0.02)


RING = """\
extern "C" __global__ void ring(const float *x, float *y, int n) {
    __shared__ __align__(128) float part[4][256];
    __shared__ __align__(8) unsigned long long full[4], empty[4];
    const unsigned stage0 = __cvta_generic_to_shared(part), bars = __cvta_generic_to_shared(full);
    const unsigned freed = __cvta_generic_to_shared(empty);
    if (threadIdx.x == 0) {
        for (int s = 0; s < 4; ++s) {
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bars + 8 * s));
            asm volatile("mbarrier.init.shared.b64 [%0], 128;" ::"r"(freed + 8 * s));
        }
        asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async;");
    }
    __syncthreads();
    auto wait = [](unsigned bar, unsigned parity) {
        unsigned over = 0;
        while (!over)
            asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2;"
                         "selp.u32 %0, 1, 0, p;}" : "=r"(over) : "r"(bar), "r"(parity) : "memory");
    };
    if (threadIdx.x >= 128) {
        if (threadIdx.x > 128) return;
        #pragma unroll 1
        for (int i = 0; i < n; ++i) {
            const unsigned bar = bars + 8 * (i % 4);
            wait(freed + 8 * (i % 4), i / 4 & 1 ^ 1);
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 1024;" ::"r"(bar));
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                         " [%0], [%1], 1024, [%2];"
                         ::"r"(stage0 + 1024 * (i % 4)), "l"(x + i * 256), "r"(bar) : "memory");
        }
        return;
    }
    float sum = 0;
    #pragma unroll 1
    for (int i = 0; i < n; ++i) {
        wait(bars + 8 * (i % 4), i / 4 & 1);
        for (int k = 0; k < 16; ++k) sum += part[i % 4][threadIdx.x / 16 * 16 + k] * part[i % 4][k];
        asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(freed + 8 * (i % 4)) : "memory");
    }
    y[threadIdx.x] = sum;
}
"""


@pytest.fixture(scope="module")
def ring():
    kernel = Kernel("ring", RING, "ring", ("x", "y", "n"), (1, 1, 1), (160, 1, 1), "sm_90a")
    given = {"x": np.ones(256 * TURNS, np.float32), "y": np.zeros(256, np.float32), "n": TURNS}
    return follow(compile_kernel(kernel), given, ["y"])


def test_who_copies_and_who_computes_are_cut_alike(ring):
    """A ring of four mbarriers: whole rounds are left out, and later waits are for earlier phases."""
    assert ring.agreement == 1
    whole = simulate(ring.code, ring.warps, ring.steps, TABLE, outside=Outside(8.0))
    short = shortened(ring)
    assert short.dropped > TURNS // 4 and short.dropped % 4 == short.between % 4 == 0
    cycles, simulated = run(short, 1, 1, TABLE, 1 << 17, replace(BEYOND, outside=Outside(8.0)))
    assert cycles == pytest.approx(whole.cycles, rel=0.015)
    assert simulated.issued.sum() == whole.issued.sum()
    assert simulated.missed == whole.missed


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
