"""Article 004's story, told by the counters: who has bank conflicts, and where padding and the XOR swizzle
put them.

By default each rung tells it on the GEMM that it is tested on; with `-m slow` in the article's configurations
and with either layout of B.
"""

import pytest
from kinds import ARCH, SHARED, WHOLE, both
from layers import layers

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.ladders.registry import find
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.machine import Watch
from tir_schedules.workloads.half_gemm import HalfGemm


def accesses(name, layout, make):
    """Counters of each class of access, in one block of two tiles along K, or without a layout as the rung is
    tested."""
    (rung,) = find(name)
    gemm = HalfGemm(rung.config.bm, rung.config.bn, 64, layout) if layout else shared_gemm(rung)
    binary = compile_kernel(make(rung, gemm, ARCH))
    return CpuMachine().run(binary, gemm.arguments(), gemm.outputs, count=True).counters.accesses


def shared_gemm(rung):
    """The whole tiles on which the rung is tested."""
    (gemm,) = [gemm for other, gemm in SHARED if other == rung and str(gemm).startswith(WHOLE)]
    return gemm


def conflicts(access):
    """Wavefronts per wavefront that the same data take without conflicts."""
    return access.cost / access.ideal


@both
@layers(
    "name, layout, expected",
    [("hgemm/wmma_shared", None, 4)],
    [("hgemm/wmma_shared:article_004", "nn", 6), ("hgemm/wmma_shared:article_004", "nt", 4)],
)
def test_unpadded_loads_conflict_and_stores_do_not(name, layout, expected, make):
    """Rows of 64 bytes: 8 of them use a quarter of the banks. Rows of B as K x N have 512 bytes: all 8 in the
    same banks."""
    counted = accesses(name, layout, make)
    assert conflicts(counted["ldmatrix"]) == expected
    assert conflicts(counted["shared_store"]) == 1


@both
@layers(
    "name, layout, expected",
    [("hgemm/wmma_padded", None, 2)],
    [("hgemm/wmma_padded:article_004", "nn", 4 / 3), ("hgemm/wmma_padded:article_004", "nt", 2)],
)
def test_padding_moves_the_conflicts_to_the_stores(name, layout, expected, make):
    counted = accesses(name, layout, make)
    assert conflicts(counted["ldmatrix"]) == 1
    assert conflicts(counted["shared_store"]) == pytest.approx(expected)


@both
def test_the_program_of_article_004_reads_without_conflicts_by_ldmatrix_and_mma(make):
    """B is stored as K x N: .trans for its fragments, and sums are fp16."""
    (rung,) = find("hgemm/mma_ldmatrix:article")
    counted = accesses(rung.id, "nn", make)
    assert conflicts(counted["ldmatrix"]) == 1 and "shared_cp_async" not in counted
    ptx = compile_kernel(make(rung, HalfGemm(128, 256, 64, "nn"), ARCH)).ptx
    read, transposed = (ptx.count(f"ldmatrix.sync.aligned.m8n8.x4{form}.shared") for form in ("", ".trans"))
    products = ptx.count("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")
    assert (read, transposed, products) == (8, 8, 64)  # a K tile of two steps
    assert "wmma" not in ptx


@both
@layers("layout", [None], ["nn", "nt"])
def test_the_xor_swizzle_has_no_conflicts_of_loads_and_fewer_of_copies(layout, make):
    """Copies of padded tiles take more wavefronts, and more sectors."""
    swizzled, padded = (
        accesses(name, layout, make) for name in ("hgemm/mma_xor_swizzle", "hgemm/mma_ldmatrix")
    )
    assert conflicts(swizzled["ldmatrix"]) == conflicts(padded["ldmatrix"]) == 1
    assert (
        swizzled["global_cp_async"].cost == swizzled["global_cp_async"].ideal < padded["global_cp_async"].cost
    )
    assert 1 < conflicts(swizzled["shared_cp_async"]) <= 2
    assert swizzled["shared_cp_async"].cost < 0.55 * padded["shared_cp_async"].cost


@both
@layers("layout", [None], ["nn", "nt"])
def test_with_rows_of_128_bytes_neither_loads_nor_copies_have_any(layout, make):
    counted = accesses("hgemm/mma_multistage", layout, make)
    assert conflicts(counted["ldmatrix"]) == conflicts(counted["shared_cp_async"]) == 1


@both
@pytest.mark.parametrize(
    "name, kind, length, rows",
    [
        ("hgemm/wmma_shared", "shared_store", 32, [16, 32]),
        ("hgemm/wmma_staged_epilogue", "shared_cp_async", 32, [16, 16, 32, 32]),
        ("hgemm/wmma_staged_epilogue", "shared_load", 128, [32]),
    ],
)
def test_a_warp_copies_rows_that_follow_each_other(name, kind, length, rows, make):
    """As in article 001: 16 rows of B and 32 of A, of 32 halves, in each stage; 32 rows of C, of 128."""
    (rung,) = find(name)
    gemm = HalfGemm(rung.config.bm, rung.config.bn, 2 * rung.config.bk)
    binary = compile_kernel(make(rung, gemm, ARCH))
    met = CpuMachine().run(binary, gemm.arguments(), gemm.outputs, watch=Watch(warp=1)).requests
    pieces = sorted({place for request in met if request.kind == kind for place in request.addresses})
    padded = 16 + 2 * 8  # bytes from the last piece of a row to the next row
    begins = [i for i, place in enumerate(pieces) if i == 0 or place - pieces[i - 1] > padded]
    runs = [end - begin for begin, end in zip(begins, [*begins[1:], len(pieces)])]
    assert sorted(run * 8 // length for run in runs) == rows
