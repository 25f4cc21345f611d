"""Every kind of finding: a kernel that has the fault is caught at its line, the same kernel without the fault
is not."""

from collections import Counter
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from finding_faults import FAULTS
from unit_kernels import OF_UNITS

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.cpu.invocation import FINDING_LIMIT
from tir_schedules.machines.cpu.ptx import UnsupportedInstruction
from tir_schedules.model.findings import KINDS, OF_SEVERAL_ORDERS
from tir_schedules.model.kernel import Kernel

THREADS = 64
HEADER = 'extern "C" __global__ void k(const float* X, float* Y, int N) {\n  const int t = threadIdx.x;\n'
TOGETHER = 5  # faults per call of nvcc

IDS = [f"{kind}: {what}" for kind, what, *_ in FAULTS]


def kernel_of(source, entry="k"):
    return Kernel("test/kernel", source, entry, ("X", "Y", "N"), (1, 1, 1), (THREADS, 1, 1), "sm_80")


def execute(binary, **options):
    arguments = {"X": np.linspace(0, 1, 64, dtype=np.float32), "Y": np.full(64, np.nan, np.float32), "N": 64}
    return CpuMachine(**options).run(binary, arguments, ("Y",)), binary.kernel


def run(body, **options):
    return execute(compile_kernel(kernel_of(HEADER + body + "\n}\n")), **options)


@lru_cache(maxsize=None)
def binaries_of(group):
    """Some of FAULTS and their repairs, as kernels of one text: body -> its binary."""
    faults = FAULTS[group * TOGETHER : (group + 1) * TOGETHER]
    bodies = [text for *_, body, fault, repair in faults for text in (body, body.replace(fault, repair))]
    entries = [f"k{number}" for number in range(len(bodies))]
    heads = [HEADER.replace(" k(", f" {entry}(") for entry in entries]
    source = "".join(f"{head}{body}\n}}\n" for head, body in zip(heads, bodies))
    compiled = compile_kernel(kernel_of(source, entries[0]))
    return {body: replace(compiled, kernel=kernel_of(source, entry)) for body, entry in zip(bodies, entries)}


