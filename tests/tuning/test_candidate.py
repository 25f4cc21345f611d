"""Candidates are built in processes of their own: the same as in this one, and whatever goes wrong there is
one line here."""

import os
import signal
import threading
from dataclasses import replace

import pytest
from clocks import Clock

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.ladders.registry import find_one
from tir_schedules.run import launches
from tir_schedules.tuning.building import candidate, workers
from tir_schedules.tuning.building.candidate import build, verify
from tir_schedules.tuning.measure.gpu_timing import compile_subject
from tir_schedules.tuning.records import timesheet
from tir_schedules.tuning.records.record import source_hash
from tir_schedules.tuning.records.timesheet import AWAITING_BUILDER, BUILDING, VERIFYING, Timesheet
from tir_schedules.tuning.space.tunable import space_of
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.reduction import Reduction

SHAPE, ARCH = Gemm(64, 64, 64), "sm_90"


@pytest.fixture(scope="module")
def rung():
    space = space_of("sgemm/multistage")
    return space.rung_at(next(space.points(SHAPE, ARCH)))


@pytest.fixture(scope="module")
def pool():
    made = workers.Workers(2, Timesheet())
    yield made
    made.close()


def running(pool):
    return [place.process for place in pool.all if place.process]


def test_what_is_built_there_is_what_is_built_here(rung, pool):
    here, there = build(rung, SHAPE, ARCH), pool.build(rung, SHAPE, ARCH)
    assert there == here and there.binaries[0].kernel.source == lower(rung, SHAPE, ARCH).source
    assert there.source == source_hash(lower(rung, SHAPE, ARCH).source)
    assert len(running(pool)) == 1, "the same process has built all"
    assert {AWAITING_BUILDER, BUILDING, VERIFYING} == pool.spent.seconds.keys()
    assert all(seconds > 0 for seconds in pool.spent.seconds.values())


def test_errors_keep_their_kind_and_those_nobody_can_cause_are_one_line(rung, pool):
    with pytest.raises(BadInput, match="sm_80 or later"):
        pool.build(rung, SHAPE, "sm_75")
    with pytest.raises(CheckFailed, match="^it cannot be built: AttributeError: .*"):
        pool.build(rung, "no workload", ARCH)
    assert pool.build(rung, SHAPE, ARCH).kernels[0].arch == ARCH


def test_a_process_that_dies_refuses_its_candidate_alone(rung, pool):
    pool.build(rung, SHAPE, ARCH)
    (process,) = running(pool)
    os.kill(process.pid, signal.SIGSTOP)
    threading.Timer(0.2, process.kill).start()
    with pytest.raises(CheckFailed, match=r"ended without an answer \(exit code -9\)"):
        pool.build(rung, SHAPE, ARCH)
    assert pool.build(rung, SHAPE, ARCH).rung == rung
    assert [again.poll() for again in running(pool)] == [None]


def test_a_kernel_of_this_package_is_compiled_the_quick_way_and_is_in_the_cache_for_the_finals(rung):
    """A rung whose functions are not found under their names is one from elsewhere: see emitted.is_ours."""
    built, again = build(rung, SHAPE, ARCH), compile_subject(rung, SHAPE, ARCH)
    assert all(kernel.own for kernel in built.kernels)
    assert [binary.kernel for binary in again.binaries] == list(built.kernels)


def compiled_with(kernel, old, new):
    return compile_kernel(replace(kernel, source=kernel.source.replace(old, new)))


def test_faults_and_wrong_results_are_refused():
    kernel = lower(find_one("sgemm/lane_quads", "run"), SHAPE, ARCH)
    assert [metrics.findings for metrics in verify([compile_kernel(kernel)], SHAPE)] == [()]
    with pytest.raises(CheckFailed, match="__syncthreads|nothing has written"):
        verify([compiled_with(kernel, "__syncthreads();", "")], SHAPE)
    with pytest.raises(CheckFailed, match="wrong on 64x64x64"):
        verify([compiled_with(kernel, "0x0p+0f", "0x1p+0f")], SHAPE)


def test_the_time_of_a_candidate_that_is_found_wrong_is_counted_once(rung, monkeypatch):
    clock, spent = Clock(), Timesheet()

    def wrong(*_):
        clock.now += 5
        raise CheckFailed("wrong")

    monkeypatch.setattr(timesheet, "time", clock)
    monkeypatch.setattr(candidate, "verify", wrong)
    with pytest.raises(CheckFailed):
        build(rung, SHAPE, ARCH, spent)
    assert spent.seconds == {BUILDING: 0, VERIFYING: 5}


def test_a_sum_is_built_and_verified_with_all_its_launches():
    space, reduction = space_of("reduce/vectorized"), Reduction(1 << 16)
    rung = space.rung_at(space.point_of(space.rung.config))
    whole = build(rung, reduction, ARCH)
    kernels = launches(lower, rung, reduction, ARCH)
    assert whole.kernels == tuple(kernels)
    assert [kernel.grid[0] for kernel in kernels] == [8, 1] and len(whole.metrics) == 2
    assert (
        whole.source == source_hash(*(kernel.source for kernel in kernels)) != source_hash(kernels[0].source)
    )


@pytest.mark.parametrize("launch", [0, 1], ids=["first", "further"])
def test_a_launch_of_a_sum_that_is_wrong_is_refused(launch):
    reduction = Reduction(1 << 16)
    kernels = launches(lower, find_one("reduce/vectorized", "run"), reduction, ARCH)
    assert len(verify([*map(compile_kernel, kernels)], reduction)) == 2
    kernels[launch] = replace(
        kernels[launch],
        source=kernels[launch].source.replace("in_thread_Y_ptr[0] = 0;", "in_thread_Y_ptr[0] = 1;"),
    )
    with pytest.raises(CheckFailed, match="wrong on 65536 int32"):
        verify([*map(compile_kernel, kernels)], reduction)
