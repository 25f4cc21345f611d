"""Launches that begin while the one before still runs: which kernels may, and that ours wait in machine code,
too."""

import re
from itertools import product

import pytest
from layers import layers

from tir_schedules.compiler.dependent_launch import begins_early
from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.sass import disassemble
from tir_schedules.compiler.twin import load_fixed_twin, load_twin
from tir_schedules.emit import emit_text
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.kernel import Kernel
from tir_schedules.run import launches, outcome_of
from tir_schedules.subjects.packs import load_pack, save_pack
from tir_schedules.subjects.subject import Subject
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm

HALVES = HalfGemm(72, 102, 346)
CHAINS = [
    ("hgemm/split_k:64x64,splits=3", HALVES, ["repack_both", "split_k", "split_k_sum"]),
    ("hgemm/split_k:64x64_whole,splits=1", HALVES, ["repack_both", "split_k"]),
    ("hgemm/repacked:64x64", HALVES, ["repack", "repack", "repacked"]),
    ("sgemm/split_k:32x32,splits=3", Gemm(36, 52, 200), ["split_k", "split_k_sum"]),
    ("sgemm/split_k:64x64,splits=3", Gemm(36, 51, 200), ["split_k", "split_k_sum"]),
]
MAKERS = {"schedule": lower, "twin": load_twin, "fixed twin": load_fixed_twin}
# Each kernel of ours once as a schedule and once as a twin.
QUICK = [(0, "schedule"), (0, "twin"), (2, "schedule"), (2, "twin"), (3, "schedule"), (3, "fixed twin")]
OF_MEMORY = re.compile(r"\b(?:LDG|STG|LD|ST|ATOM|ATOMG|RED|REDG|LDGSTS|UTMALDG|UTMASTG|UBLKCP)\b")


@layers("chain, make", QUICK, [*product(range(len(CHAINS)), MAKERS)])
def test_kernels_of_ours_wait_before_they_touch_memory(chain, make):
    """Also what ptxas made of them: loads of what is `const __restrict__` could go anywhere."""
    name, workload, entries = CHAINS[chain]
    kernels = launches(MAKERS[make], find(name)[0], workload, "sm_90a")
    assert [kernel.entry.partition("_")[2] for kernel in kernels] == entries
    for binary in map(compile_kernel, kernels):
        assert binary.kernel.early
        above, wait, below = disassemble(binary).partition("ACQBULK")
        assert wait and not OF_MEMORY.search(above.split(".text.")[-1]) and OF_MEMORY.search(below)


def test_a_gpu_before_sm_90_is_asked_nothing():
    rung, workload = find("sgemm/split_k:32x32,splits=3")[0], Gemm(36, 52, 200)
    for make in MAKERS.values():
        for binary in map(compile_kernel, launches(make, rung, workload, "sm_80")):
            assert "griddepcontrol" not in binary.ptx and not binary.kernel.early
    assert "griddepcontrol" not in emit_text(rung, workload, "sm_80", "cuda")


KERNEL = """
.version 8.0
.target sm_90
.visible .entry first(
	.param .u64 p
)
{
	.reg .b64 %rd<3>;
	ld.global.u32 %r1, [%rd1];
	ret;
}
.visible .entry mine(
	.param .u64 p // of what
)
.maxntid 128, 1, 1
{
	.reg .pred %p<2>;
	.loc	1 20 5, function_name $L__info_string0, inlined_at 1 34 5
	ld.param.u64 %rd1, [p];
	ABOVE
	// begin inline asm
	griddepcontrol.wait;
	// end inline asm
	ld.global.u32 %r1, [%rd1];
	ret;
}
"""
EARLY = [
    "shfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, -1;",
    "",
    "cvta.to.global.u64 %rd1, %rd1; griddepcontrol.launch_dependents;",
    "@%p1 bra $L__BB0_2;\n mbarrier.init.shared.b64 [ring], 1;\n$L__BB0_2:\n bar.sync 0;",
    "{ .reg .pred p;\n elect.sync _|p, -1;\n @p prefetch.tensormap [%rd1]; }",
]
LATE = {
    "a load": "ld.global.u32 %r1, [%rd1];",
    "a load of whatever": "ld.u32 %r1, [%rd1];",
    "a store": "@%p1 st.global.u32 [%rd1], %r1;",
    "an addition": "red.global.add.u32 [%rd1], 1;",
    "a copy": "cp.async.ca.shared.global [%r1], [%rd1], 4;",
    "a branch past the wait": "@%p1 bra $L__BB0_9;",
    "an exit": "@%p1 exit;",
    "a return": "@%p1 ret;",
    "a call": "call.uni f, ();",
    "a wait for some": "@%p1",
    "a wait that is a comment": "ld.global.u32 %r1, [%rd1]; // griddepcontrol.wait;\n",
}


@pytest.mark.parametrize("above", EARLY)
def test_what_touches_no_memory_may_stand_above_the_wait(above):
    assert begins_early(KERNEL.replace("ABOVE", above), "mine")


@pytest.mark.parametrize("what", LATE)
def test_what_others_see_may_not(what):
    assert not begins_early(KERNEL.replace("ABOVE", LATE[what]), "mine")


def test_another_kernel_is_not_meant():
    text = KERNEL.replace("ABOVE", "")
    assert not begins_early(text, "first") and not begins_early(text, "other")
    assert not begins_early(text.replace("griddepcontrol.wait;", ""), "mine")


def test_a_pack_knows_it(tmp_path):
    (rung,), workload = find("sgemm/split_k:32x32,splits=3"), Gemm(36, 52, 200)
    binaries = tuple(map(compile_kernel, launches(lower, rung, workload, "sm_90")))
    save_pack([Subject("sgemm", rung.id, "schedule", workload, binaries)], {}, tmp_path / "a.zip")
    (loaded,) = load_pack(tmp_path / "a.zip").subjects
    assert [binary.kernel.early for binary in loaded.binaries] == [True, True]


def test_both_kernels_in_one_file_compile_and_are_right():
    (rung,), workload = find("sgemm/split_k:32x32,splits=3"), Gemm(36, 52, 200)
    for twin in (False, True):
        text = emit_text(rung, workload, "sm_90", "cuda", twin)
        assert text.count("griddepcontrol.wait") == 2
        compile_kernel(Kernel("both", text, "sgemm_split_k", (), (2, 2, 3), (128, 1, 1), "sm_90"))
    kernels = launches(lower, rung, workload, "sm_90")
    assert outcome_of(kernels, workload, CpuMachine(orders=2)).faults == ()