@pytest.mark.parametrize("order", ["forward", "reverse"])
@pytest.mark.parametrize("kind, what, body, fault, repair", FAULTS, ids=IDS)
def test_a_fault_is_found_and_its_absence_is_not(kind, what, body, fault, repair, order):
    assert body.count(fault) == 1
    binaries = binaries_of(IDS.index(f"{kind}: {what}") // TOGETHER)
    execution, kernel = execute(binaries[body], warp_order=order, budget=100_000)
    finding = next((finding for finding in execution.findings if finding.kind == kind), None)
    assert finding, execution.findings
    assert finding.kernel == kernel.label and 0 <= finding.warp < 2 and 0 <= finding.lane < 32
    assert finding.location.file == "test_kernel.cu" and finding.location.ptx_line > 0
    assert (
        finding.location.text
        and kernel.source.split("\n")[finding.location.line - 1].strip() == finding.location.text
    )

    execution, _ = execute(binaries[body.replace(fault, repair)], warp_order=order, budget=100_000)
    assert execution.findings == ()


def test_every_kind_has_its_faulty_kernel():
    assert {fault[0] for fault in FAULTS} == KINDS.keys() - {*OF_SEVERAL_ORDERS} - OF_UNITS


def one(body, kind="out_of_bounds", **options):
    return next(finding for finding in run(body, **options)[0].findings if finding.kind == kind)


def test_the_element_and_the_size_of_the_buffer_are_named():
    finding = one("Y[t] = X[t + 3];")
    assert "reads 4 bytes of X[64], out of bounds; X has 64 elements" in finding.message
    assert (finding.warp, finding.lane, finding.count) == (1, 29, 3)
    assert "X[-1]" in one("Y[t] = X[t - 1];").message


MATRIX = """\
__shared__ __align__(16) float s[64];
{}
unsigned r, row = (unsigned)__cvta_generic_to_shared(s + t % 8 * 4);
asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%0}}, [%1];" : "=r"(r) : "r"(row) : "memory");
{}
s[31 - t % 32] = t;
__syncthreads();
Y[t] = r + s[t];
"""


def matrix_kinds(before, after="", threads=32):
    binary = compile_kernel(kernel_of(HEADER + MATRIX.format(before, after) + "}"))
    execution, _ = execute(replace(binary, kernel=replace(binary.kernel, block=(threads, 1, 1))))
    return {finding.kind for finding in execution.findings}


@pytest.mark.parametrize("barrier", ["__syncwarp();", 'asm volatile("bar.sync 1, 32;" ::: "memory");'])
def test_no_lane_overwrites_too_early_what_ldmatrix_reads(barrier):
    """Because no lane leaves it before all have read. What is stored before still needs a barrier."""
    assert matrix_kinds(f"s[t] = t; {barrier}") == set()
    assert "lockstep" in matrix_kinds(f"{barrier} s[t] = t;")
    assert "lockstep" in matrix_kinds(f"s[t] = t; {barrier}", "r += s[t ^ 1];")
    if "bar" not in barrier:
        assert matrix_kinds(f"s[t] = t; {barrier}", threads=64) == {"race"}


def test_a_loop_whose_bound_was_read_out_of_bounds_is_not_followed_to_its_end():
    body = "unsigned most = __float_as_uint(X[t + 64]) - 1, x = t;\n"
    body += "for (unsigned i = 0; i < most; ++i) x = x * 1664525 + 1013904223 ^ i;\nY[t] = x;"
    execution, _ = run(body, budget=1 << 26)
    assert "where a GPU ends the kernel" in execution.findings[-1].message, execution.findings
    assert execution.findings[0].kind == "out_of_bounds"
    found = one(body.replace("t + 64", "t").replace("- 1,", "- 2147483648u,"), "endless_loop", budget=1 << 20)
    assert "instruction budget" in found.message


def test_a_race_names_both_lines():
    finding = one("__shared__ float s[64];\ns[t] = X[t];\nY[t] = s[63 - t];", "race")
    lines = {finding.location.text} | {
        part for part in ("s[t] = X[t];", "Y[t] = s[63 - t];") if part in finding.message
    }
    assert lines == {"s[t] = X[t];", "Y[t] = s[63 - t];"}


def test_no_kind_of_finding_hides_another():
    unwritten = "\n".join(f"a += s[{100 + line}];" for line in range(FINDING_LIMIT + 10))
    execution, _ = run(
        f"__shared__ float s[1024];\nfloat a = 0;\n{unwritten}\ns[t] = a + X[t];\nY[t] = s[63 - t];"
    )
    kinds = Counter(finding.kind for finding in execution.findings)
    assert kinds["uninitialized"] == FINDING_LIMIT and kinds["race"] and execution.findings[0].kind == "race"


def test_causes_stand_before_their_effects():
    """Not in the order of the alphabet, nor of time."""
    execution, _ = run("Y[t / 2] = X[t];\n__shared__ float s[64];\ns[t] = X[t + 1];\nY[t / 2] = s[63 - t];")
    kinds = dict.fromkeys(finding.kind for finding in execution.findings)
    assert list(kinds) == ["race", "out_of_bounds", "overlapping_writes", "uninitialized"]


def test_what_an_earlier_block_left_in_shared_memory_is_not_written():
    source = HEADER + (
        "__shared__ float s[64];\nif (blockIdx.x < N / 8) s[t] = X[t];\n__syncthreads();\n"
        "Y[blockIdx.x * 64 + t] = s[t];\n}\n"
    )
    kernel = Kernel("test/kernel", source, "k", ("X", "Y", "N"), (16, 1, 1), (THREADS, 1, 1), "sm_80")
    arguments = {"X": np.zeros(64, np.float32), "Y": np.zeros(16 * 64, np.float32), "N": 64}
    binary = compile_kernel(kernel)
    found = [finding.kind for finding in CpuMachine().run(binary, arguments, ("Y",)).findings]
    assert found == ["uninitialized"]
    assert not CpuMachine().run(binary, arguments | {"N": 8 * 16}, ("Y",)).findings


def test_findings_of_an_unrolled_loop_are_one():
    body = (
        "__shared__ float s[1024];\nfloat a = 0;\n#pragma unroll\nfor (int i = 0; i < 40; ++i) a += s[t + 9 *"
        " i];\nY[t] = a;"
    )
    assert [(finding.kind, finding.count) for finding in run(body)[0].findings] == [
        ("uninitialized", 40 * THREADS)
    ]


def test_a_finding_in_brief_says_what_the_other_access_does():
    finding = one("__shared__ float s[64];\ns[t] = X[t];\nY[t] = s[63 - t];", "race")
    places = {"test_kernel.cu:4 writes", "test_kernel.cu:5 reads"}
    assert (
        any(place in finding.brief for place in places)
        and finding.other.place in finding.brief
        and finding.other_warp == 1 - finding.warp
    )


def test_an_instruction_that_is_not_known_names_its_source_line():
    with pytest.raises(
        UnsupportedInstruction, match=r"test/kernel: PTX line \d+ \(test_kernel\.cu:4\): .*pm0"
    ):
        run('unsigned x;\nasm volatile("mov.u32 %0, %%pm0;" : "=r"(x));\nY[t] = x;')


def test_a_block_is_named():
    source = (
        HEADER
        + "const int i = blockIdx.y * 128 + blockIdx.x * 64 + t;\nY[i % N] = X[i < 200 ? i % N : i];\n}\n"
    )
    kernel = Kernel("test/kernel", source, "k", ("X", "Y", "N"), (2, 2, 1), (THREADS, 1, 1), "sm_80")
    arguments = {"X": np.zeros(64, np.float32), "Y": np.zeros(64, np.float32), "N": 64}
    findings = CpuMachine().run(compile_kernel(kernel), arguments, ("Y",)).findings
    assert [finding.kind for finding in findings] == ["out_of_bounds", "overlapping_writes"]
    assert findings[0].block == (1, 1, 0)


def test_inputs_survive_a_store_to_them():
    kernel = Kernel(
        "k",
        HEADER + "const_cast<float*>(X)[t] = 7;\nY[t] = 1;\n}\n",
        "k",
        ("X", "Y", "N"),
        (1, 1, 1),
        (64, 1, 1),
        "sm_80",
    )
    arguments = {"X": np.zeros(64, np.float32), "Y": np.zeros(64, np.float32), "N": 64}
    CpuMachine().run(compile_kernel(kernel), arguments, ("Y",))
    assert not arguments["X"].any() and arguments["Y"].all()


def test_who_wrote_an_element():
    execution, kernel = run("if (t < 32) Y[t] = X[t];")
    assert execution.writer("Y", 5).text == "if (t < 32) Y[t] = X[t];"
    assert execution.writer("Y", 40) is None
    assert [location.text for location in execution.writers("Y")] == ["if (t < 32) Y[t] = X[t];"]
