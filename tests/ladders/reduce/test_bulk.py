"""The ring of reduce/bulk: what its copies, waits and zeros are for, and what it refuses."""

import re
from itertools import cycle, product

import pytest
from layers import layers
from mutants import loaded

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_twin
from tir_schedules.errors import BadInput
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import outcome_of, run
from tir_schedules.workloads.reduction import Reduction

ARCH = "sm_90a"
ELEMENTS = 1024
(SMALL,) = find("reduce/bulk:block=128,piece=4096,stages=3,most_blocks=4")
MAKERS = (lower, load_twin)
both = pytest.mark.parametrize("make", MAKERS, ids=["schedule", "twin"])

# Four blocks, three stages: fewer elements than 16 bytes, than a piece and than pieces for all blocks; one
# piece for each; a block without a last piece; more pieces than stages, ragged.
LENGTHS = [
    1, 3, 5, ELEMENTS - 1, ELEMENTS, ELEMENTS + 1, 3 * ELEMENTS, 4 * ELEMENTS, 4 * ELEMENTS + 1,
    10 * ELEMENTS - 4, 12 * ELEMENTS, 13 * ELEMENTS - 1, 41 * ELEMENTS + 7,
]  # fmt: skip
SETTINGS = [
    "stages=2", "stages=8", "block=32,piece=512", "block=256,piece=4096", "most_blocks=1", "fenced=1",
    "block=64,piece=8192,most_blocks=3",
]  # fmt: skip


def check_twins_agree(rung, n, dtype):
    (verdict,) = run([(rung, Reduction(n, dtype))], ARCH, CpuMachine(orders=3))
    assert verdict.faults == ()
    assert verdict.identical


@layers(
    "n, dtype",
    [*zip(LENGTHS, cycle(("float32", "int32")))],
    [*product(LENGTHS, ("int32", "float32"))],
)
def test_schedule_and_twin_are_right_and_equal_bit_for_bit(n, dtype):
    check_twins_agree(SMALL, n, dtype)


@layers("setting", SETTINGS[:3], SETTINGS)
def test_so_they_are_with_other_settings(setting):
    named = dict(pair.split("=") for pair in f"{SMALL.variant},{setting}".split(","))
    (rung,) = find("reduce/bulk:" + ",".join(map("=".join, named.items())))
    check_twins_agree(rung, 20003, "float32")


WAIT = r"\n +wait_for_parity\((?:ring_barrier\(|shared_address\(&)"
FULL, EMPTY = (rf"{WAIT}{place}.*\);" for place in (r"(?!.*\+ 16|empty)", r"(?=.*\+ 16|empty)"))
FAULTS = {
    "no wait for full": (FULL, "", "in_flight"),
    "no wait for empty": (EMPTY, "", "race"),
    "other parity": (r"(/ 3\)|parity)\)(\)?;\s+(?:#pragma|const Vector))", r"\1 ^ 1)\2", "in_flight"),
    "no __syncwarp": (r"\n +__syncwarp\(\);", "", "race"),
    "no fence": (r"fence_async_proxy\(\);", ";", "unfenced_proxy"),
    "fewer bytes": (r"(arrive_announcing\(barrier, )copied", r"\1 copied - 4 * (copied > 0)", "deadlock"),
    "fewer warps": (r"(set_up_ring\(.*, )4\)|BLOCK / 32\)", r"\g<1>3)", "race"),
    "no meeting before": (r"__syncthreads\(\); // now.*", "", "race"),
    "no meeting behind": (r"(T\(0\);)\s+__syncthreads\(\);", r"\1", "race"),
    "no zeros": (r"stage\[i\] = .*;", "if (i < inside) stage[i] = array[first + i];", ""),
    "no remainder": (r"i < inside \? array\[first \+ i\]", "false ? array[0]", ""),
    "one more": (r"i < inside \?", "i <= inside ?", "out_of_bounds"),
    "16 bytes more": (r"inside / 4 \* 4", "(inside + 3) / 4 * 4", "out_of_bounds"),
}
"""What is changed, and the kind of finding; none where the sum is wrong and nothing else."""


