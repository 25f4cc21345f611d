"""The machine cannot be fooled: barriers removed, bounds shifted by one and guards dropped make a kernel
fail, at a line.

By default one mutant of each kind runs for every third rung on one shape, or its twin, in turn. `-m slow`
runs those of the other rungs, all mutants of twins, of schedules for another shape, and one of each kind of
every other configuration of one of these; of pipelined kernels those of barriers, waits and commits. What a
configuration leaves out, and what a twin does not use of a header, is compiled to nothing: a mutant of it is
the kernel itself.
"""

import re
from functools import partial
from itertools import cycle

import pytest
from layers import layers
from mutants import asynchronous_mutants, differs, loaded, mutants, one_of_each_kind

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.twin import load_twin
from tir_schedules.ladders.problems import RUN_SHAPES
from tir_schedules.ladders.registry import every_rung, find, ladder
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import launches, outcome_of
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.split_gemm import SplitGemm

ARCH = "sm_80"
# The ragged shapes of `tir-schedules run`: whole tiles need no guards. Schedules are emitted for one shape,
# twins take any.
WORKLOADS = [Gemm(*shape) for shape in RUN_SHAPES["sgemm"][1:]]
MACHINE = CpuMachine(budget=1 << 20)
ELSEWHERE = "stream_k"  # nothing is shared on these shapes; its faults are in test_sgemm_stream_k.py
RUNGS = [rung for rung in every_rung("sgemm") if not rung.arch and rung.name != ELSEWHERE]
SGEMM = [rung for rung in ladder("sgemm") if rung in RUNGS]  # Hopper's are in tir/test_tma_prefetch.py


def source_of(rung, form):
    """The schedule's, emitted for one of the workloads, or the twin's; and the workloads it is for."""
    if form == "twin":
        workloads = [own(rung, each) for each in WORKLOADS]
        return load_twin(rung, workloads[0], ARCH).source, workloads
    return lower(rung, own(rung, form), ARCH).source, [own(rung, form)]


def own(rung, workload):
    """The workload by the products that a rung has."""
    products = getattr(rung.config, "products", None)
    return SplitGemm(workload.m, workload.n, workload.k, products) if products else workload


DOUBLE_BUFFERED = ("pipelined", "serpentine", "stream_k")
FORMS = [*WORKLOADS, "twin"]
TWINS = [(rung, "twin") for rung in SGEMM]
SMALL = [*find("sgemm/pipelined:32x64"), *find("sgemm/serpentine:32x64")]
"""Cheaper to compile than what the rungs take by themselves."""
WHOLE = find("sgemm/fp16x3_mma:32x32,splits=1")
"""What stores a wrong element of C is their own kernel, and not the one that adds up parts of K."""
LADDER = [
    *zip(
        [next((other for other in SMALL + WHOLE if other.name == rung.name), rung) for rung in SGEMM],
        cycle([WORKLOADS[0], "twin", WORKLOADS[1], "twin"]),
    )
]
CASES = [
    *zip(SGEMM, cycle(reversed(WORKLOADS))),
    *TWINS,
    *zip([rung for rung in RUNGS if rung not in SGEMM], cycle(FORMS)),
]


def check(rung, mutant, workloads):
    """The mutant fails on one of the workloads, and a fault names a line."""
    made = partial(loaded, mutant.source)
    outcomes = (outcome_of(launches(made, rung, workload, ARCH), workload, MACHINE) for workload in workloads)
    faults = (fault for outcome in outcomes for fault in outcome.faults)
    assert any(re.search(r"_source\.cu:\d+", fault) for fault in faults), mutant.name


@layers("rung, form", LADDER[::3], LADDER)
def test_a_fault_of_each_kind_is_found(rung, form):
    source, workloads = source_of(rung, form)
    found = one_of_each_kind(mutants(source), partial(differs, rung, source, workloads[0], ARCH))
    barriers = {"no barrier"} if "__syncthreads" in source else set()
    assert {mutant.kind for mutant in found} == {"guard + 1", "no guard", "one iteration less"} | barriers
    assert bool(barriers) == (rung.name not in ("naive", "coalesced"))
    for mutant in found:
        check(rung, mutant, workloads)


def goes_round(rung):
    """Whether a multistage buffer, if there is one, is shorter than what a block has of K: where all
    tiles are copied at once, a later wait is for nothing."""
    config = rung.fitted(WORKLOADS[0]).config
    least = min(workload.k // rung.declared(workload).parts for workload in WORKLOADS)
    return getattr(config, "stages", 0) * getattr(config, "bk", 0) < least


@pytest.mark.slow
@layers("rung, form", [(rung, form) for rung, form in CASES if goes_round(rung)], [])
def test_every_fault_is_found(rung, form):
    source, workloads = source_of(rung, form)
    made = (asynchronous_mutants if rung.min_arch >= 80 or rung.name in DOUBLE_BUFFERED else mutants)(source)
    fits = partial(differs, rung, source, workloads[0], ARCH)
    found = list(filter(fits, made)) if rung in SGEMM else one_of_each_kind(made, fits)
    assert found
    for mutant in found:
        check(rung, mutant, workloads)
