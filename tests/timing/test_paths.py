"""What warps execute of the SASS: as often as the PTX says, whatever ptxas made of loops and branches."""

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_fixed_twin
from tir_schedules.errors import CheckFailed
from tir_schedules.ladders.problems import Problem, workload_of
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.cpu.abi import NONE, Happening
from tir_schedules.model.kernel import Kernel
from tir_schedules.model.machine import Watch
from tir_schedules.run import launches
from tir_schedules.timing import paths
from tir_schedules.timing.listing import unknown_opcodes
from tir_schedules.timing.paths import ACCESSES, BlockPaths, WarpPath, follow
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction

SGEMM = (
    "naive",
    "shared_tile",
    "thread_tile_2d",
    "transposed",
    "warp_tiling",
    "pipelined",
    "multistage",
    "tma",
)
HGEMM = (
    "wmma_naive", "wmma_async", "mma_ldmatrix", "mma_multistage", "wgmma", "tma", "tma_store",
    "warp_specialized", "persistent", "cluster",
)  # fmt: skip
PER_ACCESS = {"LDG": "global_load", "STG": "global_store", "LDSM": "ldmatrix", "LDGSTS": "shared_cp_async"}


def followed(name, arch="sm_90a", k=256, load=lower):
    rung = find(name)[0]
    workload = workload_of(rung, Problem(rung.family, (256, 256, k)))
    kernel = launches(load, rung, workload, rung.arch or arch)[0]
    binary = compile_kernel(kernel)
    return kernel, follow(binary, kernel.prepared(workload, workload.arguments()), list(workload.outputs))


@cache
def in_parts():
    """The two launches of split_k for one row of C, with the paths of the first block of each."""
    rung, gemm = find("sgemm/split_k:56x128,splits=22")[0], Gemm(1, 256, 704)
    found, given = [], gemm.arguments()
    for kernel in launches(lower, rung, gemm, "sm_90a"):
        given = kernel.prepared(gemm, given)
        found.append((kernel, given, follow(compile_kernel(kernel), given, ["C"])))
    return found


def test_lanes_may_leave_at_an_exit_with_a_predicate():
    """The first warp of a block adds up what all have left: the others go past four branches to the exit."""
    _, (_, _, added) = in_parts()
    assert added.agreement == 1
    first, *others = (Counter(added.code[number].name for number in path.numbers) for path in added.warps)
    assert first["LDS"] > 0 and first["STG"] > 0 and not any(one["LDS"] or one["STG"] for one in others)


def test_a_copy_takes_its_own_access():
    """Of 56 rows of a tile C has one: of seven copies of A by each lane one has lanes that take part."""
    (_, _, block), _ = in_parts()
    lines, used = paths.made_by(block.steps)["line"], set()
    for path in block.warps:
        for number, row in zip(path.numbers.tolist(), path.accesses.tolist()):
            if block.code[number].name == "LDGSTS" and row >= 0:
                assert lines[row] == block.code[number].ptx_line
                used.add(row)
    assert len(used) == made(block)["shared_cp_async"]


def taken(kernel, given):
    """The arrays that a kernel takes, whose bytes are its footprint."""
    found = [given[name] for name in kernel.taken if isinstance(given.get(name), np.ndarray)]
    assert kernel.footprint(given) == sum(each.nbytes for each in found)
    return found


def test_a_launch_takes_its_own_arrays():
    (multiplies, given, _), (adds, later, _) = in_parts()
    assert {id(each) for each in taken(multiplies, given)} == {id(given[name]) for name in "ABC"}
    assert {id(each) for each in taken(adds, later)} == {id(later[name]) for name in "CS"}
    maps = launches(lower, find("hgemm/tma")[0], HalfGemm(64, 64, 64, "nt"), "sm_90a")[0]
    given = HalfGemm(64, 64, 64, "nt").arguments()
    assert len(taken(maps, given)) == 3 and "A" not in maps.params


def made(block):
    """Class of access -> how often it was made."""
    counters = block.steps.made["counter"].tolist()
    kinds = [block.steps.counted[counter][1] for counter in counters if counter != NONE]
    return {kind: kinds.count(kind) for kind in set(kinds)}


