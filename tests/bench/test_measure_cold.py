"""Single launches: each after the L2 cache was overwritten, and on an idle GPU."""

from dataclasses import replace

import made_up
import pytest
from fake_gpu import FakeMachine, FakeVendors, multiply, subject

from tir_schedules.bench import measure as measure_module
from tir_schedules.bench.measure import SINGLE_SAMPLES, Policy, measure
from tir_schedules.bench.tables import print_results
from tir_schedules.subjects.results import document, load_results, save_results
from tir_schedules.workloads.gemm import Gemm

GEMM = Gemm(8, 8, 8)
QUICK = Policy(pause_s=0.0, settle_s=0.2, cold=True)


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(measure_module, "IDLE_S", 0.0)


def measured(machine, *subjects, policy=QUICK):
    return measure(machine, subjects, policy, vendors=FakeVendors(), monitor=machine)


def test_each_launch_comes_after_the_cache_was_overwritten_and_subjects_take_turns():
    machine = FakeMachine(dict.fromkeys(("one", "other"), multiply), {"one": 1e-5, "other": 3e-5})
    found = measured(machine, subject("one", GEMM), subject("other", GEMM))
    for row, micros in zip(found.rows, (10.0, 30.0)):
        assert row["cold_us"] == row["first_us"] == [micros] * SINGLE_SAMPLES
    single = [4 * ["copy"] + [name] for name in ("one", "one", "other", "other")]
    verified_again = 2 * 2
    assert machine.launched[:-verified_again][-9 * 20 :] == 9 * sum(single, [])


def test_they_are_timed_only_where_that_is_asked_for():
    found = measured(FakeMachine({"one": multiply}), subject("one", GEMM), policy=replace(QUICK, cold=False))
    assert not {"cold_us", "first_us"} & set(found.rows[0])


def test_an_error_refuses_that_subject_alone():
    machine = FakeMachine(dict.fromkeys(("one", "other"), multiply))

    def breaks(arguments):
        if machine.launched[-2] == "copy" and machine.launched[-3] == "copy":
            raise RuntimeError("cudaErrorIllegalAddress: no")
        multiply(arguments)

    machine.kernels["other"] = breaks
    found = measured(machine, subject("one", GEMM), subject("other", GEMM))
    assert [row["name"] for row in found.rows] == ["one"] and len(found.rows[0]["first_us"]) == SINGLE_SAMPLES
    assert [(row["name"], row["reason"]) for row in found.refused] == [
        ("other", "cudaErrorIllegalAddress: no")
    ]


def test_medians_stand_in_a_table_of_their_own_and_samples_in_the_file(capsys, tmp_path):
    machine = FakeMachine({"sgemm/naive": multiply}, {"sgemm/naive": 1e-5})
    results = document(made_up.SOURCE, measured(machine, subject("sgemm/naive", GEMM)), {}, [])
    save_results(results, tmp_path / "a.json")
    assert load_results(tmp_path / "a.json") == results
    print_results(results)
    out = capsys.readouterr().out
    assert "\nsgemm, us of a single launch: cold, first" in out and "\nnaive " in out
    assert "  10.0, 10.0\n" in out and "\ncold: its data not in the L2 cache; first: " in out
