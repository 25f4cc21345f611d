"""The command line as users meet it: output, exit codes, one clear line for each kind of bad input."""

import json
import re
import runpy
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec

import pytest

from tir_schedules.cli.main import main
from tir_schedules.compiler.twin import load_twin
from tir_schedules.console import afterwards, print_error
from tir_schedules.ladders.articles import ARTICLES
from tir_schedules.ladders.registry import FAMILIES, ladder
from tir_schedules.machines.cpu import CpuMachine


def assert_one_line(stderr, *parts):
    assert stderr.count("\n") == 1 and stderr.startswith("tir-schedules: ")
    for part in parts:
        assert part in stderr
    assert "Traceback" not in stderr


def test_list_names_every_rung_and_its_article(tool):
    code, out, _ = tool("list")
    assert code == 0
    for rung in (rung for family in FAMILIES for rung in ladder(family)):
        line = next(line for line in out.splitlines() if line.startswith(rung.id + " "))
        assert rung.summary in line and rung.article in line


def test_list_instructions_has_what_is_known_and_what_is_refused(tool):
    code, out, _ = tool("list", "--instructions")
    assert code == 0 and "exact: the bits of a GPU" in out and "tcgen05" in out
    _, out, _ = tool("list", "--instructions", "--json")
    lines = {line["opcodes"]: line for line in json.loads(out)}
    assert lines["lop3.b32 lop3.{or,and}.b32"]["precision"] == "exact"
    assert lines["tcgen05"]["precision"] == "refused" and lines["tcgen05"]["since"] == "sm_100"
    assert "no ladder" in tool("list", "sgemm", "--instructions")[2]


def test_list_instructions_has_what_was_held_against_a_gpu(tool, tmp_path, monkeypatch):
    monkeypatch.setattr("tir_schedules.report.recorded.DEFAULT_FOLDER", tmp_path)
    assert "on an H200" not in tool("list", "--instructions")[1]
    row = {"opcodes": "rem.{u16,s16,u32,s32,u64,s64}", "of": 6, "held": 5, "differs": 2}
    (tmp_path / "instructions_h200.json").write_text(json.dumps({"lines": [row]}))
    out = tool("list", "--instructions")[1]
    assert "on an H200" in out and "5 of 6, 2 differ" in out


def test_list_articles_has_their_figures_beside_ours(tool):
    code, out, _ = tool("list", "--articles")
    assert code == 0 and "NVIDIA H100" in out
    for article in ARTICLES.values():
        assert f"{article.name}, {article.title} (" in out
        assert all(step.name in out and step.rung in out for step in article.steps)
    assert re.search(r"^kernel 1, naive +sgemm/naive +threads 1024, .* 60\.8 GFLOPS +\d+ GFLOPS$", out, re.M)
    assert re.search(
        r"^last warp unrolled +reduce/unrolled_warp:article .* 484\.01 us +287\.25 +6\.44 ", out, re.M
    )
    _, out, _ = tool("list", "reduce", "--articles", "--json")
    (article,) = json.loads(out)
    assert article["name"] == "002" and article["steps"][3]["facts"]["barriers"] == 9
    assert article["steps"][0]["figures"] == ["3118.4"] and float(article["steps"][0]["here"][0]) > 0


def test_list_json(tool):
    code, out, _ = tool("list", "sgemm", "--json")
    rungs = json.loads(out)
    assert code == 0 and [rung["id"] for rung in rungs] == [
        *(rung.id for rung in ladder("sgemm")),
        "sgemm/gemv",
    ]
    assert {rung["id"]: rung for rung in rungs}["sgemm/warp_tiling"]["configs"][""]["wmiter"] >= 1


NO_INTEGERS = ("1e3", "1_000", "+5", " 5", "0x10", "1.5", "nan", "", "٣", "２")
NO_NUMBERS = (*NO_INTEGERS, "2^", "^3", "2^-1", "2^99", "2^20^2", "２^２０", "5\n")


