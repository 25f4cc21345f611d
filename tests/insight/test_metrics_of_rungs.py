"""Rungs are counted as they are compiled."""

import threading

from tir_schedules.insight.metrics import rungs
from tir_schedules.ladders.registry import find
from tir_schedules.subjects import compiling
from tir_schedules.workloads.gemm import Gemm

WAIT = 10


def test_a_kernel_is_counted_while_another_is_compiled(monkeypatch):
    counting = threading.Event()

    def compile_kernel(kernel):
        assert kernel == "lower" or counting.wait(WAIT)
        return kernel

    def count(binaries, workload):
        counting.set()
        return [*binaries]

    monkeypatch.setattr(rungs, "warm", lambda machine: None)
    monkeypatch.setattr(rungs, "kept_metrics", count)
    monkeypatch.setattr(compiling, "launches", lambda make, *job: [make.__name__])
    monkeypatch.setattr(compiling, "compile_kernel", compile_kernel)
    found, refused = rungs.metrics_of_rungs([(find("sgemm/naive")[0], Gemm(64, 64, 64))], "sm_80")
    assert [(subject.form, launches) for subject, launches in found] == [
        ("schedule", ["lower"]),
        ("twin", ["load_twin"]),
    ]
    assert not refused
