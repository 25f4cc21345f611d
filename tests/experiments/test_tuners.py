"""Tuned records beside dlight and MetaSchedule's own rules: the table, merging and reading it, the script as
users call it."""

from dataclasses import asdict
from types import SimpleNamespace

import made_records
import made_up
import numpy as np
import pytest
import tuners
from fake_gpu import FakeMachine
from fake_gpu import subject as fake_subject
from tuners_candidates import TooSlow
from tuners_rules import DLIGHT, METASCHEDULE
from tuners_tables import (
    FAMILIES,
    HAND,
    NOTHING,
    TUNED,
    described,
    first_error,
    load_tuners,
    merged,
    section,
    table,
)

from tir_schedules.bench import session
from tir_schedules.bench.measure import Policy
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.ladders.registry import find_one
from tir_schedules.model.kernel import Binary, Kernel, Resources
from tir_schedules.subjects.results import document, save_results
from tir_schedules.subjects.subject import Subject
from tir_schedules.tuning.measure import gpu_timing, validation
from tir_schedules.tuning.records.database import Database
from tir_schedules.tuning.space.tunable import space_of
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm

ARCH = "sm_90"
WHOLE, RAGGED = Gemm(128, 64, 32), Gemm(100, 72, 40)


CONFIG = asdict(find_one("hgemm/mma_multistage", "test").config)


def results_of(
    family="sgemm", workload=Gemm(1024, 1024, 1024), rates=None, refused=(), trials=64, trouble=(), **facts
):
    """A results document of one shape. rates: microseconds by role, of two hand-chosen rungs."""
    times = {
        "multistage:32x32": 12.0,
        "pipelined": 10.0,
        TUNED: 8.0,
        DLIGHT: 40.0,
        METASCHEDULE: 20.0,
        "cuBLAS": 16.0,
    } | (rates or {})
    rows, points = [], []
    for name, micros in times.items():
        role = name if name in (TUNED, DLIGHT, METASCHEDULE) else HAND
        full = f"{family}/pipelined:tuned" if role == TUNED else f"{family}/{name}" if role == HAND else name
        how = {HAND: {"config": {"bm": 128, "bn": 64, "bk": 16, "stages": 3}}, DLIGHT: {"rule": "Matmul"}}
        how |= {TUNED: {"config": {"bm": 64, "bn": 32, "bk": 8, "tm": 4, "tn": 8, "padding": 4}}}
        how |= {METASCHEDULE: {"trials": trials, "refused": list(trouble), "search_s": 99.5}}
        subject = (
            Subject(family, full, "schedule", workload)
            if name != "cuBLAS"
            else Subject(family, name, "vendor", workload)
        )
        if micros:
            rows.append(made_up.row_of(subject, micros, **facts))
        if name != "cuBLAS":
            points.append({"family": family, "name": full, "shape": str(workload), "role": role, **how[role]})
    rows_refused = [
        Subject(family, name, "schedule", workload).refused("does not verify") for name in refused
    ]
    measurement = SimpleNamespace(
        rows=rows, refused=rows_refused, limits=made_up.LIMITS, notes=[], device=made_up.DEVICE
    )
    return document(made_up.SOURCE, measurement, {"sustained": False}, []) | {"points": points}


def line_of(text, start):
    (line,) = [line for line in text.splitlines() if line.startswith(start)]
    return [cell.strip() for cell in line.strip("| ").split("|")]


def test_a_line_has_the_fastest_by_hand_the_tuned_one_and_their_ratio():
    text = section("sgemm", results_of())
    by_hand, others = ["hand-chosen", "its rate"], ["dlight", "MetaSchedule", "its trials", "cuBLAS"]
    heads = [*by_hand, "tuned", "its rate", "tuned / hand-chosen", *others]
    assert line_of(text, "| sgemm, TFLOPS")[1:] == heads
    kernels = ["pipelined 128x64x16, stages 3", "215", "pipelined 64x32x8, thread 4x8, padding 4", "268"]
    assert line_of(text, "| 1024") == ["1024", *kernels, "1.25x", "53.7", "107", "64", "134"]
    assert (
        "- Made-up GPU, driver 1.2.3, SM clock 1975 to 1980 MHz, CUDA 13.0.88, TVM 0.27.0, revision"
        " 0123456789ab" in text
    )
    assert (
        "- Tuned / hand-chosen: 1.250x in the geometric mean, lowest 1.250x." in text
        and "fp32 peak 66.9" in text
    )
    assert (
        "- A search of MetaSchedule took 100 to 100 s." in text
        and "dlight on" not in text
        and "refused" not in text
    )


