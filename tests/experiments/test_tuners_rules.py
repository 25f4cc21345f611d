"""Kernels by dlight's rules and by MetaSchedule's own: what they are, what is counted, what is refused."""

import threading
from concurrent.futures import wait

import pytest
import tuners_candidates
import tuners_metaschedule
from tuners_candidates import KINDS, Candidates, TooSlow
from tuners_rules import DLIGHT, METASCHEDULE, dlight_kernel, kernel_of

from tir_schedules.compiler.lower import lower, target
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.ladders.registry import find_one
from tir_schedules.model.gpus import MAX_THREADS
from tir_schedules.model.kernel import Binary, Resources
from tir_schedules.tir.tvm import import_tvm
from tir_schedules.tuning.building.candidate import verify
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm

ARCH = "sm_90"
WHOLE, RAGGED, WHOLE_HALF = Gemm(128, 64, 32), Gemm(100, 72, 40), HalfGemm(256, 256, 128)


def scheduled(threads):
    """A module whose block has so many threads; of none, a loop that is not bound to any."""
    tvm = import_tvm()
    schedule = tvm.s_tir.Schedule(Gemm(2048, 64, 8).prim_func("main"))
    rows, columns, _ = schedule.get_loops(schedule.get_sblock("C"))
    if threads:
        blocks, threads = schedule.split(rows, [None, threads])
        schedule.bind(blocks, "blockIdx.x")
        schedule.bind(threads, "threadIdx.x")
    return schedule.mod


@pytest.fixture
def quick(monkeypatch):
    """In place of nvcc, that refuses what the project refuses before it asks nvcc."""

    def compiled(kernel):
        if kernel.threads <= MAX_THREADS:
            return Binary(kernel, "", b"", Resources(32, 0))
        return compile_kernel(kernel)

    monkeypatch.setattr(tuners_candidates, "compile_kernel", compiled)


