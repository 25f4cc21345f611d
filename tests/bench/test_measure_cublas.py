"""How cuBLAS and cuBLASLt are called: with fake libraries that compute, on this computer, what they are told
to."""

import ctypes
import sys
from types import SimpleNamespace

import pytest
from fake_libraries import MACHINE, STREAM, FakeCublas, FakeCublasLt

from tir_schedules.bench import vendor
from tir_schedules.bench.vendor import Cublas, CublasLt, Heuristic, Product, load
from tir_schedules.errors import CheckFailed, MissingTool
from tir_schedules.model.verify import shared_checks
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm

KINDS = [
    ("float16", "float16", "float16"),
    ("float32", "float16", "float16"),
    ("float32", "float16", "float32"),
    ("float32", "bfloat16", "bfloat16"),
    ("float32", "bfloat16", "float32"),
]
GEMM = Gemm(3, 5, 7)
GEMMS = [GEMM, Gemm(3, 5, 7, layout="nt")]
GEMMS += [HalfGemm(3, 5, 7, layout, *kind) for layout in ("nt", "nn") for kind in KINDS]


@pytest.mark.parametrize("gemm", GEMMS, ids=str)
def test_both_are_asked_for_the_product_in_their_column_major_terms(gemm):
    library, other = FakeCublas(), FakeCublasLt(1)
    for check in shared_checks(gemm):
        for bind in (Cublas(library, MACHINE).bind, lambda *given: CublasLt(other, MACHINE).bind(*given, 0)):
            product = bind(gemm, check.arguments())
            product.enqueue(STREAM)
            assert check.mismatch(product.outputs) is None
    compute = 64 if getattr(gemm, "accumulate", "float32") == "float16" else 68
    assert library.log[-1][1][-2] == compute and len(library.log[-1][1]) == 19
    assert [given[1] for name, given in other.log if name == "cublasLtMatmulDescCreate"][-1] == compute


def test_a_product_that_the_libraries_do_not_have_is_one_line():
    with pytest.raises(CheckFailed, match="no product of float16 with float16 sums and float32 results"):
        Product.of(SimpleNamespace(shape=(1, 2, 3), dtype="float16", accumulate="float16", result="float32"))


def test_cublas_computes_in_full_fp32_on_the_stream_with_a_workspace_of_ours():
    library = FakeCublas()
    ours = Cublas(library, MACHINE)
    ours.bind(GEMM, GEMM.arguments()).enqueue(STREAM)
    assert [(name, given[1:]) for name, given in library.log[1:-1]] == [
        ("cublasSetMathMode", (0,)),
        ("cublasSetPointerMode_v2", (0,)),
        ("cublasSetStream_v2", (77,)),
        ("cublasSetWorkspace_v2", (ours.workspace.ctypes.data, 32 << 20)),
    ]
    assert library.log[-1][0] == "cublasGemmEx" and library.log[-1][1][-2:] == (68, -1)


def test_an_error_has_its_name():
    ours = Cublas(FakeCublas(status=15), MACHINE)
    with pytest.raises(CheckFailed, match="cuBLAS: cublasGemmEx returns CUBLAS_STATUS_NOT_SUPPORTED"):
        ours.bind(GEMM, GEMM.arguments()).enqueue(STREAM)
    with pytest.raises(
        CheckFailed, match="cuBLASLt: cublasLtMatmulAlgoGetHeuristic returns CUBLAS_STATUS_NOT"
    ):
        CublasLt(FakeCublasLt(status=15), MACHINE).candidates(GEMM)


@pytest.mark.parametrize("name", ["cuBLAS", "cuBLASLt"])
def test_without_a_library_the_line_says_how_to_get_it(monkeypatch, name):
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    monkeypatch.setattr(vendor, "RELEASES", (".1",))
    with pytest.raises(MissingTool, match=f"{name} not found: pip install"):
        load(name)


def test_candidates_are_those_that_can_in_the_order_of_the_library():
    found = CublasLt(FakeCublasLt(4, unable=1), MACHINE).candidates(GEMM)
    assert [(one.index, one.of, one.algorithm, one.workspace_bytes) for one in found] == [
        (0, 3, 60, 1),
        (1, 3, 62, 4),
        (2, 3, 63, 8),
    ]
    (one, *_) = found
    assert (one.tile, one.split_k, one.stages, one.cluster, one.reduction) == (100, 200, 600, 800, 300)
    assert str(one) == "candidate 1 of 3"


def test_a_candidate_is_multiplied_with_by_its_own_algorithm():
    library = FakeCublasLt(4, unable=1)
    ours = CublasLt(library, MACHINE)
    for candidate in ours.candidates(GEMM):
        ours.bind(GEMM, GEMM.arguments(), candidate.index).enqueue(STREAM)
    used = [given[-4:-2] for name, given in library.log if name == "cublasLtMatmul"]
    assert [ctypes.c_uint64.from_address(algorithm).value for algorithm, _ in used] == [60, 62, 63]
    assert {workspace for _, workspace in used} == {ours.workspace.ctypes.data}
    assert len([name for name, _ in library.log if name == "cublasLtMatmulAlgoGetHeuristic"]) == 1


@pytest.mark.parametrize("library", [FakeCublasLt(0), FakeCublasLt(1, unable=0)], ids=["none", "unable"])
def test_a_product_for_which_there_is_no_algorithm_is_one_line(library):
    with pytest.raises(CheckFailed, match="cuBLASLt: its heuristic names no algorithm"):
        CublasLt(library, MACHINE).candidates(GEMM)


def test_the_heuristics_answer_is_as_large_as_the_library_has_it():
    assert ctypes.sizeof(Heuristic) == 96 and Heuristic.workspace.offset == 64


def test_versions_are_written_as_people_do():
    assert CublasLt(FakeCublasLt(), MACHINE).version() == "13.1.0"