def test_where_dlight_does_not_take_its_first_rule_that_is_said():
    results = results_of()
    next(point for point in results["points"] if point["role"] == DLIGHT)["rule"] = "Fallback"
    assert "- dlight on 1024: Matmul does not take it, Fallback does.\n" in section("sgemm", results) + "\n"


def test_without_a_record_there_is_no_ratio():
    results = results_of(rates={TUNED: None})
    results["points"] = [point for point in results["points"] if point["role"] != TUNED]
    assert line_of(section("sgemm", results), "| 1024")[3:6] == ["", "", ""] and "geometric" not in section(
        "sgemm", results
    )


def test_of_a_compilation_that_failed_the_first_error_is_said():
    said = (
        "a: nvcc 13.0.88 does not compile it for sm_90: a.cu(3): error: too many arguments a.cu(7): error:"
        " too many again"
    )
    assert first_error(said) == "too many arguments"
    assert first_error("C[0, 0] is nan") == "C[0, 0] is nan"


def test_what_was_refused_or_throttled_is_said():
    trouble = [
        {"kind": "wrong", "count": 2, "reason": "C[0, 0] is nan"},
        {"kind": "not run", "count": 1, "reason": "too large"},
    ]
    results = results_of(
        rates={METASCHEDULE: None}, refused=[METASCHEDULE], trouble=trouble, throttled=["power cap"]
    )
    text = section("sgemm", results)
    assert line_of(text, "| 1024")[6:] == ["53.7\\*", "refused", "64, 3 refused", "134\\*"]
    assert (
        "- Refused in the search of MetaSchedule on 1024: 2 wrong (C[0, 0] is nan), 1 not run (too large)."
        in text
    )
    assert (
        "- refused: MetaSchedule (schedule) on 1024x1024x1024: does not verify" in text
        and "- \\* the GPU lowered" in text
    )


def test_a_configuration_is_written_in_short():
    point = {"name": "hgemm/mma_multistage:tuned", "config": CONFIG}
    text = described(point)
    assert text.startswith(
        f"mma_multistage {CONFIG['bm']}x{CONFIG['bn']}x{CONFIG['bk']}, warp {CONFIG['wm']}x{CONFIG['wn']}, "
    )
    assert all(f", {name} {CONFIG[name]}" in text for name in ("stages", "threadblock_swizzle"))


def test_families_have_tables_of_their_own():
    half = results_of("hgemm", HalfGemm(512, 6144, 2048), rates={"mma_multistage": 3.0})
    both = merged([results_of(), half])
    assert section("sgemm", both) == section("sgemm", results_of())
    assert all(
        line_of(section("hgemm", both), start) for start in ("| hgemm nt float16, TFLOPS", "| 512x6144x2048")
    )
    assert section("sgemm", half) == section("hgemm", None) == NOTHING
    with pytest.raises(BadInput, match="'reduce'"):
        section("reduce", both)


def test_of_a_shape_measured_twice_the_last_counts_and_only_like_is_merged():
    slower, other = results_of(rates={DLIGHT: 80.0}), results_of(workload=Gemm(512, 512, 512))
    both = merged([results_of(), other, slower])
    assert table("sgemm", both)[1] == table("sgemm", other)[1] + table("sgemm", slower)[1]
    assert len(both["points"]) == 10 and len(both["limits"]) == 2
    for change in ({"versions": {}}, {"git_revision": "f00"}, {"device": {"name": "Another GPU"}}):
        with pytest.raises(BadInput, match=next(iter(change))):
            merged([results_of(), other | change])


@pytest.fixture
def call(calling):
    """Calls the script."""
    return calling(tuners.main)


def test_what_was_recorded_can_be_shown_merged_and_written(call, tmp_path):
    paths = [tmp_path / "a.json", tmp_path / "b.json", tmp_path / "both.json"]
    save_results(results_of(), paths[0])
    save_results(results_of("hgemm", HalfGemm(512, 512, 512), rates={"mma_multistage": 3.0}), paths[1])
    code, out, _ = call("--from", paths[0])
    assert code == 0 and "pipelined 64x32x8, thread 4x8, padding 4" in out and "hgemm" not in out
    code, out, _ = call("--merge", *paths[:2], "-o", paths[2])
    assert code == 0 and "sgemm, TFLOPS" in out and "hgemm nt float16, TFLOPS" in out
    readme = tmp_path / "R.md"
    readme.write_text("".join(f"<!-- tuners: {family} -->\nold\n<!-- end -->\n" for family in FAMILIES))
    options = ("--from", paths[2], "--readme", readme)
    assert (
        call("--check", *options)[0] == 1
        and call("--write", *options)[0] == 0
        and call("--check", *options)[0] == 0
    )
    sections = [(family, section(family, load_tuners(paths[2]))) for family in FAMILIES]
    assert readme.read_text() == "".join(
        f"<!-- tuners: {family} -->\n\n{text}\n\n<!-- end -->\n" for family, text in sections
    )


