"""The machine cannot be fooled: barriers removed, bounds shifted by one and guards dropped make a kernel
fail, at a line.

One mutant of each kind runs for every rung and twin; `-m slow` runs all mutants of all configurations, of
pipelined kernels those of barriers, waits and commits.
"""

import re

import pytest
from mutants import asynchronous_mutants, mutants

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.twin import load_source, load_twin
from tir_schedules.ladders.problems import RUN_SHAPES
from tir_schedules.ladders.registry import every_rung
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import outcome_of
from tir_schedules.workloads.gemm import Gemm

ARCH = "sm_80"
# The ragged shapes of `tir-schedules run`: whole tiles need no guards. Schedules are emitted for one shape,
# twins take any.
WORKLOADS = [Gemm(*shape) for shape in RUN_SHAPES["sgemm"][1:]]
MACHINE = CpuMachine(budget=1 << 20)
RUNGS = every_rung("sgemm")


def cases(rung):
    """(source, workloads it is for) of the schedule, per workload, and of the twin."""
    yield from ((lower(rung, workload, ARCH).source, [workload]) for workload in WORKLOADS)
    yield load_twin(rung, WORKLOADS[0], ARCH).source, WORKLOADS


def check(rung, mutant, workloads):
    """The mutant fails on one of the workloads, and a fault names a line."""
    faults = []
    for workload in workloads:
        faults += outcome_of([load_source(mutant.source, rung, workload, ARCH)], workload, MACHINE).faults
    assert any(re.search(r"_source\.cu:\d+", fault) for fault in faults), (mutant.name, faults)


@pytest.mark.parametrize("rung", [rung for rung in RUNGS if not rung.variant], ids=lambda rung: rung.id)
def test_a_fault_of_each_kind_is_found(rung):
    for source, workloads in cases(rung):
        kinds = {}
        for mutant in mutants(source):
            kinds.setdefault(mutant.name.split(",")[0], mutant)
        assert "guard + 1" in kinds and "no guard" in kinds
        for mutant in kinds.values():
            check(rung, mutant, workloads)


def goes_round(rung):
    """Whether a multistage buffer, if there is one, is shorter than K: where all tiles are copied at once, a
    later wait is for nothing."""
    config = rung.fitted(WORKLOADS[0]).config
    return getattr(config, "stages", 0) * getattr(config, "bk", 0) < min(workload.k for workload in WORKLOADS)


@pytest.mark.slow
@pytest.mark.parametrize("rung", [rung for rung in RUNGS if goes_round(rung)], ids=lambda rung: rung.id)
def test_every_fault_is_found(rung):
    for source, workloads in cases(rung):
        for mutant in (asynchronous_mutants if rung.passes else mutants)(source):
            check(rung, mutant, workloads)
