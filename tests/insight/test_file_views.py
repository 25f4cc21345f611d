"""`inspect`, `layout` and `profile` of files, `check`'s page: what they show of kernels whose figures can be
worked out by hand, and one clear line for what cannot be."""

import json
import re
import shlex
from pathlib import Path

import pytest
from fake_tools import installer

from tir_schedules.insight.files import views as file_views
from tir_schedules.insight.files.beside import COUNTERS, causes
from tir_schedules.insight.inspection.listing import AnnotatedLine
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.counters import METRICS, Access, LineCounters

HOSTILE = "</code><script>alert(1)</script>"
SOURCE = f"""\
// {HOSTILE}
__device__ float twice(float x) {{ return 2 * x; }}
__global__ void strided(const float *x, float *y) {{
  __shared__ float tile[1024];
  tile[threadIdx.x * 8] = x[threadIdx.x];  // {HOSTILE}
  __syncthreads();
  y[threadIdx.x * 2] = twice(tile[threadIdx.x * 8]);
}}
__global__ void dense(const float *x, float *y) {{
  extern __shared__ float room[];
  room[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = room[threadIdx.x ^ 1];
}}
__global__ void racing(const float *x, float *y) {{
  volatile __shared__ float part[64];
  part[threadIdx.x] = x[threadIdx.x];
  float twin = part[63 - threadIdx.x];
  y[threadIdx.x] = twin + part[63 - threadIdx.x];
}}
// check: --kernel strided --block 64 --arg f32[64] --arg f32[128] --expect 'y[::2]=2*x'

// check: --kernel dense --block 64 --shared 256 --arg f32[64] --arg f32[64]:out

// check: --kernel racing --block 64 --arg f32[64] --arg f32[64]:out
"""
WARPS = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("views")
    (made / "mine.cu").write_text(SOURCE)
    return made


@pytest.fixture
def call(folder, tool, monkeypatch):
    """Runs a command in the folder of the file; returns exit code, output, error."""
    monkeypatch.chdir(folder)
    return lambda text: tool(*shlex.split(text))


def cells(out, name):
    (line,) = (line for line in out.splitlines() if line.strip().startswith(f"{name}  "))
    return re.split(r"\s{2,}", line.strip())[1:]


def test_a_kernel_of_a_file_in_full(call):
    code, out, _ = call("inspect mine.cu --kernel strided")
    assert code == 0 and "strided of mine.cu, compiled for sm_80" in out
    assert cells(out, "stores: wavefronts (ideal)") == [f"{WARPS * 8} ({WARPS})"]  # eight words in four banks
    assert cells(out, "stores: sectors (ideal)") == [f"{WARPS * 8} ({WARPS * 4})"]
    assert cells(out, "static shared bytes") == ["4,096"] and cells(out, "warps per SM")[0].startswith(
        "64 of"
    )


def test_its_lines_with_those_of_what_it_calls(call):
    _, out, _ = call("inspect mine.cu --kernel strided --lines")
    head, *lines = out.splitlines()[2:-2]
    numbers = [line[head.index(" line") :].split()[0] for line in lines]
    assert numbers == ["3", "4", "5", "6", "7", "8"]  # twice() is inlined in 7
    store = [line for line in lines if "tile[threadIdx.x * 8] = x" in line][0]
    assert re.split(r"\s{2,}", store)[1:5] == [f"{WARPS * 8} ({WARPS})", str(WARPS * 7), "4", "5"]
    _, out, _ = call("inspect mine.cu --kernel dense --conflicts")
    assert "dense: no bank conflicts: all 4 requests to shared memory take the ideal wavefronts" in out


def test_several_checks_in_one_table_and_a_hazard_is_told(call):
    code, out, _ = call("inspect mine.cu")
    assert code == 1 and [line.split()[0] for line in out.splitlines()[1:4]] == ["strided", "dense", "racing"]
    assert "racing: 0 of 1 verified, 1 with hazards, `tir-schedules check mine.cu` shows why" in out


def test_json_has_lines_and_what_the_check_came_to(call):
    code, out, _ = call("inspect mine.cu --kernel strided --ptx --json")
    (found,) = json.loads(out)
    (launch,) = found["launches"]
    texts = {line["line"]: line["text"] for line in launch["counters"]["lines"]}
    assert code == 0 and found["check"]["ok"] and texts[6] == "  __syncthreads();"
    assert launch["ptx"]["opcodes"]["bar.sync"] == 1


def test_two_kernels_side_by_side_and_the_lines_that_differ(call):
    code, out, _ = call("inspect mine.cu --kernel strided --beside mine.cu:dense")
    assert code == 0 and cells(out, "loads: conflicts") == [str(WARPS * 7), "0"]
    told = out[out.index("shared stores: 16 wavefronts beside 2") :].splitlines()
    assert re.split(r"\s{2,}", told[1].strip())[:3] == ["strided", "5", "16 (2)"]
    assert re.split(r"\s{2,}", told[2].strip())[:3] == ["dense", "11", "2 (2)"]
    _, out, _ = call("inspect mine.cu --kernel strided --beside mine.cu:dense --json")
    found = json.loads(out)["differences"]
    shares = [one["share"] for one in found]
    assert 1 >= shares[0] and shares == sorted(shares, reverse=True)


