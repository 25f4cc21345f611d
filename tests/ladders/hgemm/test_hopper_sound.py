"""Other ways to order the same copies and products, none of which may be found fault with."""

import re

import pytest
from hopper_mutant_cases import ARCH, MACHINES, RUNGS, Case, case_of

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_source
from tir_schedules.ladders.registry import find

ANNOUNCE = r"mbarrier\.arrive\.expect_tx\.shared::cta\.b64 _, (\[%r\d+\])([^;]+);"
EXPECT = r"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 \1\2; mbarrier.arrive.shared::cta.b64 _, \1"

IN_PTX = {
    "stores that are done": (r"cp\.async\.bulk\.wait_group\.read", "cp.async.bulk.wait_group"),
    "each store a group": (r"(cp\.async\.bulk\.tensor\.2d\.global[^;]+;)", r"\1 cp.async.bulk.commit_group;"),
    "barriers fenced for copies": (r"fence\.mbarrier_init[^;]+;", "fence.proxy.async.shared::cta;"),
    "fences of all memory": (r"fence\.proxy\.async\.shared::cta;", "fence.proxy.async;"),
    "test_wait": (r"mbarrier\.try_wait", "mbarrier.test_wait"),
    "bytes before the arrival": (ANNOUNCE, EXPECT + ";"),
    "release and acquire in words": (r"barrier\.cluster\.(arrive|wait);", lambda match: {
        "arrive": "barrier.cluster.arrive.release;", "wait": "barrier.cluster.wait.acquire;",
    }[match[1]]),
    "arrivals of the cluster's scope": (
        r"mbarrier\.arrive\.shared::cluster", "mbarrier.arrive.release.cluster.shared::cluster",
    ),
    "two arrivals at once": (
        ANNOUNCE + r"|(mbarrier\.arrive\.shared::c\w+\.b64 \S+ \[%r\d+\]);"
        r"|(mbarrier\.init\S+ \[%r\d+\]), (%r\d+);",
        lambda match: match.expand(
            EXPECT + ", 2;" if match[1] else r"\3, 2;" if match[3]
            else r"{ .reg .b32 twice; shl.b32 twice, \5, 1; \4, twice; }"
        ),
    ),
    "no product in flight": (r"wgmma\.wait_group\.sync\.aligned 1;", "wgmma.wait_group.sync.aligned 0;"),
    "a fence more": (r"wgmma\.commit_group", "wgmma.fence.sync.aligned; wgmma.commit_group"),
    "barriers of other numbers": (
        r"bar\.sync\s+(%r\d+), 128;", r"{ .reg .b32 other; add.s32 other, \1, 9; barrier.sync other, 128; }",
    ),
    "other shares of registers": (
        r"setmaxnreg\.(dec|inc)(\S+) \d+;",
        lambda match: f"setmaxnreg.{match[1]}{match[2]} {dict(dec=40, inc=232)[match[1]]};",
    ),
    "registers as they are": (r"setmaxnreg[^;]+;", ""),
}  # fmt: skip
"""What is replaced, wherever it stands."""

OF_CLUSTERS = ("release and acquire in words", "arrivals of the cluster's scope")
IN_ORDERS = [MACHINES[0], MACHINES[1], MACHINES[-1]]


@pytest.fixture(scope="module")
def cases():
    return {name: case_of(name, "twin") for name in ("tma_store", "cluster")}


@pytest.mark.parametrize("what", IN_PTX)
def test_instructions_that_do_as_well(cases, what):
    case = cases["cluster" if what in OF_CLUSTERS else "tma_store"]
    pattern, instead = IN_PTX[what]
    text, count = re.subn(pattern, instead, case.binary.ptx)
    assert count
    for machine in IN_ORDERS:
        assert case.executed(text, machine) == ((), True)


ARRIVALS = "consumers * (WARPGROUP / 32) * SHARING"
BY_LANE = "if (lane == 0)\n                arrive(barrier);"
AFTER_ALL = (
    'asm volatile("bar.sync 8, %0;" ::"r"(blockDim.x * (blockDim.y - 1)) : "memory");\n'
    "if (threadIdx.x == 0 && threadIdx.y == 0)\n"
)
SECOND_WAIT = "wait_for_products<1>();\n            if (k_tile > 0)\n                release(before);"
IN_CUDA = {
    "a thread of each warpgroup says that a stage is free": {
        ARRIVALS: "consumers", BY_LANE: "if (threadIdx.x == 0)\n arrive(barrier);",
    },
    "every thread says so": {ARRIVALS: "consumers * WARPGROUP", BY_LANE: "arrive(barrier);"},
    "a thread of the block says so, behind a barrier": {
        ARRIVALS: "1", BY_LANE: f"{AFTER_ALL} arrive(barrier);",
    },
    "stages are said to be free at the start": {
        "state.parity ^ 1); // of the round before": "state.parity);",
        "int before = 0;": "int before = 0;\nif (state.stage == 0 && state.parity == 0 && !started)\n"
        "for (int stage = 0; stage < STAGE_COUNT; ++stage) release(stage);\nstarted = true;",
        "unsigned long long full[STAGE_COUNT], empty[STAGE_COUNT];":
        "unsigned long long full[STAGE_COUNT], empty[STAGE_COUNT];\nstatic constexpr int NONE_YET = 0;",
        "void multiply(PipelineState<STAGE_COUNT>":
        "void multiply(bool &started, PipelineState<STAGE_COUNT>",
        "ring.multiply(state,": "ring.multiply(started, state,",
        "PipelineState<STAGES> state;\n    if":
        "PipelineState<STAGES> state;\n    bool started = false;\n    if",
    },
    "two groups of products in flight": {
        SECOND_WAIT: "wait_for_products<2>();\n            if (k_tile > 1)\n release(earlier);",
        "int before = 0;": "int before = 0, earlier = 0;",
        "before = state.stage;": "earlier = before;\n            before = state.stage;",
        "tile.complete();\n        release(before);":
        "tile.complete();\n        if (k_tiles > 1)\n release(earlier);\n release(before);",
    },
}  # fmt: skip
"""What is replaced in the twin, headers written out, each once."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["warp_specialized", "tma_store"])
@pytest.mark.parametrize("what", IN_CUDA)
def test_protocols_that_do_as_well(name, what):
    case = case_of(name, "twin")
    source = case.binary.kernel.source
    for text, instead in IN_CUDA[what].items():
        assert source.count(text) == 1, text
        source = source.replace(text, instead)
    (rung,) = find(f"hgemm/{name}:{RUNGS[name][0]}")
    changed = Case(case.gemm, compile_kernel(load_source(source, rung, case.gemm, ARCH)))
    for machine in MACHINES:
        assert changed.executed(changed.binary.ptx, machine) == ((), True)
