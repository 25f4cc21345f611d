"""`profile` packs, verifies, counts and compares; GPU and Nsight Compute are made up."""

import json
import re
import sys
from pathlib import Path

import pytest
from fake_tools import NCU, MadeUpGpu, installer

from tir_schedules.cli import main as cli
from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.twin import load_twin
from tir_schedules.errors import MissingTool
from tir_schedules.insight.profile import cases
from tir_schedules.insight.profile.nsight import NAMES, REASONS, comparisons
from tir_schedules.ladders.registry import find
from tir_schedules.model.counters import METRICS
from tir_schedules.run import launches
from tir_schedules.workloads.reduction import Reduction

RESULTS = Path(__file__).parents[2] / "experiments" / "results"
RECORDED = RESULTS / "counters_h200.json"
NAME = "reduce/shuffle"
STORES, COPIES = (next(metric for metric, name in NAMES.items() if name == wanted)
                  for wanted in ("shared stores, wavefronts", "cp.async, wavefronts"))  # fmt: skip
ASKED = next(metric for metric, name in NAMES.items() if name == "global loads, requests")
PIPE = next(metric for metric, name in NAMES.items() if name == "data pipe, shared stores")


@pytest.fixture(scope="module")
def machine():
    (rung,) = find(NAME)
    return MadeUpGpu(
        [
            kernel
            for make in (lower, load_twin)
            for kernel in launches(make, rung, Reduction(1 << 16), "sm_90")
        ]
    )


@pytest.fixture
def gpu(machine, monkeypatch):
    machine.spoil, machine.launched = "", []
    monkeypatch.setattr("tir_schedules.machines.choice.choose", lambda name: machine)
    monkeypatch.setattr(cases, "choose", lambda name: machine)
    return machine


@pytest.fixture
def install(tmp_path, monkeypatch):
    return installer(tmp_path, monkeypatch)


def test_counters_as_predicted_are_a_success(gpu, install, tmp_path, capsys):
    log, result = install("ncu", NCU % ""), tmp_path / "r.json"
    assert cli.main(["profile", NAME, "-o", str(result)]) == 0
    out = capsys.readouterr().out
    assert (
        "reduce/shuffle (tir) on 65536,int32, launch 1" in out
        and "reduce/shuffle (twin) on 65536,int32, launch 2" in out
    )
    assert "global loads, sectors" in out and "cp.async" not in out
    assert "0 within 1 %; 0 differ by more and are explained, 0 are unexplained" in out
    recorded = json.loads(result.read_text())
    assert recorded["command"] == f"profile {NAME}" and recorded["packed"]["arch"] == "sm_90"
    assert [(entry["right"], entry["launch"]) for entry in recorded["kernels"]] == [(True, 0), (True, 1)] * 2
    command = json.loads(log.read_text())
    assert command[command.index(sys.executable) :][1:3] == ["-m", "tir_schedules.insight.profile.cases"]
    assert cli.main(["profile", "--from", str(result)]) == 0 and capsys.readouterr().out == out


@pytest.mark.parametrize("change, code, shown", [
    (f"counted[0][1][{STORES!r}] *= 1.02", 1, "+1.96 % UNEXPLAINED"),
    (f"counted[0][1][{STORES!r}] *= 1.005", 0, "+0.50 %"),
    (f"counted[0][1][{PIPE!r}] *= 1.5", 0, "+33.33 % (1)"),
    (f"counted[0][1][{PIPE!r}] *= 0.5", 1, "-100.00 % UNEXPLAINED"),
    (f"counted[0][1][{COPIES!r}] = 7", 1, "+100.00 % UNEXPLAINED"),
])  # fmt: skip
def test_a_difference_fails_unless_it_is_small_or_known(change, code, shown, gpu, install, capsys):
    install("ncu", NCU % change)
    assert cli.main(["profile", NAME]) == code
    assert shown in capsys.readouterr().out


