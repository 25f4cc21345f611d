"""From schedules to kernels: what comes out, and which schedules are refused."""

import importlib.util
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tir_schedules.compiler import twin
from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.toolchain import find_toolchain
from tir_schedules.compiler.twin import load_source, load_twin
from tir_schedules.errors import CheckFailed
from tir_schedules.ladders.registry import every_rung, find, ladder
from tir_schedules.ladders.sgemm import offered
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import Rung
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.split_gemm import float_gemm

GEMM = Gemm(64, 64, 64)


@dataclass(frozen=True)
class Config:
    pass


def rung(schedule, grid=(2, 1, 1), block=(16, 1, 1)):
    return Rung("sgemm", "test", "", "", Config(), schedule, lambda gemm, config: Launch(grid, block))


def rows_over_blocks(sch, gemm, config):
    """32 rows per block, a thread for every second row, 64 columns each."""
    i, j, k = sch.get_loops(sch.get_sblock("C"))
    block, thread, rest = sch.split(i, [None, 16, 2])
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")


def takes_any_arch(rung):
    return not rung.arch


def own(rung):
    """GEMM by the products that a rung has."""
    return float_gemm(*GEMM.shape, *offered(rung)["products"])


def test_a_kernel_knows_its_launch_and_its_parameters():
    kernel = lower(rung(rows_over_blocks), GEMM, "sm_80")
    assert (kernel.grid, kernel.block, kernel.params, kernel.dynamic_shared) == (
        (2, 1, 1),
        (16, 1, 1),
        ("A", "B", "C"),
        0,
    )
    assert kernel.entry == "sgemm_test" and kernel.label == "sgemm/test (tir)" and kernel.threads == 16


@pytest.mark.parametrize("make", [lower, load_twin], ids=["schedule", "twin"])
def test_parameters_come_in_the_order_of_the_source(make):
    for each in filter(takes_any_arch, every_rung("sgemm") if make is load_twin else ladder("sgemm")):
        kernel = make(each, own(each), "sm_80")
        (signature,) = re.findall(rf"{kernel.entry}\(([^)]*)\)\s*{{", kernel.source)
        names = [parameter.split()[-1].lstrip("*").removesuffix("_ptr") for parameter in signature.split(",")]
        given = tuple(name.removesuffix("_rows") for name in kernel.params)  # of A or B a copy
        assert tuple(names) == given and set("ABC") <= {name[0] for name in names}  # or parts of A and B