@pytest.mark.parametrize(
    "arguments, parts",
    [
        (["run", "sgem"], ["'sgem'", "did you mean 'sgemm'"]),
        (["run", "sgemm/warptiling"], ["did you mean 'sgemm/warp_tiling'"]),
        (["run", "sgemm/nosuch"], ["no rung 'sgemm/nosuch'; `tir-"]),
        (["run", "naive"], ["did you mean 'sgemm/naive'"]),
        (["run", "sgemm/warp_tiling:1x1"], ["there is no rung", "sgemm/warp_tiling:128x128"]),
        (["emit", "sgemm"], ["one rung", "sgemm/naive"]),
        (["list", "sgem"], ["did you mean 'sgemm'"]),
        (["run", "sgemm", "--mnk", "1,2"], ["--mnk", "'1,2'", "1024,512,256"]),
        (["run", "sgemm", "--mnk", "a,b,c"], ["--mnk", "'a,b,c'"]),
        (["run", "sgemm", "--mnk", "0,4,4"], ["M is 0", "at least 1"]),
        (["emit", "sgemm/naive", "--mnk=4,-4,4"], ["N is -4"]),
        (["emit", "sgemm/naive", "--mnk", "65536,32768,4"], ["too large"]),
        (["emit", "sgemm/naive", "--arch", "sm_1"], ["sm_1", "sm_80"]),
        (["emit", "sgemm/naive", "--arch", "ampere"], ["ampere", "sm_80"]),
        (["emit", "sgemm/naive", "--ptx", "--arch", "sm_81"], ["sm_81"]),
        (["run", "sgemm/naive", "--arch", "sm_81"], ["sm_81"]),
        (["emit", "sgemm/naive", "--tir", "--twin"], ["has no TIR"]),
        (["emit", "sgemm/naive", "-o", "/no/such/folder/x.cu"], ["cannot write /no/such/folder/x.cu"]),
        (["run", "reduce", "--mnk", "1,2,3"], ["--mnk is for sgemm", "takes --n"]),
        (["emit", "sgemm/naive", "--n", "5"], ["--n is for reduce", "takes --mnk"]),
        (["run", "reduce", "--n", "many"], ["--n", "'many'", "2^20"]),
        (["run", "reduce", "--n", "0"], ["N is 0", "at least 1"]),
        *(
            (["run", "reduce", "--n", text], ["--n takes a number of elements", repr(text)])
            for text in NO_NUMBERS
        ),
        *(
            (["run", "sgemm", "--mnk", f"4,{text},4"], ["--mnk takes three integers", repr(text)[1:-1]])
            for text in NO_INTEGERS
        ),
        (["run", "sgemm", "--mnk", "1,2,3,4"], ["--mnk", "'1,2,3,4'"]),
        (["bench", "sgemm", "--sizes", "2^,4"], ["--sizes", "'2^,4'"]),
        (["run", "reduce", "--n", "9" * 5000], ["--n", f"'{'9' * 56}..."]),
        (["tune", "sgemm", "--trials", "1e3"], ["--trials takes a whole number such as 64, not '1e3'"]),
        (["tune", "sgemm", "--seed", "٣"], ["--seed takes a whole number such as 1, not '٣'"]),
        (["tune", "sgemm", "--on=-oProxyCommand=x"], ["--on takes HOST or HOST:PYTHON", "'-oProxyC"]),
        (["tune", "sgemm", "--on", "gpu1:"], ["--on takes HOST or HOST:PYTHON", "'gpu1:'"]),
        (
            ["layout", "sgemm/shared_tile", "--warp", " 1"],
            ["--warp takes a whole number such as 1, not ' 1'"],
        ),
        (["layout", "sgemm/shared_tile", "--block", "0,0,٠"], ["--block takes three integers"]),
        (
            ["bench", "--from", "x", "--compare", "y", "--threshold", "nan%"],
            ["--threshold takes a percentage", "'nan%'"],
        ),
        (
            ["emit", "sgemm/naive", "--ptx", "--arch", f"sm_{'9' * 5000}"],
            ["is not an architecture: did you mean"],
        ),
        (["emit", "reduce/shuffle", "--n", "2^31"], ["below 2**31"]),
        (["run", "reduce", "--n", "9", "--dtype", "f16"], ["'f16'", "int32 or float32"]),
        (["run", "sgemm", "--dtype", "int32"], ["--dtype is for reduce"]),
        (["run", "reduce", "--layout", "nn"], ["--layout is for sgemm and hgemm", "takes --n"]),
        (["run", "sgemm/naive", "--layout", "nt"], ["naive takes layout nn; nt is for sgemm/tf32, "]),
        (["run", "hgemm", "--n", "5"], ["--n is for reduce", "--mnk and --layout and --accumulate"]),
        (["run", "hgemm", "--layout", "tn"], ["layout is 'tn'", "nt or nn"]),
        (
            ["emit", "hgemm/wmma_naive", "--accumulate", "bf16"],
            ["accumulate is 'bf16'", "float16 or float32"],
        ),
        (
            ["run", "hgemm/mma_multistage:256x256", "--accumulate", "float32"],
            ["128x64", "float32; use --accumulate float16"],
        ),
        (
            ["emit", "hgemm/wmma_naive", "--dtype", "bfloat16"],
            ["wmma and mma rungs take A and B in float16", "bfloat16 to float32 by sums in float32 is for "],
        ),
        (
            ["run", "hgemm/mma_xor_swizzle", "--accumulate", "float32", "--result", "float16"],
            ["leave C in the format of the sums", "float16 to float16 by sums in float32 is for "],
        ),
        (["emit", "hgemm/wmma_naive", "--result", "bfloat16"], ["bfloat16 to bfloat16 by sums in float32"]),
        (["run", "hgemm", "--result", "f16"], ["format of C is 'f16'", "float32 or float16 or bfloat16"]),
        (
            ["bench", "hgemm", "--accumulate", "float16", "--dtype", "bfloat16"],
            ["accumulate is 'float16'", "of bfloat16 matrices it can be float32"],
        ),
        (["run", "reduce", "--result", "float16"], ["--result is for hgemm; reduce/"]),
        (["emit", "hgemm/wmma_async", "--arch", "sm_75"], ["needs sm_80 or later"]),
        (["run", "sgemm/naive", "--source", "/no/such.cu"], ["cannot read /no/such.cu"]),
        (["run", "sgemm", "--source", "x.cu"], ["--source", f"{len(ladder('sgemm'))} rungs"]),
        (["emit", "sgemm/naive", "--cuda", "--ptx"], ["--help"]),
        (["run", "sgemm", "--machine", "tpu"], ["'tpu'", "cpu", "gpu", "--help"]),
        (["frobnicate"], ["frobnicate"]),
        ([], ["VERB"]),
    ],
    ids=lambda value: (
        " ".join(value) if isinstance(value, list) and value and value[0] in ("run", "emit", "list") else ""
    ),
)
def test_bad_input_is_one_line_and_exit_code_2(tool, arguments, parts):
    code, out, err = tool(*arguments)
    assert code == 2 and out == ""
    assert_one_line(err, *parts)


