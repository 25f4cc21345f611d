"""The command line as users meet it: output, exit codes, one clear line for each kind of bad input."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from tir_schedules.compiler.twin import load_twin
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


def test_list_json(tool):
    code, out, _ = tool("list", "sgemm", "--json")
    rungs = json.loads(out)
    assert code == 0 and [rung["id"] for rung in rungs] == [rung.id for rung in ladder("sgemm")]
    assert rungs[-1]["configs"][""]["wmiter"] >= 1


NO_INTEGERS = ("1e3", "1_000", "+5", " 5", "0x10", "1.5", "nan", "", "٣", "２")
NO_NUMBERS = (*NO_INTEGERS, "2^", "^3", "2^-1", "2^99", "2^20^2", "２^２０", "5\n")


@pytest.mark.parametrize(
    "arguments, parts",
    [
        (["run", "sgem"], ["'sgem'", "did you mean 'sgemm'"]),
        (["run", "sgemm/warptiling"], ["did you mean 'sgemm/warp_tiling'"]),
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
        (["tune", "sgemm", "--tracker", "localhost:²"], ["--tracker takes HOST:PORT"]),
        (["serve", "--servers", "2^3"], ["--servers takes a whole number such as 2, not '2^3'"]),
        (["serve", "--servers", "1000"], ["--servers is 1000; it takes at most 256"]),
        (["serve", "--port", "+80"], ["--port takes a whole number such as 9190, not '+80'"]),
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
        (["run", "sgemm", "--layout", "nn"], ["--layout is for hgemm", "takes --mnk"]),
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
        (["emit", "hgemm/wmma_async", "--arch", "sm_75"], ["needs sm_80 or later"]),
        (["run", "sgemm/naive", "--source", "/no/such.cu"], ["cannot read /no/such.cu"]),
        (["run", "sgemm", "--source", "x.cu"], ["--source", "10 rungs"]),
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
    assert [line.split()[:2] for line in out.splitlines()[1:-1]] == [
        ["sgemm/naive", "5x6x7"],
        ["sgemm/naive", "33x1x2"],
        ["sgemm/coalesced", "5x6x7"],
        ["sgemm/coalesced", "33x1x2"],
    ]
    assert out.splitlines()[-1] == "4 of 4 verified on the CPU machine"


def test_run_json(tool):
    code, out, _ = tool("run", "sgemm/naive", "--mnk", "5,6,7", "--json", "--machine", "cpu")
    (verdict,) = json.loads(out)
    assert code == 0 and verdict["ok"] and verdict["workload"] == {"m": 5, "n": 6, "k": 7}
    assert set(verdict["kernels"]) == {"schedule", "twin"}
    assert (verdict["machine"], verdict["arch"]) == ("cpu", "sm_80")


class PretendedGpu(CpuMachine):
    """The CPU machine under the name of a GPU."""

    name, arch, device_name = "gpu", "sm_90", "NVIDIA H200"


@pytest.fixture
def pretended_gpu(monkeypatch):
    monkeypatch.setattr(
        "tir_schedules.cli.run.choose",
        lambda name: {"gpu": PretendedGpu, "auto": PretendedGpu, "cpu": CpuMachine}[name](),
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


@pytest.fixture
def edited(tool, tmp_path):
    """Writes a rung's emitted CUDA with one replacement, which must apply."""

    def edit(rung, shape, old, new):
        _, source, _ = tool("emit", rung, "--mnk", shape)
        assert old in source
        path = tmp_path / "edited.cu"
        path.write_text(source.replace(old, new, 1))
        return str(path)

    return edit


def test_run_source_accepts_what_emit_prints(tool, edited):
    path = edited("sgemm/shared_tile", "64,64,64", "__global__", "__global__")
    code, out, _ = tool("run", "sgemm/shared_tile", "--mnk", "64,64,64", "--source", path)
    assert code == 0 and "1 of 1 verified" in out


