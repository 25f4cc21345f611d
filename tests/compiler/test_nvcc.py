"""Real compilations: resources, line information, reproducible PTX, and nvcc's complaints as errors of one
kind."""

import os
import re
from dataclasses import replace

import pytest
from killing import slow_nvcc

from tir_schedules.compiler import nvcc
from tir_schedules.compiler.nvcc import check_launch, compile_kernel, compile_kernels, file_name
from tir_schedules.compiler.sass import disassemble, only
from tir_schedules.compiler.toolchain import Toolchain, find_toolchain
from tir_schedules.errors import BadInput, CheckFailed, MissingTool
from tir_schedules.model.kernel import Kernel, Resources

REVERSE = """\
extern "C" __global__ void __launch_bounds__(256) reverse(float* a, int n) {
  __shared__ float tile[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  tile[threadIdx.x] = i < n ? a[i] : 0.f;
  __syncthreads();
  if (i < n) a[i] = tile[255 - threadIdx.x];
}
"""

SPILLING = """\
extern "C" __global__ void reverse(float* a) { a[0] = 1.f; }

extern "C" __global__ void __launch_bounds__(1024, 2) spilling(float* a, int n) {
  float value[128];
#pragma unroll
  for (int i = 0; i < 128; i++) value[i] = a[i * 1024 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 128; i++) a[i * n] = value[i] - 2 * value[127 - i];
}
"""

STATIC_FUNCTIONS = """\
#include <cuda_fp16.h>
namespace { __device__ int hidden; }
static __device__ __noinline__ float scaled(float x, int* exponent) { return ldexpf(x, *exponent); }
extern "C" __global__ void reverse(float* a, __half* h) {
  int exponent = threadIdx.x;
  a[threadIdx.x] = scaled(a[threadIdx.x], &exponent);
  hidden = exponent;
  h[0] = __float2half(a[1]);
}
"""


