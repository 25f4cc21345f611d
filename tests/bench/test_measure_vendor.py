"""How CUB is called, with a fake library that sums on this computer, and when libraries are loaded."""

import ctypes

import numpy as np
import pytest
from fake_libraries import MACHINE, STREAM, FakeCublas, FakeCublasLt, Function, read

from tir_schedules.bench import vendor
from tir_schedules.bench.vendor import Cub, Vendors, build_cub, load_library
from tir_schedules.errors import CheckFailed, MissingTool
from tir_schedules.model.verify import shared_checks
from tir_schedules.subjects.subject import Subject
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.reduction import Reduction

GEMM = Gemm(3, 5, 7)
LIBRARIES = {"cuBLAS": FakeCublas, "cuBLASLt": FakeCublasLt}


class FakeCub:
    """Both sums in numpy; they need 12 bytes of scratch memory."""

    def __init__(self, status=0):
        self.cub_sum_int32 = Function(lambda *arguments: self.sum(np.int32, *arguments))
        self.cub_sum_float32 = Function(lambda *arguments: self.sum(np.float32, *arguments))
        self.status, self.scratch = status, []

    def sum(self, dtype, scratch, size, x, y, n, stream):
        if scratch is None:
            size._obj.value = 12
            return 0
        assert size._obj.value == 12 and stream == 77
        self.scratch.append(scratch)
        read(y, 1, dtype)
        target = np.frombuffer((ctypes.c_char * 4).from_address(y), dtype)
        target[0] = read(x, n, dtype).sum(dtype=np.float64 if dtype == np.float32 else np.int32)
        return self.status


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_cub_sums_on_the_stream_in_scratch_memory_that_stays(dtype):
    workload, library = Reduction(1001, dtype), FakeCub()
    check = shared_checks(workload)[0]
    product = Cub(library, MACHINE).bind(workload, check.arguments())
    product.enqueue(STREAM)
    assert check.mismatch(product.outputs) is None
    assert library.scratch == [product.kept[1].ctypes.data] and product.kept[1].nbytes == 12


def test_an_error_of_cub_is_one_line():
    workload = Reduction(10)
    with pytest.raises(CheckFailed, match="CUB: .* returns CUDA error 700"):
        Cub(FakeCub(status=700), MACHINE).bind(workload, workload.arguments()).enqueue(STREAM)


def test_libraries_are_loaded_when_first_needed_and_once(monkeypatch):
    loaded = []
    monkeypatch.setattr(vendor, "load", lambda name: loaded.append(name) or LIBRARIES[name]())
    monkeypatch.setattr(vendor, "load_library", lambda content: loaded.append(content) or FakeCub())
    vendors = Vendors(MACHINE, cub=b"carried")
    assert vendors.versions() == {}
    for workload, name in [(GEMM, "cuBLAS"), (Reduction(9), "CUB"), (GEMM, "cuBLASLt")] * 2:
        for subject in vendors.candidates(Subject("", name, "vendor", workload)):
            vendors.bind(subject, workload.arguments()).enqueue(STREAM)
    assert loaded == ["cuBLAS", b"carried", "cuBLASLt"]
    assert vendors.versions() == {"cublas": "0.0.0", "cublaslt": "13.1.0"}


def test_without_cublaslt_there_is_cublas_alone_and_a_note(monkeypatch):
    def load(name):
        if name == "cuBLASLt":
            raise MissingTool("cuBLASLt not found: pip install it")
        return FakeCublas()

    monkeypatch.setattr(vendor, "load", load)
    vendors = Vendors(MACHINE)
    assert [vendors.candidates(Subject("", name, "vendor", GEMM)) for name in 2 * ["cuBLASLt"]] == [[], []]
    assert vendors.notes == ["not timed: cuBLASLt not found: pip install it"]
    (subject,) = vendors.candidates(Subject("", "cuBLAS", "vendor", GEMM))
    vendors.bind(subject, GEMM.arguments()).enqueue(STREAM)


@pytest.mark.slow
def test_cub_compiles_and_loads_and_knows_both_sums():
    library = load_library(build_cub("sm_80"))
    assert library.cub_sum_int32 and library.cub_sum_float32
    assert build_cub("sm_80") == build_cub("sm_80")


def test_bytes_that_are_no_library_are_one_line():
    with pytest.raises(MissingTool, match="does not load"):
        load_library(b"nothing")
