"""Kernels packed for counting arrive whole, are launched and verified, and what NVIDIA's tools print is read;
tools and GPU are made up."""

import json
import re
import sys
from collections import Counter
from pathlib import Path

import counter_pack
import counters_on_gpu
import pytest
from counter_pack import jobs_of, load_all
from counter_probes import probes
from cuda_tools import SANITIZERS
from fake_tools import MadeUpGpu, installer, predicted_launches, table
from unit_probes import boxes

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.twin import load_twin
from tir_schedules.model.counters import METRICS
from tir_schedules.run import launches
from tir_schedules.subjects.packs import save_pack

ARCH = "sm_90"
NAMES = ("sgemm/naive", "reduce/shuffle", "reduce/unrolled_warp:article")


def few(arch):
    """Some patterns of loads and of copies; tests/machines/test_counters.py has all."""
    return [
        probe
        for probe in probes(arch)
        if probe.name
        in ("load_4, stride 1", "load_4, stride 2", "cp_async_16, stride 1", "cp_async_16, shuffled")
    ]


@pytest.fixture(scope="module", autouse=True)
def few_probes():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counter_pack, "probes", few)
        yield


@pytest.fixture(scope="module")
def packed(tmp_path_factory, few_probes):
    path = tmp_path_factory.mktemp("counters") / "c.zip"
    assert counters_on_gpu.main(["pack", str(path), *NAMES, "probes", "--arch", ARCH]) == 0
    return path


@pytest.fixture(scope="module")
def machine():
    jobs = [(make, rung, workload) for rung, workload in jobs_of(NAMES) for make in (lower, load_twin)]
    kernels = [kernel for make, rung, workload in jobs for kernel in launches(make, rung, workload, ARCH)]
    return MadeUpGpu([*kernels, *{probe.kernel.label: probe.kernel for probe in few(ARCH)}.values()])


@pytest.fixture
def gpu(machine, monkeypatch):
    machine.spoil, machine.launched = "", []
    monkeypatch.setattr(counters_on_gpu, "choose", lambda name: machine)
    return machine


@pytest.fixture
def install(tmp_path, monkeypatch):
    return installer(tmp_path, monkeypatch)


def expected_of(path):
    return predicted_launches(load_all(path)[0])


def test_a_pack_has_cases_to_count_to_sanitize_and_flawed_ones(packed):
    cases, source = load_all(packed)
    kinds = Counter((case.family, case.predicted is not None, case.flawed) for case in cases)
    assert kinds == {
        ("sgemm", True, False): 2, ("sgemm", False, False): 2 * 2,
        ("reduce", True, False): 2, ("reduce", False, False): 2, ("reduce", False, True): 2,
        ("probe", True, False): 4,
    }  # fmt: skip
    assert {case.binaries[0].kernel.label for case in cases if case.flawed} == {
        f"{NAMES[2]} ({form})" for form in ("tir", "twin")
    }
    assert all(len(case.predicted) == len(case.binaries) for case in cases if case.predicted)
    assert source["command"].endswith(
        "c.zip sgemm/naive reduce/shuffle reduce/unrolled_warp:article probes --arch sm_90"
    )


@pytest.mark.slow
def test_all_single_accesses_are_packed(tmp_path, monkeypatch):
    monkeypatch.setattr(counter_pack, "probes", probes)
    path = tmp_path / "p.zip"
    assert counters_on_gpu.main(["pack", str(path), "probes", "--arch", ARCH]) == 0
    assert len(load_all(path)[0]) == len(probes(ARCH)) > 200


def test_boxes_of_the_probes_begin_where_a_gpu_takes_them():
    places = {"X": set(), "Y": set()}
    for _, kernel, _ in boxes("sm_90a"):
        column, row = (int(number) for number in re.findall(r'"r"\((-?\d+)\)', kernel.source)[-2:])
        places[kernel.maps[0].of].add((row, column))
    assert {column * 2 % 16 for found in places.values() for _, column in found} == {0}
    assert min(map(min, places["X"])) < 0 <= min(map(min, places["Y"]))


