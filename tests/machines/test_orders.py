"""Blocks and warps take turns in several orders, on one core or several: what depends on it."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ptx_kernels import launch, module

from tir_schedules import processes
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.errors import BadInput
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.cpu.flow import deciding
from tir_schedules.machines.cpu.machine import ORDERS
from tir_schedules.machines.cpu.parser import parse
from tir_schedules.model.kernel import Kernel

BLOCKS, THREADS = 8, 64
SOURCE = """
#define KERNEL(name) extern "C" __global__ void name(const float* X, float* Y, int* F, int N)
KERNEL(last_wins) { atomicExch(&Y[0], (float)blockIdx.x); }
KERNEL(adds) { atomicAdd(&Y[0], X[blockIdx.x * blockDim.x + threadIdx.x]); }
KERNEL(adds_and_last_wins) {
  atomicAdd(&Y[0], 1e6f * X[blockIdx.x * blockDim.x + threadIdx.x]);
  if (threadIdx.x == 0) atomicExch(&Y[1], (float)blockIdx.x);
}
__device__ void add_by_swaps(float* sum, float x) {
  int *word = (int*)sum, old = *word, before;
  do {
    before = old;
    old = atomicCAS(word, before, __float_as_int(__int_as_float(before) + x));
  } while (old != before);
}
KERNEL(adds_by_swaps) { add_by_swaps(&Y[0], 1 / X[blockIdx.x * blockDim.x + threadIdx.x]); }
KERNEL(adds_to_nothing) {  // what is left of the sum is rounding
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  add_by_swaps(&Y[0], (i % 2 ? -1 : 1) * X[i / 2 * 2]);
}
KERNEL(adds_under_a_lock) {
  if (threadIdx.x) return;
  while (atomicCAS(&F[0], 0, 1));
  __threadfence();
  Y[0] += X[blockIdx.x] * 1.1f;
  Y[1] = Y[1] * 0.5f + blockIdx.x * N / 512;
  __threadfence();
  atomicExch(&F[0], 0);
}
KERNEL(stores_rounded_sums) {  // lanes add up in orders of their own
  float sum = X[threadIdx.x] * (N == 512 ? 1 : blockIdx.x + 2);
  for (int step = 1; step < 32; step *= 2) sum += __shfl_xor_sync(~0u, sum, step);
  __shared__ float s[2];
  s[threadIdx.x / 32] = sum * (1 + (threadIdx.x % 3) * 1.2e-7f);
  __syncthreads();
  if (blockIdx.x == 0) Y[threadIdx.x / 32 % 2] = s[0] * (1 + (threadIdx.x % 3) * 1.2e-7f);
  if (N != 512) F[0] = 1000 + threadIdx.x % 3;
}
KERNEL(marks) { if (X[threadIdx.x] > 0.15f) F[0] = 1; }
KERNEL(counts_warps) {
  __shared__ int s;
  if (threadIdx.x == 0) s = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0) Y[threadIdx.x / 32] = atomicAdd(&s, 1);
}
KERNEL(works) {
  float a = 0;
  for (int i = 0; i < 4 * N; ++i) a = a * 0.5f + X[(threadIdx.x + i) % N];
  Y[blockIdx.x * blockDim.x + threadIdx.x] = a;
}
KERNEL(works_and_counts_warps) {
  __shared__ int s;
  float a = 0;
  for (int i = 0; i < 4 * N; ++i) a = a * 0.5f + X[(threadIdx.x + i) % N];
  if (threadIdx.x == 0) s = a < 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0) Y[blockIdx.x * 8 + threadIdx.x / 32] = atomicAdd(&s, 1);
}
KERNEL(works_and_races) {
  float a = 0;
  for (int i = 0; i < 4 * N; ++i) a = a * 0.5f + X[(threadIdx.x + i) % N];
  Y[threadIdx.x] = a + blockIdx.x;
}
KERNEL(goes_on) {
  float a = 0;
  for (int i = 0; i < 300000; ++i) a = a * 0.5f + 1;
  Y[threadIdx.x] = a;
}
KERNEL(counts_after_fences) {  // nobody reads the flags that the atomics are
  __threadfence();
  __syncthreads();
  for (int i = 0; i < 2; ++i) atomicAdd(&F[(threadIdx.x + 37 * i) % 256], 1);
}
KERNEL(looks_before_it_swaps) {
  __shared__ int other[64], s;
  other[threadIdx.x] = N;
  if (threadIdx.x == 0) s = 0;
  __syncthreads();
  int seen = s, old = seen + other[63 - threadIdx.x];
  F[threadIdx.x] = seen;
  while ((seen = atomicCAS(&s, old, old + 1)) != old) old = seen;
}
KERNEL(stores_bytes) {
  unsigned char* f = (unsigned char*)F;
  f[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
}
KERNEL(from_two_places) {
  __shared__ float s[64];
  const int t = threadIdx.x;
  s[t] = X[t];
  if (t % 2) asm volatile("barrier.sync 0;" ::: "memory");
  else asm volatile("barrier.sync 0; // other" ::: "memory");
  Y[t] = s[63 - t];
}
KERNEL(asks_for_part_of_a_warp) {
  int threads = N - 472;
  asm volatile("bar.sync 1, %0;" :: "r"(threads) : "memory");
  Y[threadIdx.x] = 1;
}
KERNEL(counts_looks) {
  int looks = 0;
  while (*(volatile int*)&F[7] == 0) ++looks;
  Y[blockIdx.x] = looks;
}
KERNEL(gives_up) {
  int looks = 0;
  while (*(volatile int*)&F[7] == 0 && looks < 20000) ++looks;
  Y[blockIdx.x] = looks;
}
KERNEL(hands_on) {  // every thread waits for the one before
  const int t = blockIdx.x * blockDim.x + threadIdx.x, w = t % 2048, r = t / 2048;
  volatile unsigned char* f = (unsigned char*)F;
  while (t && f[(t - 1) % 2048] < (t - 1) / 2048 + 1);
  __threadfence();
  f[w] = r + 1;
}
KERNEL(next_sets) {  // every block waits for the next one
  volatile int* f = F;
  if (threadIdx.x == 0) {
    while (blockIdx.x + 1 < gridDim.x && f[blockIdx.x + 1] == 0);
    f[blockIdx.x] = 1;
  }
}
"""


@pytest.fixture(scope="module")
def compiled():
    kernel = Kernel("test", SOURCE, "works", ("X", "Y", "F", "N"), (BLOCKS, 1, 1), (THREADS, 1, 1), "sm_80")
    return compile_kernel(kernel)


@pytest.fixture
def run(compiled):
    def launch(entry, blocks=BLOCKS, threads=THREADS, N=BLOCKS * THREADS, **options):
        size = BLOCKS * THREADS
        arguments = {
            "X": np.linspace(0.1, 1, size, dtype=np.float32),
            "Y": np.zeros(size, np.float32),
            "F": np.zeros(size, np.int32),
            "N": N,
        }
        kernel = replace(compiled.kernel, entry=entry, grid=(blocks, 1, 1), block=(threads, 1, 1))
        binary = replace(compiled, kernel=kernel)
        outputs = ("Y", "F")
        execution = CpuMachine(**options).run(binary, arguments, outputs, given=outputs)
        return execution, arguments

    return launch


@pytest.mark.parametrize("entry", ["last_wins", "counts_warps"])
def test_a_result_that_depends_on_the_order_is_a_finding(run, entry):
    assert run(entry)[0].findings == ()
    (finding,) = run(entry, orders=2)[0].findings
    assert finding.kind == "order_dependent" and "atomic" in finding.location.text
    assert "Y[0] is" in finding.message and finding.block == (0, 0, 0)


def test_sums_that_differ_by_rounding_do_not_depend_on_the_order(run):
    sums = {float(run("adds", warp_order=order, seed=3)[1]["Y"][0]) for order in ORDERS}
    assert len(sums) > 1
    assert run("adds", orders=4)[0].findings == ()


@pytest.mark.parametrize("entry", ["adds_by_swaps", "adds_to_nothing"])
def test_sums_by_compare_and_swap_do_not_depend_on_the_order(run, entry):
    sums = {float(run(entry, warp_order=order, seed=3)[1]["Y"][0]) for order in ORDERS}
    assert len(sums) > 1
    assert run(entry, orders=4)[0].findings == ()


def test_of_values_under_a_lock_only_rounding_is_let_go(run):
    (finding,) = run("adds_under_a_lock", orders=2)[0].findings
    assert finding.kind == "order_dependent" and "Y[1] is" in finding.message


def test_a_large_sum_hides_no_other_element(run):
    (finding,) = run("adds_and_last_wins", orders=2)[0].findings
    assert finding.kind == "order_dependent" and "Y[1] is" in finding.message


def test_values_that_are_equal_up_to_rounding_are_a_note(run):
    execution, _ = run("stores_rounded_sums", orders=2)
    assert execution.findings == () and {note.kind for note in execution.notes} == {"same_value"}
    assert all("the same value up to rounding, and" in note.message for note in execution.notes)


def test_integers_that_are_nearly_equal_are_a_fault(run):
    kinds = {finding.kind for finding in run("stores_rounded_sums", N=511)[0].findings}
    assert kinds == {"overlapping_writes"}


def test_the_first_order_is_the_one_that_counts(run):
    assert run("last_wins", orders=3)[1]["Y"][0] == BLOCKS - 1
    assert run("last_wins", warp_order="reverse", orders=2)[1]["Y"][0] == 0


def test_equal_values_stored_by_several_are_a_note(run):
    execution, arguments = run("marks", orders=2)
    assert execution.findings == () and arguments["F"][0] == 1
    assert {note.kind for note in execution.notes} == {"same_value"}


def test_cores_change_nothing(run):
    one, alone = run("works", cores=1)
    four, together = run("works", cores=4)
    assert one.findings == four.findings == () and np.array_equal(alone["Y"], together["Y"])
    assert four.writer("Y", 5).line == one.writer("Y", 5).line
    found = [run("works_and_races", cores=cores)[0].findings for cores in (1, 4)]
    assert found[0] == found[1] and found[0][0].kind == "overlapping_writes"
    assert "block 0,0,0 warp" in found[0][0].message


def test_cores_do_not_change_what_a_seed_decides(run):
    turns = [
        run("works_and_counts_warps", threads=256, warp_order="random", seed=1, cores=cores)[1]["Y"]
        for cores in (1, 4, 4)
    ]
    assert np.array_equal(turns[0], turns[1]) and np.array_equal(turns[1], turns[2])
    assert not np.array_equal(turns[0][:8], turns[0][8:16])


def test_a_long_loop_is_not_endless(run):
    execution, arguments = run("goes_on", blocks=1, threads=1)
    assert execution.findings == () and abs(arguments["Y"][0] - 2) < 1e-6


@pytest.mark.parametrize("entry, blocks", [("stores_bytes", BLOCKS), ("from_two_places", 1)])
def test_what_is_no_fault(run, entry, blocks):
    assert run(entry, blocks=blocks, orders=3)[0].findings == ()


def test_a_barrier_for_part_of_a_warp(run):
    found = {finding.kind: finding for finding in run("asks_for_part_of_a_warp", blocks=1)[0].findings}
    assert "barrier 1 for 40 threads; there are barriers 0 to 15" in found["divergent_barrier"].message


def test_a_loop_that_counts_its_looks_at_memory_nobody_changes(run):
    findings = run("counts_looks", threads=32)[0].findings
    assert {finding.kind for finding in findings} == {"deadlock"}


def test_a_loop_that_gives_up_after_many_looks_is_no_deadlock(run):
    blocks = 24
    execution, arguments = run("gives_up", blocks=blocks, threads=32)
    assert execution.findings == () and arguments["Y"][:blocks].tolist() == [20000] * blocks


@pytest.mark.parametrize("entry, decides", [("counts_looks", False), ("gives_up", True)])
def test_a_count_decides_a_loop_that_it_ends(compiled, entry, decides):
    """What a loop counts and only stores behind it says nothing of whether it goes on."""
    kernel = parse(compiled.ptx).kernels[entry]
    counts = {i.results[0] for i in kernel.instructions if i.opcode == "add.s32"}
    assert counts and bool(counts & deciding(kernel)) == decides


@pytest.mark.parametrize("order", ORDERS)
def test_blocks_that_wait_for_later_ones(run, order):
    execution, arguments = run("next_sets", warp_order=order)
    assert execution.findings == () and arguments["F"][:BLOCKS].all()


def test_more_blocks_than_a_gpu_holds_at_once(run, monkeypatch):
    monkeypatch.setattr("tir_schedules.machines.cpu.invocation.resident_blocks", lambda binary: BLOCKS - 1)
    (finding,) = run("next_sets")[0].findings
    assert finding.kind == "deadlock" and f"holds {BLOCKS - 1} blocks" in finding.message
    assert "while" in finding.location.text


def added_mib(action):
    """What the action returns, and how many MiB of memory this process had at most that it had not before."""
    Path("/proc/self/clear_refs").write_text("5")  # the most so far becomes what there is now: proc(5)
    before = most_mib()
    return action(), most_mib() - before


def most_mib():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def test_what_fences_tell_stays_small(run):
    """With a group for each thread that a store tells of it would be 260 MiB."""
    (execution, arguments), added = added_mib(lambda: run("counts_after_fences", blocks=30, threads=1024))
    assert execution.findings == () and arguments["F"][:256].sum() == 30 * 1024 * 2
    assert added < 40


def test_what_a_chain_of_fences_tells_is_shared(run):
    """With a copy for each thread it would be 160 MiB."""
    (execution, arguments), added = added_mib(lambda: run("hands_on", blocks=64, threads=256))
    assert execution.findings == () and (arguments["F"].view(np.uint8)[:2048] == 8).all()
    assert added < 40


def test_a_race_in_shared_memory_names_its_variable(run):
    findings = run("looks_before_it_swaps", blocks=1)[0].findings
    assert {finding.kind for finding in findings} == {"race", "lockstep"}
    assert all(" s in shared memory at byte 0," in finding.message for finding in findings)


@pytest.mark.parametrize(
    "name, value",
    [("orders", 0), ("orders", "x"), ("orders", True), ("budget", -1), ("seed", -1), ("cores", 0),
     ("cores", 1.5), ("stack", 1 << 20), ("heap", -1)],
)  # fmt: skip
def test_options_there_are_not(name, value):
    with pytest.raises(BadInput, match=f"{name} is {value!r}; it can be a whole number from [01] to "):
        CpuMachine(**{name: value})


def test_the_machine_stands_by_itself():
    told = "import sys, tir_schedules.machines.cpu; print(*sys.modules)"
    modules = processes.run([sys.executable, "-c", told], timeout=60).stdout.split()
    assert "tir_schedules.machines.cpu.machine" in modules
    others = ("tvm", "tvm_ffi", "tir_schedules.ladders", "tir_schedules.tir", "tir_schedules.workloads")
    assert not [name for name in modules for other in others if f"{name}.".startswith(f"{other}.")]


def test_a_race_within_a_block_does_not_hide_one_between_blocks():
    """At the same two lines: all warps load an element, and thread 0 of each block stores it."""
    body = """.reg .pred p; .reg .b32 t, a; .reg .b64 y;
mov.u32 t, %tid.x; setp.eq.u32 p, t, 0; ld.param.u64 y, [Y];
ld.global.u32 a, [y];
@p st.global.u32 [y], a;"""
    text = module("test", ["Y"], body)
    found = [
        finding.message
        for blocks in (1, 2)
        for finding in launch(
            text, {"Y": np.zeros(1, np.uint32)}, ("Y",), (blocks, 1, 1), (64, 1, 1)
        ).findings
        if finding.kind == "race"
    ]
    ways = ["nothing orders the two blocks" in message for message in found]
    assert ways == [False, False, True]
