"""The last block of reduce/single_pass: the order that it needs, and what the next launch finds."""

import pytest
from layers import layers

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.twin import load_source, load_twin
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import launches, outcome_of
from tir_schedules.workloads.reduction import Reduction

ARCH = "sm_80"
(MARKED,) = find("reduce/single_pass:256x4,block=128,unroll=1,most_blocks=8")
(FENCED,) = find("reduce/single_pass:fenced,block=128,unroll=1,most_blocks=8")
WORKLOAD = Reduction(4 * 128 * 8)
MAKERS = (lower, load_twin)

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

# The last block says that it is not, unless the next launch finds what this one found.
LAST, ADDED = "    return last;", "    return reinterpret_cast<T &>(sum);"
COUNT_IS_0 = (LAST, "    return last && *(volatile unsigned *)&done == 0;")
COUNT_GOES_ON = ("blocks - 1) ==", "blocks) ==")


def outcome(make, rung, *changes):
    """Of the kernel with some texts changed; block after block, and the other way round."""
    source = make(rung, WORKLOAD, ARCH).source
    for old, new in changes:
        assert source.count(old) == 1
        source = source.replace(old, new)
    return outcome_of([load_source(source, rung, WORKLOAD, ARCH)], WORKLOAD, CpuMachine())


@layers(
    "make, fault",
    [(make, "no fence") for make in MAKERS],
    [(make, fault) for make in MAKERS for fault in FAULTS],
)
def test_a_missing_order_is_found(make, fault):
    rung, old, new, place = FAULTS[fault]
    races = [one.message for one in outcome(make, rung, (old, new)).findings if one.kind == "race"]
    assert any(place in race for race in races), races


@layers("make, rung", [(load_twin, MARKED)], [(make, rung) for make in MAKERS for rung in (MARKED, FENCED)])
def test_one_launch_leaves_the_count_at_0(make, rung):
    assert [kernel.grid for kernel in launches(make, rung, WORKLOAD, ARCH)] == [(1, 8, 1)]
    assert outcome(make, rung, COUNT_IS_0).faults == ()
    assert outcome(make, rung, COUNT_IS_0, COUNT_GOES_ON).wrong


@pytest.mark.parametrize("cleared", [True, False])
def test_one_launch_leaves_no_marks(cleared):
    """Who reads its word twice waits for ever."""
    again = (ADDED, "    place_of_words<BLOCKS>()[block] == 0 ? 0 : sum = 0;\n" + ADDED)
    kept = () if cleared else (("    place_of_words<BLOCKS>()[block] = 0;\n", ""),)
    assert bool(outcome(load_twin, MARKED, again, *kept).wrong) != cleared
