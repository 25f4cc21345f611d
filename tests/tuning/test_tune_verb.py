"""The verb `tune`: what it asks of the search, what it keeps, shows and draws, and what it refuses. The
search itself is made up."""

import json
import re
from types import SimpleNamespace

import pytest
from made_records import predicted, record

from tir_schedules.api import tuning as verb
from tir_schedules.cli import main as cli
from tir_schedules.tuning.records import database, searches
from tir_schedules.tuning.records.database import Database
from tir_schedules.tuning.records.timesheet import BUILDING, TIMED, Spent
from tir_schedules.workloads.reduction import Reduction

CPU = ("--machine", "cpu", "--mnk", "256,256,64", "--arch", "sm_90")


@pytest.fixture
def tool(capsys, tmp_path):
    """Runs `tune` with a file of records of its own; returns exit code, output and errors."""

    def call(*arguments, records=tmp_path / "records.jsonl"):
        code = cli.main(["tune", *map(str, arguments), "--records", str(records)])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def made_up(monkeypatch):
    """A search that fills the budget with ever faster records, the second of them refused; `stop` is the
    trial at which Ctrl-C comes."""
    fake = SimpleNamespace(calls=[], stop=None)

    def tune(space, workload, arch, trials, kept, machine=None, seed=0, on_trial=None, evaluator=None):
        fake.calls.append((space.rung.id, str(workload), arch, trials, seed, evaluator))
        done = len(
            [each for each in kept.records() if each.rung == space.rung.id and each.problem == workload]
        )
        for trial in range(done, trials):
            if trial == fake.stop:
                raise KeyboardInterrupt
            found = predicted(trial, workload, space.rung.id)
            kept.append(found)
            on_trial(found)
        spent = Spent(40, 30, 0, 20, {BUILDING: 50, TIMED: 24}, 2, 1)
        return SimpleNamespace(model_rank_correlation=0.75, spent=spent)

    monkeypatch.setattr(verb, "run_search", tune)
    monkeypatch.setattr(verb, "import_metaschedule", lambda: None)
    return fake


def test_a_reduction_has_its_own_shape_and_its_rate_in_bytes(tool, made_up):
    code, out, err = tool("reduce", "--machine", "cpu", "--arch", "sm_90", "--trials", 2)
    assert (code, err) == (0, "") and made_up.calls == [
        ("reduce/vectorized", "33554432 int32", "sm_90", 2, 0, None)
    ]
    assert "1000 us" in out and "134.2 GB/s" in out and "TFLOPS" not in out
    shape = ("--n", "2^22", "--dtype", "float32")
    code, out, _ = tool(
        "reduce/vectorized", *shape, "--machine", "cpu", "--arch", "sm_90", "--trials", 1, "--json"
    )
    assert code == 0 and json.loads(out)[0]["workload"] == {"n": 1 << 22, "dtype": "float32"}


def test_show_tells_reductions_from_gemms(tool, tmp_path):
    database = Database(tmp_path / "records.jsonl")
    for dtype in ("int32", "float32"):
        database.append(predicted(0, Reduction(256, dtype), "reduce/vectorized"))
    database.append(record())

    def shown(*options):
        code, out, _ = tool("--show", "--json", *options)
        return code and [] or [(each["rung"], each["workload"].get("dtype")) for each in json.loads(out)]

    sums = [("reduce/vectorized", "int32"), ("reduce/vectorized", "float32")]
    assert shown() == [*sums, ("sgemm/pipelined", None)]
    assert shown("--n", "256") == sums and shown("--n", "256", "--dtype", "float32") == sums[1:]
    assert shown("--mnk", "256,256,64") == [("sgemm/pipelined", None)]
    assert tool("--show", "--n", "257")[0] == 2


def test_a_search_is_kept_printed_and_drawn(tool, made_up, tmp_path):
    code, out, err = tool(
        "sgemm/multistage", *CPU, "--trials", 4, "--seed", 7, "--plot", tmp_path / "search.svg"
    )
    assert (code, err) == (0, "")
    assert made_up.calls == [("sgemm/multistage", "256x256x64", "sm_90", 4, 7, None)]
    assert "sm_90, predicted" in out and "250 us" in out and "bm 64, bn 3" in out
    assert "cost model's scores with the seconds of the candidates: 0.75" in out and "no GPU was timed" in out
    assert re.search(r"^4 trials in \d+ s: \S+ per minute$", out, re.M)
    assert "30 s waiting for candidates, 10 s choosing them" in out and "1 GPU busy 60%" in out
    assert len(Database(tmp_path / "records.jsonl").records()) == 4
    drawing = (tmp_path / "search.svg").read_text()
    assert "<svg" in drawing and "search.svg" in out


def test_a_ladder_is_its_best_rungs_and_json_has_each(tool, made_up):
    code, out, _ = tool("sgemm", *CPU, "--trials", 3, "--json")
    found = json.loads(out)
    assert code == 0 and [entry["rung"] for entry in found] == ["sgemm/pipelined", "sgemm/multistage"]
    facts = [
        (entry["trials"], entry["refused"], entry["best"]["trial"], entry["model_rank_correlation"])
        for entry in found
    ]
    assert facts == [(3, 1, 2, 0.75)] * 2


