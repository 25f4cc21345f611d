"""Measuring, on a fake GPU: what is timed and what is refused, how samples are taken, what a row says."""

import json
import subprocess
import sys

import numpy as np
import pytest
from fake_gpu import FakeMachine, FakeVendors, multiply, multiply_wrongly, reading, subject

from tir_schedules.bench.measure import Policy, measure
from tir_schedules.subjects.subject import Subject
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm

GEMM = Gemm(8, 8, 8)
QUICK = Policy(pause_s=0.0, settle_s=0.2)
CUBLAS = Subject("sgemm", "cuBLAS", "vendor", GEMM)


def measured(machine, *subjects, policy=QUICK):
    return measure(machine, subjects, policy, vendors=FakeVendors(), monitor=machine)


def test_a_row_says_what_was_timed_and_how_fast_it_is():
    machine = FakeMachine(
        {"right": multiply}, {"right": 1e-5}, [reading(1500), reading(1980, 410.04), reading(1400)]
    )
    (row,) = measured(machine, subject("right", GEMM)).rows
    assert (
        row["median_us"] == 10.0
        and row["rate"] == pytest.approx(GEMM.flops / 10.0 / 1e6)
        and row["unit"] == "TFLOPS"
    )
    assert row["samples_us"] == [10.0] * 5 and row["spread"] == 0 and row["launches_per_sample"] in (200, 201)
    assert (row["registers"], row["shared_bytes"], row["arch"]) == (40, 128, "sm_90")
    assert (row["family"], row["name"], row["form"], row["shape"], row["workload"]) == (
        "sgemm",
        "right",
        "schedule",
        "8x8x8",
        vars(GEMM),
    )
    assert row["verified"] is True and json.loads(json.dumps(row)) == row


def test_clocks_of_settling_do_not_count():
    readings = [reading(210)] * 2 + [reading(1900)] * 2 + [reading(1800, 500.0, ("power cap",))] * 9
    machine = FakeMachine({"right": multiply}, readings=readings)
    (row,) = measured(machine, subject("right", GEMM)).rows
    assert row["sm_mhz"] == [1800, 1900] and row["power_w"] == 500.0 and row["throttled"] == ["power cap"]


def test_without_nvml_the_fields_are_absent():
    found = measured(FakeMachine({"right": multiply}), subject("right", GEMM))
    assert not {"sm_mhz", "power_w", "throttled"} & set(found.rows[0])
    assert [limit["name"] for limit in found.limits] == ["copy bandwidth"]


def test_what_does_not_verify_is_refused_and_never_timed():
    machine = FakeMachine({"right": multiply, "wrong": multiply_wrongly})
    found = measured(machine, subject("wrong", GEMM), subject("right", GEMM))
    assert [row["name"] for row in found.rows] == ["right"]
    (refused,) = found.refused
    assert refused["name"] == "wrong" and refused["shape"] == "8x8x8"
    assert refused["reason"].startswith("does not verify: C[0, 0] is nan")
    assert machine.launched.count("wrong") == 1 and "wrong" not in [entry for entry, *_ in machine.timed]


def test_a_kernel_that_writes_nothing_does_not_pass_on_what_another_left():
    machine = FakeMachine({"right": multiply, "idle": lambda arguments: None})
    found = measured(machine, subject("right", GEMM), subject("idle", GEMM))
    assert [row["name"] for row in found.rows] == ["right"]
    assert "64 of 64 elements wrong" in found.refused[0]["reason"]


def test_what_goes_wrong_while_it_is_timed_loses_its_row():
    runs = []

    def tires(arguments):
        runs.append(1)
        (multiply if len(runs) < 100 else multiply_wrongly)(arguments)

    found = measured(
        FakeMachine({"tires": tires, "right": multiply}), subject("tires", GEMM), subject("right", GEMM)
    )
    assert [row["name"] for row in found.rows] == ["right"]
    assert [row["name"] for row in found.refused] == ["tires"] and "does not verify" in found.refused[0][
        "reason"
    ]


@pytest.mark.parametrize(
    "last", [1, 2, 20, 60, 120], ids=["first launch", "first time", "graph", "settling", "timing"]
)
def test_an_error_while_timing_refuses_that_subject_alone(last):
    runs = []

    def breaks(arguments):
        multiply(arguments)
        runs.append(1)
        if len(runs) > last:
            raise RuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered\nmore")

    found = measured(
        FakeMachine({"breaks": breaks, "right": multiply}), subject("breaks", GEMM), subject("right", GEMM)
    )
    assert [row["name"] for row in found.rows] == ["right"]
    assert [row["reason"] for row in found.refused] == [
        "cudaErrorIllegalAddress: an illegal memory access was encountered"
    ]


def test_a_gpu_that_is_lost_ends_in_refused_rows():
    machine = FakeMachine({"right": multiply})

    def breaks(arguments):
        machine.sticky = "breaks (cudaErrorIllegalAddress)"
        raise RuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")

    machine.kernels["breaks"] = breaks
    found = measured(
        machine, subject("right", GEMM), subject("breaks", GEMM), subject("right", Gemm(4, 4, 4))
    )
    assert found.rows == [] and len(found.refused) == 3
    assert "breaks (cudaErrorIllegalAddress) left the GPU unusable" in found.refused[-1]["reason"]


def test_too_little_memory_refuses_the_workload_and_goes_on(monkeypatch):
    original, big = Gemm.arguments, Gemm(16, 16, 16)

    def arguments(gemm, *draw):
        if gemm == big:
            raise MemoryError("Out of memory allocating 1,024 bytes")
        return original(gemm, *draw)

    monkeypatch.setattr(Gemm, "arguments", arguments)
    found = measured(
        FakeMachine({"right": multiply}),
        subject("right", big),
        subject("right", big, "twin"),
        subject("right", GEMM),
    )
    assert [row["shape"] for row in found.rows] == ["8x8x8"]
    assert [(row["form"], row["reason"]) for row in found.refused] == [
        ("schedule", "Out of memory allocating 1,024 bytes"),
        ("twin", "Out of memory allocating 1,024 bytes"),
    ]


