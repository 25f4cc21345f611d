"""The verb `bench` as users meet it; the GPU is made up, everything else is real."""

import inspect
import json
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import create_autospec

import made_up
import pytest

from tir_schedules.bench import measure, session, vendor
from tir_schedules.bench.measure import Policy
from tir_schedules.cli import main as cli
from tir_schedules.errors import MissingTool
from tir_schedules.model.kernel import FIXED_TWIN
from tir_schedules.subjects.results import load_results, save_results
from tir_schedules.subjects.subject import VENDORS, Subject

SMALL = ("--sizes", "64")


@pytest.fixture
def tool(capsys):
    """Calls the command in this process; returns exit code, standard output, standard error."""

    def call(*arguments):
        code = cli.main(["bench", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def gpu(monkeypatch):
    """A made-up GPU in place of this computer's; `seen` are the subjects it was given, `refuse` the labels it
    refuses."""
    fake = SimpleNamespace(
        name="gpu", arch="sm_80", device_name=made_up.DEVICE["name"], seen=[], refuse=(), factor=1.0
    )

    def timed(machine, subjects, policy, cub):
        fake.seen, fake.cub, fake.policy = list(subjects), cub, policy
        rows = [
            made_up.row_of(subject, 10.0 * fake.factor)
            for subject in subjects
            if subject.label not in fake.refuse
        ]
        refused = [subject.refused("C[0, 0] is nan") for subject in subjects if subject.label in fake.refuse]
        return (
            SimpleNamespace(
                rows=rows, refused=refused, limits=made_up.LIMITS, notes=[], device=made_up.DEVICE
            ),
            fake.policy,
        )

    monkeypatch.setattr(session, "gpu_machine", lambda: fake)
    monkeypatch.setattr(session, "measure_subjects", timed)
    return fake


@pytest.fixture
def no_cub(monkeypatch):
    """Nothing in place of CUB's library, which takes longer to compile than all else here together."""
    monkeypatch.setattr(vendor, "build_cub", lambda arch: b"\x7fELF of " + arch.encode())


@pytest.fixture
def no_compiler(monkeypatch):
    monkeypatch.setattr(
        "tir_schedules.subjects.compiling.subjects_of", lambda *arguments: pytest.fail("compiles")
    )


def test_without_a_gpu_one_line_says_so_before_anything_is_compiled(tool, no_compiler, monkeypatch):
    def choose(name):
        raise MissingTool("CUDA shows no GPU: install NVIDIA's driver, or use --machine cpu")

    monkeypatch.setattr("tir_schedules.machines.choice.choose", choose)
    code, out, err = tool("sgemm")
    assert (code, out) == (3, "") and err.count("\n") == 1
    assert "install NVIDIA's driver" in err and "--predict" in err and "--machine" not in err


def test_a_bench_compiles_for_the_gpu_and_writes_prints_and_draws(tool, gpu, tmp_path):
    code, out, err = tool(
        "sgemm/naive", "reduce/shuffle", *SMALL, "-o", tmp_path / "a.json", "--plot", tmp_path / "a.svg"
    )
    assert code == 0 and {*err.splitlines()} == {f"wrote {path}" for path in tmp_path.iterdir()}
    assert {binary.kernel.arch for subject in gpu.seen for binary in subject.binaries} == {"sm_80"}
    labels = ["sgemm/naive (schedule)", "sgemm/naive (twin, sizes fixed)", "cuBLAS", "cuBLASLt"]
    labels += 2 * ["reduce/shuffle (schedule)", "reduce/shuffle (twin, sizes fixed)", "CUB"]
    assert [subject.label for subject in gpu.seen] == labels
    results = load_results(tmp_path / "a.json")
    assert [row["name"] for row in results["rows"]] == [subject.name for subject in gpu.seen]
    assert results["command"] == "bench sgemm/naive reduce/shuffle --sizes 64"
    assert results["versions"]["nvcc"] and results["policy"]["sustained"] is False
    assert "sgemm, TFLOPS" in out and "reduce float32, GB/s" in out
    assert "schedule / (twin, sizes fixed): 1.0" in out and "compiled for the shape" in out
    assert len(list(tmp_path.glob("a_*.svg"))) == 3


def test_sizes_may_be_given_in_each_way(tool, gpu, monkeypatch):
    def libraries(jobs, arch, progress, twin):
        workloads = {workload: rung.family for rung, workload in jobs}
        return [Subject(ladder, VENDORS[ladder], "vendor", one) for one, ladder in workloads.items()], []

    monkeypatch.setattr("tir_schedules.subjects.compiling.subjects_of", libraries)
    tool("sgemm/naive", "reduce/divergent", "--mnk", "8,9,10", "--mnk", "16,16,16", "--n", "2^10")
    assert [str(s.workload) for s in gpu.seen if s.form == "vendor"] == ["8x9x10", "16x16x16", "1024 int32"]
    tool("hgemm/mma_xor_swizzle", "--sizes", "64,2^7", "--layout", "nn", "--accumulate", "float32")
    assert [str(s.workload) for s in gpu.seen if s.form == "vendor"] == [
        "64x64x64 nn float32",
        "128x128x128 nn float32",
    ]


def test_shapes_may_be_drawn(tool, gpu, tmp_path):
    words = ("sgemm/naive", "--random", "2", "--seed", "101", "--no-twins")
    code, out, _ = tool(*words, "-o", tmp_path / "a.json")
    assert code == 0 and "sgemm: 2 shapes drawn by seed 101: 1.000x the best of cuBLAS" in out
    found = load_results(tmp_path / "a.json")
    kinds = {"160x160x160": "square", "5696x576x1600": "aligned"}
    assert found["drawn"] == {"shapes": 2, "seed": 101, "kinds": kinds}
    assert found["command"] == f"bench {' '.join(words)}"
    assert tool(*words, "--pack", tmp_path / "a.zip", "--arch", "sm_80")[0] == 0
    assert tool(tmp_path / "a.zip", "-o", tmp_path / "b.json")[0] == 0
    assert load_results(tmp_path / "b.json")["packed"]["drawn"] == found["drawn"]


def test_candidates_of_the_fastest_are_timed(tool, gpu, tmp_path):
    words = ("sgemm/fastest", "--random", "1", "--seed", "101", "--no-twins", "--candidates", "3")
    code, out, err = tool(*words, "--arch", "sm_80", "-o", tmp_path / "a.json")
    assert code == 0 and "the fastest of up to 3 candidates at each is 1.000x the best of cuBLAS" in out
    found = load_results(tmp_path / "a.json")
    names = [row["name"] for row in found["rows"] if row["form"] == "schedule"]
    assert len({*names}) == 3 and found["drawn"]["chosen"] == {"160x160x160": names[0]}
    assert found["drawn"]["candidates"] == 3
    for number, name in enumerate(names, 1):
        assert f"sgemm/fastest on 160x160x160: candidate {number} of 3 is {name}, estimated at " in err
    assert tool(*words, "--pack", tmp_path / "a.zip", "--arch", "sm_80")[0] == 0
    assert tool(tmp_path / "a.zip", "-o", tmp_path / "b.json")[0] == 0
    assert load_results(tmp_path / "b.json")["packed"]["drawn"] == found["drawn"]


@pytest.mark.parametrize("words, message", [
    ("sgemm/naive --candidates 2", "goes with names such as sgemm/fastest, not with sgemm/naive"),
    ("sgemm/fastest sgemm --candidates 2", "goes with names such as sgemm/fastest, not with sgemm"),
    ("sgemm/naive --candidates 0", "--candidates takes a number from 1 to 32, not 0"),
    ("sgemm/fastest --candidates 2 --configs", "--candidates and --configs both say what is timed"),
    ("sgemm/fastest --candidates 0", "--candidates takes a number from 1 to 32, not 0"),
    ("sgemm/fastest --candidates 33", "--candidates takes a number from 1 to 32, not 33"),
    ("sgemm/fastest --candidates 2 --tuned", "--candidates and --tuned both say what is timed"),
    ("sgemm/fastest --candidates many", "--candidates takes a whole number such as 6, not 'many'"),
])  # fmt: skip
def test_what_has_no_candidates_is_said_in_one_line(tool, words, message):
    code, out, err = tool(*words.split(), *SMALL, "--dry-run")
    assert (code, out) == (2, "") and message in err and err.count("\n") == 1


def test_twins_may_take_sizes_at_run_time(tool, gpu, tmp_path):
    pack, command = tmp_path / "a.zip", "bench sgemm/naive --sizes 64 --arch sm_80 --run-time-sizes"
    assert tool(*command.split()[1:], "--pack", pack)[0] == 0
    code, out, _ = tool(pack, "-o", tmp_path / "a.json")
    assert code == 0 and "schedule / twin: " in out and "sizes fixed" not in out
    results = load_results(tmp_path / "a.json")
    assert [row["form"] for row in results["rows"]] == ["schedule", "twin", "vendor", "vendor"]
    assert results["packed"]["command"] == command


def test_twins_may_be_left_out(tool, gpu, tmp_path):
    assert tool("sgemm/naive", *SMALL, "--no-twins", "-o", tmp_path / "a.json")[0] == 0
    results = load_results(tmp_path / "a.json")
    assert {row["form"] for row in results["rows"]} == {"schedule", "vendor"}
    assert results["command"].endswith(" --no-twins")


def test_what_is_refused_costs_exit_code_1_and_is_kept(tool, gpu, tmp_path):
    gpu.refuse = ("sgemm/naive (twin, sizes fixed)",)
    code, out, _ = tool("sgemm/naive", *SMALL, "-o", tmp_path / "a.json")
    assert code == 1 and "refused: sgemm/naive (twin, sizes fixed) on 64x64x64: C[0, 0] is nan" in out
    assert [row["form"] for row in load_results(tmp_path / "a.json")["refused"]] == [FIXED_TWIN]


def test_json_is_the_results_file(tool, gpu, tmp_path):
    code, out, err = tool("sgemm/naive", *SMALL, "--json", "-o", tmp_path / "a.json")
    assert (code, err) == (0, f"wrote {tmp_path / 'a.json'}\n") and json.loads(out) == load_results(
        tmp_path / "a.json"
    )


def test_a_slower_run_than_the_recorded_one_is_exit_code_1(tool, gpu, tmp_path):
    tool("sgemm/naive", *SMALL, "-o", tmp_path / "old.json")
    gpu.factor = 1.02
    compare = ("sgemm/naive", *SMALL, "--compare", tmp_path / "old.json")
    code, out, _ = tool(*compare)
    assert code == 0 and "4 compared: 4 within 3%, 0 regressions" in out
    code, out, _ = tool(*compare, "--threshold", "1%")
    assert code == 1 and "4 compared: 0 within 1%, 2 regressions" in out
    code, out, _ = tool(*compare, "--threshold", "1%", "--json")
    assert code == 1 and [change["regression"] for change in json.loads(out)["comparison"]["changes"]] == [
        True,
        True,
        False,
        False,
    ]


def test_a_file_of_another_gpu_is_refused_before_anything_is_compiled(tool, gpu, no_compiler, tmp_path):
    save_results({**made_up.results("sgemm/naive"), "device": {"name": "Another GPU"}}, tmp_path / "old.json")
    code, _, err = tool("sgemm/naive", "--compare", tmp_path / "old.json")
    assert code == 2 and "Another GPU" in err and err.count("\n") == 1


def test_recorded_results_print_draw_and_compare_without_a_gpu(tool, no_compiler, tmp_path):
    results = made_up.results("sgemm")
    rows = len(results["rows"])
    for name in ("old.json", "new.json"):
        save_results(results, tmp_path / name)
    code, out, _ = tool(
        "--from", tmp_path / "new.json", "--compare", tmp_path / "old.json", "--plot", tmp_path / "a.png"
    )
    assert (
        code == 0
        and "sgemm, TFLOPS" in out
        and f"{rows} compared: {rows} within 3%" in out
        and (tmp_path / "a.png").exists()
    )


def test_rungs_the_gpu_is_too_old_for_are_left_out_with_a_line(tool, gpu):
    gpu.arch = "sm_75"
    code, _, err = tool(
        "hgemm/wmma_naive", "hgemm/wmma_async", *SMALL, "--layout", "nt", "--accumulate", "float16"
    )
    assert code == 0 and {subject.name for subject in gpu.seen} == {"hgemm/wmma_naive", "cuBLAS", "cuBLASLt"}
    assert (
        err
        == "tir-schedules: left out, because they need another architecture than sm_75: hgemm/wmma_async\n"
    )
    code, _, err = tool("hgemm/wmma_async", "--mnk", "64,64,64")
    assert code == 2 and "needs sm_80" in err


def test_code_for_another_architecture_is_refused(tool, gpu, no_compiler):
    code, _, err = tool("sgemm/naive", "--arch", "sm_90")
    assert code == 2 and "sm_90" in err and err.count("\n") == 1


def test_a_pack_made_without_a_gpu_is_timed_without_a_compiler(tool, gpu, no_cub, monkeypatch, tmp_path):
    pack = tmp_path / "a.zip"
    monkeypatch.setattr(session, "gpu_machine", lambda: pytest.fail("looks for a GPU"))
    code, out, _ = tool("sgemm/naive", "reduce/shuffle", *SMALL, "--pack", pack, "--arch", "sm_80")
    assert code == 0 and out.startswith("packed 10 subjects, ") and "a.zip" in out
    monkeypatch.setattr(session, "gpu_machine", lambda: gpu)
    monkeypatch.setattr(
        "tir_schedules.subjects.compiling.subjects_of", lambda *arguments: pytest.fail("compiles")
    )
    code, out, _ = tool(pack, "--sustained", "--cold", "-o", tmp_path / "a.json")
    assert (
        code == 0
        and "sgemm, TFLOPS" in out
        and gpu.policy == Policy(sustained=True, cold=True)
        and gpu.cub.startswith(b"\x7fELF")
    )
    packed = load_results(tmp_path / "a.json")["packed"]
    assert (
        packed["command"] == "bench sgemm/naive reduce/shuffle --sizes 64 --arch sm_80"
        and packed["versions"]["nvcc"]
    )


def test_what_cannot_be_compiled_is_left_out_of_a_pack_and_refused_where_it_is_timed(tool, gpu, tmp_path):
    pack = tmp_path / "a.zip"
    names = ("hgemm/mma_multistage", "hgemm/mma_xor_swizzle")
    code, out, _ = tool(
        *names,
        "--mnk",
        "64,64,64",
        "--layout",
        "nt",
        "--accumulate",
        "float16",
        "--pack",
        pack,
        "--arch",
        "sm_86",
    )
    assert code == 1 and "packed 4 subjects" in out and out.count("refused: hgemm/mma_multistage (") == 2
    code, out, _ = tool(pack, "-o", tmp_path / "a.json")
    assert code == 1 and out.count("refused: hgemm/mma_multistage (") == 2
    assert {subject.name for subject in gpu.seen} == {"hgemm/mma_xor_swizzle", "cuBLAS", "cuBLASLt"}
    assert "refused" not in load_results(tmp_path / "a.json")["packed"]


@pytest.mark.parametrize("verb", ["bench", "profile"])
def test_a_pack_of_nothing_is_not_written(verb, capsys, tmp_path):
    rung, pack = tmp_path / "mine.py", tmp_path / "a.zip"
    rung.write_text(
        "from tir_schedules import Rung\n\nRUNG = Rung('sgemm', schedule=lambda sch, work, config: None)\n"
    )
    code = cli.main([verb, str(rung), "--mnk", "16,16,16", "--pack", str(pack), "--arch", "sm_80"])
    told, refused = capsys.readouterr().out.splitlines()
    assert code == 1 and not pack.exists()
    assert told == f"nothing compiled: {pack} is not written" and "refused: sgemm/mine (" in refused


def test_measuring_is_asked_for_as_it_wants_to_be(monkeypatch):
    asked = create_autospec(measure.measure)
    monkeypatch.setattr(measure, "measure", asked)
    measurement, policy = session.measure_subjects("machine", ["subject"], Policy(sustained=True), b"cub")
    assert measurement is asked.return_value and policy == Policy(sustained=True)
    arguments = (
        inspect.signature(measure.measure).bind(*asked.call_args.args, **asked.call_args.kwargs).arguments
    )
    assert (arguments["machine"], arguments["subjects"], arguments["policy"], arguments["cub"]) == (
        "machine",
        ["subject"],
        policy,
        b"cub",
    )


BARE = """
import sys
for name in ("tvm", "tvm_ffi", "platformdirs", "matplotlib", "cupy"):
    sys.modules[name] = None
from tir_schedules.bench import measure, session
from tir_schedules.cli import main as cli
from tir_schedules.subjects import packs, results
assert len(packs.load_pack(sys.argv[1]).subjects) == 4 and results.about("")["command"] == ""
raise SystemExit(cli.main(["bench", sys.argv[1]]))
"""


def test_a_pack_needs_neither_tvm_nor_what_compiling_needs(tool, tmp_path):
    tool("sgemm/naive", *SMALL, "--pack", tmp_path / "a.zip", "--arch", "sm_80")
    done = subprocess.run([sys.executable, "-c", BARE, tmp_path / "a.zip"], capture_output=True, text=True)
    assert done.returncode == 3 and "CuPy" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments, parts",
    [
        ([], ["takes a ladder"]),
        (["sgem"], ["did you mean 'sgemm'"]),
        (["sgemm", "--sizes", "a"], ["--sizes", "'a'", "256,512"]),
        (["sgemm", "--sizes", "2^99"], ["'2^99'"]),
        (["sgemm", "--sizes", "0"], ["M is 0"]),
        (["sgemm", "--sizes", "8", "--mnk", "8,8,8"], ["--sizes and --mnk"]),
        (["sgemm", "--n", "8"], ["--n is for reduce"]),
        (["sgemm", "--random", "0"], ["--random takes a number of shapes from 1 to 1000, not 0"]),
        (["sgemm", "--random", "a"], ["--random takes a whole number such as 20, not 'a'"]),
        (["sgemm", "--random", "2", "--seed", "-1"], ["--seed takes a whole number from 0", "not -1"]),
        (["sgemm", "--random", "2", "--mnk", "8,8,8"], ["--random and --mnk both say sizes"]),
        (["sgemm", "--random", "2", "--sizes", "8"], ["--random and --sizes both say sizes"]),
        (["sgemm", "--seed", "2"], ["--seed goes with --random"]),
        (["reduce", "--random", "2"], ["--random draws M, N and K; reduce has N"]),
        (["a.zip", "--random", "2"], ["--random does not go with a pack"]),
        (["sgemm", "--threshold", "3%"], ["--compare"]),
        (["sgemm", "--compare", "missing.json"], ["cannot read missing.json"]),
        (["sgemm", "-o", "/missing/a.json"], ["cannot write /missing/a.json"]),
        (["sgemm", "--plot", "a.txt"], [".png"]),
        (["sgemm", "--pack", "a.zip"], ["--arch sm_90"]),
        (["sgemm", "--pack", "a.txt", "--arch", "sm_90"], ["must end with .zip, such as a.zip"]),
        (["sgemm", "--pack", "a.zip", "--predict"], ["do not go together"]),
        (["sgemm", "--pack", "a.zip", "--json"], ["--json does not go with --pack"]),
        (["sgemm", "--predict", "-o", "a.json"], ["--output does not go with --predict"]),
        (["sgemm", "--predict", "h201"], ["did you mean 'h200'"]),
        (["sgemm", "--from", "a.json"], ["leave out sgemm"]),
        (["--from", "a.json", "--sizes", "8"], ["--sizes does not go with --from"]),
        (["a.zip", "sgemm"], ["a pack cannot be timed together"]),
        (["a.zip"], ["cannot read a.zip"]),
        (["a.zip", "--arch", "sm_90"], ["--arch does not go with a pack"]),
        (["a.zip", "--predict"], ["--predict takes ladders and rungs"]),
    ],
)
def test_bad_input_is_one_line_before_anything_is_compiled(tool, gpu, no_compiler, arguments, parts):
    code, out, err = tool(*arguments)
    assert (code, out) == (2, "") and err.count("\n") == 1 and err.startswith("tir-schedules: ")
    assert all(part in err for part in parts)
