"""The machine cannot be fooled: a barrier, a wait or a commit removed from a kernel of the HGEMM ladder is
found.

By default one of each kind runs for every third rung or its twin, in turn; `-m slow` runs all of both, and
one of each kind of other configurations.
"""

import re
from functools import partial
from itertools import cycle

import pytest
from kinds import ARCH, LADDER, MAKERS, RUNGS, workload
from layers import layers
from mutants import asynchronous_mutants, differs, loaded, one_of_each_kind

from tir_schedules.compiler.twin import load_twin
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import outcome_of

MACHINE = CpuMachine(budget=1 << 22)
WHOLE = workload("256x256x320", ("nt", "float16"))  # ten tiles along K, five where they are 64 deep
LONGER = workload("256x256x384", ("nt", "float16"))  # the last tile in another stage
RAGGED = workload("200x136x72", ("nt", "float16"))


# Schedule and twin of the rungs, of their other configurations either in turn.
BOTH = [(rung, form) for rung in LADDER for form in MAKERS]
OTHERS = [rung for rung in RUNGS if rung not in LADDER]


def examples(rung, make):
    """GEMMs in which every barrier and wait matters. A schedule is emitted for one: that of wmma_naive has
    barriers for ragged tiles alone. A twin takes any, and has barriers that only ragged tiles need, or only
    some stages.
    """
    if make is load_twin:
        return [WHOLE, RAGGED, LONGER]
    return [RAGGED] if rung.name == "wmma_naive" else [WHOLE]


def check(rung, mutant, gemms):
    """The mutant fails on one of the GEMMs, and a fault names a line."""
    outcomes = (outcome_of([loaded(mutant.source, rung, gemm, ARCH)], gemm, MACHINE) for gemm in gemms)
    faults = (fault for outcome in outcomes for fault in outcome.faults)
    assert any(re.search(r"_source\.cu:\d+", fault) for fault in faults), mutant.name


@layers("rung, form", [*zip(LADDER[::3], cycle(MAKERS))], [*zip(OTHERS, cycle(MAKERS))])
def test_a_fault_of_each_kind_is_found(rung, form):
    make = MAKERS[form]
    found = one_of_each_kind(*faults_of(rung, make))
    assert {mutant.kind for mutant in found} == kinds_of(rung)
    for mutant in found:
        check(rung, mutant, examples(rung, make))


@pytest.mark.slow
@layers("rung, form", BOTH, [])
def test_every_fault_of_order_is_found(rung, form):
    make = MAKERS[form]
    made, fits = faults_of(rung, make)
    found = list(filter(fits, made))
    assert {mutant.kind for mutant in found} == kinds_of(rung)
    for mutant in found:
        check(rung, mutant, examples(rung, make))


def faults_of(rung, make):
    """Mutants, and what tells whether one is another kernel: what a configuration leaves out, and what a twin
    does not use of a header, is compiled to nothing."""
    gemm = examples(rung, make)[0]
    source = make(rung, gemm, ARCH).source
    return asynchronous_mutants(source), partial(differs, rung, source, gemm, ARCH)


def kinds_of(rung):
    """Only a pipeline commits its copies and waits for them."""
    pipelined = rung.min_arch >= 80 and getattr(rung.config, "stages", 0) != 1
    return {"no barrier", "no commit", "no wait"} if pipelined else {"no barrier"}