def test_the_lines_that_have_most_of_a_counter():
    def line(number, cost):
        return AnnotatedLine(
            "", number, "", LineCounters("", number, {"shared_load": Access(1, cost)}, {}), 0
        )

    lines = [line(1, 9), line(2, 30), line(3, 40), line(4, 21), line(5, 0)]
    assert [one.number for one in causes(COUNTERS[0], 100, lines)] == [3, 2, 4]
    assert [one.number for one in causes(COUNTERS[0], 60, [lines[0], lines[4]])] == [1]


def test_beside_a_rung_on_the_size_of_the_file(call):
    options = "--block 256 --grid 1 --kernel total --arg X=i32[N] --arg Y=i32[1]"
    text = (
        "__global__ void total(const int *X, int *Y, int N) { for (int i = threadIdx.x; i < N; i += 256)"
        " atomicAdd(Y, X[i]); }\n"
    )
    Path("sum.cu").write_text(text)
    for size in ("--let N=512", "--arg X=i32[512] --arg N=512 --n 512"):
        given = options if "let" in size else options.replace("--arg X=i32[N] ", "")
        code, out, _ = call(f"inspect sum.cu {given} {size} --beside reduce/interleaved")
        assert code == 0 and cells(out, "grid") == ["1x1x1", "2x1x1"]
    assert re.search(r"^  sum\.cu +1 .*atomicAdd", out, re.M)
    assert re.search(r"^  reduce/interleaved \(twin\) +\d+ ", out, re.M)


@pytest.mark.parametrize("what", ["tile", "5", "mine.cu:5"])
def test_banks_of_an_array_or_a_line(call, what):
    code, out, _ = call(f"layout mine.cu {what} --kernel strided --json")
    patterns = json.loads(out)["patterns"]
    assert code == 0 and patterns[0]["variable"] == "tile" and patterns[0]["wavefronts"] == 8
    assert [one["locations"][0]["line"] for one in patterns] == ([5, 7] if what == "tile" else [5])


def test_lines_that_ask_alike_are_told_apart(call):
    _, out, _ = call("layout mine.cu part --kernel racing --json")
    assert [one["locations"][0]["line"] for one in json.loads(out)["patterns"]] == [17, 18, 19]


def test_pictures_of_dynamic_shared_memory_have_its_name(call):
    code, out, _ = call("layout mine.cu --kernel dense --at 0,0,0 --warp 1")
    assert code == 0 and "store of room: 1 request of 4 bytes per lane, 1 wavefront each" in out
    assert "dense: shared memory, mine.cu, warp 1 of block 0,0,0" in out


def test_a_page_has_counters_findings_and_pictures(call, check_page):
    code, out, _ = call("check mine.cu -o page.html")
    page = Path("page.html").read_text()
    assert code == 1
    closing = "1 of 1 verified; no expected value given for 2 of 3: 6 hazards"
    assert closing in page and closing in out
    assert re.findall(r'<p class="verdict (\w*)">([\w ]+?) <', page) == [
        ("better", "pass"), ("", "no hazard"), ("worse", "HAZARD"),
    ]  # fmt: skip
    assert "<script>" not in page and "&lt;script&gt;alert(1)" in page
    anchor = re.search(r'<a href="#([\w-]+)">mine.cu:(1[789])</a>', page)
    assert anchor
    assert re.search(rf'<tr class="marked">\s*<th scope="row" id="{anchor[1]}">{anchor[2]}</th>', page)
    assert "store of tile: 1 request of 4 bytes per lane" in page and ">wait 7<" in page
    check_page(Path("page.html"))


def test_a_page_of_what_does_not_compile(call):
    Path("wrong.cu").write_text("__global__ void k() { nothing; }\n// check: --block 1\n")
    code, _, _ = call("check wrong.cu --page wrong.html")
    assert code == 1 and "ERROR" in Path("wrong.html").read_text()
    assert call("inspect wrong.cu")[0] == 1


def test_a_page_of_what_a_gpu_ran(call, monkeypatch):
    """It counts nothing; the verdict is there."""
    monkeypatch.setattr("tir_schedules.machines.choice.choose", lambda name, orders=1: Gpu())
    monkeypatch.setattr("tir_schedules.machines.choice.arch_for", lambda machine, arch: "sm_80")
    assert call("check mine.cu --kernel strided --machine gpu -o gpu.html")[0] == 0
    page = Path("gpu.html").read_text()
    assert "executed on NVIDIA H200" in page and "Line by line" not in page and ">pass <" in page


