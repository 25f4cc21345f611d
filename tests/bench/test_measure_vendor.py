"""How cuBLAS and CUB are called: with fake libraries that compute, on this computer, what they are told
to."""

import ctypes
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from tir_schedules.bench import vendor
from tir_schedules.bench.vendor import Cub, Cublas, Vendors, build_cub, load_library
from tir_schedules.errors import CheckFailed, MissingTool
from tir_schedules.model.verify import shared_checks
from tir_schedules.subjects.subject import Subject
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction

MACHINE = SimpleNamespace(xp=np, address=lambda array: array.ctypes.data, arch="sm_90")
STREAM = SimpleNamespace(ptr=77)
TYPES = {0: np.float32, 2: np.float16}


class Function:
    """Takes arguments as ctypes would convert them."""

    def __init__(self, call):
        self.call, self.argtypes, self.restype = call, None, None

    def __call__(self, *arguments):
        if self.argtypes is not None:
            assert len(arguments) == len(self.argtypes)
        return self.call(*arguments)


class FakeCublas:
    """cublasGemmEx in numpy, on column-major matrices as its manual has them."""

    def __init__(self, status=0):
        self.log, self.status = [], status
        self.cublasGemmEx = Function(self.gemm)
        self.cublasGetStatusName = Function(lambda status: b"CUBLAS_STATUS_NOT_SUPPORTED")

    def __getattr__(self, name):
        function = Function(lambda *arguments: self.log.append((name, arguments)))
        setattr(self, name, function)
        return function

    def gemm(
        self,
        handle,
        trans_a,
        trans_b,
        m,
        n,
        k,
        alpha,
        a,
        a_type,
        lda,
        b,
        b_type,
        ldb,
        beta,
        c,
        c_type,
        ldc,
        compute,
        algorithm,
    ):
        self.log.append(("cublasGemmEx", (compute,)))
        if self.status:
            return self.status
        wide = TYPES[c_type]
        assert (read(alpha, 1, wide)[0], read(beta, 1, wide)[0]) == (1, 0)
        left = column_major(a, lda, *((k, m) if trans_a else (m, k)), TYPES[a_type])
        right = column_major(b, ldb, *((n, k) if trans_b else (k, n)), TYPES[b_type])
        product = (left.T if trans_a else left).astype(np.float64) @ (right.T if trans_b else right).astype(
            np.float64
        )
        column_major(c, ldc, m, n, wide)[...] = product.astype(wide)
        return 0


def read(address, count, dtype):
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype)


def column_major(address, leading, rows, columns, dtype):
    assert leading >= rows
    return read(address, leading * columns, dtype).reshape(columns, leading).T[:rows]


GEMMS = [
    Gemm(3, 5, 7),
    *(HalfGemm(3, 5, 7, layout, wide) for layout in ("nt", "nn") for wide in ("float16", "float32")),
]


@pytest.mark.parametrize("gemm", GEMMS, ids=str)
def test_cublas_is_asked_for_the_product_in_its_column_major_terms(gemm):
    library = FakeCublas()
    for check in shared_checks(gemm):
        product = Cublas(library, MACHINE).bind(gemm, check.arguments())
        product.enqueue(STREAM)
        assert check.mismatch(product.outputs) is None
    assert library.log[-1] == ("cublasGemmEx", (64 if gemm.result == "float16" else 68,))


def test_cublas_computes_in_full_fp32_on_the_stream_with_a_workspace_of_ours():
    library = FakeCublas()
    cublas = Cublas(library, MACHINE)
    cublas.bind(GEMMS[0], GEMMS[0].arguments()).enqueue(STREAM)
    assert [(name, arguments[1:]) for name, arguments in library.log[1:]] == [
        ("cublasSetMathMode", (0,)),
        ("cublasSetPointerMode_v2", (0,)),
        ("cublasSetStream_v2", (77,)),
        ("cublasSetWorkspace_v2", (cublas.workspace.ctypes.data, 32 << 20)),
        ("cublasGemmEx", ()),
    ]


def test_an_error_of_cublas_has_its_name():
    cublas = Cublas(FakeCublas(status=15), MACHINE)
    with pytest.raises(CheckFailed, match="cuBLAS: cublasGemmEx returns CUBLAS_STATUS_NOT_SUPPORTED"):
        cublas.bind(GEMMS[0], GEMMS[0].arguments()).enqueue(STREAM)


def test_without_cublas_the_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    monkeypatch.setattr(vendor, "CUBLAS_NAMES", ("libnone.so.1",))
    with pytest.raises(MissingTool, match="cuBLAS not found: pip install"):
        vendor.load_cublas()


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
    monkeypatch.setattr(vendor, "load_cublas", lambda: loaded.append("cuBLAS") or FakeCublas())
    monkeypatch.setattr(vendor, "load_library", lambda content: loaded.append(content) or FakeCub())
    vendors = Vendors(MACHINE, cub=b"carried")
    for workload, name in [(GEMMS[0], "cuBLAS"), (Reduction(9), "CUB")] * 2:
        vendors.bind(Subject("", name, "vendor", workload), workload.arguments())
    assert loaded == ["cuBLAS", b"carried"]


@pytest.mark.slow
def test_cub_compiles_and_loads_and_knows_both_sums():
    library = load_library(build_cub("sm_80"))
    assert library.cub_sum_int32 and library.cub_sum_float32
    assert build_cub("sm_80") == build_cub("sm_80")


def test_bytes_that_are_no_library_are_one_line():
    with pytest.raises(MissingTool, match="does not load"):
        load_library(b"nothing")