@pytest.mark.parametrize("arch, rungs", [
    (("--arch", "sm_80"), ["mma_multistage"]),
    ((), ["mma_multistage"]),
    (("--arch", "sm_90"), ["mma_multistage", "tma_store", "cluster"]),
])  # fmt: skip
def test_the_hopper_rungs_of_a_ladder_are_tuned_for_hopper(tool, made_up, arch, rungs):
    tool("hgemm", "--machine", "cpu", "--mnk", "256,256,64", *arch, "--trials", 1)
    assert [name for name, *_ in made_up.calls] == [f"hgemm/{rung}" for rung in rungs]
    assert {of for name, _, of, *_ in made_up.calls if "mma_" not in name} <= {"sm_90a"}


def test_a_hopper_rung_is_tuned_for_its_own_architecture(tool, made_up):
    tool("hgemm/tma", "--machine", "cpu", "--mnk", "256,256,64", "--trials", 1)
    assert made_up.calls[0][2] == "sm_90a"
    code, _, err = tool("hgemm/tma", "--machine", "cpu", "--arch", "sm_80", "--trials", 1)
    assert code == 2 and "hgemm/tma needs sm_90a, not sm_80" in err


def test_a_search_goes_on_only_when_asked_to(tool, made_up):
    assert tool("sgemm/multistage", *CPU, "--trials", 2)[0] == 0
    code, out, err = tool("sgemm/multistage", *CPU, "--trials", 4)
    assert (code, out) == (
        2,
        "",
    ) and "has 2 trials of sgemm/multistage on 256x256x64 already: --resume goes on" in err
    assert len(made_up.calls) == 1
    other = tool("sgemm/multistage", *CPU[:2], "--mnk", "128,128,64", "--arch", "sm_90", "--trials", 9)
    assert other[0] == 0, "another shape is another search"
    code, out, _ = tool("sgemm/multistage", *CPU, "--trials", 4, "--resume", "--json")
    (found,) = json.loads(out)
    assert code == 0 and found["trials"] == 4 and found["run"]["trials"] == 2
    assert found["run"]["spent"]["on"] == {"building": 50, "timed": 24}
    code, out, err = tool("sgemm/multistage", *CPU, "--trials", 4, "--resume")
    assert code == 2 and "has 4 trials of each search already: name more --trials" in err


def test_ctrl_c_leaves_every_result_and_says_how_to_go_on(tool, made_up, tmp_path):
    made_up.stop = 3
    code, out, err = tool("sgemm/multistage", *CPU, "--trials", 9)
    path = tmp_path / "records.jsonl"
    assert (code, err) == (
        130,
        f"tir-schedules: interrupted after 3 trials, all of them in {path}; --resume goes on\n",
    )
    assert "333.3 us" in out


def test_a_search_that_finds_nothing_right_is_a_failed_check(tool, monkeypatch, made_up):
    monkeypatch.setattr(
        verb,
        "search_one",
        lambda space, workload, arch, options, database, *rest: database.append(predicted(1, workload)),
    )
    code, out, _ = tool("sgemm/multistage", *CPU)
    assert code == 1 and "all refused, the last because too many registers" in out


def test_a_search_of_which_nothing_could_be_built_is_no_success(tool, monkeypatch, made_up):
    monkeypatch.setattr(verb, "search_one", lambda *_: searches.Run(0, 1.0, None))
    code, out, _ = tool("sgemm/multistage", *CPU, "--trials", 3)
    assert code == 1 and "per minute" not in out


