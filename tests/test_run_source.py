"""`run --source`: a CUDA file of the user's in place of a rung's kernel, and what is said of its faults."""

import json
import re

import pytest

SUM = """\
extern "C" __global__ void reduce_divergent(const int* x, int* y, int n) {
  int sum = 0;
  for (int i = blockIdx.x * 256; threadIdx.x == 0 && i < n && i < blockIdx.x * 256 + 256; ++i) sum += x[i];
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
"""


HEADER = "__device__ __forceinline__ float at(const float* A, int i) {\n  return A[i + (1 << 30)];\n}\n"


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
    code, out, err = tool("run", "sgemm/shared_tile", "--mnk", "64,64,64", "--source", path)
    assert code == 0 and "1 of 1 verified" in out, err


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


def test_run_source_names_an_mbarrier_that_is_waited_for_in_vain(tool, edited):
    kind = ("--mnk", "256,256,128", "--dtype", "float16", "--accumulate", "float16", "--layout", "nt")
    path = edited("hgemm/warp_specialized", "256,256,128", ", 32768);", ", 32784);")
    code, out, _ = tool("run", "hgemm/warp_specialized", *kind, "--source", path, "--machine", "cpu")
    assert code == 1 and "waits for phase 0 of full 0, the mbarrier" in out
    assert "tir-schedules layout hgemm/warp_specialized --ring" in out


PRINTS = SUM.replace(
    "  if (",
    '  if (blockIdx.x + threadIdx.x == 0) printf("%d numbers\\n\\x1b[2J%5.1f\\n", n, 0.25f * n);\n  if (',
    1,
)


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


NAIVE = (
    'extern "C" __global__ void sgemm_naive(const float* A, float* C, int M) {\n  C[threadIdx.x %% M] ='
    " %s;\n}\n"
)


def test_run_source_names_headers_and_line_directives(run_text, tmp_path):
    (tmp_path / "mine.h").write_text(HEADER)
    include = f'#include "{tmp_path}/mine.h"\n'
    code, out, _ = run_text(
        include + "#line 100\n" + NAIVE % "at(A, 0) > 1 ? 1 : threadIdx.x",
        "sgemm/naive",
        "--mnk",
        "1,1,1",
        "--json",
    )
    (verdict,) = json.loads(out)
    found = {finding["kind"]: finding["location"] for finding in verdict["kernels"]["schedule"]["findings"]}
    assert found["out_of_bounds"]["file"] == "mine.h" and found["out_of_bounds"]["line"] == 2
    assert found["out_of_bounds"]["text"] == "return A[i + (1 << 30)];"
    assert (
        found["overlapping_writes"]["file"] == str(tmp_path / "mine.cu")
        and found["overlapping_writes"]["line"] == 101
    )
    assert found["overlapping_writes"]["text"] == "C[threadIdx.x % M] = at(A, 0) > 1 ? 1 : threadIdx.x;"


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


def test_what_a_kernel_prints_is_shown_once_and_as_text(run_text):
    """Of the first check alone; what a terminal would obey is escaped."""
    source = "#include <cstdio>\n" + PRINTS
    code, out, _ = run_text(source, "reduce/divergent", "--n", "1000")
    lines = out.splitlines()
    at = next(k for k, line in enumerate(lines) if line.endswith("mine.cu prints:"))
    assert code == 0 and lines[at + 1 : at + 3] == ["1000 numbers", r"\x1b[2J250.0"]
    assert out.count("1000 numbers") == 1 and "1 of 1 verified" in lines[-1]
    _, out, _ = run_text(source, "reduce/divergent", "--n", "1000", "--json")
    assert json.loads(out)[0]["kernels"]["schedule"]["printed"] == "1000 numbers\n\x1b[2J250.0\n"