def test_a_library_is_verified_and_timed_like_a_kernel():
    machine = FakeMachine({"right": multiply, "cuBLAS": multiply})
    found = measured(machine, subject("right", GEMM), CUBLAS)
    assert [row["name"] for row in found.rows] == ["right", "cuBLAS"] and "registers" not in found.rows[1]
    assert found.device["cublas"] == "1.2.3"
    assert [row["name"] for row in measured(FakeMachine({"cuBLAS": multiply_wrongly}), CUBLAS).refused] == [
        "cuBLAS"
    ]


def in_two_parts(arguments):
    """A library that adds two parts of K in C's format."""
    a, b = (arguments[name].astype("float32") for name in "AB")
    half = a.shape[1] // 2
    parts = [(a[:, part] @ b[part]).astype("float16") for part in (slice(half), slice(half, None))]
    arguments["C"][:] = parts[0] + parts[1]


def test_a_library_may_add_parts_of_k_in_the_format_of_c():
    workload = HalfGemm(8, 8, 64, "nn", "float32", output="float16")
    library = Subject("hgemm", "cuBLAS", "vendor", workload)
    kernel = subject("kernel", workload)
    found = measured(FakeMachine({"kernel": in_two_parts, "cuBLAS": in_two_parts}), kernel, library)
    assert [row["name"] for row in found.rows] == ["cuBLAS"]
    assert [row["name"] for row in found.refused] == ["kernel"]
    wrong = measured(FakeMachine({"cuBLAS": multiply_wrongly}), library)
    assert not wrong.rows and "does not verify" in wrong.refused[0]["reason"]


def test_subjects_of_a_workload_take_turns_and_workloads_do_not_mix():
    machine = FakeMachine({"one": multiply, "two": multiply})
    other = Gemm(4, 4, 4)
    found = measured(machine, subject("one", GEMM), subject("one", other), subject("two", GEMM))
    assert [(row["name"], row["shape"]) for row in found.rows] == [
        ("one", "8x8x8"),
        ("two", "8x8x8"),
        ("one", "4x4x4"),
    ]
    order = [entry for entry, *_ in machine.timed]
    turns = order[: order.index("two") * 2 * (order.count("two"))]
    assert turns == ["one", "two"] * (len(turns) // 2) and len(turns) >= 10


def test_a_sample_rotates_through_buffers_that_exceed_the_cache():
    machine = FakeMachine({"right": multiply})
    machine.l2_bytes = 5 * GEMM.bytes // 2 + 1
    measured(machine, subject("right", GEMM))
    for _, launches, outputs in machine.timed:
        assert launches >= 6 and len(set(outputs)) == 6
        assert all(one != next_ for one, next_ in zip(outputs, outputs[1:]))


def test_a_launch_that_takes_long_is_a_sample_by_itself_and_few_are_taken():
    machine = FakeMachine({"slow": multiply}, {"slow": 0.5})
    (row,) = measured(machine, subject("slow", GEMM)).rows
    assert row["launches_per_sample"] == 1 and row["samples_us"] == [500000.0] * 3
    assert machine.launched.count("slow") == 2 + 2 + 3 + 2  # verified, guessed, timed, verified


def test_waiting_in_the_first_launches_does_not_make_samples_short():
    """A launch by itself seems to take 2 ms, one in a graph takes 10 us."""
    machine = FakeMachine({"right": multiply}, {"right": lambda number: 2e-3 if number < 4 else 1e-5})
    (row,) = measured(machine, subject("right", GEMM)).rows
    assert row["launches_per_sample"] >= 200


def test_half_precision_is_timed_on_reals_and_verified_on_integers_and_reals():
    seen = []

    def spy(arguments):
        seen.append(arguments["A"].host)
        multiply(arguments)

    gemm = HalfGemm(8, 8, 8, "nn", "float16")
    machine = FakeMachine({"spy": spy})
    (row,) = measured(machine, subject("spy", gemm, family="hgemm")).rows
    exact = [bool((array == np.rint(array)).all()) for array in seen]
    assert exact[0] and exact[-2] and not any([*exact[1:-2], exact[-1]])
    assert not np.array_equal(seen[0], seen[-2]) and not np.array_equal(
        seen[1], seen[-1]
    )  # other numbers afterwards
    assert row["shape"] == "8x8x8 nn float16"


def test_measuring_needs_no_compiler():
    """Where a pack is timed there may be neither TVM nor nvcc nor what the compile cache needs."""
    hide = "import sys; sys.modules.update(dict.fromkeys(['tvm', 'platformdirs', 'rich', 'cupy']))"
    code = f"{hide}; import tir_schedules.bench.measure, tir_schedules.machines.gpu"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_limits_are_those_of_the_clock_seen():
    found = measured(
        FakeMachine({"right": multiply}, {"copy": 1e-6}, [reading(1000)]), subject("right", GEMM)
    )
    bandwidth, peak = found.limits
    assert (
        bandwidth["rate"] == pytest.approx(bandwidth["bytes"] / 1e3, rel=0.1)
        and len(bandwidth["samples_us"]) == 9
    )
    assert peak["rate"] == pytest.approx(10 * 128 * 2 * 1e9 / 1e12) and peak["sm_mhz"] == 1000
    assert peak["how"] == "10 SMs x 128 lanes x 2 operations x 1000 MHz"