def test_run_source_names_the_line_of_a_missing_barrier(tool, edited):
    path = edited("sgemm/shared_tile", "64,64,64", "__syncthreads();", "")
    code, out, _ = tool("run", "sgemm/shared_tile", "--mnk", "64,64,64", "--source", path, "--machine", "cpu")
    assert code == 1 and "1 failed" in out and "(tir)" not in out and "_tir.cu" not in out
    first = out.splitlines()[2]
    assert re.match(
        r"race: .*edited\.cu:\d+ \w+ \w+ in shared memory that line \d+ \w+, no __syncthreads between \(block"
        r" 0,0,0 warps 1 and 0;",
        first,
    )
    assert all(len(line) <= 160 for line in out.splitlines())


SUM = """\
extern "C" __global__ void reduce_divergent(const int* x, int* y, int n) {
  int sum = 0;
  for (int i = blockIdx.x * 256; threadIdx.x == 0 && i < n && i < blockIdx.x * 256 + 256; ++i) sum += x[i];
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
"""


@pytest.fixture
def run_text(tool, tmp_path):
    """Runs CUDA text as a rung's kernel."""

    def call(text, *arguments):
        path = tmp_path / "mine.cu"
        path.write_text(text)
        return tool("run", *arguments, "--machine", "cpu", "--source", str(path))

    return call


def test_run_source_blames_the_launch_that_lost_something(run_text):
    command = ("reduce/divergent", "--n", "300")
    assert run_text(SUM, *command)[0] == 0
    code, out, _ = run_text(SUM.replace("= sum", "= sum + 1"), *command)
    assert (
        code == 1
        and re.search(r"wrong value, stored by \S*mine\.cu:4: Y\[0\] is ", out)
        and "_tir.cu" not in out
    )


HEADER = "__device__ __forceinline__ float at(const float* A, int i) {\n  return A[i + (1 << 30)];\n}\n"
NAIVE = (
    'extern "C" __global__ void sgemm_naive(const float* A, float* C, int M) {\n  C[threadIdx.x %% M] ='
    " %s;\n}\n"
)


def test_run_source_names_headers_and_line_directives(run_text, tmp_path):
    (tmp_path / "mine.h").write_text(HEADER)
    include = f'#include "{tmp_path}/mine.h"\n'
    code, out, _ = run_text(
        include + "#line 100\n" + NAIVE % "at(A, 0)", "sgemm/naive", "--mnk", "1,1,1", "--json"
    )
    (verdict,) = json.loads(out)
    found = {finding["kind"]: finding["location"] for finding in verdict["kernels"]["schedule"]["findings"]}
    assert found["out_of_bounds"]["file"] == "mine.h" and found["out_of_bounds"]["line"] == 2
    assert found["out_of_bounds"]["text"] == "return A[i + (1 << 30)];"
    assert (
        found["overlapping_writes"]["file"] == str(tmp_path / "mine.cu")
        and found["overlapping_writes"]["line"] == 101
    )
    assert found["overlapping_writes"]["text"] == "C[threadIdx.x % M] = at(A, 0);"


@pytest.mark.parametrize(
    "fault, reason", [("wrong_name", "error"), ('0; asm volatile("bogus;")', "ptxas, PTX line")]
)
def test_run_source_that_is_refused_names_the_file_and_line(run_text, tmp_path, fault, reason):
    code, out, _ = run_text(NAIVE % fault, "sgemm/naive", "--mnk", "1,1,1", "--mnk", "2,2,2")
    assert (
        code == 1
        and out.count(f"{tmp_path}/mine.cu(2): error") == 1
        and reason in out
        and "2 with errors" in out
    )


@pytest.mark.parametrize(
    "parameters, reason", [("", "no parameters"), ("float X[]", "`float X[]`"), ("IN C, int M", "64 bits")]
)
def test_run_source_with_other_parameters_is_one_line(run_text, parameters, reason):
    text = (
        f'using IN = float*;\ntypedef long long INT;\nextern "C" __global__ void sgemm_naive({parameters}) {{'
        " }\n"
    )
    code, out, _ = run_text(text.replace("int M", "INT M"), "sgemm/naive", "--mnk", "1,1,1", "--mnk", "2,2,2")
    told = out.splitlines()[3:-1]
    assert code == 1 and len(told) == 1 and reason in told[0] and "mine.cu: " in told[0]