def test_a_pack_made_elsewhere_is_counted_without_compiling(gpu, install, tmp_path, capsys, monkeypatch):
    path = tmp_path / "c.zip"
    assert cli.main(["profile", NAME, "--pack", str(path), "--arch", "sm_90"]) == 0
    assert "packed 4 launches for sm_90" in capsys.readouterr().out
    install("ncu", NCU % "")
    monkeypatch.setattr(
        "tir_schedules.insight.profile.session.pack_jobs", lambda *given: pytest.fail("compiles")
    )
    assert cli.main(["profile", str(path), "--json"]) == 0
    kernels = json.loads(capsys.readouterr().out)["kernels"]
    rows = [row for entry in kernels for row in entry["comparison"]]
    assert len(rows) == 4 * len(METRICS) and all(
        row["predicted"] == row["measured"] and not row["unexplained"] for row in rows
    )
    gpu.launched = []
    assert cases.main(str(path)) == 0 and gpu.launched == [entry["entry"] for entry in kernels]


def test_a_kernel_that_is_wrong_is_named(gpu, install, capsys):
    gpu.spoil = "reduce_shuffle"
    install("ncu", NCU % "")
    assert cli.main(["profile", NAME]) == 1
    assert "reduce/shuffle (twin) on 65536 int32: Y[0] is" in capsys.readouterr().err


def test_what_is_missing_is_said_with_how_to_get_it(gpu, monkeypatch, capsys):
    monkeypatch.setattr(
        "tir_schedules.insight.profile.session.pack_jobs", lambda *given: pytest.fail("compiles")
    )
    monkeypatch.setenv("PATH", "")
    assert (
        cli.main(["profile", NAME]) == 3
        and "ncu is not on PATH: it comes with NVIDIA's CUDA toolkit" in capsys.readouterr().err
    )

    def choose(name):
        raise MissingTool("there is no GPU, or use --machine cpu")

    monkeypatch.setattr("tir_schedules.machines.choice.choose", choose)
    assert cli.main(["profile", NAME]) == 3
    err = capsys.readouterr().err
    assert "there is no GPU; without a GPU `inspect`" in err and err.count("\n") == 1


