"""Of the candidates of a library the fastest is timed, and of the others something is told."""

import made_up
import pytest
from fake_gpu import FakeMachine, FakeVendors, multiply, multiply_wrongly, subject

from tir_schedules.bench.measure import Policy, measure
from tir_schedules.bench.tables import print_results
from tir_schedules.subjects.results import document, load_results, save_results
from tir_schedules.subjects.subject import Subject
from tir_schedules.workloads.gemm import Gemm

GEMM = Gemm(8, 8, 8)
LIBRARY = Subject("sgemm", "cuBLASLt", "vendor", GEMM)
QUICK = Policy(pause_s=0.0, settle_s=0.2)
NAMES = ("cuBLASLt 0", "cuBLASLt 1", "cuBLASLt 2")
MILLISECONDS = dict(zip(NAMES, (0.003, 0.001, 0.002)))


def measured(machine, *subjects, candidates=3, notes=()):
    vendors = FakeVendors(candidates, notes)
    return measure(machine, subjects, QUICK, vendors=vendors, monitor=machine)


def test_the_fastest_is_timed_in_turns_with_the_others_subjects():
    machine = FakeMachine(dict.fromkeys((*NAMES, "right"), multiply), {"right": 0.004, **MILLISECONDS})
    found = measured(machine, subject("right", GEMM), LIBRARY)
    assert [(row["name"], row["median_us"]) for row in found.rows] == [
        ("right", 4000.0),
        ("cuBLASLt", 1000.0),
    ]
    detail = found.rows[1]["vendor_detail"]
    assert detail["chosen"] == 1 and [one["tile"] for one in detail["candidates"]] == [0, 1, 2]
    assert [one["samples_us"] for one in detail["candidates"]] == [3 * [us] for us in (3e3, 1e3, 2e3)]
    assert detail["candidates"][1] == {
        "algorithm": 66,
        "tile": 1,
        "stages": 3,
        "split_k": 1,
        "cluster": 0,
        "workspace_bytes": 1024,
        "reduction": 0,
        "samples_us": 3 * [1e3],
    }
    timed = [entry for entry, *_ in machine.timed if entry != "copy"]
    assert timed[:9] == 3 * list(NAMES) and set(timed[9:]) == {"right", "cuBLASLt 1"}
    assert "vendor_detail" not in found.rows[0] and not found.refused


def test_one_that_is_wrong_is_told_and_not_timed_though_it_is_the_fastest():
    kernels = dict.fromkeys(NAMES, multiply) | {"cuBLASLt 1": multiply_wrongly}
    machine = FakeMachine(kernels, MILLISECONDS)
    found = measured(machine, LIBRARY)
    detail = found.rows[0]["vendor_detail"]
    assert (
        detail["chosen"] == 2 and not found.refused and "cuBLASLt 1" not in [one for one, *_ in machine.timed]
    )
    assert detail["candidates"][1]["refused"].startswith("does not verify: C[0, 0]")
    assert "samples_us" not in detail["candidates"][1]


def test_one_that_breaks_while_it_is_timed_is_not_chosen():
    runs = []

    def breaks(arguments):
        multiply(arguments)
        runs.append(1)
        if len(runs) > 40:
            raise RuntimeError("cudaErrorLaunchTimeout: it took too long")

    found = measured(
        FakeMachine(dict.fromkeys(NAMES, multiply) | {"cuBLASLt 1": breaks}, MILLISECONDS), LIBRARY
    )
    detail = found.rows[0]["vendor_detail"]
    assert detail["chosen"] == 2 and "took too long" in detail["candidates"][1]["refused"]
    assert len(runs) == 41  # not once more


@pytest.mark.parametrize("last", [0, 60], ids=["before", "after"])
def test_a_library_without_a_right_candidate_is_refused_as_one(last):
    runs = []

    def tires(arguments):
        runs.append(1)
        (multiply if len(runs) < last else multiply_wrongly)(arguments)

    found = measured(
        FakeMachine({"cuBLASLt 0": tires, "cuBLASLt 1": multiply_wrongly}), LIBRARY, candidates=2
    )
    (refused,) = found.refused
    assert not found.rows and refused["name"] == "cuBLASLt"
    assert refused["reason"].startswith("candidate ") and "does not verify" in refused["reason"]


def test_a_missing_library_is_a_note_that_is_kept_and_printed(capsys, tmp_path):
    found = measured(
        FakeMachine({"right": multiply}), subject("right", GEMM), LIBRARY, candidates=0, notes=["so"]
    )
    assert [row["name"] for row in found.rows] == ["right"] and not found.refused
    results = document(made_up.SOURCE, found, {}, [])
    save_results(results, tmp_path / "a.json")
    assert load_results(tmp_path / "a.json")["notes"] == ["so"]
    print_results(results)
    assert capsys.readouterr().out.endswith("\nso\n")