def test_a_ladder_is_packed_in_all_its_configurations_and_kinds():
    jobs = {(rung.id, str(workload)) for rung, workload in jobs_of(["reduce", "hgemm", "sgemm"])}
    assert {
        ("reduce/vectorized:resident", "65536 int32"),
        ("reduce/unrolled_warp:article", "20001 int32"),
    } <= jobs
    assert ("reduce/unrolled_warp:article", "65536 int32") not in jobs
    assert {("sgemm/naive", "256x256x256"), ("sgemm/bf16x6_mma:16x64", "129x127x65 bf16x6")} <= jobs
    kinds = {name: {shape.partition(" ")[2] for rung,
        shape in jobs if rung == f"hgemm/{name}" and shape.startswith("512")}
             for name in ("wmma_naive", "mma_multistage:256x256")}  # fmt: skip
    assert len(kinds["wmma_naive"]) == 4 and kinds["mma_multistage:256x256"] == {"nt float16", "nn float16"}


def test_kernels_are_verified_counted_and_compared(packed, gpu, install, tmp_path, capsys):
    expected = expected_of(packed)
    third = next(iter(METRICS))

    def large(number, name, value):
        return "12,345" if (number, name) == (2, third) else value

    install("ncu", f"print({table(expected, large)!r})")
    result = tmp_path / "r.json"
    assert counters_on_gpu.main(["count", str(packed), str(result)]) == 0
    entries = json.loads(result.read_text())["kernels"]
    counted = [entry for entry in entries if "measured" in entry]
    assert [(entry["entry"], entry["measured"]) for entry in counted if entry is not counted[2]] == expected[
        :2
    ] + expected[3:]
    assert counted[2]["measured"] == {**expected[2][1], third: 12345}
    assert all(entry["right"] for entry in entries if "probe" not in entry)
    assert [entry["launch"] for entry in counted if entry["label"] == "reduce/shuffle (tir)"] == [0, 1]
    naive = next(entry for entry in counted if entry["label"] == "sgemm/naive (tir)")
    assert naive["workload"] == {"m": 256, "n": 256, "k": 256, "layout": "nn"} and len(
        naive["cubin"]
    ) == 16 + len(".cubin")
    probe = next(entry for entry in counted if entry.get("probe") == "load_4, stride 2")
    assert probe["offsets"][:3] == [0, 8, 16] and probe["predicted"]["shared_load"]["cost"] == 2
    out = capsys.readouterr().out
    everything = len(load_all(packed)[0])
    assert f"{everything} of {everything} right" in out
    assert f"{third}: predicted {expected[2][1][third]}, measured 12345" in out
    assert f"counters equal for {len(expected) - 1} of {len(expected)} launches" in out


def test_a_kernel_that_is_wrong_is_named_and_the_exit_code_is_1(packed, gpu, install, tmp_path, capsys):
    gpu.spoil = "sgemm_naive"
    install("ncu", f"print({table(expected_of(packed))!r})")
    assert counters_on_gpu.main(["count", str(packed), str(tmp_path / "r.json")]) == 1
    assert "sgemm/naive (tir) on 256x256x256: C[0, 0] is" in capsys.readouterr().out
    entries = json.loads((tmp_path / "r.json").read_text())["kernels"]
    assert {entry["label"] for entry in entries if entry.get("right") is False} == {
        "sgemm/naive (tir)",
        "sgemm/naive (twin)",
    }


def test_ncu_is_asked_for_the_launches_that_the_script_then_makes(packed, gpu, install, tmp_path):
    log = install("ncu", f"print({table(expected_of(packed))!r})")
    counters_on_gpu.main(["count", str(packed), str(tmp_path / "r.json")])
    arguments = json.loads(log.read_text())
    assert arguments[arguments.index("--kernel-name") + 1] == "regex:^(probe|reduce_shuffle|sgemm_naive)$"
    command = arguments[arguments.index(sys.executable) :]
    assert Path(command[1]).samefile(counters_on_gpu.__file__)
    gpu.launched = []
    assert counters_on_gpu.main(command[2:]) == 0
    assert gpu.launched == [entry for entry, _ in expected_of(packed)]