@pytest.mark.parametrize("arguments, message", [
    ([], "profile takes a ladder"),
    ([NAME, "--pack", "x.zip"], "name its architecture, such as --arch sm_90"),
    ([NAME, "--pack", "nowhere/x.zip", "--arch", "sm_90"], "folder that exists"),
    ([NAME, "-o", "nowhere/x.json"], "folder that exists"),
    (["reduce/shufle"], "did you mean 'reduce/shuffle'"),
    ([NAME, "--mnk", "1,2,3"], "--mnk is for"),
    (["x.zip", "--arch", "sm_90"], "--arch does not go with a pack"),
    ([NAME, "--pack", "y.txt", "--arch", "sm_90"], "must end with .zip, such as y.zip"),
    (["x.zip", "--pack", "y.zip"], "--pack takes ladders and rungs"),
    (["x.zip"], "cannot read x.zip"),
    (["--from", "x.json", "--pack", "y.zip"], "do not go together"),
    ([NAME, "--all", "--pack", "x.zip", "--arch", "sm_90"], "--all does not go with --pack"),
    (["--from", "x.json", "--n", "5"], "--n does not go with --from"),
    (["--from", "x.json"], "cannot read x.json"),
    (["--from", str(RESULTS / "bench_sgemm_h200.json")], "has no counters of Nsight Compute"),
    (["--from", str(RESULTS / "bench_reduce_h200.json")], "has no counters"),
    (["--from", str(RECORDED), "reduce/unrolled_warp:article"], "counters of reduce/unrolled_warp:article"),
])  # fmt: skip
def test_what_cannot_be_profiled_is_one_line(arguments, message, capsys, monkeypatch):
    monkeypatch.setattr("tir_schedules.machines.choice.choose", lambda name: pytest.fail("looks for a GPU"))
    assert cli.main(["profile", *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1


def test_all_that_was_recorded_is_as_predicted_or_explained(capsys):
    assert cli.main(["profile", "--from", str(RECORDED)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("NVIDIA H200") and " 0 are unexplained\n" in out and "UNEXPLAINED" not in out


def test_a_long_result_is_a_line_for_each_rung_unless_all_is_asked_for(capsys):
    file = str(RECORDED)
    assert cli.main(["profile", "--from", file]) == 0
    out = capsys.readouterr().out
    rows = {line.split("  ")[0]: line.split()[-6:] for line in out[: out.index("explained, ")].splitlines()}
    assert out.count("\n") < 1.1 * len(rows) and rows["sgemm/naive"] == ["2", "8", "8", "-", "-", "-"]
    table = [cells for name, cells in rows.items() if "/" in name or name == "single accesses"]
    totals = [sum(int(cell.replace(",", "")) for cell in column if cell != "-") for column in zip(*table)]
    closing = next(line for line in out.splitlines() if line.startswith("of "))
    assert totals[1:] == [int(number) for number in re.findall(r"\b\d+\b(?! %)", closing)]
    assert [line.partition(" of ")[0] for line in out.splitlines() if line.startswith("explained, ")] == [
        f"explained, {count}" for count in (191, 29, 25, 120, 4)
    ]  # fmt: skip
    assert cli.main(["profile", "--from", file, "--all"]) == 0
    assert (
        closing in (whole := capsys.readouterr().out)
        and len(whole) > 200_000
        and whole.count("sgemm/naive (tir) on 256,256,256") == 1
    )
    assert cli.main(["profile", "--from", file, "sgemm"]) == 0
    named = {name for name in rows if name.startswith("sgemm/")}
    assert capsys.readouterr().out.count("\n") < 1.2 * len(named)


def test_a_difference_for_no_known_reason_is_shown_in_a_summary_too(tmp_path, capsys):
    one, another = (
        entry(12),
        entry(12)
        | {
            "label": "hgemm/y (tir)",
            "predicted": {},
            "measured": dict.fromkeys(METRICS, 0) | {STORES: 5},
        },
    )
    (tmp_path / "r.json").write_text(json.dumps({"kernels": [one, another]}))
    assert cli.main(["profile", "--from", str(tmp_path / "r.json")]) == 1
    out = capsys.readouterr().out
    assert out.count("UNEXPLAINED") == 1 and " 1 are unexplained" in out
    assert next(line for line in out.splitlines() if line.startswith("hgemm/y (tir)")).endswith(
        "+100.00 % UNEXPLAINED"
    )


def test_a_rung_may_be_picked_from_what_was_recorded(capsys):
    assert cli.main(["profile", "--from", str(RECORDED), "hgemm/wmma_naive"]) == 0
    out = capsys.readouterr().out
    assert out.count("hgemm/wmma_naive (tir) on") == 4 and "mma_xor_swizzle" not in out


def entry(copied, **facts):
    """A launch whose copies were predicted to take 12 wavefronts."""
    return {
        "label": "hgemm/x (twin)",
        "predicted": {"shared_cp_async": {"cost": 12}},
        "measured": dict.fromkeys(METRICS, 0) | {COPIES: copied},
        **facts,
    }


@pytest.mark.parametrize("given, known", [
    (entry(21, copies_under_p0=3), True),
    (entry(21), False),
    (entry(21, probe="cp_async_4, stride 1"), True),
    (entry(21, probe="cp_async_16, stride 1"), False),
])  # fmt: skip
def test_copies_that_differ_are_explained_where_it_is_known_why(given, known):
    unequal = [one for one in comparisons(given) if one.predicted != one.measured]
    assert [(one.metric, bool(one.reason), one.unexplained) for one in unequal] == [
        (COPIES, known, not known)
    ]


@pytest.mark.parametrize("counted, waits, known", [(5, 1, True), (5, 0, False), (3, 1, False)])
def test_loads_that_a_wait_repeats_are_explained(counted, waits, known):
    given = {
        "label": "sgemm/x (twin)",
        "predicted": {"global_load": {"requests": 4}},
        "measured": dict.fromkeys(METRICS, 0) | {ASKED: counted},
        "waits": waits,
    }
    assert [bool(one.reason) for one in comparisons(given) if one.metric == ASKED] == [known]


def test_every_metric_has_a_name_and_every_reason_metrics():
    assert NAMES.keys() == METRICS.keys() and all(set(reason.metrics) <= METRICS.keys() for reason in REASONS)
