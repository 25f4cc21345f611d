"""--tuned of `run` and `bench`: which record is taken, what is said of it, and what is refused. Whether a
record holds is in test_validation.py."""

import os
from dataclasses import asdict
from types import SimpleNamespace

import pytest
from made_records import record

from tir_schedules.bench import session
from tir_schedules.bench.sampling import Policy
from tir_schedules.cli import main as cli
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.ladders.problems import Problem
from tir_schedules.ladders.registry import find_one
from tir_schedules.machines.choice import choose
from tir_schedules.tuning.measure import lookup, validation
from tir_schedules.tuning.records import database
from tir_schedules.tuning.space.tunable import space_of
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.reduction import Reduction

RUNG, SHAPE = "sgemm/pipelined", Gemm(128, 128, 32)
H200 = SimpleNamespace(name="gpu", device_name="NVIDIA H200", arch="sm_90")


def point(**changes):
    space = space_of(RUNG)
    return {**space.point_of(space.rung.config), **changes}


@pytest.fixture
def file(tmp_path, monkeypatch):
    """keep(*records): a file of records, all of which hold but those whose error is in `doubts`, by trial."""
    monkeypatch.setattr(database, "own_records", lambda: tmp_path / "own.jsonl")
    monkeypatch.setattr(database, "SHIPPED", tmp_path / "shipped")
    doubts = {}

    def validated(found, machine=None):
        if found.trial in doubts:
            raise CheckFailed(doubts[found.trial])
        return space_of(found.rung).rung_at(found.point)

    monkeypatch.setattr(validation, "validated", validated)

    def keep(*kept, path=tmp_path / "records.jsonl"):
        path.parent.mkdir(exist_ok=True)
        for each in kept:
            database.Database(path).append(each)
        return path

    keep.doubts = doubts
    return keep


def trial(number, micros, **changes):
    return record(
        number, SHAPE, **{"point": point(bk=8 * (1 + number)), "seconds": (micros * 1e-6,), **changes}
    )


def jobs(path, machine, arch="sm_90", names=(RUNG,), *problems):
    rungs = [find_one(name, "run") for name in names]
    asked = {rung.family: [Problem(rung.family)] for rung in rungs}
    asked |= {problem.ladder: [problem] for problem in problems}
    return lookup.tuned_jobs(rungs, asked, str(path), machine, arch)


def test_the_best_of_this_device_is_taken_and_named(file, capsys):
    path = file(
        trial(0, 9),
        trial(1, 5),
        trial(2, 1, device="NVIDIA H100"),
        record(3, SHAPE, seconds=(), error="wrong"),
    )
    ((rung, workload),) = jobs(path, H200)
    assert (rung.id, workload) == (f"{RUNG}:tuned", SHAPE)
    assert (
        capsys.readouterr().err
        == f"tir-schedules: {RUNG} on 128x128x32: measured 5 us on NVIDIA H200, 2026-01-01, trial 1 of"
        f" {path}\n"
    )


def test_on_the_cpu_machine_all_for_the_architecture_count_measured_ones_first(file, capsys):
    guess = {"kind": "predicted", "device": "CPU machine"}
    path = file(trial(0, 1, **guess), trial(1, 7), trial(2, 0.5, arch="sm_80", **guess))
    jobs(path, choose("cpu"))
    assert "measured 7 us on NVIDIA H200" in capsys.readouterr().err
    jobs(path, choose("cpu"), "sm_80")
    assert "predicted 0.5 us on CPU machine" in capsys.readouterr().err


def test_a_record_that_does_not_hold_is_refused_with_its_reason(file, capsys):
    path = file(trial(0, 9), trial(1, 5))
    file.doubts[1] = "nvcc was 12.0, it is 13.0 here"
    jobs(path, H200)
    refusal, taken = capsys.readouterr().err.splitlines()
    assert "not used: nvcc was 12.0" in refusal and "measured 9 us" in taken
    file.doubts[0] = "wrong"
    with pytest.raises(CheckFailed, match=f"no record of {RUNG} on 128x128x32 holds any more: tune again"):
        jobs(path, H200)


def test_no_record_is_a_line_that_says_how_to_tune(file):
    path = file(trial(0, 9))
    advice = f"`tir-schedules tune {RUNG} --mnk 64,64,64 --arch sm_90`"
    with pytest.raises(BadInput, match=rf"no record of {RUNG} for NVIDIA H200 in .* on 64x64x64: {advice}"):
        jobs(path, H200, "sm_90", [RUNG], Problem("sgemm", (64, 64, 64)))
    with pytest.raises(
        BadInput,
        match="tune hgemm/mma_multistage --mnk 1024,1024,1024 --layout nt --accumulate float16"
        " --result float16 --arch",
    ):
        jobs(path, H200, names=["hgemm/mma_multistage"])
    with pytest.raises(BadInput, match=r"tune reduce/vectorized --n 2\^25 --dtype int32 --arch sm_90`"):
        jobs(path, H200, names=["reduce/vectorized"])
    with pytest.raises(BadInput, match=r"tune reduce/vectorized --n 4099 --dtype float32 --arch sm_90`"):
        jobs(path, H200, "sm_90", ["reduce/vectorized"], Problem("reduce", (4099,), "float32"))
    with pytest.raises(
        BadInput, match=r"for sm_80 in .*records.jsonl, only for NVIDIA H200 \(sm_90\): `tir-schedules tune"
    ):
        jobs(path, choose("cpu"), "sm_80")
    with pytest.raises(BadInput, match="there is no file nowhere.jsonl"):
        jobs("nowhere.jsonl", H200)
    with pytest.raises(BadInput, match="sgemm/naive cannot be tuned"):
        jobs(path, H200, names=["sgemm/naive"])
    with pytest.raises(BadInput, match="name sgemm/multistage, not sgemm/multistage:"):
        jobs(path, H200, names=["sgemm/multistage:32x64"])


