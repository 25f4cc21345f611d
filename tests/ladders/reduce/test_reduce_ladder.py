"""Every rung of the Reduce ladder, schedule and twin, down to one number; and what its counters tell."""

import json
import os
import subprocess
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from drawing import drawn
from hypothesis import given
from hypothesis import strategies as st
from layers import layers

from tir_schedules.compiler.lower import algorithm, has_threads, lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.toolchain import find_toolchain
from tir_schedules.compiler.twin import load_twin
from tir_schedules.errors import BadInput
from tir_schedules.ladders.registry import every_rung, find, ladder
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.rung import Unasked
from tir_schedules.run import launches, outcome_of, run
from tir_schedules.workloads.reduction import Reduction

ARCH = Unasked("sm_80")  # a rung that has an architecture of its own takes that
TWINS = Path(str(resources.files("cuda_reference"))) / "reduce"
RUNGS = every_rung("reduce")
LADDER = ladder("reduce")
both = pytest.mark.parametrize("make", [lower, load_twin], ids=["schedule", "twin"])

# Lengths that tests share: whole blocks; and ragged ones with as many blocks, so that the same kernel sums
# what these leave. Of ODD 16-byte loads can take nothing.
WHOLE, ODD, RAGGED = 1 << 16, (1 << 16) - 3, (1 << 16) - 4
RFACTOR = [rung for rung in RUNGS if rung.variant == "rfactor"]
SHARED = [(rung, n) for rung in LADDER for n in (WHOLE, ODD)] + [(rung, RAGGED) for rung in LADDER[-2:]]
SHARED += [(rung, ODD) for rung in RFACTOR]
# By default every rung meets one of these besides.
SMALL = [1, 31, 255]
FURTHER = [*SMALL, 257, 70004, 1 << 18]
BLOCKS = [128, 512, 1024]


@layers(
    "rung, n",
    [*SHARED, *((rung, SMALL[place % 3]) for place, rung in enumerate(LADDER))],
    [(rung, n) for rung in RUNGS for n in FURTHER],
)
def test_schedule_and_twin_are_right(rung, n):
    (verdict,) = run([(rung, Reduction(n))], ARCH, CpuMachine())
    assert verdict.faults == ()
    assert verdict.identical


@layers(
    "rung, n",
    [(rung, ODD) for rung in LADDER if "float32" in rung.dtypes],
    [(rung, n) for rung in RUNGS for n in FURTHER if "float32" in rung.dtypes],
)
def test_floats_are_summed_right(rung, n):
    (verdict,) = run([(rung, Reduction(n, "float32"))], ARCH, CpuMachine())
    assert verdict.faults == ()


@pytest.mark.parametrize(
    "name, least, block",
    [
        ("divergent", 2, 48), ("sequential:rfactor", 2, 96), ("unrolled_warp", 64, 32),
        ("unrolled:article", 64, 32), ("shuffle", 32, 16), ("vectorized", 32, 48),
        ("single_pass:256x4", 32, 16),
    ],
)  # fmt: skip
def test_a_block_that_a_rung_cannot_fold_is_refused(name, least, block):
    """It would read beyond its tile."""
    (rung,) = find(f"reduce/{name}{',' if ':' in name else ':'}block={block}")
    for make in (lower, load_twin):
        with pytest.raises(BadInput, match=f"a power of two of threads, from {least} on, and not {block}"):
            make(rung, Reduction(1000), ARCH)


def test_a_twin_by_itself_refuses_such_a_block():
    for rung in LADDER:
        least, path = rung.refuses.least, TWINS / f"{rung.name}.cu"
        needed = f"static_assert(BLOCK >= {least} && (BLOCK & (BLOCK - 1)) == 0, "
        assert needed in path.read_text(encoding="utf-8"), path
    command = [str(find_toolchain().nvcc), f"-arch={ARCH}", "-ptx", "-o", os.devnull]
    for block in (32, 96):
        done = subprocess.run(
            [*command, f"-DBLOCK={block}", str(TWINS / "unrolled.cu")], capture_output=True, text=True
        )
        assert done.returncode and "threads must be a power of two from 64 on" in done.stderr


