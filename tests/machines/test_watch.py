"""Requests of one warp, one by one: which are kept, with which addresses and values, and that they cost what
is counted."""

from collections import Counter

import numpy as np
import pytest
from ptx_kernels import module

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_twin
from tir_schedules.errors import BadInput
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.cpu.abi import NONE
from tir_schedules.machines.cpu.watching import recount
from tir_schedules.model.kernel import Binary, Kernel, Resources
from tir_schedules.model.machine import Watch
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm

# Threads store two words each, v = 1000 * block y + thread and v + 7; the first five load a half that warp 1
# stored; an atomic; a copy.
PTX = module(
    "test",
    ("X",),
    """
.shared .align 16 .b8 tile[4096];
.reg .b32 t, y, at, v, w, b;
.reg .b16 h;
.reg .pred p;
.reg .b64 source;
mov.u32 t, %tid.x;
mov.u32 y, %ctaid.y;
shl.b32 at, t, 3;
mov.u32 b, tile;
add.s32 at, at, b;
mad.lo.s32 v, y, 1000, t;
add.s32 w, v, 7;
st.shared.u32 [at], v;
st.shared.u32 [at+4], w;
bar.sync 0;
setp.lt.u32 p, t, 5;
@p ld.shared.u16 h, [at+256];
bar.sync 0;
atom.shared.add.u32 w, [at], 1;
ld.param.u64 source, [X];
cp.async.ca.shared.global [at+2048], [source], 8;
cp.async.wait_all;
""",
)
GRID, BLOCK, THREADS = (2, 3, 1), (64, 1, 1), np.arange(32)


def run(watch=None, count=False):
    arguments = {"X": np.arange(4, dtype=np.uint32) + 50}
    kernel = Kernel("test", "", "test", ("X",), GRID, BLOCK, "sm_80")
    return CpuMachine().run(
        Binary(kernel, PTX, b"", Resources(0, 0)), arguments, (), count=count, watch=watch
    )


def words(request):
    return [int.from_bytes(request.values[lane], "little") for lane in request.lanes]


def test_requests_in_order_with_addresses_and_values():
    store, load, atomic, copy = run(Watch((1, 2, 0), 0)).requests
    assert (store.kind, store.width, store.wavefronts, store.ideal) == (
        "shared_store",
        8,
        2,
        2,
    )  # ptxas makes one of both
    assert store.addresses == tuple(8 * THREADS) and words(store) == list(2000 + THREADS)
    assert (load.kind, load.width, load.lanes) == ("shared_load", 2, (0, 1, 2, 3, 4))
    assert load.addresses == (256, 264, 272, 280, 288, *[0] * 27) and words(load) == [
        2032,
        2033,
        2034,
        2035,
        2036,
    ]
    assert atomic.kind == "shared_atomic" and words(atomic) == list(2001 + THREADS)
    assert (copy.kind, copy.width, copy.addresses) == ("shared_cp_async", 8, tuple(2048 + 8 * THREADS))
    assert words(copy) == [50] * 32


def test_only_the_warp_and_block_asked_for():
    store, *others = run(Watch((0, 1, 0), 1)).requests
    assert words(store) == list(1032 + THREADS) and store.addresses[0] == 256
    assert [request.kind for request in others] == ["shared_atomic", "shared_cp_async"]


def test_a_watched_launch_runs_one_block_and_counts():
    assert 6 * run(Watch()).counters.warp_instructions == run(count=True).counters.warp_instructions
    assert run().requests == () and run().counters is None


def test_no_more_are_kept_than_asked_for():
    execution = run(Watch(limit=2))
    assert (len(execution.requests), execution.requests_met) == (2, 4)
    assert execution.requests == run(Watch()).requests[:2]


@pytest.mark.parametrize(
    "watch, message",
    [
        (Watch((2, 0, 0)), "no block 2,0,0; the grid is 2,3,1"),
        (Watch((0, -1, 0)), "no block 0,-1,0"),
        (Watch(warp=2), "no warp 2; a block has 2"),
    ],
)
def test_what_the_launch_does_not_have(watch, message):
    with pytest.raises(BadInput, match=message):
        run(watch)


@pytest.mark.parametrize("make, name", [(load_twin, "hgemm/wmma_padded"), (lower, "hgemm/mma_xor_swizzle")])
def test_requests_of_all_warps_cost_what_the_block_is_counted_to_cost(make, name):
    workload = HalfGemm(256, 128, 64)
    binary = compile_kernel(make(find(name)[0], workload, "sm_80"))
    watches = [Watch(warp=warp) for warp in range(binary.kernel.threads // 32)]
    runs = [
        CpuMachine().run(binary, workload.arguments(), workload.outputs, watch=watch) for watch in watches
    ]
    requests = [request for execution in runs for request in execution.requests]
    for kind, access in runs[0].counters.accesses.items():
        own = [request for request in requests if request.kind == kind]
        if not kind.startswith("global"):
            assert (len(own), sum(r.wavefronts for r in own), sum(r.ideal for r in own)) == (
                access.requests,
                access.cost,
                access.ideal,
            )
    assert {request.kind for request in requests} < set(runs[0].counters.accesses)


def test_all_accesses_of_a_block_each_once():
    """Both warps; global memory as well, of which a copy's source is one."""
    records = run(Watch(block=(1, 2, 0), every=True)).records
    assert records.ended and not records.lost
    rows = [(records.kinds[row["counter"]], row["warp"], row["times"], row["width"]) for row in records.table]
    assert rows == [
        ("shared_store", 0, 1, 8), ("shared_store", 1, 1, 8), ("shared_load", 0, 1, 2),
        ("shared_atomic", 0, 1, 4), ("shared_cp_async", 0, 1, 8), ("shared_atomic", 1, 1, 4),
        ("shared_cp_async", 1, 1, 8),
    ]  # fmt: skip
    copy = records.table[4]
    assert records.kinds[copy["source_counter"]] == "global_cp_async"
    assert copy["address"].tolist() == (8 * THREADS + 2048).tolist() and len(set(copy["source"])) == 1


def test_accesses_without_room_are_lost():
    records = run(Watch(limit=3, every=True)).records
    assert (len(records.table), records.lost) == (3, 4)


@pytest.mark.parametrize("name", ("hgemm/wmma_async", "sgemm/multistage", "hgemm/mma_multistage"))
def test_accesses_cost_what_is_counted_and_again_when_recounted(name):
    """Of blocks that are all alike: loads, stores, ldmatrix, copies of both kinds."""
    (rung,) = find(name)
    workload = HalfGemm(256, 256, 64) if name.startswith("hgemm") else Gemm(128, 128, 32)
    binary = compile_kernel(lower(rung, workload, "sm_80"))
    arguments = workload.prepared(workload.arguments(), binary.kernel.grid)
    execution = CpuMachine().run(binary, arguments, workload.outputs, watch=Watch(limit=1 << 17, every=True))
    table = execution.records.table
    counted = {kind: access.cost for kind, access in execution.counters.accesses.items()}
    for _ in range(2):
        found = Counter()
        for row in table:
            found[execution.records.kinds[row["counter"]]] += int(row["cost"] * row["times"])
            if row["source_counter"] != NONE:
                found[execution.records.kinds[row["source_counter"]]] += int(
                    row["source_cost"] * row["times"]
                )
        assert found == counted
        table["cost"] = table["source_cost"] = 0
        recount(table)
