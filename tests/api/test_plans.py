"""`--dry-run` prints what a verb would do, and neither compiles nor executes nor writes anything."""

import json

import pytest

from tir_schedules.api import benching, inspecting, running, timing, tracing, tuning  # noqa: F401  before `never`
from tir_schedules.compiler import lower, nvcc
from tir_schedules.machines.cpu import CpuMachine

SAXPY = """__global__ void saxpy(float a, const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
// check: --let n=1000 --grid cdiv(n,256) --block 256 --arg a=2
// check: --arg x=f32[n] --arg y=f32[n] --expect y='a*x + y'
"""

COMMANDS = {
    "run sgemm/naive --mnk 64,96,32": ("sgemm/naive", "64x96x32", "schedule, twin", "2,3,1"),
    "run sgemm/naive --mnk 64,96,32 --source mine.cu": ("sgemm/naive", "64x96x32", "schedule ", "2,3,1"),
    "run hgemm/fastest --mnk 1000,64,500 --arch sm_80": ("hgemm/", "sm_80"),
    "bench hgemm/tma --mnk 512,512,512": ("hgemm/tma:", "128,2,1", "timed on this computer's GPU"),
    "bench sgemm/naive --predict --sizes 64": ("64x64x64", "nothing timed"),
    "inspect sgemm/naive --mnk 64,64,64": ("64x64x64", "counted on the CPU machine"),
    "inspect mine.cu": ("mine.cu", "4,1,1", "y=a*x + y"),
    "trace sgemm/naive --mnk 64,64,64": ("64x64x64", "after each primitive"),
    "time sgemm/naive --mnk 64,64,64": (
        "sgemm/naive",
        "64x64x64",
        "schedule, twin",
        "simulated as on NVIDIA H100",
    ),
    "time mine.cu": ("mine.cu", "4,1,1", "y=a*x + y", "simulated as on NVIDIA H100"),
    "check mine.cu": ("mine.cu", "4,1,1", "256,1,1", "x=f32[n]", "y=a*x + y", "1 to check"),
    "tune sgemm/multistage --mnk 64,64,64 --machine cpu --trials 7 --records made.jsonl": (
        "sgemm/multistage",
        "64x64x64",
        " 7 ",
        "made.jsonl",
    ),
}


@pytest.fixture(autouse=True)
def nothing_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.cu").write_text(SAXPY)

    def never(*given, **named):
        raise AssertionError("something was compiled or run")

    monkeypatch.setattr(lower, "emit", never)
    monkeypatch.setattr(nvcc, "compile_kernel", never)
    monkeypatch.setattr(CpuMachine, "run", never)


@pytest.mark.parametrize("command", COMMANDS)
def test_it_is_told_and_nothing_is_done(command, tool, tmp_path):
    words = command.split()
    code, out, _ = tool(*words, "--dry-run")
    assert code == 0 and all(told in out for told in COMMANDS[command]), out
    assert out.endswith("nothing was run\n")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.cu"]


def test_json_has_a_step_each(tool):
    code, out, _ = tool("run", "sgemm/naive", "--mnk", "64,96,32", "--dry-run", "--json")
    (step,) = json.loads(out)["steps"]
    assert code == 0 and step["rung"] == "sgemm/naive" and step["grid"] == "2,3,1"


REFUSED = {
    "--grid 0": (2, "the grid has 0 blocks along x"),
    "--block 2048": (1, "2048 threads per block; CUDA allows 1024"),
    "--expect z=x": (2, "there is no array 'z'"),
    "--arg x=f64[n]": (2, "points to f32; an array of f64 is given"),
    "--arg z=f32[n]": (2, "nothing takes the argument 'z'"),
    "--arg n=0.5": (2, "is a whole number; 0.5 is given"),
    "--tolerance -1": (2, "it takes a number from 0 on"),
}


@pytest.mark.parametrize("options", REFUSED)
def test_a_file_is_refused_as_without(options, tool):
    code, told = REFUSED[options]
    given = tool("check", "mine.cu", *options.split(), "--dry-run")
    assert given[0] == code and told in given[2] and not given[1]


@pytest.mark.parametrize(
    "text",
    [
        "template <class T> __global__ void k(T x) {}",
        '#include "types.h"\n__global__ void k(real x) {}',
        "#ifdef A\n__global__ void k(float *x) {}\n#else\n__global__ void k(float *x, int n) {}\n#endif",
        "__constant__ float x[9];\n__global__ void k() {}",
    ],
)
def test_what_only_the_compiler_knows_is_not_refused(text, tool, tmp_path):
    (tmp_path / "mine.cu").write_text(text)
    assert tool("check", "mine.cu", "--block", "32", "--arg", "x=f32[9]", "--dry-run")[0] == 0


def test_what_cannot_be_is_told_as_without(tool):
    assert tool("run", "sgemm/nave", "--dry-run")[0] == 2
    assert tool("bench", "--from", "x.json", "--dry-run")[0] == 2