@layers("fault, make", [*zip(FAULTS, cycle(MAKERS))], [*product(FAULTS, MAKERS)])
def test_a_fault_is_found(fault, make):
    workload, (old, new, kind) = Reduction(41 * ELEMENTS + 7), FAULTS[fault]
    source, changes = re.subn(old, new, make(SMALL, workload, ARCH).source)
    assert changes == 1
    outcome = outcome_of([loaded(source, SMALL, workload, ARCH)], workload, CpuMachine(budget=1 << 20))
    assert outcome.faults
    assert not kind or kind in {finding.kind for finding in outcome.findings}


@pytest.mark.parametrize("turns, first", [(1, 1), (2, 2), (3, 3), (4, 3), (9, 3)])
def test_copies_run_ahead_by_all_stages(turns, first):
    """And warps meet in the loop only where a piece ends beyond the array: in the device function."""
    kernel = lower(SMALL, Reduction(4 * turns * ELEMENTS), ARCH)
    assert kernel.dynamic_shared == 4 * first * ELEMENTS
    before, iteration = re.split(r"#pragma unroll 1\n", kernel.source[kernel.source.index("__global__") :])
    iteration = iteration[: iteration.index("\n  }\n")]
    assert f"prologue_k_tile < {first};" in before or turns == 1
    assert before.count("load_piece<") == 1 and iteration.count("load_piece<") == (turns > 3)
    assert "__syncthreads" not in iteration and iteration.count("release_stage(") == 1


@both
def test_all_but_what_is_left_of_16_bytes_comes_by_bulk_copies(make):
    """And goes to registers 16 bytes at a time, without bank conflicts."""
    workload = Reduction(41 * ELEMENTS + 7)
    binary = compile_kernel(make(SMALL, workload, ARCH))
    arguments = workload.prepared(workload.arguments(), binary.kernel.grid)
    counters = CpuMachine().run(binary, arguments, ("Y",), count=True).counters
    remainder, words = counters.accesses["global_load"], counters.accesses["shared_load"]
    assert (remainder.requests, remainder.cost) == (2, 2)  # three elements, and the sums of blocks
    assert words.cost == words.ideal
    vectors = 44 * ELEMENTS // 4 // 32  # of warps, in eleven pieces for each of four blocks
    assert vectors < words.requests < 1.1 * vectors
    assert "ld.shared.v4" in binary.ptx


def test_it_is_the_fastest_where_it_was_measured_to_be():
    """On an H100, against all configurations of `single_pass`; of 2^22 the two take as long."""
    (fastest,) = find("reduce/fastest")
    for power in (16, 18, 20, 21, 23, 24, 25, 26, 27, 28, 30):
        name = fastest.settled(Reduction(1 << power), ARCH)[0].name
        assert name == ("bulk" if power > 22 else "single_pass"), power
    assert fastest.settled(Reduction(1 << 25), "sm_80")[0].name == "single_pass"


@pytest.mark.parametrize(
    "setting, reason",
    [
        ("block=256,piece=6144", "256 threads share a multiple of 4096 bytes evenly"),
        ("piece=0", "piece is 0: 512 threads"),
        ("stages=1", "2 to 8 stages"),
        ("stages=9", "2 to 8 stages"),
        ("piece=32768,stages=8", "takes 262144 bytes of shared memory, and sm_90a has"),
        ("block=48", "a power of two of threads, from 32 on"),
    ],
)
def test_what_cannot_be_is_refused(setting, reason):
    (rung,) = find(f"reduce/bulk:{setting}")
    for make in MAKERS:
        with pytest.raises(BadInput, match=reason):
            make(rung, Reduction(1000), ARCH)
