"""Article 004's story, told by the counters: who has bank conflicts, and where padding and permutation put them."""
import json
from pathlib import Path

import pytest
from kinds import ARCH, both

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_twin
from tir_schedules.insight.nsight import METRICS, prediction
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.rung import find
from tir_schedules.workloads.half_gemm import HalfGemm

RESULTS = Path(__file__).parents[2] / "experiments" / "results"
RECORDED = json.loads((RESULTS / "hgemm_ladder_h200.json").read_text())["kernels"]
MEASURED = [entry for entry in RECORDED if "measured" in entry]
# The data pipe's own counters also count stalls of other traffic; wavefronts of cp.async are a model that misses some.
INEXACT = ("l1tex__data_pipe_lsu_wavefronts", "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts")


def accesses(name, layout, make):
    """Counters of each class of access, in one block of two tiles along K."""
    (rung,) = find(name)
    gemm = HalfGemm(rung.config.bm, rung.config.bn, 64, layout)
    binary = compile_kernel(make(rung, gemm, ARCH))
    return CpuMachine().run(binary, gemm.arguments(), gemm.outputs, count=True).counters.accesses


def conflicts(access):
    """Wavefronts per wavefront that the same data take without conflicts."""
    return access.cost / access.ideal


@both
@pytest.mark.parametrize("layout, expected", [("nn", 6), ("nt", 4)])
def test_unpadded_loads_conflict_and_stores_do_not(layout, expected, make):
    """Rows of 64 bytes: 8 of them use a quarter of the banks. Rows of B as K x N have 512 bytes: all 8 in the same banks."""
    counted = accesses("hgemm/wmma_shared:unpadded", layout, make)
    assert conflicts(counted["ldmatrix"]) == expected
    assert conflicts(counted["shared_store"]) == 1


@both
@pytest.mark.parametrize("layout, expected", [("nn", 4 / 3), ("nt", 2)])
def test_padding_moves_the_conflicts_to_the_stores(layout, expected, make):
    counted = accesses("hgemm/wmma_padded:padded", layout, make)
    assert conflicts(counted["ldmatrix"]) == 1
    assert conflicts(counted["shared_store"]) == pytest.approx(expected)


@both
@pytest.mark.parametrize("layout", ["nn", "nt"])
def test_permutation_has_neither(layout, make):
    """Its copies cost no more than unpadded ones; those of padded tiles take more wavefronts, and more sectors."""
    permuted, padded = (accesses(name, layout, make) for name in ("hgemm/mma_permuted", "hgemm/mma_ldmatrix"))
    assert conflicts(permuted["ldmatrix"]) == conflicts(padded["ldmatrix"]) == 1
    assert permuted["global_cp_async"].cost == permuted["global_cp_async"].ideal < padded["global_cp_async"].cost
    assert permuted["shared_cp_async"].cost < padded["shared_cp_async"].cost / 2


def differences(predicted, measured):
    figures = {metric: prediction({"predicted": predicted}, *METRICS[metric]) for metric in METRICS if not metric.startswith(INEXACT)}
    return {metric: (figure, measured[metric]) for metric, figure in figures.items() if figure != measured[metric]}


def test_every_recorded_prediction_is_what_the_gpu_counted():
    """But for the requests of wmma_naive, whose 4-byte loads of a B stored as K x N ptxas merges."""
    assert len({entry["label"] for entry in MEASURED}) == 2 * 15
    for entry in MEASURED:
        unequal = differences(entry["predicted"], entry["measured"])
        merged = "wmma_naive" in entry["label"] and entry["workload"]["layout"] == "nn"
        assert set(unequal) <= ({"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"} if merged else set()), entry["label"]


@pytest.mark.parametrize("name", ["wmma_shared", "wmma_padded", "wmma_async", "mma_permuted", "mma_multistage"])
@both
def test_predictions_are_as_recorded(name, make):
    origin = {lower: "tir", load_twin: "twin"}[make]
    for entry in MEASURED:
        gemm = HalfGemm(**entry["workload"])
        if entry["label"] == f"hgemm/{name} ({origin})" and (gemm.layout == "nt") == (gemm.accumulate == "float16"):
            (rung,) = find(f"hgemm/{name}")
            binary = compile_kernel(make(rung, gemm, "sm_90"))
            counters = CpuMachine().run(binary, gemm.arguments(), gemm.outputs, count=True).counters
            assert not differences({name: vars(access) for name, access in counters.accesses.items()}, entry["measured"])