@pytest.mark.parametrize("workload", [pytest.param(WHOLE, marks=pytest.mark.slow), RAGGED], ids=str)
def test_dlight_schedules_gemms_of_whole_and_of_ragged_tiles(workload):
    kernel, rule = dlight_kernel("sgemm", workload, ARCH)
    assert rule == "Matmul" and kernel.params == ("A", "B", "C")
    assert kernel.grid == (-(-workload.m // 32), -(-workload.n // 64), 1) and kernel.block == (8, 16, 1)
    verify([compile_kernel(kernel)], workload)


def test_where_dlights_rule_does_not_take_a_gemm_its_fallback_does(monkeypatch):
    from tvm.s_tir import dlight

    monkeypatch.setattr(dlight.gpu.Matmul, "apply", lambda *arguments: None)
    kernel, rule = dlight_kernel("sgemm", RAGGED, ARCH)
    assert rule == "Fallback" and kernel.block == (1024, 1, 1)


def test_a_rule_that_fails_is_one_line(monkeypatch):
    from tvm.s_tir import dlight

    def fail(*arguments):
        raise ValueError("no\nsuch loop")

    monkeypatch.setattr(dlight.gpu.Matmul, "apply", fail)
    with pytest.raises(CheckFailed, match="^dlight: its rule Matmul fails: such loop$"):
        dlight_kernel("sgemm", WHOLE, ARCH)
    monkeypatch.setattr(dlight.gpu.Matmul, "apply", lambda *arguments: None)
    monkeypatch.setattr(dlight.gpu.Fallback, "apply", lambda *arguments: None)
    with pytest.raises(CheckFailed, match="none of its rules Matmul, Fallback takes 128x64x32"):
        dlight_kernel("sgemm", WHOLE, ARCH)


def test_kernels_are_what_tvm_itself_emits():
    tvm = import_tvm()
    schedule, gpu = tvm.s_tir.Schedule(scheduled(64)), target(ARCH)
    schedule.unroll(schedule.get_loops(schedule.get_sblock("C"))[-1])
    with tvm.transform.PassContext(config={"tirx.disable_cse_tir": True}):
        source = tvm.compile(schedule.mod, gpu).mod.imports[0].inspect_source()
    assert (
        kernel_of(DLIGHT, schedule, ARCH).source.replace("dlight(", "main_kernel(") == source
        and "#pragma unroll" not in source
    )


def searching(timer=lambda binary: (2e-6, 1e-6, 3e-6), **options):
    return Candidates(ARCH, timer, 8, **options)


def test_candidates_are_built_and_timed_and_the_fastest_is_kept(quick):
    times = iter([(9e-6, 1e-6, 5e-6), (3e-6, 4e-6, 2e-6), (6e-6,)])
    candidates = searching(lambda binary: next(times))
    names = candidates.build([scheduled(threads) for threads in (32, 64, 128)])
    assert names == [f"{METASCHEDULE} trial {number}" for number in (1, 2, 3)]
    assert [candidates.time(name) for name in names] == [(9e-6, 1e-6, 5e-6), (3e-6, 4e-6, 2e-6), (6e-6,)]
    seconds, binary = candidates.fastest
    assert seconds == 3e-6 and binary.kernel.block == (64, 1, 1) and binary.kernel.label == names[1]
    assert candidates.as_json() == {"trials": 3, "refused": []} and not candidates.built


def test_what_cannot_be_built_or_is_wrong_is_counted_and_never_the_fastest(quick):
    def timer(binary):
        if binary.kernel.threads == 64:
            raise CheckFailed(f"does not verify: C[0, 0] is nan,\nnot 1 in {binary.kernel.label}")
        if binary.kernel.threads == 128:
            raise CheckFailed("too many resources requested")
        if binary.kernel.threads == 256:
            raise TooSlow("a launch takes 7 s")
        return (1e-6,)

    candidates = searching(timer)
    names = candidates.build([scheduled(threads) for threads in (0, 2048, 64, 128, 64, 256, 32)])
    assert [name is None for name in names] == [True, True, False, False, False, False, False]
    assert [candidates.time(name) for name in filter(None, names)] == [None, None, None, None, (1e-6,)]
    assert candidates.fastest[1].kernel.threads == 32
    told = candidates.as_json()
    assert told["trials"] == 7 and [(each["kind"], each["count"]) for each in told["refused"]] == list(
        zip(KINDS, (1, 1, 1, 2, 1))
    )
    reasons = [each["reason"] for each in told["refused"]]
    assert "one CUDA kernel" in reasons[0] and "2048 threads per block" in reasons[1]
    assert reasons[2] == "a launch takes 7 s" and reasons[4] == "too many resources requested"
    assert reasons[3] == "does not verify: C[0, 0] is nan, not 1 in MetaSchedule trial 3"


def test_nvcc_has_no_more_time_than_with_tvms_own_builder(monkeypatch):
    go, candidates = threading.Event(), searching()
    monkeypatch.setattr(tuners_candidates, "BUILD_S", 0.05)
    monkeypatch.setattr(tuners_candidates, "compile_kernel", lambda kernel: go.wait(60))
    assert candidates.build([scheduled(32)]) == [None]
    go.set()
    assert candidates.refused == [
        ("not compiled by nvcc", f"{METASCHEDULE} trial 1: nvcc takes longer than 0.05 s")
    ]


def test_a_batch_has_the_time_of_its_candidates_on_few_processors(monkeypatch):
    given = []
    monkeypatch.setattr(tuners_candidates, "processors", lambda: 2)
    monkeypatch.setattr(tuners_candidates, "compile_kernel", lambda kernel: kernel)
    monkeypatch.setattr(tuners_candidates, "wait", lambda jobs, most: given.append(most) or wait(jobs))
    assert None not in searching().build([scheduled(32), scheduled(64), scheduled(32)])
    assert given == [2 * tuners_candidates.BUILD_S]


@pytest.fixture
def few(monkeypatch):
    """A smaller population takes less time. It still holds enough candidates that have not been tried."""
    monkeypatch.setattr(tuners_metaschedule, "POPULATION", 128)


@pytest.mark.slow
def test_metaschedule_searches_by_its_own_rules(few):
    """Every candidate is right on the CPU machine; the one with the most threads is taken for the fastest."""
    seen, times, workload = [], [], Gemm(64, 32, 16)

    def timer(binary):
        verify([compile_kernel(binary.kernel)], workload)
        times.append(1 / binary.kernel.threads)
        return times[-1:]

    candidates = Candidates(ARCH, timer, 20, lambda found: seen.append((found.tried, len(found.refused))))
    tuners_metaschedule.search("sgemm", workload, candidates)
    assert seen == [(16, 0), (20, 0)] and len(times) == 20 and candidates.fastest[0] == min(times)


@pytest.mark.slow
@pytest.mark.parametrize("error", [KeyboardInterrupt, BadInput("no such thing")], ids=str)
def test_what_ends_a_search_is_raised_as_it_is(error, few):
    def timer(binary):
        raise error

    with pytest.raises(error if isinstance(error, type) else type(error)):
        tuners_metaschedule.search("sgemm", Gemm(64, 32, 16), Candidates(ARCH, timer, 16))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(128, 128, 64), (200, 136, 88)], ids=str)
def test_dlight_takes_tensor_cores_for_half_precision_and_leaves_our_own_kernels_as_they_are(shape):
    workload = HalfGemm(*shape)
    ours = find_one("hgemm/mma_multistage", "test")
    before = lower(ours, WHOLE_HALF, ARCH).source
    kernel, rule = dlight_kernel("hgemm", workload, ARCH)
    assert (
        rule == "MatmulTensorization" and "wmma::mma_sync" in kernel.source and kernel.dynamic_shared == 73728
    )
    verify([compile_kernel(kernel)], workload)
    assert lower(ours, WHOLE_HALF, ARCH).source == before