@pytest.mark.slow
@layers("rung, n", [(rung, n) for rung in RUNGS for n in (1111111, 1 << 20)], [])
def test_long_arrays(rung, n):
    for verdict in run([(rung, Reduction(n, dtype)) for dtype in rung.dtypes], ARCH, CpuMachine()):
        assert verdict.faults == ()


def check(make, rung, workload):
    assert outcome_of(launches(make, rung, workload, ARCH), workload, CpuMachine()).faults == ()


@layers("rung", LADDER, [])
@drawn(15)
@given(n=st.integers(1, 20000), last=st.booleans())
def test_twin_is_right_at_any_length(rung, n, last):
    check(load_twin, rung, Reduction(n, rung.dtypes[-1 if last else 0]))


@pytest.mark.slow
@layers("rung", RUNGS, [])
@drawn(15)
@given(n=st.integers(1, 20000), dtype=st.sampled_from(["int32", "float32"]))
def test_twin_is_right_in_either_type(rung, n, dtype):
    check(load_twin, rung, Reduction(n, dtype))


@layers(
    "rung, block",
    [(rung, BLOCKS[place % 3]) for place, rung in enumerate(LADDER)],
    [(rung, block) for rung in RUNGS for block in BLOCKS],
)
@both
def test_other_block_sizes(rung, make, block):
    other = replace(rung, config=replace(rung.config, block=block), variant=str(block))
    chunk = (1 << 20) // other.launch(Reduction(1 << 20), other.config).grid[0]
    check(make, other, Reduction(chunk - 1))  # one launch, in which all threads work


@pytest.mark.slow
@layers("rung, block", [(rung, block) for rung in RUNGS for block in BLOCKS], [])
@both
def test_short_and_ragged_arrays_with_other_block_sizes(rung, make, block):
    other = replace(rung, config=replace(rung.config, block=block), variant=str(block))
    for n in (77, 10001):
        check(make, other, Reduction(n))


def test_integers_wrap_around():
    workload = Reduction(1000)
    arguments = {"X": np.full(1000, 2**31 - 1, np.int32)}
    assert workload.truth(arguments)["Y"][0] == np.int32(-1000)
    arguments = workload.arguments()
    assert workload.truth(arguments)["Y"][0] != arguments["X"].sum(dtype=np.int64)  # the usual inputs do wrap


def test_floats_are_judged_by_the_length_of_the_sum():
    for n in (1, 1000, 10**6):
        workload = Reduction(n, "float32")
        arguments = workload.arguments()
        exact, allowed = workload.truth(arguments)["Y"], workload.tolerance(arguments)["Y"]
        assert abs(arguments["X"].sum(dtype=np.float32) - exact) <= allowed
        assert 0 < allowed <= 1e-5 * n * np.abs(arguments["X"]).max()


def test_launches_go_on_until_one_sum_is_left():
    kernels = launches(lower, find("reduce/sequential")[0], Reduction(1 << 18), ARCH)
    assert [kernel.grid[0] for kernel in kernels] == [1024, 4, 1]
    assert [
        kernel.grid[0]
        for kernel in launches(load_twin, find("reduce/vectorized")[0], Reduction(1 << 25), ARCH)
    ] == [4096, 1]


@pytest.mark.parametrize("name", ["unrolled_warp", "unrolled"])
@both
def test_the_outdated_volatile_idiom_is_told_apart(make, name):
    """It gives the right sum on a machine that runs warps in lockstep, and is reported nevertheless."""
    (rung,) = find(f"reduce/{name}:article")
    workload = Reduction(4096)
    outcome = outcome_of(launches(make, rung, workload, ARCH), workload, CpuMachine())
    assert {finding.kind for finding in outcome.findings} == {rung.flawed["article"]} == {"lockstep"}
    assert rung.id not in {other.id for other in every_rung()}


COUNTED = Reduction(WHOLE)


def counters(name, make):
    """Of the first launch."""
    kernel = make(find(f"reduce/{name}")[0], COUNTED, ARCH)
    arguments = COUNTED.prepared(COUNTED.arguments(), kernel.grid)
    return CpuMachine().run(compile_kernel(kernel), arguments, ("Y",), count=True).counters


