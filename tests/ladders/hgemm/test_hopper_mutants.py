"""The machine cannot be fooled on Hopper either: a wait, an arrival, a fence or a commit removed from a twin
is found, and so are wrong bytes, counts, parities, masks and stages.

Many of them leave right numbers. `-m slow` runs all of all twins, at every place. By default a few run, for
test_hopper_ptx_mutants.py has faults of the same kinds for which nothing is compiled.
"""

import re
from dataclasses import replace
from typing import Iterator

import pytest
from mutants import BARRIER, Mutant, differs, loaded, replaced
from test_hopper_twins import IN_PAIRS, PERSISTENT, TWINS, few, gemm

from tir_schedules.compiler.twin import load_twin
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import outcome_of

ARCH = "sm_90a"
MACHINE = CpuMachine(budget=1 << 22)
SHAPE = (256, 512, 328)
"""Two rows and columns of tiles, and more K tiles than stages: every wait is for something."""

DROPPED = (
    "fence_async_proxy", "commit_products", "wait_for_products", "wait_for_parity", "arrive_and_wait",
    "arrive_announcing", "sync_warpgroup", "sync_cluster", "wait_until_stores_have_read", "commit_stores",
    "release", "publish_barriers", "wait_for_copies", "commit_copies", "complete",
)  # fmt: skip
CALL = re.compile(rf"(?<![\w:])(?:tile\.)?({'|'.join(DROPPED)})(?:<[^>]*>)?\([^;{{]*\);")
DEFINITION = re.compile(r"static __device__|__device__ .*\b(?:void|int|unsigned)\b")
LAST_RELEASE = "column 9: release(before);"
ONE_PLACE = re.compile(r"if constexpr \(PLACES == 1\) \{.*?\n        \}\n", re.S)
"""What boxes of C do that have no other place to take turns with."""

CHANGED = {
    "other parity": (r"state\.parity \^ 1", "state.parity"),
    "16 bytes more": (r"(arrive_announcing\(barrier, Operands::BYTES)\)", r"\1 + 16)"),
    "a warpgroup less": (r"consumers \* \(WARPGROUP / 32\)", "(consumers - 1) * (WARPGROUP / 32)"),
    "a thread less": (r"THREADS \+ 1\)", "THREADS)"),
    "one block": (r"\(1 << BLOCKS\) - 1", "1"),
    "next stage": (r"load\(stages \+ state\.stage", "load(stages + (state.stage + 1) % STAGE_COUNT"),
    "no swizzle": (r"1ull << 62", "0ull << 62"),
}


def mutants(source: str) -> Iterator[Mutant]:
    """Every single fault of order, and of numbers that barriers and descriptors are given."""
    lines = source.split("\n")
    for number, line in enumerate(lines):
        if line.lstrip().startswith("//") or DEFINITION.search(line):
            continue
        for match in CALL.finditer(line):
            yield replaced(lines, number, match.span(), ";", f"no {match[1]}")
        for match in BARRIER.finditer(line):
            yield replaced(lines, number, match.span(), ";", "no barrier")
        for what, (pattern, instead) in CHANGED.items():
            for match in re.finditer(pattern, line):
                yield replaced(lines, number, match.span(), match.expand(instead), what)


def faults_of(name: str) -> list[Mutant]:
    """Those of a twin, without those of code that it has and does not need: masks of clusters; that the last
    stage of a block's only tile is empty; that boxes of C have one place."""
    source = load_twin(rung_of(name), gemm("nt float to half", SHAPE), ARCH).source
    needed = ONE_PLACE.sub("", source)
    found = [each for each in mutants(source) if ONE_PLACE.sub("", each.source) != needed]
    spare = ["one block"] if name not in IN_PAIRS else []
    unheard = LAST_RELEASE if name == "warp_specialized" else None
    return [each for each in found if each.kind not in spare and not (unheard and unheard in each.name)]


def rung_of(name):
    """With so few blocks that each has two tiles."""
    return find(f"hgemm/{name}:{few(name)}")[0]


def check(name, mutant):
    """The mutant fails, and a fault names a line."""
    work = gemm("nt float to half", SHAPE)
    kernel = loaded(mutant.source, rung_of(name), work, ARCH)
    outcome = outcome_of([kernel], work, MACHINE)
    if any("are spilled to memory" in fault for fault in outcome.faults):  # refused before it runs
        outcome = outcome_of([replace(kernel, own=False)], work, MACHINE)
    assert any(re.search(r"_source\.cu:\d+", fault) for fault in outcome.faults), (name, mutant.name)


SHORT = [("tma_store", "16 bytes more"), ("cluster", "one block"), ("tma", "a thread less")]


@pytest.mark.parametrize("name, kind", SHORT)
def test_some_faults_are_found(name, kind):
    check(name, next(mutant for mutant in faults_of(name) if mutant.kind == kind))


# Of these a text has two kernels, of which one is compiled; what they call is what others call, too.
TWO_KERNELS = ("repacked", "split_k")
# What this has that tma_store has not, has its faults in test_hopper_stream_k.py.
LIKE_ANOTHER = ("stream_k",)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TWINS if name not in TWO_KERNELS + LIKE_ANOTHER])
def test_every_fault_is_found(name):
    """But for those of code that the twin has by a header and does not call."""
    missed, work = [], gemm("nt float to half", SHAPE)
    source = load_twin(rung_of(name), work, ARCH).source
    for mutant in faults_of(name):
        try:
            check(name, mutant)
        except AssertionError:
            if differs(rung_of(name), source, work, ARCH, mutant):
                missed.append(mutant.name)
    assert not missed


def test_every_kind_is_met():
    """Else a renamed function would go untested."""
    met = {mutant.kind for name in ("wgmma_async", "tma", *PERSISTENT) for mutant in faults_of(name)}
    assert {f"no {name}" for name in DROPPED} | CHANGED.keys() <= met