@pytest.mark.parametrize(
    ("name", "arch"),
    [*((name, "sm_90a") for name in SGEMM), ("warp_tiling", "sm_80"), ("pipelined", "sm_75")],
)
def test_multiply_adds_are_those_of_the_tile(name, arch):
    """M x N of the grid's tiles, K each: a warp's FFMA is 32 of them. On sm_80 ptxas makes the branch back a
    call that nothing returns from."""
    kernel, block = followed(f"sgemm/{name}", arch)
    blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2]
    assert block.executed["FFMA"] * 32 * blocks == 256**3
    assert block.agreement > 0.99
    held_against_the_machine(block)


@pytest.mark.parametrize("name", HGEMM)
def test_products_are_those_of_the_tile(name):
    kernel, block = followed(f"hgemm/{name}")
    blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2]
    sizes = {"HMMA.16816": 16 * 8 * 16, "HGMMA.64x128x16": 64 * 128 * 16 // 4,
             "HGMMA.64x64x16": 64 * 64 * 16 // 4}  # fmt: skip
    products = sum(
        size for path in block.warps for number in path.numbers.tolist()
        for start, size in sizes.items() if block.code[number].opcode.startswith(start)
    )  # fmt: skip
    assert products * blocks == 256**3
    assert block.agreement == 1
    held_against_the_machine(block)


@pytest.mark.parametrize("name", ["tma_store", "warp_specialized", "cluster"])
def test_a_ring_that_is_used_again_is_followed(name):
    """Warps meet mbarriers whose phase is not over: tries in vain are not on their way. An arrival that the
    first turn does not make does not lead past the next. Where the first lane of a warp copies and the others
    wait for the cluster, a wait of the latter is met once more."""
    _, block = followed(f"hgemm/{name}", k=2048, load=load_fixed_twin if name != "tma_store" else lower)
    assert block.agreement > (0.999 if name == "cluster" else 0.9999)
    made_, units = block.steps.made, {row for path in block.warps for row in path.accesses.tolist()}
    assert units >= set(np.flatnonzero(made_["what"] != NONE).tolist())


def held_against_the_machine(block):
    """Each access that the machine counts is one instruction of SASS, and has its cost there."""
    there = made(block)
    assert not unknown_opcodes(block.code)
    for opcode, kind in PER_ACCESS.items():
        assert block.executed[opcode] == there.get(kind, 0), opcode
    for path in block.warps:
        rows = path.accesses[path.accesses >= 0]
        assert len(np.unique(rows)) == len(rows)
        for number, row in zip(path.numbers.tolist(), path.accesses.tolist()):
            one = block.code[number]
            if one.name in PER_ACCESS:
                assert (
                    row >= 0
                    and block.steps.counted[block.steps.made["counter"][row]][1] in ACCESSES[one.name]
                )


LOOPS = """\
extern "C" __global__ void k(const float *x, float *y, int n) {
    float sum = 0;
    for (int i = 0; i < n + threadIdx.x / 32; ++i) sum += x[i * 128 + threadIdx.x];
    if (threadIdx.x % 2) y[threadIdx.x] = sum;
    else y[threadIdx.x + 128] = x[threadIdx.x] + 1;
}
"""


def loops(n):
    kernel = Kernel("k", LOOPS, "k", ("x", "y", "n"), (1, 1, 1), (128, 1, 1), "sm_80")
    arguments = {"x": np.ones(128 * 64, np.float32), "y": np.zeros(256, np.float32), "n": n}
    return follow(compile_kernel(kernel), arguments, ["y"])


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 15, 16, 17, 33])
def test_an_unrolled_loop_takes_as_many_turns_as_its_warp(n):
    """ptxas unrolls it; what is left over is a loop of its own. Each warp takes one turn more than the last.
    Lanes that part both store."""
    block = loops(n)
    for path in block.warps:
        names = [block.code[number].name for number in path.numbers.tolist()]
        assert names.count("LDG") == n + path.warp + 1
        assert names.count("STG") == 2 and names[-1] == "EXIT"
    assert block.agreement == 1