def test_the_readme_of_the_experiments_is_what_was_recorded(call):
    assert call("--check")[0] == 0


def broken(results, change):
    change(results)
    return results


@pytest.mark.parametrize("change", [
    lambda results: results.pop("points"),
    lambda results: results["points"][0].pop("role"),
    lambda results: results["points"][0].update(role="unknown"),
    lambda results: results["points"][0].pop("config"),
    lambda results: results["points"][-1].update(refused=[{"kind": "wrong"}]),
])  # fmt: skip
def test_another_file_is_refused_in_one_line(call, tmp_path, change):
    path = tmp_path / "x.json"
    save_results(broken(results_of(), change), path)
    code, out, err = call("--from", path)
    assert (code, out) == (2, "") and f"{path} is not a results file" in err and err.count("\n") == 1


@pytest.mark.parametrize("arguments, message", [
    (["reduce"], "'reduce'"),
    (["--mnk", "1,2"], "--mnk"),
    (["--mnk", "0,2,3"], "M is 0"),
    (["--trials", "0"], "--trials"),
    (["--emit", "nowhere"], "nowhere"),
    (["--emit", ".", "-o", "x.json"], "--output"),
    (["--emit", ".", "--arch", "sm_1"], "sm_1"),
    (["-o", "nowhere/x.json"], "nowhere"),
    (["--records", "nowhere.jsonl"], "nowhere.jsonl"),
    (["--from", "nowhere.json"], "nowhere.json"),
    (["--from", "x.json", "--merge", "y.json"], "--from"),
    (["--write", "sgemm"], "sgemm"),
    (["--check", "--mnk", "1,2,3"], "--mnk"),
])  # fmt: skip
def test_bad_input_is_said_in_one_line(call, arguments, message, gpu, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tuners, "compared", lambda *arguments: pytest.fail("measures"))
    monkeypatch.setattr(tuners, "dlight_kernel", lambda *arguments: pytest.fail("schedules"))
    code, out, err = call(*arguments)
    assert (code, out) == (2, "") and message in err and err.count("\n") == 1


def test_dlights_kernels_are_written_without_a_gpu(call, tmp_path):
    code, out, _ = call("sgemm", "--emit", tmp_path, "--mnk", "128,64,32", "--arch", ARCH)
    (path,) = tmp_path.iterdir()
    assert path.name == "dlight_sgemm_128x64x32.cu" and 'extern "C" __global__ void' in path.read_text()
    assert (
        code == 0
        and out == f"{path}: rule Matmul, {out.split('rule Matmul, ')[1]}"
        and "8x16x1 threads" in out
    )


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    """A made-up GPU, on which everything takes 10 microseconds; seen: what was timed together; found: what a
    search would do."""
    fake = SimpleNamespace(
        name="gpu", arch=ARCH, device_name="Made-up GPU", broken="", xp=np, seen=[], search=lambda found: None
    )

    def timed(machine, subjects, policy, cub):
        fake.seen.append(list(subjects))
        rows = [made_up.row_of(subject, 10.0) for subject in subjects]
        return SimpleNamespace(
            rows=rows, refused=[], limits=made_up.LIMITS, notes=[], device=made_up.DEVICE
        ), Policy()

    def search(family, workload, found):
        found.tried = found.budget
        fake.search(found)
        found.progress(found)

    def validated(record, machine):
        return space_of(record.rung).rung_at(record.point)

    monkeypatch.setattr(tuners, "the_gpu", lambda otherwise: fake)
    monkeypatch.setattr(tuners, "search", search)
    monkeypatch.setattr(tuners, "compile_kernel", lambda kernel: Binary(kernel, "", b"", Resources(32, 0)))
    monkeypatch.setattr(session, "measure_subjects", timed)
    monkeypatch.setattr("tir_schedules.tuning.records.database.own_records", lambda: tmp_path / "own.jsonl")
    monkeypatch.setattr(validation, "validated", validated)
    return fake


