"""How long blocks wait for words that others store: by the CPU machine, with cycles that a test names."""

import numpy as np
import pytest

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.insight.times.doubts import doubts_of
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.kernel import Kernel
from tir_schedules.model.machine import Watch
from tir_schedules.timing import prediction
from tir_schedules.timing.gpus import find_table
from tir_schedules.timing.prediction import predict

BLOCKS, LINK = 6, 100.0
ADDS, STORES = "atomicAdd(next, 1)", "*(volatile int*)next = 1"
WAITS, ASKS = (
    "while (*(volatile int*)mine == 0) continue; __threadfence()",
    "while (atomicAdd(mine, 0) == 0) continue; __threadfence()",
)

SOURCE = """
extern "C" __global__ void chain(int* flags) {
  int *mine = flags + blockIdx.x, *next = mine + 1;
  %s
}
"""


def ends(*statements, blocks=BLOCKS, threads=32, cycles=10.0):
    """Of a launch whose basic blocks take so many cycles each, but those that look at a flag."""
    kernel = Kernel(
        "chain", SOURCE % "; ".join((*statements, "")), "chain", ("flags",), (blocks, 1, 1), (threads, 1, 1),
        "sm_90",
    )  # fmt: skip
    binary, machine = compile_kernel(kernel), CpuMachine()
    arguments = {"flags": np.zeros(blocks + 1, np.int32)}
    steps = machine.run(binary, arguments, ["flags"], watch=Watch(steps=True)).steps
    assert steps is not None, "it was asked for"
    each = tuple(-1.0 if number in steps.looks else cycles for number in range(len(steps.lines)))
    watch = Watch(steps=True, among_all=True, limit=1, cycles=each, link=LINK)
    return machine.run(binary, {"flags": np.zeros(blocks + 1, np.int32)}, ["flags"], watch=watch).ends


def waited(*statements, **how):
    found = ends(*statements, **how)
    assert found is not None, "cycles are named"
    return found.among - found.alone


FOR_THE_ONE_BEFORE, BY_ATOMICS = (f"if (blockIdx.x) {{ {wait}; }} __syncthreads()" for wait in (WAITS, ASKS))


@pytest.mark.parametrize("wait", [FOR_THE_ONE_BEFORE, BY_ATOMICS])
@pytest.mark.parametrize("store", [STORES, ADDS])
def test_each_block_of_a_chain_waits_for_the_one_before(wait, store):
    """A link, and what a block does from its wait to its store, less what it did before anyway."""
    few, more = (waited(wait, store, blocks=blocks) for blocks in (3, 6))
    link = (more - few) / 3
    assert link >= LINK and link < LINK + 100


def test_blocks_that_wait_for_nothing_end_together():
    assert waited(STORES) == 0


def test_a_block_that_stored_before_it_waited_makes_none_wait():
    """As one that publishes its own sum, waits for that of the blocks before, and publishes both."""
    assert waited(STORES, FOR_THE_ONE_BEFORE, STORES, blocks=3) == pytest.approx(
        waited(STORES, FOR_THE_ONE_BEFORE, STORES, blocks=6)
    )


def test_a_look_outside_of_a_loop_waits_for_nothing():
    """It takes what is there. CPU and GPU may find something else."""
    look = "if (blockIdx.x) next[0] = *(volatile int*)mine"
    assert waited(look, STORES) == 0


RESIDENT = 264
"""Blocks of 1024 threads that an H100 has at once."""


@pytest.mark.parametrize("distance, waits", [(RESIDENT, False), (RESIDENT - 1, True)])
def test_a_block_begins_when_another_ends(distance, waits):
    """Block 0 stores long before it ends. A block that begins when it ends finds the flag. One that runs
    beside it waits."""
    wait = f"if (blockIdx.x == {distance}) {{ mine -= {distance - 1}; {WAITS}; }}"
    later = "for (int i = 0; i < 20; ++i) __syncthreads()"
    found = waited(wait, STORES, later, blocks=distance + 1, threads=1024)
    assert (found > 0) == waits


def test_all_warps_wait_at_a_barrier_for_the_one_that_waits():
    """The last warp stores; only the first one waits."""
    wait = f"if (blockIdx.x && threadIdx.x < 32) {{ {WAITS}; }} __syncthreads()"
    store = f"if (threadIdx.x >= 32) {{ {STORES}; }}"
    assert waited(wait, store, threads=64) >= (BLOCKS - 1) * LINK


CHAIN = SOURCE % f"{FOR_THE_ONE_BEFORE}; {STORES};"


def chained(blocks, params=("flags",)):
    """A launch of a chain. params: the name of its array."""
    source = CHAIN.replace("flags", params[0])
    return compile_kernel(Kernel("chain", source, "chain", params, (blocks, 1, 1), (32, 1, 1), "sm_90"))


def test_waits_are_in_the_time_of_a_launch():
    found = {}
    for blocks in (1, 3, 5, 9):
        binary, flags = chained(blocks), np.zeros(blocks + 1, np.int32)
        found[blocks] = predict([binary], [{"flags": flags}], ["flags"], find_table("h200")).launches[0]
        assert not flags.any()
    one, three, five, nine = (launch.waited for launch in found.values())
    assert one == 0 and nine - five == pytest.approx(2 * (five - three)) and five > three > 0
    assert found[9].cycles > nine


def test_a_grid_that_takes_too_long_is_told_so(monkeypatch):
    monkeypatch.setattr(prediction, "MOST_BLOCKS", 8)
    flags = {"flags": np.zeros(12, np.int32)}
    told = predict([chained(11)], [flags], ["flags"], find_table("h200"))
    assert told.launches[0].waited is None
    assert any("smaller shape or grid" in doubt for doubt in doubts_of(told))


def test_launches_may_take_other_arrays():
    launches = [chained(3), chained(3, ("others",))]
    arguments = [{"flags": np.zeros(4, np.int32)}, {"others": np.zeros(4, np.int32)}]
    first, second = predict(launches, arguments, ["flags", "others"], find_table("h200")).launches
    assert first.waited and first.waited == second.waited
