"""Copies of matrices with rows of whole 16 bytes, alone and before the products of `hgemm/repacked`."""

import numpy as np
import pytest
from hopper_rungs import ARCH

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_twin
from tir_schedules.emit import emit_text
from tir_schedules.ladders.hgemm.repack import RUNG as REPACK
from tir_schedules.ladders.hgemm.tma_store import RUNG as TMA_STORE
from tir_schedules.ladders.registry import find_one
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.run import launches, outcome_of
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.repacking import Repacking

REPACKED = find_one("hgemm/repacked", "run")


@pytest.mark.parametrize("make", [lower, load_twin])
@pytest.mark.parametrize("shape", [(37, 265), (1, 1), (9, 64)])
def test_rows_are_copied_and_filled_up_with_zeros(make, shape):
    repacking = Repacking(*shape)
    binary, given = compile_kernel(make(REPACK, repacking, ARCH)), repacking.arguments()
    before = given["X"].copy()
    done = CpuMachine(orders=2).run(binary, given, ("Y",))
    assert done.findings == () and "st.global.v4" in binary.ptx
    assert np.array_equal(given["Y"], repacking.truth(given)["Y"]) and np.array_equal(given["X"], before)


@pytest.mark.parametrize(
    "gemm, copied",
    [
        (HalfGemm(64, 72, 65, "nt"), [("A", "A_rows", "M", "K"), ("B", "B_rows", "N", "K")]),
        (HalfGemm(64, 72, 65, "nn"), [("A", "A_rows", "M", "K")]),
        (HalfGemm(64, 65, 72, "nn"), [("B", "B_rows", "K", "N")]),
        (HalfGemm(65, 65, 72, "nt"), []),
    ],
)
def test_only_what_has_such_rows_is_copied(gemm, copied):
    *before, own = launches(load_twin, REPACKED, gemm, ARCH)
    assert [kernel.params for kernel in before] == copied
    assert [tensor.of for tensor in own.maps][:2] == [
        f"{name}_rows" if name in [each for each, *_ in copied] else name for name in "AB"
    ]


def test_without_such_rows_it_is_tma_store():
    gemm = HalfGemm(200, 304, 72, "nn", "float32", "bfloat16", "bfloat16")
    (own,), (other,) = (launches(lower, rung, gemm, ARCH) for rung in (REPACKED, TMA_STORE))
    assert own.source.replace("hgemm_repacked", "hgemm_tma_store") == other.source and own.maps == other.maps


def test_the_products_are_of_the_copies():
    """Which a launch without those before it finds full of NaN, whatever was executed before."""
    gemm = HalfGemm(66, 72, 65, "nn")
    kernels = launches(load_twin, REPACKED, gemm, ARCH)
    assert outcome_of(kernels, gemm, CpuMachine()).faults == ()
    (fault,) = outcome_of(kernels[1:], gemm, CpuMachine()).faults
    assert "C[0, 0] is nan" in fault


@pytest.mark.parametrize("twin", [False, True])
def test_the_launch_before_is_emitted_below(twin):
    text = emit_text(REPACKED, HalfGemm(66, 65, 65, "nn"), ARCH, "cuda", twin)
    assert "// before:  hgemm_repack below, with X = A, Y = A_rows, ROWS = M, COLUMNS = K\n" in text
    assert "// before:  hgemm_repack below, with X = B, Y = B_rows, ROWS = K, COLUMNS = N\n" in text
    assert "CUtensorMap A_map, of const half *A_rows[66][72]" in text
    assert text.index("hgemm_repacked(const") < text.rindex("hgemm_repack(")
