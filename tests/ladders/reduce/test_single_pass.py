"""The last block of reduce/single_pass: the order that it needs, and what the next launch finds."""

import pytest
from layers import layers
from mutants import loaded

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.twin import load_twin
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import launches, outcome_of
from tir_schedules.workloads.reduction import Reduction

ARCH = "sm_80"
(MARKED,) = find("reduce/single_pass:256x4,block=128,unroll=1,most_blocks=8")
(FENCED,) = find("reduce/single_pass:fenced,block=128,unroll=1,most_blocks=8")
WORKLOAD = Reduction(4 * 128 * 8)
MAKERS = (lower, load_twin)
both = pytest.mark.parametrize("make", MAKERS, ids=["schedule", "twin"])

FENCE = "__threadfence();\n        last"
BARRIER = "__syncthreads();\n    return last"
FAULTS = {
    "no fence": (FENCED, FENCE, "last", "block_sums"),
    "fence of the block": (FENCED, FENCE, FENCE.replace("fence()", "fence_block()"), "block_sums"),
    "atomic of the block": (FENCED, "atomicInc(", "atomicInc_block(", "block_sums"),
    "no barrier": (FENCED, BARRIER, "return last", "last in shared memory"),
    "the last but one": (FENCED, "blocks - 1) == blocks - 1", "blocks - 1) == blocks - 2", "block_sums"),
    "plain words": (MARKED, "volatile unsigned long long *", "unsigned long long *", "block_words"),
}
"""By name: the rung, the text that is changed, what it becomes, and what the race is on."""

# What the next launch would find.
COUNT_IS_0 = ("    return last;", "    return last && *(volatile unsigned *)&done == 0;")
COUNT_GOES_ON = ("blocks - 1) ==", "blocks) ==")
MARK_IS_0 = (
    "    unsigned sum = ",
    "    while (place_of_words<BLOCKS>()[block])\n        ;\n    unsigned sum = ",
)
MARK_STAYS = ("    place_of_words<BLOCKS>()[block] = 0;\n", "")


def outcome(make, rung, *changes):
    """Of the kernel with some texts changed; block after block, and the other way round."""
    source = make(rung, WORKLOAD, ARCH).source
    for old, new in changes:
        assert source.count(old) == 1
        source = source.replace(old, new)
    return outcome_of([loaded(source, rung, WORKLOAD, ARCH)], WORKLOAD, CpuMachine(orders=2))


@layers(
    "make, fault",
    [(make, "no fence") for make in MAKERS],
    [(make, fault) for make in MAKERS for fault in FAULTS],
)
def test_a_missing_order_is_found(make, fault):
    rung, old, new, place = FAULTS[fault]
    races = [one.message for one in outcome(make, rung, (old, new)).findings if one.kind == "race"]
    assert any(place in race for race in races), races


@layers("make", [load_twin], MAKERS)
def test_who_does_not_wait_adds_too_little(make):
    """In the order in which the last block comes first."""
    changed = outcome(make, MARKED, ("while (word >> 32 == 0);", "while (false);"))
    assert "order_dependent" in {finding.kind for finding in changed.findings}


@both
def test_one_launch_is_right_in_any_order(make):
    for dtype in ("int32", "float32"):
        workload = Reduction(WORKLOAD.n - 4, dtype)
        kernels = launches(make, MARKED, workload, ARCH)
        assert [kernel.grid for kernel in kernels] == [(1, 8, 1)]
        assert outcome_of(kernels, workload, CpuMachine(orders=8)).faults == ()


@layers(
    "make, rung, good, bad",
    [(load_twin, FENCED, COUNT_IS_0, COUNT_GOES_ON), (load_twin, MARKED, MARK_IS_0, MARK_STAYS)],
    [(lower, FENCED, COUNT_IS_0, COUNT_GOES_ON), (lower, MARKED, MARK_IS_0, MARK_STAYS)],
)
def test_the_next_launch_finds_what_this_one_found(make, rung, good, bad):
    assert outcome(make, rung, good).faults == ()
    assert outcome(make, rung, good, bad).faults