SANITIZER = """
flawed, tool = "flawed" in sys.argv, sys.argv[2]
found = "2 hazards displayed (0 errors, 2 warnings)"
if not flawed:
    found = "0 hazards displayed (0 errors, 0 warnings)"
print("=========", "RACECHECK SUMMARY: " + found if tool == "racecheck" else "ERROR SUMMARY: 0 errors")
"""


def test_sanitizers_look_at_each_ladder_and_apart_at_what_is_flawed(packed, gpu, install, tmp_path):
    log, result = install("compute-sanitizer", SANITIZER), tmp_path / "r.json"
    result.write_text('{"kept": 1, "kernels": [{"label": "x"}]}')
    assert counters_on_gpu.main(["sanitize", str(packed), str(result)]) == 0
    found = json.loads(result.read_text())
    assert found["kept"] == 1 and found["kernels"] == [{"label": "x"}]
    whats = ("sgemm", "reduce", "reduce, flawed")
    assert set(found["sanitizers"]) == {f"{tool}, {what}" for tool in SANITIZERS for what in whats}
    assert (
        found["sanitizers"]["racecheck, reduce, flawed"]
        == "RACECHECK SUMMARY: 2 hazards displayed (0 errors, 2 warnings)"
    )
    launched = {}
    for arguments in map(json.loads, log.read_text().splitlines()):
        gpu.launched = []
        assert counters_on_gpu.main(arguments[arguments.index("launch") :]) == 0
        launched[arguments[2], arguments[3], arguments[-3]] = set(gpu.launched)
    assert launched == {
        ("--kernel-regex", "kernel_substring=sgemm_", "sound"): {"sgemm_naive"},
        ("--kernel-regex", "kernel_substring=reduce_", "sound"): {"reduce_shuffle"},
        ("--kernel-regex", "kernel_substring=reduce_", "flawed"): {"reduce_unrolled_warp"},
    }


def test_a_finding_in_what_is_sound_fails(packed, gpu, install, tmp_path):
    install("compute-sanitizer", SANITIZER.replace('"flawed" in sys.argv', '"sgemm" in sys.argv'))
    assert counters_on_gpu.main(["sanitize", str(packed), str(tmp_path / "r.json")]) == 1


def test_other_files_are_bad_input(packed, tmp_path, capsys):
    other, result = tmp_path / "other.zip", tmp_path / "r.json"
    save_pack([], {"arch": ARCH}, other)
    assert (
        counters_on_gpu.main(["count", str(other), str(result)]) == 2
        and "no predicted counters" in capsys.readouterr().err
    )
    result.write_text("[]")
    assert (
        counters_on_gpu.main(["sanitize", str(packed), str(result)]) == 2
        and str(result) in capsys.readouterr().err
    )
    assert counters_on_gpu.main(["pack", str(other), "sgemm/nave", "--arch", ARCH]) == 2
    assert "did you mean 'sgemm/naive'" in capsys.readouterr().err


def test_files_that_cannot_be_written_are_refused_before_anything_slow(packed, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(counters_on_gpu, "pack", lambda *arguments: pytest.fail("compiles"))
    monkeypatch.setattr(counters_on_gpu, "choose", lambda name: pytest.fail("looks for a GPU"))
    nowhere = str(tmp_path / "nowhere" / "x")
    for arguments in (
        ["count", str(packed), nowhere],
        ["sanitize", str(packed), nowhere],
        ["pack", nowhere, "--arch", ARCH],
    ):
        assert counters_on_gpu.main(arguments) == 2 and "folder that exists" in capsys.readouterr().err
