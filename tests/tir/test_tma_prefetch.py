"""Boxes that one thread has copied ahead of the K tile that all multiply: passes/tma_prefetch.py."""

import re
from itertools import cycle, product

import pytest
from layers import layers
from mutants import loaded

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.twin import load_twin
from tir_schedules.errors import BadInput
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.rung import Unasked
from tir_schedules.run import outcome_of
from tir_schedules.workloads.gemm import Gemm

RUNG = "sgemm/tma:64x128"


def source(depth, rung=RUNG):
    (found,) = find(rung)
    return lower(found, Gemm(64, 128, depth), Unasked("sm_80")).source


def parts(depth):
    """What stands before the loop over K tiles, in it, and behind it."""
    text = source(depth)
    kernel = text[text.index("__global__") :]
    return re.split(r"#pragma unroll 1\n|\n  \}\n  #pragma unroll 32\n", kernel)


@pytest.mark.parametrize(("k_tiles", "first", "later"), [(2, 2, 0), (3, 3, 0), (4, 3, 1), (9, 3, 1)])
def test_copies_run_ahead_by_all_stages_but_one(k_tiles, first, later):
    text = source(32 * k_tiles)
    assert f"prologue_k_tile < {first}" in text
    before = text.split("prologue_k_tile < ")[1]
    # Of A and of B: in the loop of the first K tiles, behind the first iteration, and in that of all others.
    assert before.count("load_box(") == 2 * (1 + later * (2 if k_tiles > 4 else 1))


def test_a_turn_has_one_barrier_and_its_products_once():
    before, iteration, _ = parts(32 * 9)
    assert before.count("transpose_k_tile<") == iteration.count("transpose_k_tile<") == 1
    assert "__syncthreads" not in iteration
    assert re.search(r"if \(\w+ < 5\) \{\s+if \(first_thread_of_block", iteration)


def test_buffers_have_as_many_k_tiles_as_stages():
    (found,) = find(RUNG)
    transposed, stage = 32 * 64 * 4, 32 * (64 + 128) * 4
    for depth in (4, 100, 1000):
        kernel = lower(found, Gemm(64, 128, depth), Unasked("sm_80"))
        assert kernel.dynamic_shared == 2 * transposed + 4 * stage


@pytest.mark.parametrize(
    ("rung", "shape", "reason"),
    [
        (RUNG, (8, 8, 6), "rows of A are 24 bytes, .* use sgemm/serpentine"),
        (RUNG, (8, 6, 8), "rows of B are 24 bytes, .* use sgemm/serpentine"),
        (f"{RUNG},bk=16", (8, 8, 8), "bk is 32"),
        (f"{RUNG},stages=1", (8, 8, 8), "2 to 8 stages"),
        ("sgemm/tma:128x256,stages=5", (8, 8, 8), "takes 278528 bytes of shared memory"),
        (f"{RUNG},bm=32,bn=224", (8, 8, 8), "224 threads cannot share the 32 rows"),
    ],
)
def test_what_cannot_be_is_refused(rung, shape, reason):
    (found,) = find(rung)
    with pytest.raises(BadInput, match=reason):
        lower(found, Gemm(*shape), Unasked("sm_80"))


FAULTS = {
    "no wait": (r"wait_for_parity\(barrier, parity\);", ""),
    "no barrier": (r"(to\[3 \* ROWS\] = four.w;\s+\})\s+__syncthreads\(\);", r"\1"),
    "no swizzle": (r"piece \^ row % 8", "piece"),
    "fewer bytes": (
        r"arrive_announcing\((.*), (24576|STAGE \* sizeof\(float\))\)",
        r"arrive_announcing(\1, 24560)",
    ),
    "barriers not published": (r"(fence.mbarrier_init.release.cluster;)", ""),
}
MAKERS = (lower, load_twin)


RIGHT = ("barriers not published", load_twin)
"""The twin fences before every copy, which publishes the mbarriers as well."""


@layers(
    "fault, make",
    [*zip(FAULTS, cycle(MAKERS))],
    [pair for pair in product(FAULTS, MAKERS) if pair != RIGHT],
)
def test_a_fault_is_found(fault, make):
    (rung,), gemm = find(RUNG), Gemm(70, 132, 164)
    source, changes = re.subn(*FAULTS[fault], make(rung, gemm, Unasked("sm_80")).source)
    assert changes
    kernel = loaded(source, rung, gemm, Unasked("sm_80"))
    assert outcome_of([kernel], gemm, CpuMachine(budget=1 << 20)).faults
