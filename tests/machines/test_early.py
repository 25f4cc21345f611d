"""What launches need is made before it is asked for."""

import threading
from importlib import import_module

import pytest
from ptx_kernels import module

from tir_schedules.ladders.registry import find
from tir_schedules.machines import execution
from tir_schedules.machines.cpu import CpuMachine, kernels, library, machine
from tir_schedules.machines.cpu.library import the_library
from tir_schedules.model.kernel import Binary, Kernel, Resources
from tir_schedules.workloads.gemm import Gemm

runs = import_module("tir_schedules.run")
LONG = 60  # seconds; by far enough for one kernel


def test_the_library_is_begun_first_and_needed_last(monkeypatch):
    """It is begun before a kernel is made, and is not done before one is lowered."""
    begun, lowered = threading.Event(), threading.Event()

    def in_time(event):
        assert event.wait(LONG)

    def slow():
        begun.set()
        in_time(lowered)
        return the_library()

    make, lower = runs.lower, kernels.lowered
    monkeypatch.setattr(runs, "lower", lambda *given: (in_time(begun), make(*given))[1])
    monkeypatch.setattr(kernels, "lowered", lambda *given: (lower(*given), lowered.set())[0])
    for place in (library, machine):
        monkeypatch.setattr(place, "the_library", slow)
    jobs = [(find("sgemm/naive")[0], Gemm(8, 8, 8))]
    assert [verdict.word for verdict in runs.run(jobs, "sm_80", CpuMachine())] == ["pass"]


def test_errors_are_left_to_the_launch(monkeypatch):
    kernel = Kernel("own", "", "own", (), (1, 1, 1), (32, 1, 1), "sm_80")
    binary = Binary(kernel, module("own", [], "unknown.u32;"), b"", Resources(0, 0))

    def fails():
        raise OSError

    monkeypatch.setattr(library, "the_library", fails)
    execution.compile_library()
    assert execution.lower(CpuMachine(), binary) is binary
    with pytest.raises(machine.UnsupportedInstruction, match="unknown.u32"):
        CpuMachine().run(binary, {}, ())
