"""Predictions that are kept."""

import numpy as np
import pytest

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.model.kernel import Kernel
from tir_schedules.timing import keeping
from tir_schedules.timing.gpus import find_table
from tir_schedules.timing.prediction import predict

SOURCE = """\
extern "C" __global__ void add(const float *x, float *y, int n) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < n) y[i] += x[i];
}
"""
TABLE = find_table("h100")


def made(blocks):
    kernel = Kernel("add", SOURCE, "add", ("x", "y", "n"), (blocks, 1, 1), (32, 1, 1), "sm_90")
    return compile_kernel(kernel)


def arguments():
    return {"x": np.zeros(64, np.float32), "y": np.zeros(64, np.float32), "n": 64}


@pytest.fixture
def ask(monkeypatch, tmp_path):
    """Ask once more; tells how often it was worked out until then."""
    binaries = {blocks: made(blocks) for blocks in (2, 3)}
    monkeypatch.setenv("TIR_SCHEDULES_CACHE", str(tmp_path))
    done = []

    def counted(*asked):
        done.append(asked)
        return len(done)

    def ask(blocks=2, mhz=1980.0, table=TABLE, **changed):
        return keeping.kept(counted, binaries[blocks], arguments() | changed, ["y"], table, mhz)

    return ask


@pytest.mark.parametrize(
    "changed",
    [
        {"x": np.ones(64, np.float32)}, {"x": np.zeros(64, np.int32)}, {"n": 63}, {"blocks": 3},
        {"mhz": 1000.0}, {"table": TABLE.model_copy(update={"gap": 1.0})}, {"y": np.zeros(128, np.float32)},
        {"y": np.ones(64, np.float32)},
    ],
)  # fmt: skip
def test_what_changed_is_asked_again(ask, changed):
    assert [ask(), ask(), ask(**changed), ask(**changed), ask()] == [1, 1, 2, 2, 1]


def test_sources_of_the_model_matter(ask, monkeypatch):
    assert ask() == 1
    monkeypatch.setattr(keeping, "sources", lambda: b"other")
    assert ask() == 2


def test_a_kept_prediction_is_the_same(monkeypatch, tmp_path):
    monkeypatch.setenv("TIR_SCHEDULES_CACHE", str(tmp_path))
    binary = made(2)
    first, again = (predict([binary], [arguments()], ["y"], TABLE) for _ in range(2))
    assert first.launches[0] is not again.launches[0] and first.microseconds == again.microseconds
    assert first.launches[0].by_line() == again.launches[0].by_line()