def strided_results(sch, gemm, config):
    """A thread's results are 16 columns apart; the region TVM copies back spans those of the other
    threads."""
    block = sch.get_sblock("C")
    result = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    each, thread = sch.split(j, [None, 16])
    sch.reorder(i, thread, each, k)
    sch.bind(i, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    sch.reverse_compute_at(result, thread)


def test_a_schedule_whose_regions_are_not_exact_is_refused():
    with pytest.raises(CheckFailed, match="sgemm/test: block 'C.*' lost (region_cover|stage_pipeline)"):
        lower(rung(strided_results, grid=(64, 1, 1)), GEMM, "sm_80")


def test_a_launch_that_is_not_the_declared_one_is_refused():
    with pytest.raises(CheckFailed, match="launches .*the rung declares"):
        lower(rung(rows_over_blocks, grid=(3, 1, 1)), GEMM, "sm_80")


def test_a_schedule_that_does_not_end_in_a_kernel_is_refused():
    with pytest.raises(CheckFailed, match="one CUDA kernel"):
        lower(rung(lambda sch, gemm, config: None), GEMM, "sm_80")


def test_what_tvm_refuses_is_said_in_one_line():
    with pytest.raises(CheckFailed, match="TVM refuses the schedule for 64x64x64: ") as error:
        lower(
            rung(lambda sch, gemm, config: sch.vectorize(sch.get_loops(sch.get_sblock("C"))[2])),
            GEMM,
            "sm_80",
        )
    assert "\n" not in str(error.value)


PLAIN = {("sgemm/shared_tile", lower), ("sgemm/multistage", load_twin)}
"""The simplest schedule that stores to shared memory; the twin with copies written in PTX."""

OF_TVM = "<cuda.h>", "<cstdint>", "<type_traits>", "<cuda/std/cstdint>", "<cuda/std/type_traits>"
HEADERS = *OF_TVM, "<cuda_fp16.h>"
"""What TVM writes above its kernels, for nvcc and for NVRTC, and that of float16."""


@pytest.mark.parametrize(
    "each, make",
    [
        pytest.param(rung, make, marks=() if (rung.id, make) in PLAIN else pytest.mark.slow)
        for rung in filter(takes_any_arch, ladder("sgemm"))
        for make in (lower, load_twin)
    ],
    ids=lambda value: getattr(value, "id", None) or ("schedule" if value is lower else "twin"),
)
def test_the_source_compiles_with_nothing_but_the_arch(each, make, tmp_path):
    (tmp_path / "kernel.cu").write_text(make(each, own(each), "sm_80").source)
    command = [str(find_toolchain().nvcc), "-arch=sm_80", "-cubin", "kernel.cu"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and (tmp_path / "kernel.cubin").exists(), done.stderr


@pytest.mark.parametrize("make", [lower, load_twin], ids=["schedule", "twin"])
def test_sources_include_nothing_but_headers_of_the_compiler(make):
    for each in filter(takes_any_arch, ladder("sgemm")):
        included = re.findall(r"^\s*#\s*include\s*(.*)", make(each, own(each), "sm_80").source, re.M)
        assert set(included) <= set(HEADERS), each.id


LOWER_BESIDE_CUDA = """
import ctypes, sys
for library in sys.argv[1:]:
    ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
from tir_schedules.compiler.lower import lower
from tir_schedules.tir.tvm import import_tvm
from tir_schedules.ladders.registry import find
from tir_schedules.workloads.gemm import Gemm
assert "tvm_runtime_cuda" in import_tvm().base._LOADED_LIBS
print(lower(find("sgemm/naive")[0], Gemm(64, 64, 64), "sm_80").source)
"""


def installed(package):
    return Path(importlib.util.find_spec(package).submodule_search_locations[0])


def test_tvm_compiles_nothing_where_its_cuda_runtime_is_at_hand(tmp_path):
    """As on a computer with a GPU, but of the driver there is only what the runtime links to."""
    runtime, cudart = (
        installed("tvm") / "lib" / "libtvm_runtime_cuda.so",
        installed("nvidia.cu13") / "lib" / "libcudart.so.13",
    )
    functions = sorted(set(re.findall(rb"\0(cu[A-Z]\w+)(?=\0)", runtime.read_bytes())))
    (tmp_path / "cuda.c").write_bytes(
        b"\n".join(b"int %s(void) { return 100; }" % name for name in functions)
    )
    driver = tmp_path / "libcuda.so.1"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", f"-Wl,-soname,{driver.name}", "-o", driver, tmp_path / "cuda.c"],
        check=True,
    )
    bare = {**os.environ, "PATH": "", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-c", LOWER_BESIDE_CUDA, driver, cudart]
    done = subprocess.run(command, env=bare, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "sgemm_naive" in done.stdout


def test_a_configuration_of_a_twin_is_set_by_macros():
    (variant,) = find("sgemm/transposed:32x32")
    source = load_twin(variant, GEMM, "sm_80").source
    assert "#define BM 128" in source.split("#ifndef BM")[0] and load_twin(variant, GEMM, "sm_80").block == (
        1024,
        1,
        1,
    )


def test_a_twin_may_include_what_is_beside_it(monkeypatch, tmp_path):
    (naive,) = find("sgemm/naive")
    assert load_twin(naive, GEMM, "sm_80").folder == ""
    text = twin.read_twin(naive, GEMM)
    monkeypatch.setattr(twin, "twin_file", lambda rung: tmp_path / "naive.cu")
    (tmp_path / "naive.cu").write_text(f'#include "common.cuh"\n{text}')
    assert load_twin(naive, GEMM, "sm_80").folder == str(tmp_path)


def test_source_without_the_kernel_is_refused():
    with pytest.raises(CheckFailed, match="no kernel found"):
        load_source("__global__ void other(int N) {}", find("sgemm/naive")[0], GEMM, "sm_80")


def test_an_arch_older_than_the_rung_needs_is_refused():
    old = Rung(
        "sgemm",
        "test",
        "",
        "",
        Config(),
        rows_over_blocks,
        lambda g, c: Launch((2, 1, 1), (16, 1, 1)),
        min_arch=80,
    )
    with pytest.raises(Exception, match="sm_80") as error:
        lower(old, GEMM, "sm_75")
    assert error.value.exit_code == 2


def test_what_tvm_does_not_lower_is_one_line():
    def strangely_unrolled(sch, gemm, config):
        rows_over_blocks(sch, gemm, config)
        block, *_ = sch.get_loops(sch.get_sblock("C"))
        sch.annotate(block, "pragma_unroll_explicit", "no number")

    with pytest.raises(CheckFailed, match="^sgemm/test: TVM refuses the schedule for 64x64x64: [^\n]*$"):
        lower(rung(strangely_unrolled), GEMM, "sm_80")