@pytest.fixture(scope="module", autouse=True)
def cache_folder(tmp_path_factory):
    """One cache for this file, in a folder whose name needs quoting."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache of nvcc's")
        patch.setenv("TIR_SCHEDULES_CACHE", str(folder))
        yield folder


def kernel(source: str = REVERSE, **how) -> Kernel:
    launch = {"grid": (4, 1, 1), "block": (256, 1, 1), "arch": "sm_80"}
    return Kernel(
        "sgemm/reverse (tir)", source, **{"entry": "reverse", "params": ("a", "n"), **launch, **how}
    )


def refused(kernel: Kernel, error: type[Exception] = CheckFailed) -> list[str]:
    """The lines of the error that compiling the kernel raises."""
    with pytest.raises(error) as caught:
        compile_kernel(kernel)
    return str(caught.value).splitlines()


def test_a_kernel_becomes_ptx_and_cubin_with_its_resources():
    binary = compile_kernel(kernel())
    assert binary.kernel == kernel()
    assert ".visible .entry reverse(" in binary.ptx and ".target sm_80" in binary.ptx
    assert binary.cubin[:4] == b"\x7fELF"
    assert binary.resources == Resources(binary.resources.registers, shared=1024, barriers=1)
    assert 4 <= binary.resources.registers <= 16


def test_line_information_counts_the_lines_of_the_source():
    ptx = compile_kernel(kernel()).ptx
    assert re.findall(r"\.file\s+(.*)", ptx) == ['1 "sgemm_reverse_tir.cu"']
    barrier = REVERSE.splitlines().index("  __syncthreads();") + 1
    assert re.search(rf"\.loc\s+1 {barrier} \d+\n\s*bar\.sync", ptx)


def test_file_names():
    assert file_name(kernel()) == "sgemm_reverse_tir.cu"
    assert file_name(replace(kernel(), label="hgemm/wmma[64x64,2] (twin)")) == "hgemm_wmma_64x64_2_twin.cu"


def test_spills_are_those_of_the_kernel_asked_for():
    spilling = kernel(SPILLING, entry="spilling", block=(1024, 1, 1))
    resources = compile_kernel(spilling).resources
    assert resources.registers == 32 and resources.barriers == 1 and resources.shared == 0
    assert min(resources.stack, resources.spill_stores, resources.spill_loads) > 100
    other = compile_kernel(kernel(SPILLING)).resources
    assert (other.stack, other.spill_stores, other.spill_loads, other.barriers) == (0, 0, 0, 0)


def test_the_same_source_gives_the_same_ptx_and_cubin_in_any_folder(monkeypatch, tmp_path):
    binaries = []
    for folder in ("one", "two"):
        monkeypatch.setenv("TIR_SCHEDULES_CACHE", str(tmp_path / folder))
        binaries.append(compile_kernel(kernel(STATIC_FUNCTIONS)))
        (source,) = (tmp_path / folder).glob("*/*.cu")
        assert source.read_text() == STATIC_FUNCTIONS
        assert source.stat().st_mtime == 0, "this time is in the cubin"
    one, two = binaries
    assert one.ptx == two.ptx and one.cubin == two.cubin
    for text in (one.ptx.encode(), one.cubin):
        assert (
            str(tmp_path).encode() not in text and b".building" not in text and b"site-packages" not in text
        )
    names = re.findall(r'\.file\s+\d+ "(.*)"', one.ptx)
    assert names[0] == "sgemm_reverse_tir.cu" and "cuda_fp16.hpp" in names
    assert "__float2half" in line_table_names(one.ptx) and "_INTERNAL_00000000_" in line_table_names(one.ptx)


def line_table_names(ptx: str) -> str:
    """What the character codes in .debug_str spell."""
    codes = re.findall(r"\d+", re.sub(r"\.b8", "", ptx.partition(".debug_str")[2]))
    return "".join(map(chr, map(int, codes[1:])))


def test_an_nvcc_that_writes_nothing(monkeypatch, tmp_path):
    nvcc_path, _ = slow_nvcc(tmp_path)
    nvcc_path.write_text(nvcc_path.read_text().replace("sleep 60", "exit 0"))
    monkeypatch.setenv("TIR_SCHEDULES_NVCC", str(nvcc_path))
    monkeypatch.setenv("TIR_SCHEDULES_CACHE", str(tmp_path / "cache"))
    with pytest.raises(
        MissingTool,
        match="nvcc reports no error, and does not write kernel.ptx: set TIR_SCHEDULES_NVCC to an nvcc",
    ):
        compile_kernel(kernel())
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_warm_cache_needs_no_compiler_run(monkeypatch):
    cold = compile_kernel(kernel())
    monkeypatch.setattr(nvcc.processes, "run", lambda *_, **__: pytest.fail("compiled again"))
    assert compile_kernel(kernel()) == cold


@pytest.mark.parametrize(
    "change",
    [{"arch": "sm_90"}, {"source": REVERSE.replace("0.f", "1.f")}, {"label": "sgemm/reverse (twin)"}],
)
def test_what_changes_the_result_is_part_of_the_key(change):
    cold = compile_kernel(kernel())
    assert compile_kernel(replace(kernel(), **change)).cubin != cold.cubin


def test_flags_of_the_environment_do_not_change_the_result(monkeypatch, tmp_path):
    divide = kernel('extern "C" __global__ void reverse(float* a) { a[0] /= a[1]; }')
    plain = compile_kernel(divide)
    assert "div.rn.f32" in plain.ptx
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "--use_fast_math")
    monkeypatch.setenv("NVCC_PREPEND_FLAGS", "-maxrregcount=16")
    monkeypatch.setenv("TIR_SCHEDULES_CACHE", str(tmp_path))
    assert compile_kernel(divide) == plain


def test_temporary_files_of_nvcc_stay_in_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", "/nowhere")
    monkeypatch.setenv("TIR_SCHEDULES_CACHE", str(tmp_path))
    assert compile_kernel(kernel()).cubin
    files = {path.name for path in tmp_path.glob("*/*")}
    assert files == {"sgemm_reverse_tir.cu", "kernel.ptx", "kernel.cubin", "ptxas.txt", "manifest.json"}


def test_several_at_a_time_come_in_order():
    kernels = [kernel(REVERSE.replace("0.f", f"{number}.f")) for number in range(4)]
    binaries = compile_kernels(kernels)
    assert [binary.kernel for binary in binaries] == kernels
    assert len({binary.ptx for binary in binaries}) == 4


def test_broken_source_shows_nvccs_lines():
    lines = refused(kernel(REVERSE.replace("tile[255", "tyle[255").replace("int n", "int m"), arch="sm_86"))
    assert re.fullmatch(r"sgemm/reverse \(tir\): nvcc \d+\.\d+\.\d+ does not compile it for sm_86:", lines[0])
    assert lines[1:] == [
        '  sgemm_reverse_tir.cu(4): error: identifier "n" is undefined',
        '  sgemm_reverse_tir.cu(6): error: identifier "tyle" is undefined',
    ]


def test_many_errors_are_cut_short():
    statements = "\n".join(f"undeclared{number} = 1;" for number in range(30))
    lines = refused(kernel(f'extern "C" __global__ void reverse(float* a) {{\n{statements}\n}}'))
    assert len(lines) == 1 + nvcc.LINES_SHOWN + 1
    assert lines[-1] == "  ... and 20 more lines"


def test_what_only_the_preprocessor_sees():
    assert (
        "sgemm_reverse_tir.cu:1:10: fatal error: nothing.h"
        in refused(kernel('#include "nothing.h"\n' + REVERSE))[1]
    )


def test_an_error_of_ptxas_names_the_cuda_line():
    source = REVERSE.replace(
        "__syncthreads();", '__syncthreads(); asm volatile("cp.async.bulk.commit_group;");'
    )
    complaint = refused(kernel(source))[1]
    assert complaint.startswith("  sgemm_reverse_tir.cu(5): error") and "requires .target sm_90" in complaint


@pytest.mark.parametrize(
    "source", ["", REVERSE.replace('extern "C"', ""), SPILLING.replace("reverse(", "other(")]
)
def test_a_source_without_the_kernel(source):
    (line,) = refused(kernel(source))
    assert line.startswith(
        'sgemm/reverse (tir): the source has no extern "C" __global__ function named reverse'
    )
    assert ("; what it has is " in line) == bool(source)


def test_too_many_threads():
    assert refused(kernel(block=(32, 32, 2))) == [
        "sgemm/reverse (tir): 2048 threads per block; CUDA allows 1024"
    ]


def test_too_many_threads_along_z():
    assert refused(kernel(block=(1, 1, 65))) == [
        "sgemm/reverse (tir): blocks of 1,1,65; CUDA allows 1,1,1 to 1024,1024,64"
    ]


def test_too_much_static_shared_memory():
    lines = refused(kernel(REVERSE.replace("tile[256]", "tile[25600]")))
    assert "uses too much shared data (0x19000 bytes, 0xc000 max)" in lines[1]


def test_too_much_dynamic_shared_memory_even_when_the_code_is_cached():
    assert compile_kernel(kernel(dynamic_shared=(163 << 10) - 1024)).resources.shared == 1024
    (line,) = refused(kernel(dynamic_shared=(163 << 10) - 1023))
    assert "166913 bytes of shared memory per block; sm_80 has 166912" in line
    assert compile_kernel(kernel(dynamic_shared=200 << 10, arch="sm_90a"))


def test_registers_are_given_to_four_warps_at_a_time():
    """Nine warps of 5632 registers would fit into 65536, but two in each quarter are eight."""
    with pytest.raises(CheckFailed, match="176 registers x 288 threads"):
        check_launch(kernel(block=(288, 1, 1)), Resources(176, 0))
    check_launch(kernel(block=(288, 1, 1)), Resources(168, 0))
    with pytest.raises(CheckFailed, match="2048 threads per block"):  # which is told first
        check_launch(kernel(block=(64, 32, 1)), Resources(176, 0))


def test_more_registers_than_a_block_has():
    source = SPILLING.replace("__launch_bounds__(1024, 2)", "")
    assert compile_kernel(kernel(source, entry="spilling", block=(256, 1, 1))).resources.registers > 64
    (line,) = refused(kernel(source, entry="spilling", block=(1024, 1, 1)))
    assert re.search(r"\d+ registers x 1024 threads .* 65536 .* use __launch_bounds__\(1024\)", line)


def test_an_unknown_architecture():
    (line,) = refused(kernel(arch="sm_81"), BadInput)
    assert "does not know sm_81: did you mean sm_80?" in line


def test_no_gcc(monkeypatch, tmp_path):
    monkeypatch.setenv("TIR_SCHEDULES_NVCC", str(find_toolchain().nvcc))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("NVCC_CCBIN", raising=False)
    (line,) = refused(kernel(REVERSE + "// not compiled before\n"), MissingTool)
    assert "gcc" in line and "install g++" in line


STAND_IN = """
case "$*" in
  *--version* | *--list-gpu-code* | *--help*) echo V13.0.1 sm_80 ;;
  *) cat "$(dirname "$0")/said" >&2; exit 1 ;;