SHAPE = ("--mnk", "128,64,32")
BINARY = Binary(
    Kernel("found", "", "found", ("A", "B", "C"), (1, 1, 1), (32, 1, 1), ARCH), "", b"", Resources(32, 0)
)


def test_all_kernels_of_a_shape_are_timed_together(call, gpu, tmp_path):
    rung = find_one("sgemm/pipelined", "test")
    point = space_of(rung.id).point_of(rung.config)
    space = space_of(rung.id)
    best = next(space.points(WHOLE, ARCH))
    Database(tmp_path / "r.jsonl").append(made_records.record(0, WHOLE, point=best, device=gpu.device_name))
    gpu.search = lambda found: (setattr(found, "fastest", (1e-6, BINARY)), found.refuse("wrong", "nan"))
    code, out, err = call(
        "sgemm", *SHAPE, "--trials", 7, "--records", tmp_path / "r.jsonl", "-o", tmp_path / "t.json"
    )
    assert (
        code == 0
        and "no record of sgemm/multistage for Made-up GPU" in err
        and "MetaSchedule: 7 of 7, best" in err
    )
    ((*subjects, vendor),) = gpu.seen
    hand = [find_one(name, "test").fitted(WHOLE).id for name in ("sgemm/pipelined", "sgemm/multistage")]
    assert sorted(subject.name for subject in subjects) == sorted(
        [*hand, "sgemm/pipelined:tuned", DLIGHT, METASCHEDULE]
    )
    assert vendor.label == "cuBLAS" and all(
        subject.form == "schedule" and len(subject.binaries) == 1 for subject in subjects
    )
    results = load_tuners(tmp_path / "t.json")
    assert results["command"] == "experiments/tuners.py sgemm --mnk 128,64,32" and len(results["rows"]) == 6
    roles = {point["role"]: point for point in results["points"]}
    assert (
        roles[TUNED]["config"] == asdict(space.config(best)) != asdict(space.config(point))
        and roles[DLIGHT]["rule"] == "Matmul"
    )
    assert roles[METASCHEDULE]["trials"] == 7 and roles[METASCHEDULE]["refused"] == [
        {"kind": "wrong", "count": 1, "reason": "nan"}
    ]
    assert "7, 1 refused" in out and "1.00x" in out


def test_a_search_that_finds_nothing_is_refused_and_the_rest_is_timed(call, gpu, monkeypatch):
    code, out, err = call("sgemm", *SHAPE)
    assert (
        code == 1 and "refused: MetaSchedule (schedule) on 128x64x32: none of 64 trials could be timed" in out
    )
    assert METASCHEDULE not in [subject.name for subject in gpu.seen[0]]

    def fail(found):
        raise CheckFailed("TVM gives up")

    gpu.search = fail
    code, out, err = call("sgemm", *SHAPE)
    assert code == 1 and "TVM gives up" in err and len(gpu.seen) == 2


def test_what_was_measured_is_kept_when_a_later_shape_fails(call, gpu, tmp_path):
    def breaks(found):
        found.fastest = (1e-6, BINARY)
        gpu.broken = "trial 3" if gpu.seen else ""

    gpu.search = breaks
    code, out, err = call("sgemm", *SHAPE, "--mnk", "100,72,40", "-o", tmp_path / "t.json")
    assert code == 1 and "trial 3 left the GPU unusable" in err and "128x64x32" in out
    assert {row["shape"] for row in load_tuners(tmp_path / "t.json")["rows"]} == {"128x64x32"}


def test_a_candidate_is_looked_at_once_before_it_is_verified_and_timed(monkeypatch):
    slow, quick = (fake_subject(name, WHOLE) for name in ("slow", "quick"))
    arguments, machine = WHOLE.arguments(), FakeMachine({}, {"slow": 0.6, "quick": 0.4})
    monkeypatch.setattr(gpu_timing, "time_subject", lambda subject, machine: (subject.name,))
    with pytest.raises(TooSlow, match="a launch takes 0.6 s, more than 0.5 s"):
        tuners.timed(slow, machine, arguments)
    assert machine.launched == ["slow"] and tuners.timed(quick, machine, arguments) == ("quick",)
    machine.sticky = "trial 1"
    with pytest.raises(CheckFailed, match="trial 1 left the GPU unusable"):
        tuners.timed(quick, machine, arguments)