PARTING = """\
extern "C" __global__ void k(const float *x, float *y, int n) {
    float sum = 0;
    if (threadIdx.x % 2) {
        #pragma unroll 1
        for (int i = 0; i < n; ++i) sum = fmaf(sum, x[i], 1);
    } else {
        #pragma unroll 1
        for (int i = 0; i < 2 * n; ++i) sum = sum / x[i] + x[i + 64];
    }
    y[threadIdx.x] = sum;
}
"""


@pytest.mark.parametrize("n", [1, 2, 7])
def test_both_ways_are_walked_where_lanes_part(n):
    """Each way has a loop of its own; division by a number that is not known may call a function."""
    kernel = Kernel("k", PARTING, "k", ("x", "y", "n"), (1, 1, 1), (64, 1, 1), "sm_80")
    arguments = {"x": np.ones(256, np.float32), "y": np.zeros(64, np.float32), "n": n}
    block = follow(compile_kernel(kernel), arguments, ["y"])
    for path in block.warps:
        names = [block.code[number].name for number in path.numbers.tolist()]
        assert names.count("LDG") == n + 2 * 2 * n
        assert names.count("STG") == 1 and names[-1] == "EXIT"


def test_the_way_is_one_that_branches_allow():
    """Each instruction follows the one before it, or is the target of a branch."""
    block = loops(9)
    for path in block.warps:
        for before, after in zip(path.numbers.tolist(), path.numbers.tolist()[1:]):
            one = block.code[before]
            assert after == before + 1 or after == one.target or one.name in ("EXIT", "BSYNC", "RET")


def test_lanes_that_go_on_while_others_wait_are_followed_together():
    """One lane waits until a place is empty. Others come to the next wait first, but in SASS behind it."""
    rung, total = find("reduce/bulk")[0], Reduction(1 << 23)
    kernel = launches(lower, rung, total, "sm_90a")[0]
    given = kernel.prepared(total, total.arguments())
    block = follow(compile_kernel(kernel), given, list(total.outputs), (0, 131, 0))
    path = block.warps[0]
    meeting = [block.code[number].name == "SYNCS" for number in path.numbers]
    assert path.accesses[meeting].min() >= 0 and block.agreement == 1


def test_a_kernel_without_landmarks_is_followed_to_the_end():
    nothing = WarpPath(0, np.zeros(1, int), np.zeros(1, int), found=0, missed=0, left=0)
    assert BlockPaths([], (nothing,), None).agreement == 1
    assert BlockPaths([], (replace(nothing, left=1),), None).agreement == 0


def test_more_than_can_be_kept_is_said(monkeypatch):
    monkeypatch.setattr(paths, "MOST", 8)
    with pytest.raises(CheckFailed, match="executes more than 8 basic blocks .* name a smaller shape"):
        loops(33)


def test_steps_are_basic_blocks_in_the_order_of_each_warp():
    """As often as the machine counts instructions, and with the accesses of each."""
    kernel = Kernel("k", LOOPS, "k", ("x", "y", "n"), (1, 1, 1), (128, 1, 1), "sm_80")
    arguments = {"x": np.ones(128 * 64, np.float32), "y": np.zeros(256, np.float32), "n": 5}
    execution = CpuMachine().run(
        compile_kernel(kernel), arguments, ["y"], count=True, watch=Watch(limit=1 << 12, steps=True)
    )
    steps = execution.steps
    issued = sum(len(steps.lines[block]) for block in steps.table["block"].tolist())
    assert issued == execution.counters.warp_instructions and steps.whole
    assert len(steps.made) == sum(access.requests for access in execution.counters.accesses.values())
    assert int(steps.made["cost"].sum()) == sum(
        access.cost for access in execution.counters.accesses.values()
    )