def test_show_has_every_search_of_a_file_or_those_asked_for(tool, tmp_path):
    database = Database(tmp_path / "records.jsonl")
    for trial in range(3):
        database.append(predicted(trial, record().problem))
        database.append(record(trial))
    code, out, _ = tool("--show")
    assert code == 0 and "sgemm/pipelined" in out and "NVIDIA H200" in out and "sm_90, predicted" in out
    code, out, _ = tool("sgemm/pipelined", "--show", "--plot", tmp_path / "one.png")
    assert (
        code == 0
        and "sgemm/multistage" not in out
        and (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    )
    code, out, _ = tool("--show", "--plot", tmp_path / "all.png")
    assert sorted(path.name for path in tmp_path.glob("all*.png")) == [
        "all_sgemm_multistage_256x256x64_sm_90_predicted.png",
        "all_sgemm_pipelined_256x256x64_sm_90_measured.png"
    ]  # fmt: skip
    assert tool("--show", "--mnk", "1,2,3")[0] == 2
    code, _, err = tool("--show", records=tmp_path / "none.jsonl")
    assert code == 2 and "there are no records in" in err


def files_in(folder):
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


JOINED = "line 1: it has several records: the line ends (LF) between them are lost"


@pytest.mark.parametrize("change, code, said", [
    (lambda content: content.replace(b"\n", b""), 2, JOINED),
    (lambda content: content.replace(b"\n", b"\r"), 2, "line 1: it has several records"),
    (lambda content: content[:-9], 0, ""),
    (lambda content: content[:-1], 0, ""),
    (lambda content: b"# README\n" + content, 2, "not a file of tuning records"),
    (lambda content: content.replace(b":[0.5", b":[0.4"), 2, "line 1: it does not fit its checksum"),
])  # fmt: skip
def test_show_never_writes(tool, tmp_path, change, code, said):
    for trial in range(3):
        Database(tmp_path / "records.jsonl").append(record(trial))
    (tmp_path / "records.jsonl").write_bytes(change((tmp_path / "records.jsonl").read_bytes()))
    before = files_in(tmp_path)
    found, _, err = tool("--show")
    assert found == code and said in err and err.count("\n") == bool(code)
    assert files_in(tmp_path) == before


def test_a_search_does_not_mend_away_a_file_that_is_something_else(tool, made_up, tmp_path):
    path = tmp_path / "README.md"
    path.write_text("# notes\n\nwithout an end")
    code, _, err = tool("sgemm/multistage", *CPU, "--trials", 2, records=path)
    assert (
        code == 2
        and "not a file of tuning records" in err
        and path.read_text() == "# notes\n\nwithout an end"
        and not made_up.calls
    )


def test_a_search_goes_on_after_a_line_that_a_killed_one_left_unfinished(tool, made_up, tmp_path):
    path = tmp_path / "records.jsonl"
    Database(path).append(record(0))
    path.write_bytes(path.read_bytes() + b'{"checksum":"f')
    code, _, err = tool("sgemm/multistage", *CPU, "--trials", 2)
    assert (code, err) == (0, "") and len(Database(path).records()) == 3


@pytest.fixture
def own(monkeypatch, tmp_path):
    """Own records, in the place where they are without --records, and shipped ones; returns the path of the
    own."""
    monkeypatch.setattr(database, "own_records", lambda: tmp_path / "own.jsonl")
    monkeypatch.setattr(database, "SHIPPED", tmp_path / "shipped")
    (tmp_path / "shipped").mkdir()
    Database(tmp_path / "shipped" / "nvidia_l4.jsonl").append(record(7, device="NVIDIA L4"))
    return tmp_path / "own.jsonl"


def test_show_has_shipped_records_too_and_says_which_they_are(own, capsys):
    def shown(*options):
        code = cli.main(["tune", "--show", *options])
        return code, capsys.readouterr().out

    code, out = shown()
    assert code == 0 and "NVIDIA L4, shipped" in out and "nvidia_l4.jsonl" in out and str(own) not in out
    Database(own).append(record(0))
    code, out = shown()
    assert code == 0 and "NVIDIA L4, shipped" in out and "NVIDIA H200  " in out and f"records: {own}, " in out
    found = json.loads(shown("--json")[1])
    assert [(each["device"], each["shipped"]) for each in found] == [
        ("NVIDIA H200", False),
        ("NVIDIA L4", True),
    ]
    assert "shipped" not in shown("--records", str(own))[1].partition("records:")[0], (
        "a file that is named is shown alone"
    )
    assert cli.main(["tune", "--show", "--mnk", "1,2,3"]) == 2


def test_the_best_of_each_search_can_be_exported(tool, tmp_path):
    database = Database(tmp_path / "records.jsonl")
    for trial in (0, 3, 2):
        database.append(predicted(trial, record().problem))
    database.append(record(0))
    assert tool("--show", "--export", tmp_path / "best.jsonl")[0] == 0
    assert Database(tmp_path / "best.jsonl").records() == [predicted(3, record().problem), record(0)]
    code, _, err = tool("--show", "--export", tmp_path / "best.jsonl")
    assert code == 2 and "best.jsonl exists: name a file that does not" in err


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "tune takes sgemm, reduce, hgemm or a rung"),
        (["reduce/shuffle"], "reduce/shuffle cannot be tuned; "),
        (["sgemm/naive"], "sgemm/naive cannot be tuned"),
        (["sgemm/multistge"], "did you mean 'sgemm/multistage'?"),
        (["sgemm", "--trials", "0"], "--trials is 0"),
        (["reduce", "--layout", "nn"], "--layout is for sgemm and hgemm"),
        (["reduce", "--mnk", "1,2,3"], "--mnk is for sgemm"),
        (["reduce", "--n", "0"], "N is 0"),
        (["reduce", "--dtype", "f16"], "dtype is 'f16'"),
        (["sgemm", "--on", "here:"], "--on takes HOST or HOST:PYTHON"),
        (["sgemm", "--on", "gpu1", "--machine", "cpu"], "--machine does not go with --on"),
        (["--show", "--on", "gpu1"], "--on does not go with --show"),
        (["sgemm", "--export", "x.jsonl"], "--export goes with --show"),
        (["--show", "--resume"], "--resume does not go with --show"),
        (["sgemm", "--plot", "x.txt"], "--plot takes a file that ends in .png"),
        (["sgemm", "--machine", "cpu", "--arch", "sm_1"], "sm_1"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_searched(tool, made_up, arguments, message):
    code, out, err = tool(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1) and message in err
    assert not made_up.calls
