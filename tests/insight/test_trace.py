"""What a schedule's states become: lowered, compiled, executed and judged one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tir_schedules.compiler.lower import lower, scheduled
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.source_text import kernel_part
from tir_schedules.errors import BadInput
from tir_schedules.insight.metrics.counting import SHARED, metrics_of
from tir_schedules.insight.trace import states as module
from tir_schedules.insight.trace.states import short_reason, trace
from tir_schedules.ladders.registry import find, find_one
from tir_schedules.machines.cpu import CpuMachine, UnsupportedInstruction
from tir_schedules.model.launch import Launch
from tir_schedules.run import launches
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction

ARCH = "sm_80"


def traced(name, workload):
    (rung,) = find(name)
    return trace(rung, workload, ARCH)


def rows(sch, gemm, config):
    """A row of C per block, an element per thread; the row of A through shared memory, at last an element per
    thread as well."""
    gemm_block = sch.get_sblock("C")
    row = sch.cache_read(gemm_block, 0, "shared")
    i, j, k = sch.get_loops(gemm_block)
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    sch.decompose_reduction(gemm_block, k)
    sch.compute_at(row, j)
    sch.bind(sch.get_loops(row)[-1], "threadIdx.x")


@pytest.fixture(scope="module")
def tiles():
    """The trace of a schedule that copies to shared memory, with two warps."""
    rung = replace(
        find("sgemm/naive")[0],
        schedule=rows,
        launch=lambda gemm, config: Launch((gemm.m, 1, 1), (gemm.n, 1, 1)),
    )
    return trace(rung, Gemm(2, 64, 64), ARCH)


def after(found, call):
    """The first state after a step whose call begins so."""
    return next(state for state in found.states[1:] if state.step.call.startswith(call))


def test_before_loops_are_bound_there_is_no_kernel(tiles):
    unbound = tiles.states[: tiles.first_kernel]
    assert [
        state.step and state.step.primitive for state in (*unbound, tiles.states[tiles.first_kernel])
    ] == [None, "cache_read", "bind"]
    assert {state.reason for state in unbound} == {
        "no kernel yet: loops are not bound to the blocks and threads of the GPU"
    }
    assert not any(state.cuda or state.measured for state in unbound)


def test_a_buffer_that_is_filled_outside_the_kernel_is_its_parameter_and_outputs_are_not_judged(tiles):
    outside, inside = after(tiles, "C_init = sch.decompose_reduction"), after(tiles, "sch.compute_at")
    assert (
        outside.measured.outside == ("A_shared",)
        and outside.measured.right is None
        and not outside.metrics.findings
    )
    assert "A_shared_ptr" in outside.cuda.splitlines()[0] and not outside.metrics.access(*SHARED).requests
    assert inside.measured.outside == () and "__shared__ alignas(64) float A_shared_ptr[64];" in inside.cuda


def test_a_copy_that_every_thread_makes_is_told_of_until_its_loop_is_bound(tiles):
    alone, shared = after(tiles, "sch.compute_at"), tiles.states[-1]
    kinds = {finding.kind for finding in alone.metrics.findings}
    assert "same_value" in kinds and not shared.metrics.findings
    assert alone.metrics.access("shared_store").cost == 64 * shared.metrics.access("shared_store").cost


def test_the_last_state_is_the_rung(tiles):
    (kernel,) = launches(lower, tiles.rung, tiles.workload, ARCH)
    last = tiles.states[-1]
    assert last.cuda == kernel_part(kernel.source, kernel.entry)[1] and last.measured.binary.kernel == kernel
    assert [last.metrics] == metrics_of([compile_kernel(kernel)], tiles.workload)
    assert tiles.right and last.measured.right


def test_steps_that_leave_the_cuda_as_it_is_share_what_was_measured():
    found = traced("reduce/cross_thread", Reduction(4096))
    again = after(found, "sch.reorder(ax2")
    assert again.repeats and again.same == after(found, "sch.set_scope").number
    assert again.measured is found.states[again.same].measured and again.tir != found.states[again.same].tir


def test_threads_in_the_algorithm_make_a_kernel_of_it_at_once():
    found = traced("reduce/divergent", Reduction(2000))
    assert found.first_kernel == 0 and found.states[0].measured.right and found.right
    assert found.states[0].metrics.binary.kernel.grid == (8, 1, 1)


def test_copies_of_matrices_are_arrays_of_the_launch():
    (rung,), gemm = find("hgemm/repacked:64x64,line=128"), HalfGemm(64, 64, 72)
    kernel = module.kernel_of(scheduled(rung, gemm).mod, rung, gemm, "sm_90a")
    assert kernel.workspaces == (("A_rows", (64, 128)), ("B_rows", (64, 128)))


def test_an_intermediate_state_that_computes_something_else_is_wrong():
    def schedule(sch, gemm, config):
        i, j, k = sch.get_loops(sch.get_sblock("C"))
        sch.bind(i, "threadIdx.x")
        sch.bind(j, "blockIdx.x")
        sch.annotate(k, "pragma_unroll", 2)

    def emit(schedule, entry, *arguments):
        emitted = real(schedule, entry, *arguments)
        return (
            replace(emitted, source=emitted.source.replace("k < 8", "k < 7"))
            if "pragma" not in emitted.source
            else emitted
        )

    real = module.emit
    (naive,) = find("sgemm/naive")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "emit", emit)
        found = trace(replace(naive, schedule=schedule), Gemm(8, 8, 8), ARCH)
    assert [state.measured.right for state in found.states[2:]] == [False, True]
    assert "elements wrong" in found.states[2].measured.wrong and not found.states[3].measured.wrong


def test_the_verdict_is_of_the_finished_schedule():
    found = traced("reduce/unrolled_warp:article", Reduction(2000))
    assert found.states[-1].measured.right and not found.right, (
        "lanes exchange data through memory without __syncwarp"
    )


def test_a_refused_schedule_is_traced_up_to_there():
    def schedule(sch, gemm, config):
        sch.bind(sch.get_loops(sch.get_sblock("C"))[0], "blockIdx.x")
        sch.vectorize(sch.get_loops(sch.get_sblock("C"))[2])

    (naive,) = find("sgemm/naive")
    found = trace(replace(naive, schedule=schedule), Gemm(8, 8, 8), ARCH)
    assert len(found.states) == 2 and found.states[1].measured.right
    assert "TVM refuses the schedule" in found.refusal and not found.right


@pytest.mark.parametrize(
    "limit, why",
    [("WARP_BUDGET", "a warp takes more than 0 instructions"), ("LOCAL_BYTES", "of local memory")],
)
def test_what_would_take_too_long_or_too_much_memory_is_compiled_but_not_judged(monkeypatch, limit, why):
    monkeypatch.setattr(module, limit, 0 if limit == "WARP_BUDGET" else -1)
    (measured,) = {state.measured for state in traced("reduce/divergent", Reduction(300)).states[:1]}
    assert (
        measured.binary.resources.registers
        and measured.metrics is None
        and measured.right is None
        and why in measured.unknown
    )


def test_what_the_cpu_machine_does_not_know_is_compiled_but_not_judged(monkeypatch):
    def run(machine, binary, *arguments, **options):
        raise UnsupportedInstruction(f"{binary.kernel.label}: PTX line 7: the CPU machine does not know dp2a")

    monkeypatch.setattr(CpuMachine, "run", run)
    state = traced("reduce/divergent", Reduction(300)).states[0]
    assert (
        state.measured.unknown == "not executed: PTX line 7: the CPU machine does not know dp2a"
        and not state.reason
    )


@pytest.mark.parametrize("inner, outer", [("threadIdx.x", "blockIdx.x"), ("blockIdx.x", "threadIdx.x")])
def test_a_kernel_in_loops_of_the_host_is_shown_but_not_executed(inner, outer):
    """It takes their variables."""

    def schedule(sch, gemm, config):
        i, j, _ = sch.get_loops(sch.get_sblock("C"))
        sch.bind(j, inner)
        sch.bind(i, outer)

    found = trace(replace(find_one("sgemm/naive", "trace"), schedule=schedule), Gemm(8, 8, 8), ARCH)
    _, part, whole = found.states[-3:]
    assert part.measured.binary.kernel.params[-1] == "i" and "int i)" in part.cuda
    assert part.measured.right is None and not part.metrics
    assert part.measured.unknown == "not executed: the host launches it once for each i"
    assert whole.measured.right and not whole.measured.unknown and found.right


def test_an_architecture_is_checked_before_anything_is_made():
    with pytest.raises(BadInput, match="needs sm_80"):
        trace(find("sgemm/multistage")[0], Gemm(64, 64, 64), "sm_75")
    with pytest.raises(BadInput, match="occupancy rules of 'sm_999'"):
        trace(find("sgemm/naive")[0], Gemm(64, 64, 64), "sm_999")


@pytest.mark.parametrize(
    "message, reason",
    [
        (
            "Entry function 'k' uses too much shared data (0x20000 bytes, 0xc000 max)",
            "131,072 bytes of static shared memory; 49,152",
        ),
        (
            "k: 200000 bytes of shared memory per block; sm_80 has 166912",
            "would need 200,000 bytes of shared memory; sm_80 has 166,912",
        ),
        ("k: 2048 threads per block; CUDA allows 1024", "would have 2,048 threads; 1,024 is the limit"),
        (
            "Check failed: (x.count(y)) is false: Cannot find shape of the wmma fragment A_frag",
            "A_frag is a tensor-core fragment",
        ),
        (
            'k.cu(7): error: no operator "=" matches these operands',
            "not every use of them is tensorized yet",
        ),
        ("Check failed: (a == b) is false: something new", "something new"),
        ("several lines\nk.cu(3): error: no such thing\nmore", "k.cu(3): error: no such thing"),
    ],
)
def test_reasons_are_one_plain_line(message, reason):
    assert reason in short_reason(message) and "\n" not in short_reason(message)


# Of each ladder those that have all primitives of the rungs between them.
TRACED = [
    (find_one(f"{family}/{name}", "trace"), workload)
    for family, names, workload in (
        ("sgemm", "naive serpentine multistage", Gemm(128, 128, 32)),
        ("reduce", "divergent unrolled_warp vectorized", Reduction(1 << 13)),
        ("hgemm", "wmma_padded", HalfGemm(128, 128, 64, "nn")),
        ("hgemm", "mma_multistage", HalfGemm(256, 128, 128, "nn")),
    )
    for name in names.split()
]
"""On little: a state in which a thread does the work of a block takes long."""


@pytest.mark.slow
@pytest.mark.parametrize("rung, workload", TRACED, ids=[rung.id for rung, _ in TRACED])
def test_rungs_can_be_traced(rung, workload):
    found = trace(rung, workload, ARCH)
    assert found.right and found.first_kernel is not None
    reasons = {state.reason for state in found.states}
    assert not any(word in reason for reason in reasons for word in ("Check failed", "rror")), reasons
    assert found.states[-1].metrics.access(*SHARED).ideal <= found.states[-1].metrics.access(*SHARED).cost