def test_without_a_file_your_own_records_come_before_those_shipped(file, tmp_path, capsys):
    file(trial(0, 3), path=tmp_path / "shipped" / "nvidia_h200.jsonl")
    jobs("", H200)
    assert "measured 3 us" in capsys.readouterr().err
    file(trial(0, 8), path=tmp_path / "own.jsonl")
    jobs("", H200)
    assert "measured 8 us" in capsys.readouterr().err


def test_a_tampered_file_is_refused_with_the_line(file):
    path = file(trial(0, 9), trial(1, 5))
    changed = path.read_text().replace('"trial":1', '"trial":2')
    path.write_text(changed)
    with pytest.raises(CheckFailed, match="records.jsonl, line 2"):
        jobs(path, H200)


def test_run_executes_the_tuned_schedule_alone_for_a_twin_may_not_take_its_configuration(file, capsys):
    smallest = next(space_of(RUNG).points(SHAPE, "sm_90"))
    path = file(trial(0, 9, point=smallest, workload=asdict(Gemm(8192, 8192, 8192))))
    code = cli.main(["run", RUNG, "--tuned", str(path), "--machine", "cpu", "--arch", "sm_90"])
    out = capsys.readouterr().out
    assert code == 0 and f"{RUNG}:tuned" in out and "1 of 1 verified" in out
    assert "64x96x32" in out, "a small GEMM that takes the same paths"


def reduction_of(n, dtype="int32", number=0, **changes):
    made = {
        "rung": "reduce/vectorized",
        "family": "reduce",
        "point": {"block": 128, "unroll": 2, "most_blocks": 131072},
    }
    return record(number, Reduction(n, dtype), **{**made, **changes})


def test_reductions_are_looked_up_by_length_and_kind_of_number(file):
    path = file(
        reduction_of(4099), reduction_of(4099, "float32", 1), reduction_of(1 << 20, number=2), trial(0, 9)
    )
    names = ["reduce/vectorized"]
    assert [str(workload) for _, workload in jobs(path, H200, names=names)] == [
        "4099 int32",
        "4099 float32",
        "1048576 int32",
    ]
    assert [
        str(workload) for _, workload in jobs(path, H200, "sm_90", names, Problem("reduce", dtype="float32"))
    ] == ["4099 float32"]
    assert [
        str(workload) for _, workload in jobs(path, H200, "sm_90", names, Problem("reduce", (4099,)))
    ] == [
        "4099 int32",
        "4099 float32",
    ]
    both = jobs(path, H200, "sm_90", [RUNG, *names], Problem("reduce", (4099,), "int32"))
    assert [str(workload) for _, workload in both] == [
        "128x128x32",
        "4099 int32",
    ], "--n says nothing of GEMMs"


def test_run_executes_all_launches_of_a_tuned_reduction(file, capsys):
    path = file(reduction_of(1 << 26, point={"block": 128, "unroll": 2, "most_blocks": 128}))
    code = cli.main(["run", "reduce/vectorized", "--tuned", str(path), "--machine", "cpu", "--arch", "sm_90"])
    out = capsys.readouterr().out
    assert code == 0 and "reduce/vectorized:tuned" in out and "1 of 1 verified" in out
    assert "8192 int32" in out, "two launches, and more turns than are unrolled"


def test_bench_times_the_tuned_rung_beside_the_one_chosen_by_hand(file, monkeypatch):
    path = file(trial(0, 9))
    seen = []
    monkeypatch.setattr(session, "gpu_machine", lambda: H200)
    monkeypatch.setattr(
        "tir_schedules.subjects.compiling.compile_jobs",
        lambda jobs, arch, twin: seen.extend(jobs) or ([], []),
    )
    measurement = SimpleNamespace(rows=[], refused=[], limits=[], notes=[], device={"name": "NVIDIA H200"})
    monkeypatch.setattr(session, "measure_subjects", lambda *arguments: (measurement, Policy()))
    assert cli.main(["bench", RUNG, "--tuned", str(path), "--json"]) == 0
    assert [(rung.id, asdict(workload)) for rung, workload in seen] == [
        (RUNG, asdict(SHAPE)),
        (f"{RUNG}:tuned", asdict(SHAPE)),
    ]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            ["run", RUNG, "--tuned", os.devnull, "--configs"],
            "--tuned chooses the configuration: leave out --configs",
        ),
        (["bench", RUNG, "--tuned", os.devnull, "--configs"], "leave out --configs"),
        (["bench", RUNG, "--tuned", "x", "--predict"], "--tuned does not go with --predict"),
        (["bench", "--tuned", "x", "--from", "y"], "--tuned does not go with --from"),
    ],
)
def test_options_that_do_not_go_together(arguments, message, capsys):
    assert cli.main(arguments) == 2
    assert message in capsys.readouterr().err