def test_a_wrong_twin_leaves_its_schedule_right(tool, monkeypatch):
    def broken(rung, workload, arch):
        kernel = load_twin(rung, workload, arch)
        return replace(kernel, source=kernel.source.replace("acc += A", "acc -= A"))

    monkeypatch.setattr("tir_schedules.run.load_twin", broken)
    code, out, _ = tool("run", "sgemm/naive", "--mnk", "5,6,7", "--machine", "cpu")
    assert code == 1 and out.splitlines()[1].split()[:4] == ["sgemm/naive", "5x6x7", "pass", "FAIL"]
    assert (
        "sgemm_naive_twin.cu:" in out
        and "(tir)" not in out
        and "_tir.cu" not in out
        and "0 of 1 verified, 1 failed," in out
    )


def test_a_hazard_with_right_values_is_not_called_wrong(tool):
    code, out, _ = tool("run", "reduce/unrolled_warp:volatile", "--n", "2^12", "--machine", "cpu")
    assert code == 1 and out.count("HAZARD") == 2 and "FAIL" not in out
    assert out.splitlines()[-1] == "0 of 1 verified, 1 with hazards, on the CPU machine"


def test_run_source_includes_what_is_beside_it(tool, tmp_path):
    """Also where the folder's name means something to a shell, and where the first lines compiled are those
    of the include."""
    folder = tmp_path / 'my $(touch ran) "kernels'
    folder.mkdir()
    _, source, _ = tool("emit", "sgemm/naive", "--twin", "--mnk", "32,32,32")
    (folder / "f.cu").write_text(
        '#include "last.h"\n' + source.replace("C[m * N + n]", "C[m * N + n + LAST]")
    )
    for last, expected in ((0, 0), (1, 1)):
        (folder / "last.h").write_text(
            f"__global__ void other(float* a) {{ a[0] = 0; }}\n#define LAST {last}\n"
        )
        code, out, _ = tool(
            "run", "sgemm/naive", "--mnk", "32,32,32", "--source", str(folder / "f.cu"), "--machine", "cpu"
        )
        assert code == expected
    assert re.search(r"out_of_bounds: f\.cu:\d+ writes .* C\[", " ".join(out.split())) and not list(
        tmp_path.rglob("ran")
    )


def test_run_source_that_does_not_compile_shows_nvcc_lines(tool, edited):
    path = edited("sgemm/naive", "64,64,64", "threadIdx.x", "threadIdx.w")
    code, out, _ = tool("run", "sgemm/naive", "--mnk", "64,64,64", "--source", path)
    assert code == 1 and "error" in out and '"w"' in out


def test_run_source_without_the_kernel(tool, tmp_path):
    path = tmp_path / "empty.cu"
    path.write_text("int nothing;")
    code, out, _ = tool("run", "sgemm/naive", "--mnk", "4,4,4", "--source", str(path))
    assert code == 1 and "sgemm_naive" in out and "no kernel found" in out


def python(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment or None
    )


@pytest.mark.parametrize(
    "rung", [rung for family in FAMILIES for rung in ladder(family)], ids=lambda rung: rung.id
)
def test_every_rung_is_a_script(rung):
    size = ["--n", "2^12"] if rung.family == "reduce" else ["--mnk", "40,40,40"]
    done = python("-m", f"tir_schedules.{rung.family}.{rung.name}", *size)
    assert done.returncode == 0 and f"{rung.entry}(" in done.stdout and done.stderr == ""


def test_import_is_quick_and_pulls_in_neither_tvm_nor_numpy():
    code = (
        "import sys, tir_schedules; print([m for m in ('tvm', 'numpy', 'rich', 'torch') if m in sys.modules])"
    )
    assert python("-c", code).stdout.strip() == "[]"


def test_help_and_list_need_no_tvm():
    code = "import sys; from tir_schedules.cli.main import main; main(['list']); print('tvm' in sys.modules)"
    assert python("-c", code).stdout.splitlines()[-1] == "False"


def test_a_reader_that_stops_early_sees_no_error():
    command = f"{sys.executable} -m tir_schedules.cli emit sgemm/naive --ptx | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stdout and done.stderr == ""