PTX = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry halve(.param .u64 x)
{
  .reg .f32 %f<2>;
  .reg .b32 %r<2>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [x];
  cvta.to.global.u64 %d1, %d1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %d2, %r1, 64;
  add.s64 %d3, %d1, %d2;
  ld.global.f32 %f1, [%d3];
  mul.f32 %f1, %f1, 0f3F000000;
  st.global.f32 [%d3], %f1;
  ret;
}
"""


def test_lines_of_ptx(call):
    Path("half.ptx").write_text(PTX)
    code, out, _ = call("inspect half.ptx --block 32 --arg f32[512] --lines")
    assert code == 0 and re.search(r"\b32 +14 +ld\.global\.f32", out)
    assert "4     .visible .entry halve" in out


def test_beside_a_kernel_without_comments_of_its_own(call):
    """It takes what the command says, though the file says how another of its kernels is launched."""
    Path("half.ptx").write_text(PTX)
    other = PTX[PTX.index(".visible") :].replace("halve", "other")
    comment = "// check: --kernel other --block 1 --arg f32[16]\n"
    Path("two.ptx").write_text(PTX + other + comment)
    options = "--kernel halve --block 32 --arg f32[512]"
    code, out, _ = call(f"inspect half.ptx {options} --beside two.ptx:halve")
    assert code == 0 and cells(out, "block") == ["32x1x1", "32x1x1"]
    assert "half.ptx: halve" in out and "two.ptx: halve" in out and "no counter differs" in out
    code, out, _ = call(f"inspect half.ptx {options} --beside two.ptx:other")
    assert code == 0 and cells(out, "block") == ["32x1x1", "1x1x1"]


BAD = {
    "inspect mine.cu other.cu": "takes one file at a time",
    "inspect sgemm/naive --grid 4": "--grid is for files",
    "inspect sgemm/naive --beside sgemm/vectorized": "name both rungs instead: sgemm/naive sgemm/vectorized",
    "inspect mine.cu --lines": "--lines shows one check, but mine.cu has 3: say --kernel NAME",
    "inspect mine.cu --dtype int32": "--dtype is for rungs; mine.cu is a file",
    "inspect mine.cu --beside sgemm/naive": "takes one check of mine.cu, which has 3: name one by --kernel:",
    "inspect mine.cu --kernel dense --beside mine.cu:dense": "would be compared with itself",
    "inspect mine.cu --kernel dense --beside nothing/here": "there is no rung 'nothing/here'",
    "inspect missing.cu --block 1": "missing.cu",
    "layout mine.cu tiles --kernel strided": "no shared array or line 'tiles', did you mean 'tile'?;",
    "layout mine.cu 6 --kernel strided": "it touches tile in lines 5, 7",
    "layout mine.cu --kernel strided --twin": "--twin is for rungs",
    "layout sgemm/naive A --at 0,0,0": "--at is for files",
    "layout mine.cu": "layout takes one check of mine.cu, which has 3",
    "profile mine.cu --pack x.zip": "--pack does not go with a file",
    "profile sgemm/naive --arg f32[3]": "--arg is for files",
    "check mine.cu -o nowhere/page.html": "nowhere",
    "check mine.cu --page ./mine.cu": "mine.cu would be written over",
}


@pytest.mark.parametrize("command", BAD)
def test_bad_input_is_one_line(call, command):
    code, out, error = call(command)
    assert (code, out, error.count("\n")) == (2, "", 1) and BAD[command] in error


class Gpu:
    """The CPU machine as a GPU."""

    name, arch, device_name = "gpu", "sm_90", "NVIDIA H200"

    def run(self, *given, count=False, **options):
        return CpuMachine().run(*given, **options)


def test_nsight_compute_counts_a_file(call, tmp_path, monkeypatch):
    monkeypatch.setattr("tir_schedules.insight.profile.session.gpu_machine", Gpu)
    monkeypatch.setattr("tir_schedules.machines.gpu.runs_on", lambda arch, gpu: True)
    log = installer(tmp_path, monkeypatch)("ncu", "")
    seen = []

    def counters(command, entries):
        seen.extend([command, entries])
        return [dict.fromkeys(METRICS, 16) for _ in entries]

    monkeypatch.setattr(file_views, "nsight_counters", counters)
    code, out, _ = call("profile mine.cu --kernel strided -D X=1 --arch sm_80 -o counted.json")
    command, entries = seen
    assert entries == ["_Z7stridedPKfPf"] * 5 and not log.exists()  # random, whole, NaN, inf, -inf
    assert command[1:6] == ["-m", "tir_schedules", "check", "mine.cu", "--kernel=strided"]
    assert command[6:] == ["-DX=1", "--arch=sm_80", "--seed=0", "--machine", "gpu"]
    assert code == 1 and re.search(r"strided +shared loads, wavefronts +16 +16 +0", out)
    assert json.loads(Path("counted.json").read_text())["kernels"][0]["entry"] == "_Z7stridedPKfPf"
    assert call("profile --from counted.json")[1] == out


def test_names_of_cpp_are_told_to_nsight_compute_as_they_are(tmp_path, monkeypatch):
    from tir_schedules.errors import CheckFailed
    from tir_schedules.insight.profile.nsight import nsight_counters

    log = installer(tmp_path, monkeypatch)("ncu", "")
    for entry in ("_Z1kv", "plain"):
        with pytest.raises(CheckFailed):
            nsight_counters(["true"], [entry])
    first, second = map(json.loads, log.read_text().splitlines())
    assert "mangled" in first and "mangled" not in second