@both
def test_the_counters_tell_the_articles_story(make):
    once = ("single_pass", "bulk")  # the others take two launches or more
    names = [rung.name for rung in LADDER if rung.name not in once]
    seen = {name: counters(name, make) for name in names}
    conflicts = {
        name: sum(
            seen[name].accesses[kind].cost - seen[name].accesses[kind].ideal
            for kind in ("shared_load", "shared_store")
        )
        for name in names
    }
    assert conflicts.pop("interleaved") > 20000 and set(conflicts.values()) == {0}
    # A shuffle costs every warp its instructions where the tree let most of them rest; what falls at that
    # rung is barriers.
    issued = [seen[name].warp_instructions for name in names]
    shuffle = names.index("shuffle")
    assert issued[:shuffle] == sorted(issued[:shuffle], reverse=True) and issued[shuffle:] == sorted(
        issued[shuffle:], reverse=True
    )
    barriers = [seen[name].mix["barrier"] for name in names]
    assert barriers == sorted(barriers, reverse=True)
    assert barriers[names.index("first_add")] * 2 == barriers[names.index("sequential")]
    assert barriers[shuffle - 1] > 4 * barriers[shuffle] > 8 * barriers[-1]
    sectors = {name: seen[name].accesses["global_load"] for name in names}
    assert all(access.cost == COUNTED.n * 4 // 32 for access in sectors.values())
    assert sectors["vectorized"].requests * 4 == sectors["cross_thread"].requests
    # The last block reads a word of 8 bytes from each of 16 blocks.
    once = counters("single_pass", make).accesses["global_load"]
    assert (once.cost, once.requests) == (COUNTED.n * 4 // 32 + 4, sectors["vectorized"].requests + 1)


def test_a_tree_by_primitives_costs_no_more_than_the_one_in_place():
    """Neither barriers nor instructions nor wavefronts of shared memory, and as many conflicts of stores."""
    for name in ("interleaved", "sequential"):
        primitives, script = counters(f"{name}:rfactor", lower), counters(name, lower)
        assert primitives.mix["barrier"] * 9 == script.mix["barrier"] * 8
        assert primitives.warp_instructions < script.warp_instructions
        for kind in ("shared_load", "shared_store"):
            assert primitives.accesses[kind].cost < script.accesses[kind].cost
        wasted = [
            one.accesses["shared_store"].cost - one.accesses["shared_store"].ideal
            for one in (primitives, script)
        ]
        assert wasted[0] == wasted[1]


def test_scripts_are_the_six_trees_of_the_article_and_the_shuffles():
    """The README names them."""
    scripts = [rung.id for rung in RUNGS if has_threads(algorithm(rung, COUNTED))]
    assert scripts == [rung.id for rung in LADDER[: LADDER.index(*find("reduce/shuffle")) + 1]]


RECORDED = Path(__file__).parent / "emitted.json"


@layers("rung, n", SHARED, [(rung, n) for rung in RUNGS for n in (WHOLE, ODD)])
def test_emitted_cuda_is_as_recorded(rung, n, golden):
    kernel = lower(rung, Reduction(n), ARCH)
    binary = compile_kernel(kernel)
    facts = {
        "grid": kernel.grid,
        "block": kernel.block,
        "shared_bytes": binary.resources.shared,
        "barriers": kernel.source.count("__syncthreads()"),
        "warp_barriers": kernel.source.count("tvm_builtin_cuda_warp_sync();"),
        "shuffles": kernel.source.count("__shfl_down_sync("),
        "kept_loops": kernel.source.count("#pragma unroll 1\n"),
        "unrolled_loops": kernel.source.count("#pragma unroll\n"),
        "16_byte_loads": "ld.global.nc.v4" in binary.ptx or "ld.global.v4" in binary.ptx,
        "spills": binary.resources.spill_loads,
    }
    golden(RECORDED, f"{rung.id} {n}", facts)


def test_recorded_facts_are_those_of_the_ladder():
    assert {name.split(" ")[0] for name in json.loads(RECORDED.read_text())} == {rung.id for rung in RUNGS}
