"""The counters against those Nsight Compute recorded on a GPU: single accesses and every kernel of the SGEMM ladder."""
import json
import sys
from pathlib import Path

import pytest

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.twin import load_twin
from tir_schedules.insight.cases import cubin_name
from tir_schedules.insight.nsight import METRICS, prediction
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.rung import find
from tir_schedules.workloads.gemm import Gemm

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
sys.path.insert(0, str(EXPERIMENTS))

from counter_probes import probes  # noqa: E402

ARCH = "sm_90"
# Single accesses and an early state of the ladder, and the ladder: what was measured last comes last.
FILES = ("sgemm_ladder_h200.json", "sgemm_counters_h200.json")
RECORDED = [entry for name in FILES for entry in json.loads((EXPERIMENTS / "results" / name).read_text())["kernels"]]
MEASURED = {entry.get("probe") or entry["label"]: entry["measured"] for entry in RECORDED if "measured" in entry}
PROBES = {probe.name: probe for probe in probes(ARCH)}
# The data pipe's own counters also count stalls of other traffic; those of the instrumented code are exact.
NOISY = "l1tex__data_pipe_lsu_wavefronts"
COPY_WAVEFRONTS = next(metric for metric in METRICS if "ldgsts" in metric)


def counted(binary, arguments, outputs):
    counters = CpuMachine().run(binary, arguments, outputs, count=True).counters
    return {name: vars(access) for name, access in counters.accesses.items()}


def differences(predicted, measured, skip=()):
    figures = {metric: prediction({"predicted": predicted}, *METRICS[metric]) for metric in METRICS if not metric.startswith(skip)}
    return {metric: (figure, measured[metric]) for metric, figure in figures.items() if figure != measured[metric]}


@pytest.mark.parametrize("kind", sorted({name.split(",")[0] for name in PROBES}))
def test_single_accesses_cost_what_the_gpu_counted(kind):
    """All patterns of one access. Wavefronts of cp.async are a model that misses some: they have a test of their own."""
    for name, probe in PROBES.items():
        if name.split(",")[0] == kind:
            predicted = counted(compile_kernel(probe.kernel), probe.arguments(), ("Y",))
            assert not differences(predicted, MEASURED[name], skip=(COPY_WAVEFRONTS,)), name


@pytest.mark.parametrize("size, least", [(4, 50), (8, 46), (16, 55)])
def test_wavefronts_of_cp_async_are_as_good_as_they_were(size, least):
    """At least so many of the 55 patterns exactly, and all of those where the source is contiguous up to 8 bytes."""
    exact, inexact = 0, []
    for name, probe in PROBES.items():
        if name.startswith(f"cp_async_{size},"):
            predicted = counted(compile_kernel(probe.kernel), probe.arguments(), ("Y",))
            equal = predicted["shared_cp_async"]["cost"] == MEASURED[name][COPY_WAVEFRONTS]
            exact, inexact = exact + equal, inexact + [name] * (not equal)
    assert exact >= least
    assert size == 16 or all(", to " in name for name in inexact)


LADDER = [label for label in MEASURED if label.startswith("sgemm/")]


@pytest.mark.parametrize("label", LADDER)
def test_the_ladder_costs_what_the_gpu_counted(label):
    """Exactly, where nvcc makes the binary that was measured; another release or computer may merge a load otherwise."""
    identity, origin = label.removesuffix(")").split(" (")
    gemm = Gemm(256, 256, 256)
    binary = compile_kernel((lower if origin == "tir" else load_twin)(find(identity)[0], gemm, ARCH))
    recorded = next(entry for entry in reversed(RECORDED) if entry["label"] == label and "measured" in entry)
    same = recorded["cubin"] == cubin_name(binary)
    found = differences(counted(binary, gemm.arguments(), gemm.outputs), MEASURED[label], skip=(NOISY, COPY_WAVEFRONTS))
    assert not {metric for metric, (predicted, measured) in found.items() if same or abs(predicted - measured) > 0.02 * measured}


def test_counters_add_up_over_lines():
    gemm = Gemm(64, 64, 64)
    binary = compile_kernel(load_twin(find("sgemm/shared_tile")[0], gemm, ARCH))
    counters = CpuMachine().run(binary, gemm.arguments(), gemm.outputs, count=True).counters
    for name, access in counters.accesses.items():
        parts = [line.accesses[name] for line in counters.lines if name in line.accesses]
        assert sum(part.cost for part in parts) == access.cost and sum(part.requests for part in parts) == access.requests
    assert sum(sum(line.mix.values()) for line in counters.lines) == counters.thread_instructions
    assert sum(counters.mix.values()) == counters.thread_instructions
    assert counters.mix["fp32"] == 64**3
    tile_line = next(line for line in counters.lines if "shared_load" in line.accesses)
    assert "tile_a" in binary.kernel.source.split("\n")[tile_line.line - 1]
    assert counters.warp_instructions * 32 == counters.thread_instructions