esac
"""


@pytest.mark.parametrize(
    "said, error, explained",
    [
        ("host_config.h(149): error: #error -- unsupported GNU version! gcc versions later than 15 are not"
         " supported!",
         MissingTool, "gcc versions later than 15 are not supported; install an older g++"),
        ("gcc: fatal error: cannot execute 'cc1plus': execvp: No such file or directory", MissingTool,
         "install g++"),
        ("ptxas x.ptx, line 9; fatal   : Unsupported .version 9.5; current version is '9.0'",
         MissingTool, "come from different CUDA releases: pip install"),
        ("x.cpp: fatal error: error writing: No space left on device", MissingTool,
         "no space left for the cache"),
        ("Segmentation fault", CheckFailed, "Segmentation fault"),
        ("", CheckFailed, "nvcc says nothing"),
    ],
)  # fmt: skip
def test_other_complaints(monkeypatch, tmp_path, said, error, explained):
    """A stand-in for nvcc that knows sm_80 and fails; these complaints need machines set up wrongly."""
    stand_in = tmp_path / "nvcc"
    stand_in.write_text(f"#!/bin/sh\n{STAND_IN}")
    stand_in.chmod(0o755)
    (tmp_path / "said").write_text(said)
    monkeypatch.setenv("TIR_SCHEDULES_NVCC", str(stand_in))
    assert explained in "\n".join(refused(kernel(), error))


def test_a_failed_compilation_leaves_nothing_behind(monkeypatch, tmp_path):
    monkeypatch.setenv("TIR_SCHEDULES_CACHE", str(tmp_path))
    refused(kernel("not CUDA"))
    assert os.listdir(tmp_path) == []


def test_sass_names_source_lines_and_is_cached(monkeypatch):
    binary = compile_kernel(kernel())
    sass = disassemble(binary)
    assert re.search(r'//## File "sgemm_reverse_tir.cu", line 5\n.*BAR\.SYNC', sass)
    monkeypatch.setattr(nvcc.processes, "run", lambda *_, **__: pytest.fail("disassembled again"))
    assert disassemble(binary) == sass


def test_a_cubin_nvdisasm_cannot_read():
    unreadable = replace(compile_kernel(kernel()), cubin=b"no cubin")
    with pytest.raises(
        MissingTool, match=r"sgemm/reverse \(tir\): .*nvdisasm .* cannot read the cubin .*: install"
    ):
        disassemble(unreadable)


def test_no_nvdisasm(monkeypatch):
    binary = compile_kernel(kernel())
    monkeypatch.setattr(Toolchain, "candidates", lambda self, name: iter(()))
    with pytest.raises(MissingTool, match="nvdisasm not found: pip install"):
        disassemble(binary)


def test_only_the_kernel_and_what_it_calls_are_disassembled():
    heading = "//--------------------- .text.{}              --------------------------\n"
    parts = {
        "other": "/*0000*/ EXIT ;\n",
        "mine": "/*0000*/ CALL.ABS.NOINC `(helper) ;\n",
        "helper": "/*0000*/ RET.REL.NODEC R4 `(mine) ;\n",
    }
    text = ".target sm_80\n" + "".join(heading.format(name) + code for name, code in parts.items())
    kept = only(text, "mine")
    assert "CALL.ABS" in kept and "RET.REL" in kept and "EXIT" not in kept and kept.startswith(".target")
    assert only(text, "missing") == text
