"""Metrics of launches whose figures are known."""

from dataclasses import replace

import numpy as np
import pytest

from tir_schedules.compiler.cache import Cache
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.source_text import SourceText
from tir_schedules.errors import BadInput
from tir_schedules.insight.metrics import keeping
from tir_schedules.insight.metrics.counting import (
    GLOBAL,
    GLOBAL_LOADS,
    LOADS,
    SHARED,
    STORES,
    conflicts,
    execute,
    execute_and_count,
    metrics_of,
)
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.counters import Access
from tir_schedules.model.kernel import Kernel

SOURCE = """\
extern "C" __global__ void strided(const int* X, int* Y) {
    __shared__ int tile[2048];
    tile[threadIdx.x * 32] = X[threadIdx.x];
    __syncthreads();
    Y[blockIdx.x * 48 + threadIdx.x] = tile[threadIdx.x * 32] + 1;
}
"""


class Copying:
    """Two launches, the second with what the first left."""

    outputs, workspaces = ("Y",), ()

    def arguments(self):
        return {"X": np.arange(48, dtype=np.int32)}

    def prepared(self, arguments, grid):
        return {"X": arguments.get("Y", arguments["X"]), "Y": np.zeros(48 * grid[0], np.int32)}


def binary(grid, arch="sm_80"):
    return compile_kernel(
        Kernel("strided", SOURCE, "strided", ("X", "Y"), (grid, 1, 1), (48, 1, 1), arch, 512)
    )


def test_metrics_of_every_launch_in_order():
    found = metrics_of([binary(3), binary(1)], Copying())
    assert [(one.binary.kernel.grid[0], one.warps) for one in found] == [(3, 6), (1, 2)]
    first = found[0]
    # A warp and a half store, and load, words of one bank.
    assert (
        first.access(*STORES) == first.access(*LOADS) == Access(6, 3 * 48, 6)
        and conflicts(first.access(*LOADS)) == 3 * 48 - 6
    )
    assert (
        first.access(*GLOBAL_LOADS) == Access(6, 18, 18)
        and first.access(*GLOBAL).cost == 36
        and first.access(*SHARED).cost == 288
    )
    assert first.access("global_atomic") == Access()
    assert first.binary.shared_bytes == 8192 + 512 and first.occupancy.limits["shared"] == (164 << 10) // (
        8192 + 512 + 1024
    )
    assert first.findings == ()


def test_json_names_lines_and_leaves_out_those_of_other_files():
    (found,) = metrics_of([binary(1)], Copying())
    lines = {line["line"]: line["text"].strip() for line in found.as_json()["counters"]["lines"]}
    assert lines[3] == "tile[threadIdx.x * 32] = X[threadIdx.x];"
    text = SourceText(found.binary.kernel)
    assert text.whole_line("strided.cu", 4) == "    __syncthreads();"
    assert text.whole_line("cuda_fp16.h", 4) == text.whole_line("strided.cu", 99) == ""


def test_a_launch_gets_what_the_one_before_left():
    done = execute(CpuMachine(), Copying(), [binary(1), binary(1)], Copying().arguments())
    assert len(done) == 2 and done[0][0].counters is None and (done[1][1]["Y"] == np.arange(48) + 2).all()


def test_an_architecture_without_rules_is_refused_before_anything_runs():
    with pytest.raises(BadInput, match="sm_88"):
        metrics_of([binary(1, "sm_88")], Copying())


def test_what_was_counted_is_kept_until_something_changes(tmp_path, monkeypatch):
    class Other(Copying):
        def arguments(self):
            return {"X": np.arange(1, 49, dtype=np.int32)}

    monkeypatch.setattr(keeping, "default_cache", lambda: cache)
    cache, counted = Cache(tmp_path), []
    monkeypatch.setattr(
        keeping, "execute_and_count", lambda *given: counted.append(1) or execute_and_count(*given)
    )
    monkeypatch.setattr(Copying, "__repr__", lambda self: "a workload")
    launches, moved = [binary(3), binary(1)], binary(3)
    first = keeping.kept_metrics(launches, Copying())
    assert keeping.kept_metrics(launches, Copying()) == first == metrics_of(launches, Copying())
    assert len(counted) == 1
    moved = replace(moved, kernel=replace(moved.kernel, source=f"\n{SOURCE}"))
    for changed, workload in (([moved], Copying()), ([binary(1)], Copying()), (launches, Other())):
        keeping.kept_metrics(changed, workload)
    assert len(counted) == 4
