"""The clock that SMs count themselves."""

import subprocess

import made_up
from fake_gpu import FakeMachine, multiply, subject

from tir_schedules.bench.clocks import PTX, Cycles
from tir_schedules.bench.measure import Policy, measure
from tir_schedules.bench.tables import clock_range
from tir_schedules.compiler.toolchain import find_toolchain
from tir_schedules.workloads.gemm import Gemm


def noted(*sms):
    """Cycles of a machine on which SMs noted (cycles, nanoseconds) at both points."""
    cycles = Cycles(FakeMachine({}))
    for sm, points in enumerate(sms):
        cycles.notes.host[:, sm] = points
    return cycles.mhz()


def test_the_clock_is_that_of_the_median_sm_and_those_not_noted_do_not_count():
    fast, slow = ((5, 100), (2005, 1100)), ((7, 100), (1507, 1100))
    assert noted(fast, slow, slow) == 1500
    assert noted(fast, ((0, 0), (0, 0)), fast) == 2000
    assert noted() is None


def test_a_row_has_the_median_of_its_samples_without_those_of_settling(monkeypatch):
    clocks = iter([100.0, 100.0, 1980.0, 1700.0, None, *[1800.0] * 9])
    monkeypatch.setattr(Cycles, "mhz", lambda self: next(clocks))
    machine = FakeMachine({"right": multiply})
    (row,) = measure(machine, [subject("right", Gemm(8, 8, 8))], Policy(pause_s=0), monitor=machine).rows
    assert row["clock_mhz"] == 1800.0


def test_the_table_names_the_slowest():
    rows = [made_up.row_of(subject("sgemm/naive", Gemm(8, 8, 8)), 1.0) for _ in range(2)]
    assert clock_range(rows) == []
    (line,) = clock_range([row | {"clock_mhz": 1980.0 - 280.4 * place} for place, row in enumerate(rows)])
    assert line.endswith(": 1700 MHz (sgemm/naive (schedule) on 8x8x8) to 1980 MHz")


def test_ptxas_takes_the_kernel(tmp_path):
    (tmp_path / "note.ptx").write_text(PTX)
    subprocess.run([find_toolchain().nvcc, "-arch=sm_90", "-cubin", "note.ptx"], cwd=tmp_path, check=True)