def test_a_block_that_is_followed_is_not_judged():
    """Races are not looked for, in shared memory and in global, and nothing is counted: that takes most of
    the time of an execution. Bounds are."""
    source = """\
extern "C" __global__ void k(float *y) {
    __shared__ float x[64];
    x[threadIdx.x] = threadIdx.x;
    y[0] = x[threadIdx.x ^ 32];
    y[blockIdx.x * 2000 + 1 + threadIdx.x] = x[threadIdx.x];
}
"""
    binary = compile_kernel(Kernel("k", source, "k", ("y",), (2, 1, 1), (64, 1, 1), "sm_80"))

    def found(block, **watched):
        given = {"y": np.zeros(128, np.float32)}
        execution = CpuMachine().run(binary, given, ["y"], watch=Watch(block, 0, 1 << 12, **watched))
        return {finding.kind for finding in execution.findings}, execution.counters is None

    assert found((0, 0, 0)) == ({"race", "uninitialized", "overlapping_writes"}, False)
    assert found((0, 0, 0), steps=True) == (set(), True)
    assert found((1, 0, 0), steps=True) == ({"out_of_bounds"}, True)


def test_an_access_says_how_many_sectors_it_touches_in_part():
    """A load of a whole line; stores to rows of 16 bytes, of 32 bytes that lie across two sectors, and of two
    halves of a sector by different lanes."""
    source = """\
extern "C" __global__ void k(const float *x, float *y) {
    float v = x[threadIdx.x];
    y[threadIdx.x / 4 * 64 + threadIdx.x % 4] = v;
    y[threadIdx.x / 8 * 64 + threadIdx.x % 8 + 4] = v;
    y[(threadIdx.x ^ 4) + 1024] = v;
}
"""
    kernel = Kernel("k", source, "k", ("x", "y"), (1, 1, 1), (32, 1, 1), "sm_80")
    arguments = {"x": np.ones(32, np.float32), "y": np.zeros(2048, np.float32)}
    execution = CpuMachine().run(
        compile_kernel(kernel), arguments, ["y"], watch=Watch(limit=1 << 12, steps=True)
    )
    assert execution.steps.made["source_cost"].tolist() == [0, 8, 8, 0]


