"""The machine cannot be fooled: a barrier, a wait or a commit removed from a kernel of the HGEMM ladder is found.

One of each kind runs for every rung and twin; `-m slow` runs all of all configurations.
"""
import re

import pytest
from kinds import ARCH, both, each_rung, workload
from mutants import asynchronous_mutants

from tir_schedules.compiler.twin import load_source
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.rung import ladder
from tir_schedules.run import outcome_of

MACHINE = CpuMachine(budget=1 << 22)
WHOLE = workload("256x256x320", ("nt", "float16"))  # ten tiles along K, five where they are 64 deep


def check(rung, mutant, gemm):
    """The mutant fails, and a fault names a line."""
    faults = outcome_of([load_source(mutant.source, rung, gemm, ARCH)], gemm, MACHINE).faults
    assert any(re.search(r"_source\.cu:\d+", fault) for fault in faults), (mutant.name, faults)


@pytest.mark.parametrize("rung", ladder("hgemm"), ids=lambda rung: rung.id)
@both
def test_a_fault_of_each_kind_is_found(rung, make):
    kinds = {}
    for mutant in asynchronous_mutants(make(rung, WHOLE, ARCH).source):
        kinds.setdefault(mutant.name.split(",")[0], mutant)
    if rung.min_arch >= 80:
        assert sorted(kinds) == ["no barrier", "no commit", "no wait"]
    for mutant in kinds.values():
        check(rung, mutant, WHOLE)


@pytest.mark.slow
@each_rung
@both
def test_every_fault_of_order_is_found(rung, make):
    for mutant in asynchronous_mutants(make(rung, WHOLE, ARCH).source):
        check(rung, mutant, WHOLE)
