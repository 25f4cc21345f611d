"""Sweeps as tables and plots, and the script as users call it."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import made_up
import pytest
import sweep_results
import sweeps
from article_tables import NOTHING
from fake_gpu import FakeMachine, FakeVendors, multiply, multiply_wrongly
from sweep_points import FORMS, SWEEPS, Series
from sweep_tables import section
from sweep_waves import waves

from tir_schedules.bench import session
from tir_schedules.bench.measure import Policy, measure
from tir_schedules.subjects.packs import load_pack, save_pack
from tir_schedules.subjects.results import load_results, save_results
from tir_schedules.subjects.subject import VENDORS, Subject
from tir_schedules.workloads.gemm import Gemm

ROOT = Path(__file__).parents[2]
ARCH = "sm_90"


def known(series):
    """Made-up rows of "points" of a series: conflicts and registers fall as values grow; twins have one
    register more."""
    rows = []
    for number, point in enumerate(series.points()):
        for form in FORMS:
            identity = Subject(point.rung.family, point.rung.id, form, series.timed[0]).identity()
            reason = series.cannot(point, form, ARCH)
            facts = {
                "registers": 100 - number + (form == "twin"),
                "spill_bytes": 4 if number == 0 else 0,
                "shared_bytes": 1000 * number,
            }
            facts |= {"occupancy": {"blocks": 2}}
            facts |= {
                kind: {"requests": 1, "cost": 5000 - number, "ideal": 5} for kind in ("reads", "writes")
            }
            facts |= {"warp_instructions": 7000 + number, "barriers": 1000 + number}
            rows.append({**identity, "cannot": reason} if reason else {**identity, **facts})
    return rows


def results_of(*shown, timed=True, refuse=(), **facts):
    """A results document of series: points take 100, 50, 25, ... microseconds, twins 1 more."""
    points, rows, refused = [], [], []
    for series in shown:
        points += known(series)
        if timed:
            family = series.rung.partition("/")[0]
            rows += [
                made_up.row_of(Subject(family, VENDORS[family], "vendor", workload), 10.0, **facts)
                for workload in series.timed
            ]
        for number, point in enumerate(series.points()):
            for form in FORMS:
                for workload in series.timed if timed and not series.cannot(point, form, ARCH) else ():
                    subject = Subject(point.rung.family, point.rung.id, form, workload)
                    if subject.label in refuse:
                        refused.append(subject.refused("C[0, 0] is nan"))
                    else:
                        rows.append(made_up.row_of(subject, 100.0 / 2**number + (form == "twin"), **facts))
    measurement = SimpleNamespace(
        rows=rows, refused=refused, limits=made_up.LIMITS, notes=[], device=made_up.DEVICE if timed else {}
    )
    return sweep_results.document(made_up.SOURCE, measurement, {}, []) | {"arch": ARCH, "points": points}


def line_of(text, start):
    (line,) = [line for line in text.splitlines() if line.startswith(start)]
    return [cell.strip() for cell in line.strip("| ").split("|")]


LDMATRIX = next(series for series in SWEEPS["padding"].series if series.rung == "hgemm/mma_ldmatrix")
DEEP = next(series for series in SWEEPS["stages"].series if series.rung == "hgemm/mma_multistage")


def test_a_table_has_what_is_known_and_the_times_of_schedule_and_twin():
    text = section("padding", [results_of(LDMATRIX)])
    heads = [
        "padding",
        "shared bytes",
        "blocks",
        "registers",
        "read wavefronts",
        "conflicts",
        "write wavefronts",
        "conflicts",
    ]
    assert line_of(text, "| padding") == heads + ["us", "TFLOPS"]
    assert line_of(text, "| 0 ") == [
        "0",
        "0",
        "2",
        "100 (spills) / 101 (spills)",
        *2 * ["5,000", "4,995"],
        "100 / 101",
        "1374 / 1361",
    ]
    assert line_of(text, "| 16 ") == [
        "16",
        "4,000",
        "2",
        "96 / 97",
        *2 * ["4,996", "4,991"],
        "6.25 / 7.25",
        "21990 / 18957",
    ]
    assert line_of(text, "| XOR swizzle")[-2] == "1.56 / 2.56"
    assert line_of(text, "| 2 ") == ["2", "cannot be"]
    assert "- cannot be: 2, 4: rows that much longer do not all start on a multiple of 16 bytes" in text
    assert "- shortest time: XOR swizzle, no padding (schedule), XOR swizzle, no padding (twin)\n" in text
    assert "- cuBLAS: 10.0 us, 13744 TFLOPS\n" in text
    assert "counted by the CPU machine for 256x256x256 nt float16;" in text
    assert "- Made-up GPU, driver 1.2.3, SM clock 1975 to 1980 MHz" in text
    assert "hgemm/mma_ldmatrix nt float16 at 4096, sm_90:" in text


def test_what_only_one_form_can_be_is_shown_with_the_reason_of_the_other():
    text = section("stages", [results_of(DEEP)])
    assert line_of(text, "| 2 ") == ["2", "- / 0", "- / 2", "- / 101 (spills)", "- / 101", "- / 1361"]
    assert line_of(text, "| 5 ")[:2] == ["5", "cannot be"]
    assert (
        "- cannot be: 2 (schedule): a turn of the schedule" in text
        and "- cannot be: 6: a block would take 288 KiB" in text
    )
    assert "- shortest time: 4 (schedule), 4 (twin)" in text


def test_without_times_there_are_no_columns_for_them():
    text = section("stages", [results_of(DEEP, timed=False)])
    assert line_of(text, "| stages") == ["stages", "shared bytes", "blocks", "registers"]
    assert "shortest time" not in text and "- nothing is timed: compiled for sm_90, CUDA 13.0.88" in text
    assert section("padding", [results_of(DEEP)]) == section("padding", []) == NOTHING


def test_what_was_refused_or_throttled_is_said():
    label = "hgemm/mma_multistage:stages=3 (twin)"
    text = section("stages", [results_of(DEEP, refuse=[label], throttled=["power cap"])])
    assert line_of(text, "| 3 ")[-2:] == ["50.0\\* / -", "2749 / -"]
    assert f"- refused: {label} on 4096x4096x4096 nt float16: C[0, 0] is nan" in text
    assert "- \\* the GPU lowered its clock while this was timed: power cap" in text
    lost = results_of(DEEP, timed=False)
    lost["points"] = [row for row in lost["points"] if not row["name"].endswith("stages=4")]
    assert line_of(section("stages", [lost]), "| 4 ")[1] == "refused"


def test_swizzle_has_a_table_per_size_and_the_model_of_what_a_wave_reads():
    (series,) = SWEEPS["swizzle"].series
    text = section("swizzle", [results_of(series)])
    assert text.count("| threadblock swizzle") == 2 and "float16 at 8192, sm_90" in text
    sixteen = [point for point in series.points() if point.label == "16"][0]
    model = waves(sixteen.rung, series.timed[1], 2 * 132)
    assert line_of(text.split("at 8192")[1], "| 16 ")[3:5] == [
        str(model.count),
        f"{model.mean_bytes / 2**20:.0f}",
    ]
    assert "a model, not a measurement: 132 SMs" in text
    device = {**made_up.DEVICE, "multiprocessors": 66}
    other = section("swizzle", [{**results_of(series), "device": device}])
    assert line_of(other.split("at 8192")[1], "| 16 ")[3] == str(
        waves(sixteen.rung, series.timed[1], 2 * 66).count
    )
    unknown = section("swizzle", [{**results_of(series, timed=False), "arch": "sm_87"}])
    assert (
        line_of(unknown.split("at 8192")[1], "| 16 ")[3:] == ["?", "?"]
        and "an unknown number of SMs" in unknown
    )


@pytest.fixture
def call(calling):
    """Calls the script."""
    return calling(sweeps.main)


@pytest.fixture
def recorded(tmp_path):
    path = tmp_path / "recorded.json"
    save_results(results_of(LDMATRIX, DEEP), path)
    return path


def test_what_was_recorded_can_be_shown_and_drawn(call, recorded, tmp_path):
    code, out, _ = call("--from", recorded, "--plot", tmp_path / "p.png")
    assert (
        code == 0
        and re.search(r"^16 +4,000 +2 +96 / 97 +4,996 ", out, re.M)
        and "hgemm/mma_multistage" in out
    )
    assert out.endswith(f"drawn: {tmp_path / 'p_padding.png'}, {tmp_path / 'p_stages.png'}\n")
    assert all(
        (tmp_path / f"p_{name}.png").read_bytes().startswith(b"\x89PNG") for name in ("padding", "stages")
    )
    assert (
        "mma_ldmatrix" not in call("stages", "--from", recorded)[1]
        and call("swizzle", "--from", recorded)[1] == ""
    )
    assert json.loads(call("--from", recorded, "--json")[1]) == load_results(recorded)


def test_sections_of_a_readme_are_written_and_checked(call, recorded, tmp_path):
    readme, options = tmp_path / "R.md", ("--from", recorded, "--readme", tmp_path / "R.md")
    readme.write_text("before\n<!-- sweep: padding -->\nold\n<!-- end -->\nafter\n")
    assert call("--check", *options)[0] == 1 and "old" in readme.read_text()
    assert call("--write", *options)[0] == 0
    assert (
        readme.read_text()
        == f"before\n<!-- sweep: padding -->\n\n{section('padding', [results_of(LDMATRIX)])}\n\n<!-- end"
        " -->\nafter\n"
    )
    assert call("--check", *options)[0] == 0


def test_the_readme_of_the_experiments_is_what_was_recorded(call):
    assert call("--check")[0] == 0
    assert re.findall(r"<!-- sweep: (\w+) -->", (sweeps.FOLDER / "README.md").read_text()) == list(SWEEPS)


@pytest.mark.parametrize("arguments, message", [
    (["pading"], "did you mean 'padding'"),
    (["--pack", "x.zip"], "--arch"),
    (["--pack", "x.zip", "--arch", "sm_90", "-o", "x.json"], "--output"),
    (["--pack", "x.zip", "--arch", "sm_91"], "sm_91"),
    (["--pack", "x.txt", "--arch", "sm_90"], "must end with .zip, such as x.zip"),
    (["--pack", "nowhere/x.zip", "--arch", "sm_90"], "nowhere"),
    (["-o", "nowhere/x.json"], "nowhere"),
    (["--plot", "x.txt"], ".png"),
    (["--arch", "sm_91"], "sm_91"),
    (["--from", "nowhere.json"], "nowhere.json"),
    (["--from", "x.json", "--arch", "sm_90"], "--arch"),
    (["x.zip", "padding"], "x.zip"),
    (["x.zip", "--arch", "sm_90"], "--arch"),
    (["--write", "padding"], "leave out padding"),
    (["--check", "--json"], "--json"),
])  # fmt: skip
def test_bad_input_is_said_in_one_line(call, arguments, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sweep_counting.compile_jobs", lambda *arguments: pytest.fail("compiles"))
    monkeypatch.setattr(session, "gpu_machine", lambda: pytest.fail("looks for a GPU"))
    code, out, err = call(*arguments)
    assert (code, out) == (2, "") and message in err and err.count("\n") == 1


def test_files_and_packs_of_something_else_are_bad_input(call, tmp_path, monkeypatch):
    monkeypatch.setattr(session, "gpu_machine", lambda: pytest.fail("looks for a GPU"))
    save_results(made_up.results("sgemm/naive"), tmp_path / "bench.json")
    assert call("--from", tmp_path / "bench.json")[0] == 2
    for change in ({"registers": "many"}, {"occupancy": {}}, {"reads": {}}, {"shape": 7}):
        results = results_of(DEEP)
        results["points"][1] |= change
        save_results(results, tmp_path / "r.json")
        code, _, err = call("--from", tmp_path / "r.json")
        assert code == 2 and "points[1]" in err and err.count("\n") == 1
    save_pack([], {}, tmp_path / "other.zip")
    code, _, err = call(tmp_path / "other.zip")
    assert code == 2 and "a pack of something else" in err


TINY = Series(
    "sgemm/multistage:32x32", "padding", (0, 2, 4), (Gemm(64, 64, 64), Gemm(96, 64, 64)), Gemm(64, 64, 32),
    aligned=(8, 16),
    beside=("another", "sgemm/naive"),
)  # fmt: skip
LABELS = [
    f"sgemm/multistage:32x32,padding={value} ({form})"
    for value in (0, 2, 4)
    for form in FORMS
    if (value, form) != (2, "twin")
]
LABELS += ["sgemm/naive (schedule)", "sgemm/naive (twin)", "cuBLAS"]


@pytest.fixture
def gpu(monkeypatch):
    """A made-up GPU, and a sweep small enough to be compiled in a test. What is timed is verified, by
    functions in place of kernels."""
    right = dict.fromkeys(("sgemm_multistage", "sgemm_naive", "cuBLAS"), multiply)
    fake = FakeMachine(right, {"sgemm_multistage": 1e-3, "sgemm_naive": 3e-3, "cuBLAS": 5e-4})

    def timed(machine, subjects, policy, cub):
        assert machine is fake
        fake.seen, policy = list(subjects), Policy(pause_s=0.0, settle_s=0.2)
        return measure(machine, subjects, policy, vendors=FakeVendors(), monitor=machine), policy

    monkeypatch.setattr(session, "gpu_machine", lambda: fake)
    monkeypatch.setattr(session, "measure_subjects", timed)
    monkeypatch.setattr(sweeps, "choose", lambda name: fake)
    monkeypatch.setitem(SWEEPS, "padding", replace(SWEEPS["padding"], series=(TINY,)))
    return fake


def test_without_a_gpu_points_are_counted_and_nothing_is_timed(call, gpu, tmp_path, monkeypatch):
    monkeypatch.setattr(sweeps, "choose", lambda name: SimpleNamespace(name="cpu"))
    code, out, err = call("padding", "--arch", ARCH, "-o", tmp_path / "r.json")
    assert (code, err) == (0, "") and "nothing is timed: compiled for sm_90" in out
    assert not hasattr(gpu, "seen") and "TFLOPS" not in out
    results = sweep_results.load_sweeps(tmp_path / "r.json")
    assert (
        results["rows"] == []
        and results["command"] == "experiments/sweeps.py padding"
        and len(results["points"]) == 8
    )
    conflicts = {
        row["name"][-9:]: row["writes"]["cost"] - row["writes"]["ideal"]
        for row in results["points"]
        if row["form"] == "schedule"
    }
    assert conflicts["padding=0"] > 10 * conflicts["padding=4"] > 10 * conflicts["padding=2"] > 0
    cannot = [row for row in results["points"] if "cannot" in row]
    assert [(row["name"][-9:], row["form"]) for row in cannot] == [("padding=2", "twin")]
    assert re.search(r"^2 +21,120 / - +\d+ / - +\d+ / - ", out, re.M) and "cannot be: 2 (twin): rows" in out


def test_points_are_measured_here(call, gpu, tmp_path):
    code, out, err = call("padding", "-o", tmp_path / "r.json")
    assert (code, err) == (0, "") and [subject.label for subject in gpu.seen] == 2 * LABELS
    assert {str(subject.workload) for subject in gpu.seen} == {"64x64x64", "96x64x64"}
    results = load_results(tmp_path / "r.json")
    assert (
        len(results["rows"]) == 16
        and results["device"]["name"] == "Fake GPU"
        and results["policy"]["pause_s"] == 0.0
    )
    assert re.search(r"^0 .* 1000 +0.001", out, re.M) and re.search(r"^another .* 3000 +0.000", out, re.M)
    assert "cuBLAS: 500 us, 0.001 TFLOPS" in out


def test_points_are_packed_for_another_computer_and_timed_there(call, gpu, tmp_path, monkeypatch):
    path = tmp_path / "s.zip"
    code, out, _ = call("padding", "--pack", path, "--arch", ARCH)
    assert code == 0 and f"packed {2 * len(LABELS)} subjects for sm_90" in out and not hasattr(gpu, "seen")
    assert [subject.label for subject in load_pack(path).subjects] == 2 * LABELS
    monkeypatch.setattr("sweep_counting.compile_jobs", lambda *arguments: pytest.fail("compiles"))
    code, here, _ = call(path, "-o", tmp_path / "r.json")
    assert code == 0 and [subject.label for subject in gpu.seen] == 2 * LABELS
    results = sweep_results.load_sweeps(tmp_path / "r.json")
    assert results["arch"] == ARCH and len(results["points"]) == 8 and "points" not in results["packed"]
    assert (
        results["packed"]["command"] == "experiments/sweeps.py padding"
        and results["command"] == "experiments/sweeps.py s.zip"
    )
    assert (
        call("--from", tmp_path / "r.json")[1] == here
        and "Fake GPU" in here
        and "cannot be: 2 (twin)" in here
    )


def test_what_does_not_verify_is_refused(call, gpu, tmp_path):
    gpu.kernels["sgemm_naive"] = gpu.kernels["cuBLAS"] = multiply_wrongly
    code, out, _ = call("padding")
    assert code == 1 and "refused: sgemm/naive (twin) on 96x64x64: does not verify" in out
    assert "refused: cuBLAS on 96x64x64: does not verify" in out and "cuBLAS:" not in out
    assert re.search(r"^another +0 +\d+ +\d+ +0 +0 +0 +0 *$", out, re.M)  # what is known, and no time


def test_what_the_cpu_machine_objects_to_is_not_given_to_a_gpu(call, gpu, tmp_path, monkeypatch):
    racing = Series("sgemm/multistage:32x32", "stages", (2, 3), (Gemm(64, 64, 64),), Gemm(64, 64, 64))
    monkeypatch.setitem(SWEEPS, "stages", replace(SWEEPS["stages"], series=(racing,)))
    path = tmp_path / "s.zip"
    code, out, _ = call("stages", "--pack", path, "--arch", ARCH)
    assert code == 1 and re.search(
        r"refused: sgemm/multistage:32x32,stages=2 \(schedule\) on 64x64x64: .*: race: ", out
    )
    labels = {subject.label for subject in load_pack(path).subjects}
    assert (
        "sgemm/multistage:32x32,stages=2 (schedule)" not in labels
        and "sgemm/multistage:32x32,stages=2 (twin)" in labels
    )


def test_a_sweep_of_which_nothing_can_be_says_so(call, gpu, monkeypatch):
    monkeypatch.setattr(sweeps, "choose", lambda name: SimpleNamespace(name="cpu"))
    monkeypatch.setitem(
        SWEEPS, "padding", replace(SWEEPS["padding"], series=(replace(TINY, values=(1,), beside=None),))
    )
    code, out, _ = call("padding", "--arch", ARCH)
    assert code == 0 and re.search(r"^1 +cannot be", out, re.M)