def test_an_atomic_says_how_often_l2_goes_over_its_sectors():
    """Of all lanes at one word, of words side by side, of pairs that meet, of lanes with lines of their own;
    and of eight lanes at one word beside others in its sector."""
    source = """\
extern "C" __global__ void k(int *y, const int *places) {
    for (int turn = 0; turn < 5; ++turn) atomicAdd(y + places[turn * 32 + threadIdx.x], 1 + threadIdx.x);
}
"""
    lane = np.arange(32)
    places = np.array([0 * lane, lane, lane // 2, lane * 32, np.maximum(lane - 7, 0)], np.int32)
    kernel = Kernel("k", source, "k", ("y", "places"), (1, 1, 1), (32, 1, 1), "sm_80")
    arguments = {"y": np.zeros(1024, np.int32), "places": places.ravel()}
    execution = CpuMachine().run(
        compile_kernel(kernel), arguments, ["y"], watch=Watch(limit=1 << 12, steps=True)
    )
    steps = execution.steps
    kinds = np.array([kind for _, kind in steps.counted])[steps.made["counter"]]
    atomics = steps.made[kinds == "global_atomic"]
    assert atomics["source_cost"].tolist() == [32, 4, 4, 32, 8 + 3]


READING = """\
extern "C" __global__ void k(volatile int *times, const float *x, float *y, int n) {
    __shared__ float part[32];
    float sum = 0;
    #pragma unroll 1
    for (int i = 0; i < n; ++i) {
        part[threadIdx.x] = x[i * 32 + threadIdx.x];
        __syncthreads();
        int count = times[i];
        #pragma unroll 1
        for (int j = 0; j < count; ++j) sum += part[threadIdx.x ^ j];
        __syncthreads();
    }
    y[threadIdx.x] = sum;
}
"""


def test_a_loop_that_reads_what_others_may_store_is_followed_to_its_end():
    """A block that runs alone goes on, although others may store what its branches depend on."""
    kernel = Kernel("k", READING, "k", ("times", "x", "y", "n"), (1, 1, 1), (32, 1, 1), "sm_80")
    times = np.array([0, 3, 1, 0, 2, 5], np.int32)
    x, y = np.ones(32 * len(times), np.float32), np.zeros(32, np.float32)
    block = follow(compile_kernel(kernel), {"times": times, "x": x, "y": y, "n": len(times)}, ["y"])
    assert block.executed["LDG"] == 2 * len(times) and block.executed["LDS"] == times.sum()
    assert block.executed["STG"] == 1 and block.agreement == 1


WAITING = """\
extern "C" __global__ void k(int *flag, const float *x, float *y, int n) {
    if (blockIdx.x) {
        __threadfence();
        atomicExch(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) {}
        __threadfence();
        #pragma unroll 1
        for (int i = 0; i < n; ++i) y[i * 32 + threadIdx.x] = x[i];
    }
}
"""


def test_a_block_that_waits_for_others_is_followed_among_them():
    """Block 0 stores nothing before block 1 has. The flag stays as it was."""
    kernel = Kernel("k", WAITING, "k", ("flag", "x", "y", "n"), (2, 1, 1), (32, 1, 1), "sm_80")
    arguments = {
        "flag": np.zeros(1, np.int32), "x": np.ones(8, np.float32), "y": np.zeros(256, np.float32), "n": 8,
    }  # fmt: skip
    block = follow(compile_kernel(kernel), arguments, ["flag", "y"])
    assert block.executed["STG"] == 8 and not arguments["flag"].any()


def test_a_spilled_register_is_no_access_that_is_missed():
    """PTX has no access where ptxas keeps a register in memory."""
    lines = "\n".join(f"    v[{i}] = v[{i}] * v[{(i + 7) % 40}] + x[i * 40 + {i}];" for i in range(40))
    source = f"""\
extern "C" __global__ void __maxnreg__(32) k(const float *x, float *y, int n) {{
    float v[40];
    for (int j = 0; j < 40; ++j) v[j] = x[j + threadIdx.x];
    #pragma unroll 1
    for (int i = 0; i < n; ++i) {{
{lines}
    }}
    float sum = 0;
    for (int j = 0; j < 40; ++j) sum += v[j];
    y[threadIdx.x] = sum;
}}
"""
    kernel = Kernel("k", source, "k", ("x", "y", "n"), (1, 1, 1), (32, 1, 1), "sm_80")
    arguments = {"x": np.ones(400, np.float32), "y": np.zeros(32, np.float32), "n": 6}
    block = follow(compile_kernel(kernel), arguments, ["y"])
    assert block.executed["LDL"] and block.executed["LDG"] == 7 * 40 and block.agreement == 1


def test_an_atomic_that_one_lane_does_behind_the_last_exit_is_met():
    """All of its instructions but one are ptxas's own, and that one depends on a predicate."""
    source = """\
extern "C" __global__ void k(const int *x, int *y, int n) {
  int sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
  for (int offset = warpSize / 2; offset > 0; offset /= 2) sum += __shfl_down_sync(-1, sum, offset);
  if (threadIdx.x % warpSize == 0) atomicAdd(y, sum);
}
"""
    kernel = Kernel("k", source, "k", ("x", "y", "n"), (1, 1, 1), (64, 1, 1), "sm_90a")
    arguments = {"x": np.ones(256, np.int32), "y": np.zeros(1, np.int32), "n": np.int32(256)}
    block = follow(compile_kernel(kernel), arguments, ["y"])
    assert block.executed["REDG"] + block.executed["RED"] + block.executed["ATOMG"] == 2
    assert block.agreement == 1


def test_quotients_of_normal_numbers_take_the_short_way():
    """ptxas calls a routine for others, which one instruction of PTX does not tell."""
    source = """\
extern "C" __global__ void k(const float *x, float *y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i] / y[i];
}
"""
    kernel = Kernel("k", source, "k", ("x", "y", "n"), (1, 1, 1), (64, 1, 1), "sm_90a")
    arguments = {"x": np.ones(256, np.float32), "y": np.ones(256, np.float32), "n": np.int32(256)}
    binary = compile_kernel(kernel)
    block = follow(binary, arguments, ["y"])
    assert any(one.name == "CALL" for one in block.code) and not block.executed["CALL"]
    assert block.executed["FCHK"] == block.executed["STG"] == 2 * 4


@pytest.mark.parametrize("to, turns", [("x", 1), ("y", 10)])
def test_a_block_that_changes_its_input_is_followed_as_a_later_launch_finds_it(to, turns):
    """It adds until the number is large: the second launch finds that it is."""
    source = f"""\
extern "C" __global__ void k(float *x, float *y) {{
  float v = x[threadIdx.x];
  do v += ((volatile float *)y)[64]; while (v < 10);
  {to}[threadIdx.x] = v;
}}
"""
    kernel = Kernel("k", source, "k", ("x", "y"), (1, 1, 1), (32, 1, 1), "sm_90a")
    arguments = {"x": np.zeros(32, np.float32), "y": np.float32(np.arange(96) == 64)}
    block = follow(compile_kernel(kernel), arguments, ["x", "y"])
    assert block.executed["LDG"] == 1 + turns and block.agreement == 1
    assert not arguments["x"].any() and arguments["y"].sum() == 1


@pytest.mark.parametrize("k, cycles, parts", [
    (512, 64, 0),  # rows begin with lines
    (544, 96, 0),  # half of the rows begin with half a line
    (528, 112, 0),  # three of four rows lie in two lines
    (520, 168, 64),  # and half of these begin with half a sector
])  # fmt: skip
def test_what_a_box_takes_depends_on_where_its_rows_begin(k, cycles, parts):
    """64 rows of 128 bytes; C has as many columns as K is deep."""
    rung = find("hgemm/tma_store")[0]
    workload = workload_of(rung, Problem(rung.family, (256, k, k)))
    kernel = launches(lower, rung, workload, rung.arch)[0]
    arguments = kernel.prepared(workload, workload.arguments())
    steps = follow(compile_kernel(kernel), arguments, list(workload.outputs)).steps

    def most(what):
        return max(steps.made["source_cost"][steps.made["what"] == what])

    assert (most(Happening.BEGUN), most(Happening.STORED)) == (cycles, parts)


def test_a_launch_that_others_follow_is_the_first():
    """Another launch may write its input before it comes again."""
    source = """\
extern "C" __global__ void k(float *x, float *y) {
  float v = x[threadIdx.x];
  do v += ((volatile float *)y)[0]; while (v < 10);
  x[threadIdx.x] = v;
}
"""
    kernel = Kernel("k", source, "k", ("x", "y"), (1, 1, 1), (32, 1, 1), "sm_90a")
    arguments = {"x": np.zeros(32, np.float32), "y": np.ones(1, np.float32)}
    binary = compile_kernel(kernel)
    turns = [follow(binary, arguments, ["x"], again=again).executed["LDG"] - 1 for again in (False, True)]
    assert turns == [10, 1]


def test_lanes_of_one_load_may_come_to_shared_and_to_global_memory():
    """The load is that of global memory, which takes longer, and none is left over."""
    source = """\
extern "C" __global__ void k(float **p, const int *which, float *y) {
  __shared__ float s[32];
  s[threadIdx.x] = 1;
  __syncwarp();
  const float *from = which[threadIdx.x] ? s : y;
  y[threadIdx.x] = ((volatile const float *)from)[threadIdx.x];
}
"""
    kernel = Kernel("k", source, "k", ("p", "which", "y"), (1, 1, 1), (32, 1, 1), "sm_90a")
    arguments = {
        "p": np.zeros(1, np.uint64),
        "which": np.arange(32, dtype=np.int32) % 2,
        "y": np.zeros(32, np.float32),
    }
    block = follow(compile_kernel(kernel), arguments, ["y"])
    (load,) = [number for number, one in enumerate(block.code) if one.name == "LD"]
    (path,) = block.warps
    (access,) = path.accesses[path.numbers == load].tolist()
    assert block.steps.counted[block.steps.made["counter"][access]][1] == "global_load"
    assert block.steps.made["pieces"][access] == 1 and block.agreement == 1