def test_a_file_is_written_whole_or_not_at_all(tool, tmp_path):
    target = tmp_path / "naive.cu"
    target.write_text("precious")
    code, _, err = tool("emit", "sgemm/naive", "--arch", "sm_1", "-o", str(target))
    assert code == 2 and target.read_text() == "precious"
    code, out, _ = tool("emit", "sgemm/naive", "-o", str(target))
    assert code == 0 and out == "" and "sgemm_naive" in target.read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["naive.cu"]


def test_a_folder_is_not_a_file_to_write(tool, tmp_path):
    code, _, err = tool("emit", "sgemm/naive", "-o", str(tmp_path))
    assert code == 2
    assert_one_line(err, "folder")


@pytest.mark.parametrize(
    "form, part",
    [("--cuda", "__global__"), ("--ptx", ".visible .entry"), ("--sass", "FFMA"), ("--tir", "T.sblock")],
)
def test_emit_forms(tool, form, part):
    code, out, _ = tool("emit", "sgemm/naive", "--mnk", "64,64,64", form)
    assert code == 0 and part in out


@pytest.mark.parametrize("form", ["--cuda", "--ptx", "--sass"])
def test_emit_twin(tool, form):
    code, out, _ = tool("emit", "sgemm/naive", "--twin", form)
    assert code == 0 and "sgemm_naive" in out


def test_run_reports_each_rung_and_shape(tool):
    code, out, _ = tool(
        "run", "sgemm/naive", "sgemm/coalesced", "--mnk", "5,6,7", "--mnk", "33,1,2", "--machine", "cpu"
    )
    assert code == 0
    opening, empty, _, *rows, closing, following = out.splitlines()
    assert opening.startswith("2 rungs on 2 shapes: each schedule and its twin") and not empty
    assert [line.split()[:2] for line in rows] == [
        ["sgemm/naive", "5x6x7"],
        ["sgemm/naive", "33x1x2"],
        ["sgemm/coalesced", "5x6x7"],
        ["sgemm/coalesced", "33x1x2"],
    ]
    assert closing == "4 of 4 verified on the CPU machine"
    assert following.startswith("next, try: `tir-schedules emit sgemm/coalesced`")


def test_what_a_run_leaves_out_is_said_afterwards(capfd):
    code = main(["run", "sgemm/naive", "sgemm/tma", "--mnk", "5,6,7", "--machine", "cpu", "--dry-run"])
    assert code == 0 and "left out: sgemm/tma" in capfd.readouterr().err
    with afterwards():
        print_error("why")
        print("table", file=sys.stderr)
    assert capfd.readouterr().err == "table\ntir-schedules: why\n"


def test_run_json(tool):
    code, out, _ = tool("run", "sgemm/naive", "--mnk", "5,6,7", "--json", "--machine", "cpu")
    (verdict,) = json.loads(out)
    assert code == 0 and verdict["ok"] and verdict["workload"] == {"m": 5, "n": 6, "k": 7, "layout": "nn"}
    assert set(verdict["kernels"]) == {"schedule", "twin"}
    assert (verdict["machine"], verdict["arch"]) == ("cpu", "sm_80")


class PretendedGpu(CpuMachine):
    """The CPU machine under the name of a GPU."""

    name, arch, device_name = "gpu", "sm_90", "NVIDIA H200"


@pytest.fixture
def pretended_gpu(monkeypatch):
    monkeypatch.setattr(
        "tir_schedules.api.running.choose",
        lambda name, orders: {"gpu": PretendedGpu, "auto": PretendedGpu, "cpu": CpuMachine}[name](),
    )


@pytest.mark.parametrize("machine", [[], ["--machine", "gpu"]])
def test_run_on_a_gpu_says_so_and_compiles_for_it(tool, pretended_gpu, machine):
    code, out, _ = tool("run", "sgemm/naive", "--mnk", "5,6,7", *machine)
    assert code == 0
    assert (
        out.splitlines()[-1]
        == "1 of 1 verified on NVIDIA H200; races and bounds are checked by --machine cpu"
    )
    code, out, _ = tool("run", "sgemm/naive", "--mnk", "5,6,7", "--json", *machine)
    (verdict,) = json.loads(out)
    assert (code, verdict["machine"], verdict["arch"]) == (0, "gpu", "sm_90")


def test_an_architecture_that_the_gpu_does_not_run_is_refused(tool, pretended_gpu):
    code, out, err = tool("run", "sgemm/naive", "--mnk", "5,6,7", "--arch", "sm_80")
    assert code == 2 and out == ""
    assert_one_line(err, "NVIDIA H200 is sm_90", "sm_80", "--arch")


def test_a_gpu_that_is_asked_for_and_missing_is_exit_code_3(tool, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    code, out, err = tool("run", "sgemm/naive", "--machine", "gpu")
    assert code == 3 and out == ""
    assert_one_line(err, "CuPy", "pip install")


def test_a_wrong_twin_leaves_its_schedule_right(tool, monkeypatch):
    def broken(rung, workload, arch):
        kernel = load_twin(rung, workload, arch)
        return replace(kernel, source=kernel.source.replace("acc += A", "acc -= A"))

    monkeypatch.setattr(import_module("tir_schedules.run"), "load_twin", broken)
    code, out, _ = tool("run", "sgemm/naive", "--mnk", "5,6,7", "--machine", "cpu")
    assert code == 1 and out.splitlines()[1].split()[:4] == ["sgemm/naive", "5x6x7", "pass", "FAIL"]
    assert (
        "cuda_reference/sgemm/naive.cu:" in out
        and "(tir)" not in out
        and "_tir.cu" not in out
        and "0 of 1 verified, 1 failed," in out
    )


def test_a_hazard_with_right_values_is_not_called_wrong(tool):
    code, out, _ = tool("run", "reduce/unrolled_warp:article", "--n", "2^12", "--machine", "cpu")
    assert code == 1 and out.count("HAZARD") == 2 and "FAIL" not in out
    assert out.splitlines()[-1] == "0 of 1 verified, 1 with hazards, on the CPU machine"


def python(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment or None
    )


RUNGS = [rung for family in FAMILIES for rung in ladder(family)]
FIRST, *LATER = [ladder(family)[place] for place in (0, -1) for family in FAMILIES]


@pytest.mark.parametrize(
    "rung",
    [FIRST, *(pytest.param(rung, marks=pytest.mark.slow) for rung in LATER)],
    ids=lambda rung: rung.id,
)
def test_a_rung_is_a_script(rung):
    size = ["--n", "2^12"] if rung.family == "reduce" else ["--mnk", "40,40,40"]
    done = python("-m", f"tir_schedules.{rung.family}.{rung.name}", *size)
    assert done.returncode == 0 and f"{rung.entry}(" in done.stdout and done.stderr == ""


@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: rung.id)
def test_the_module_of_every_rung_emits_that_rung(rung, monkeypatch):
    emitted = []
    monkeypatch.setattr("tir_schedules.model.rung.run_as_script", lambda one: emitted.append(one.id))
    spec = find_spec(f"tir_schedules.{rung.family}.{rung.name}")
    assert spec and spec.origin
    runpy.run_path(spec.origin, run_name="__main__")
    assert emitted == [rung.id]


def test_import_is_quick_and_pulls_in_neither_tvm_nor_numpy():
    for module in ("tir_schedules", "tir_schedules.cli.main"):
        slow = "[m for m in ('tvm', 'numpy', 'rich', 'torch') if m in sys.modules]"
        code = f"import sys, {module}; print({slow})"
        assert python("-c", code).stdout.strip() == "[]"


def test_help_and_list_need_no_tvm():
    code = "import sys; from tir_schedules.cli.main import main; main(['list']); print('tvm' in sys.modules)"
    assert python("-c", code).stdout.splitlines()[-1] == "False"


def test_a_reader_that_stops_early_sees_no_error():
    command = f"{sys.executable} -m tir_schedules emit sgemm/naive --ptx | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stdout and done.stderr == ""


@pytest.mark.parametrize("given", [["--mnk", "-1,5,5"], ["--mnk=-1,5,5"]])
def test_a_negative_number_is_a_value(given, tool):
    """Not an option, as argparse takes it."""
    assert tool("run", "sgemm/naive", *given) == (
        2,
        "",
        "tir-schedules: M is -1; M, N and K must each be at least 1\n",
    )
