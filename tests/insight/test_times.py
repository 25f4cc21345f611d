"""`time`: predicted times of rungs and files as users meet them, beside recorded ones; and what is refused,
in a line."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import tir_schedules as ts
from tir_schedules.insight.times import page, timed, views
from tir_schedules.insight.times.doubts import doubts_of
from tir_schedules.insight.times.timed import Target, busy_at, limit_of, main_stall
from tir_schedules.insight.trace.printing import gains
from tir_schedules.report.times import RecordedTime, recorded_times
from tir_schedules.timing.gpus import find_table

TABLE = find_table("h100")
TARGET = Target("h100", TABLE)
SMALL = ("--mnk", "128,128,64")
SOURCE = """\
__global__ void twice(float *x) { int i = blockIdx.x * blockDim.x + threadIdx.x; x[i] = 2 * x[i]; }
__global__ void powers(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = x[i];
    for (int k = 0; k < n; ++k)
        s = s * s + 1;
    x[i] = s;
}
"""
CHECKS = """\
// check: --kernel twice --grid 132 --block 128 --arg x=f32[132*128]

// check: --kernel powers --grid 132 --block 128 --arg x=f32[132*128] --arg n=64
"""


@pytest.fixture(scope="module")
def report():
    return ts.time("sgemm/shared_tile", mnk=(128, 128, 64))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.cu"
    path.write_text(SOURCE + CHECKS)
    return str(path)


# ---- a rung ---
def test_a_rung_is_predicted_with_its_twin(report):
    assert [row.label for row in report.rows] == ["sgemm/shared_tile (schedule)", "sgemm/shared_tile (twin)"]
    row = report.rows[0]
    launch = row.prediction.launches[0]
    assert row.microseconds == pytest.approx(launch.cycles / TABLE.mhz + launch.overhead_us)
    assert row.rate == (pytest.approx(2 * 128 * 128 * 64 / row.microseconds / 1e6), "TFLOPS")
    assert row.clock.mhz == TABLE.mhz and report.ok and "sgemm/shared_tile" in repr(report)
    assert sum(row.states.values()) == launch.stalls.sum() + launch.issued.sum()
    assert sum(line.cycles for line in row.lines) == sum(row.states.values())
    assert any("__syncthreads" in line.text and main_stall(line.states) == "barrier" for line in row.lines)
    assert row.balance == pytest.approx(16 / 132)


def test_text_says_what_limits_and_what_is_waited_for(report):
    text = str(report)
    assert text.startswith("sgemm/shared_tile on 128x128x64, compiled for sm_90a\n")
    parts = ("predicted us", "TFLOPS", "limited by", "waves", "short scoreboard: shared memory")
    for part in (*parts, "__syncthreads();", f"{TABLE.mhz:.0f} MHz: the maximum", "nothing was timed"):
        assert part in text, part
    assert "<table>" in report._repr_html_()


def test_json_has_every_launch(report):
    found = json.loads(json.dumps(report.to_json()))
    assert (found["timed"], found["gpu"], found["device"]) == (False, "h100", TABLE.device)
    row = found["rows"][0]
    assert row["predicted_us"] == report.rows[0].microseconds and row["unit"] == "TFLOPS"
    assert set(row["launches"][0]["states"]) >= {"selected", "barrier"} and row["lines"][0]["states"]
    assert row["clock"] == {"mhz": TABLE.mhz, "why": "the maximum"}
    assert (row["limited_by"]["unit"], row["limited_by"]["share"]) == limit_of(report.rows[0])
    assert row["waits_for"] == main_stall(report.rows[0].states) and row["turns_filled"] == 16 / 132


def test_a_slower_clock_takes_longer_by_as_much(report):
    slow = ts.time("sgemm/shared_tile", mnk=(128, 128, 64), clock=TABLE.mhz / 2).rows[0]
    launch = slow.prediction.launches[0]
    assert slow.microseconds - launch.overhead_us == pytest.approx(
        2 * (report.rows[0].microseconds - launch.overhead_us), rel=1e-3
    )
    assert slow.clock.why == "as asked for"


def test_tensor_cores_lower_the_clock(tool):
    code, out, _ = tool("time", "hgemm/mma_ldmatrix", "--mnk", "256,256,128")
    held = f"of their peak hold it down: {TABLE.mhz:.0f} MHz idle, {TABLE.loaded_mhz:.0f} at full load"
    assert code == 0 and held in out
    assert f"at the maximum, {TABLE.mhz:.0f} MHz, it takes" in out
    code, out, _ = tool("time", "hgemm/mma_ldmatrix", "--mnk", "256,256,128", "--mhz", "maximum")
    assert code == 0 and "at the maximum" not in out and f"{TABLE.mhz:.0f} MHz: the maximum" in out


# ---- several, and records ---
def test_several_become_a_table_in_which_a_row_is_refused(tool):
    code, out, _ = tool("time", "sgemm/naive", "sgemm/shared_tile", *SMALL)
    rows = [line for line in out.splitlines() if line.startswith("sgemm/")]
    assert code == 0 and len(rows) == 4 and rows[0].startswith("sgemm/naive (schedule)  ")
    assert "predicted on 128x128x64 for NVIDIA H100 80GB HBM3 (132 SMs)" in out


def refused(row, reason="the model does not have X"):
    return replace(row, prediction=None, clock=None, reason=reason)


def test_what_is_refused_has_a_row_and_a_reason(report, capsys):
    views.print_ladder([report.rows[0], refused(report.rows[1])], {}, TARGET)
    out = capsys.readouterr().out
    assert "sgemm/shared_tile (twin)      refused       -       -     -" in out
    assert "not predicted: sgemm/shared_tile (twin): the model does not have X" in out
    views.print_full([report.rows[0], refused(report.rows[1])], {}, TARGET)
    assert "not predicted: sgemm/shared_tile (twin): the model does not have X" in capsys.readouterr().out


def test_an_error_against_another_gpu_is_in_brackets(report, capsys):
    row = report.rows[0]
    own = RecordedTime(TABLE.device, row.microseconds / 1.1, 1980.0, "2026")
    other = replace(own, gpu="NVIDIA H200")
    assert views.error_of(row, own, TARGET) == "+10.0 %" and views.error_of(row, other, TARGET) == "(+10.0 %)"
    assert views.error_of(row, None, TARGET) == "-"
    views.print_ladder(report.rows, {views.key_of(row): other}, TARGET)
    out = capsys.readouterr().out
    assert "H200  (+10.0 %)" in out and "an error in brackets is against another GPU" in out


def test_records_of_the_gpu_come_before_those_of_others(tmp_path):
    def write(name, gpu, date, micros, sustained=False):
        row = {"name": "sgemm/naive", "form": "schedule", "shape": "1x1x1", "median_us": micros}
        content = {"device": {"name": gpu}, "date": date, "policy": {"sustained": sustained}, "rows": [row]}
        (tmp_path / name).write_text(json.dumps(content))

    write("bench_a.json", "A", "2026-01-01", 1)
    write("bench_b.json", "B", "2026-01-02", 2)
    write("bench_c.json", "B", "2026-01-03", 3)
    write("bench_d.json", "B", "2026-01-04", 4, sustained=True)
    write("other.json", "B", "2026-01-05", 5)
    key = ("sgemm/naive", "schedule", "1x1x1")
    assert recorded_times("A", tmp_path)[key] == RecordedTime("A", 1, None, "2026-01-01")
    assert recorded_times("C", tmp_path)[key].microseconds == 3
    assert recorded_times("C", tmp_path / "nothing") == {}


def test_recorded_rows_of_the_checkout_stand_beside():
    known = recorded_times(TABLE.device)
    assert known["sgemm/serpentine", "twin, sizes fixed", "4096x4096x4096"].gpu == TABLE.device
    assert known["reduce/divergent", "schedule", "33554432 int32"].gpu == TABLE.device
    assert known["sgemm/serpentine", "schedule", "256x256x256"].gpu == "NVIDIA H200"


def test_what_limits_is_the_busiest_unit_or_dram():
    launch = SimpleNamespace(busy={"fp32 units": 0.7, "L2": 0.1}, dram_us=0.0, cycles=1000.0)
    row = SimpleNamespace(launch=launch, clock=SimpleNamespace(mhz=1000.0))
    assert limit_of(row) == ("fp32 units", 0.7)
    launch.dram_us = 0.9
    assert limit_of(row) == ("DRAM", pytest.approx(0.9))
    assert next(iter(busy_at(launch, 1000.0).items())) == limit_of(row)  # the row says what the limit says


@pytest.mark.parametrize("agreement, then", [(0.9, "is less certain"), (0.4, "do not rely on"), (1.0, "")])
def test_what_could_not_be_followed_is_said_wherever_a_prediction_is(report, capsys, agreement, then):
    row = report.rows[0]
    launches = (replace(row.prediction.launches[0], agreement=agreement),)
    row = replace(row, prediction=replace(row.prediction, launches=launches))
    views.print_ladder([row], {}, TARGET)
    views.print_full([row], {}, TARGET)
    said = [views.line_of(row, TARGET), *capsys.readouterr().out.split("nothing was timed")[:2]]
    for text in said:
        assert ("be followed" in text) == bool(then) and then in " ".join(text.split())


@pytest.mark.parametrize("opcode, doubts", [("REDG.E.ADD.S32", 0), ("ATOM.E.CAS.STRONG.GPU", 1)])
def test_a_compare_and_swap_is_predicted_as_if_it_succeeded(report, opcode, doubts):
    row = report.rows[0]
    launch = row.prediction.launches[0]
    code = [replace(launch.code[0], opcode=opcode), *launch.code[1:]]
    row = replace(row, prediction=replace(row.prediction, launches=(replace(launch, code=code),)))
    assert " ".join(views.notes_of(row, TARGET)).count("compare-and-swap") == doubts
    assert len(row.as_json()["doubts"]) == doubts


def test_blocks_that_differ_are_said(report):
    launch = report.rows[0].prediction.launches[0]
    works = {(0, 0, 0): 1000, (9, 0, 0): 10, (5, 0, 0): 950}
    even, uneven = replace(launch, works=works | {(9, 0, 0): 1000}), replace(launch, works=works)
    mean = replace(launch, works=works | {(4, 0, 0): 50}, waves=2.0)
    said = [[*doubts_of(replace(report.rows[0].prediction, launches=(one,)))] for one in (even, uneven, mean)]
    assert said == [[], [
        "blocks differ: 3 that were looked at execute 10 to 1,000 instructions, and the prediction takes all"
        " for block 0,0,0, which executes 1,000"
    ], [
        "blocks differ: 4 that were looked at execute 10 to 1,000 instructions, and the prediction takes 500"
        " for each"
    ]]  # fmt: skip


def test_lines_are_of_the_longest_launch(report, capsys):
    row = report.rows[0]
    both = replace(row, prediction=replace(row.prediction, launches=row.prediction.launches * 2))
    views.print_lines(both)
    assert "the longest of 2 launches\n" in capsys.readouterr().out


# ---- a page ---
def test_a_page_has_a_timeline_and_the_source(tool, tmp_path, check_page):
    path = tmp_path / "time.html"
    code, out, err = tool("time", "sgemm/shared_tile", *SMALL, "--html", str(path))
    text = path.read_text()
    assert (code, out) == (0, "") and err == f"wrote {path}\nwrote {path.with_name('index.html')}\n"
    assert text.count('<canvas class="timeline"') == 2 and "__syncthreads();" in text
    assert "What each warp of the first block does" in text and "short scoreboard" in text
    check_page(path)


def test_rows_of_a_timeline_are_what_warps_issue():
    found = ts.time("sgemm/shared_tile", mnk=(128, 128, 64), timeline=True).rows[0]
    picture = page.picture_of(found, 1 << 15)
    launch = found.launch
    assert len(picture.rows) == 32 and sum(map(len, picture.rows)) == len(launch.issues)
    assert len(launch.issues) == launch.issued.sum() and picture.cycles <= launch.cycles and not picture.cut
    assert all(a[0] < b[0] for row in picture.rows for a, b in zip(row, row[1:]))
    waits = {picture.states[state][0] for row in picture.rows for _, state, _ in row if state >= 0}
    assert {"barrier", "short scoreboard", "long scoreboard"} <= waits
    assert any("BAR.SYNC" in text for text in picture.code)


def test_a_page_without_a_timeline_is_refused(report):
    with pytest.raises(ts.BadInput, match="say timeline=True"):
        report.page()


# ---- files ---
def test_each_check_of_a_file_has_a_row(tool, file):
    code, out, _ = tool("time", file)
    assert code == 0 and [line.split()[0] for line in out.splitlines()[1:3]] == ["twice", "powers"]
    code, out, _ = tool("time", file, "--kernel", "powers", "--json")
    (row,) = json.loads(out)["rows"]
    assert code == 0 and row["name"] == "powers" and "rate" not in row and row["predicted_us"] > 1


def test_more_turns_take_longer():
    given = dict(grid=132, block=128, kernel="powers")
    few, many = (
        ts.time(SOURCE, arguments={"x": np.ones(132 * 128, np.float32), "n": n}, **given)
        .rows[0]
        .prediction.cycles
        for n in (64, 1064)
    )
    assert 4 * 1000 <= many - few < 6 * 1000  # a chain of FFMA, four cycles each, and a branch


def test_functions_of_ones_own_are_taken():
    from tvm import s_tir
    from tvm.script import tirx as T

    @T.prim_func(s_tir=True)
    def twice(A: T.Buffer((256,)), B: T.Buffer((256,))):
        for i in range(256):
            with T.sblock("B"):
                v = T.axis.spatial(256, i)
                B[v] = T.float32(2) * A[v]

    sch = s_tir.Schedule(twice)
    for loop, axis in zip(sch.split(sch.get_loops("B")[0], [4, 64]), ("blockIdx.x", "threadIdx.x")):
        sch.bind(loop, axis)
    (row,) = ts.time(sch).rows
    assert row.name == "twice" and 1 < row.microseconds < 5


# ---- beside what other verbs say ---
def test_inspect_has_a_column_or_rows(tool):
    code, out, _ = tool("inspect", "sgemm/shared_tile", *SMALL, "--time")
    assert code == 0 and "time on H100, predicted" in out and "roofline of H100 SXM" in out
    code, out, _ = tool("inspect", "sgemm/shared_tile", *SMALL, "--time", "--json")
    row = json.loads(out)["kernels"]["twin"]["time"]
    assert row["form"] == "twin" and row["predicted_us"] > 1
    views_ = tool("inspect", "sgemm/shared_tile", "sgemm/naive", *SMALL, "--time")[1].splitlines()
    assert views_[0].endswith("  predicted us") and views_[1].split()[-1] == f"{found_us(out):.2f}"
    assert "time" not in json.loads(tool("inspect", "sgemm/naive", *SMALL, "--json")[1])["kernels"]["twin"]


def found_us(out):
    return json.loads(out)["kernels"]["schedule"]["time"]["predicted_us"]


def test_inspect_of_a_file_and_check_have_a_line(tool, file):
    line = "predicted: twice takes "
    for verb in ("inspect", "check"):
        code, out, _ = tool(verb, file, "--time")
        assert code == 0 and out.count("predicted: ") == 2 and line in out, verb
        found = json.loads(tool(verb, file, "--time", "--json")[1])
        assert [one["time"]["name"] for one in found] == ["twice", "powers"]
        assert "predicted: " not in tool(verb, file)[1]
    assert tool("inspect", file, "--kernel", "twice", "--beside", "sgemm/naive", "--time")[0] == 2
    assert tool("check", file, "--time", "--arch", "sm_80")[0] == 2


def test_run_has_a_table(tool):
    code, out, _ = tool("run", "sgemm/shared_tile", *SMALL, "--time", "--machine", "cpu")
    assert (
        code == 0 and "sgemm/shared_tile (twin)" in out and "predicted on 128x128x64 for NVIDIA H100" in out
    )
    (row,) = json.loads(tool("run", "sgemm/shared_tile", *SMALL, "--time", "--machine", "cpu", "--json")[1])
    assert [one["form"] for one in row["times"]] == ["schedule", "twin, sizes fixed"]
    assert ts.check("sgemm/shared_tile", mnk=(128, 128, 64), time=True).verdicts.times[0].microseconds > 1
    with pytest.raises(ts.BadInput, match="leave out source="):
        ts.run("sgemm/naive", source="x", time=True)


def test_trace_says_what_each_step_gains():
    found = ts.trace("sgemm/shared_tile", mnk=(64, 64, 32), time=True)
    states = found.to_json()["states"]
    times = [state["predicted_us"] for state in states]
    known = [one for one in times if one]
    assert times[0] is None and len(known) > 5 and known[-1] < known[0]
    assert all(a == times[state["same"]] for a, state in zip(times, states) if a)
    out = str(found)
    first = next(number for number, one in enumerate(times) if one)
    line = next(line for line in out.splitlines() if line.startswith(f"{first} "))
    assert f"{times[first]:,.2f}" in line and "gains" in out.partition("\n0 ")[0]
    assert "predicted_us" not in replace(found, times={}).to_json()["states"][0]


CONFLICTS = """\
__global__ void turn(float *x) {
    __shared__ float tile[32][32];
    for (int i = 0; i < 64; ++i) {
        tile[threadIdx.x][threadIdx.y] = x[threadIdx.y * 32 + threadIdx.x] + i;
        __syncthreads();
        x[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.y][threadIdx.x];
        __syncthreads();
    }
}
// check: --grid 1 --block 32,32 --arg x=f32[1024]
"""


def test_advice_says_what_is_gained_without_conflicts(tool, tmp_path):
    path = tmp_path / "turn.cu"
    path.write_text(CONFLICTS)
    for verb in ("check", "inspect"):
        (one,) = json.loads(tool(verb, str(path), "--advice", "--time", "--json")[1])
        found = one["time"]
        assert found["without_conflicts_us"] < 0.5 * found["predicted_us"], verb
    code, out, _ = tool("check", str(path), "--advice", "--time")
    assert code == 0 and "; without bank conflicts " in out and out.rstrip().endswith(" % less")
    padded = CONFLICTS.replace("tile[32][32]", "tile[32][33]")
    as_padded = ts.time(padded).rows[0].microseconds
    assert found["without_conflicts_us"] == pytest.approx(as_padded, rel=0.05)
    code, out, _ = tool("inspect", "reduce/interleaved", "--n", "4096", "--advice", "--time")
    assert code == 0 and out.count("; without bank conflicts ") == 2


def test_a_gain_is_against_the_last_state_that_has_a_time():
    trace = SimpleNamespace(states=[SimpleNamespace(number=number) for number in range(5)])
    cells = [*gains(trace, {1: 10.0, 3: 4.5, 4: 4.5})]
    assert cells == [("", ""), ("10.00", ""), ("", ""), ("4.50", "+5.50"), ("4.50", "")]


# ---- what is refused ---
LONG = "__global__ void k(float *x, int n) { for (int i = 0; i < n; ++i) x[0] += x[i % 32]; }"


@pytest.mark.parametrize(
    "words, exit_code, part",
    [
        (("sgemm/naive", "--gpu", "h2000"), 2, "there is no table of the GPU 'h2000'; there are: "),
        (("sgemm/naive", "--mhz", "0"), 2, "the clock is '0'; it takes MHz from 100 to 10000"),
        (("sgemm/naive", "--arch", "sm_75"), 2, "the h100 executes code for sm_90, not for sm_75"),
        (("sgemm/nave",), 2, "did you mean 'sgemm/naive'?"),
        (("nothing.cu",), 2, "cannot read nothing.cu"),
        (("sgemm/naive", "--grid", "4"), 2, "--grid is for files"),
        (("sgemm/naive", "--mnk", "40000,40000,40000"), 2, "take 17 GiB here: name a smaller shape"),
    ],
)
def test_what_cannot_be_is_told_in_a_line(tool, words, exit_code, part):
    code, out, err = tool("time", *words)
    assert (code, out) == (exit_code, "") and part in err and err.count("\n") == 1


def test_a_file_without_a_kernel_or_with_a_long_one(tool, tmp_path, monkeypatch):
    path = tmp_path / "mine.cu"
    path.write_text("int x;\n")
    code, _, err = tool("time", str(path), "--grid", "1", "--block", "32")
    assert code in (1, 2) and err.count("\n") == 1 and "kernel" in err
    path.write_text(LONG)
    monkeypatch.setattr("tir_schedules.timing.paths.BUDGET", 1000)
    given = ("--grid", "1", "--block", "32", "--arg", "x=f32[32]", "--arg", "n=1000000")
    code, out, err = tool("time", str(path), *given)
    assert (code, out) == (1, "") and "does not end within 1,000 instructions of a warp" in err


def test_the_source_is_not_written_over_and_other_files_are_no_rungs(tool, tmp_path):
    path, other = tmp_path / "mine.cu", tmp_path / "mine.txt"
    path.write_text(SOURCE)
    other.write_text(SOURCE)
    code, out, err = tool("time", str(path), "--grid", "1", "--block", "32", "--html", str(path))
    assert (code, out) == (2, "") and "it is source code" in err and path.read_text() == SOURCE
    for words in (["time", str(other), "--grid", "1", "--block", "32"], ["layout", str(other), "A"]):
        code, out, err = tool(*words)
        assert (
            (code, out) == (2, "") and "a file that ends in .cu, .ptx or .py" in err and err.count("\n") == 1
        )


CALLS = """\
__device__ HOW float steps(float x) {
    #pragma unroll
    for (int i = 0; i < 64; ++i) x = x * 1.5f + 0.5f;
    return x;
}
__global__ void k(float *x) {
    float found = steps(x[threadIdx.x]);
    x[threadIdx.x] = steps(found * 2) + steps(found + 1);
}
"""


def test_functions_that_are_called_take_as_long_as_inlined_ones(tool, tmp_path):
    path, words = tmp_path / "calls.cu", ("--grid", "4096", "--block", "256", "--arg", "x=f32[256]", "--json")
    path.write_text(CALLS)
    called, inlined = (
        json.loads(tool("time", str(path), "-D", f"HOW={how}", *words)[1])["rows"][0]
        for how in ("__noinline__", "__forceinline__")
    )
    assert called["predicted_us"] == pytest.approx(inlined["predicted_us"], rel=0.1)
    assert called["predicted_us"] > 5 and called["doubts"] == inlined["doubts"] == []


@pytest.mark.parametrize(
    "body, doubt",
    [
        ("long long t = clock64(); while (clock64() - t < 500); x[0] = t;", "reads a clock or sleeps"),
        ("__nanosleep(100); x[0] = 1;", "reads a clock or sleeps"),
        ('printf("x"); x[0] = 1;', "functions of the driver, such as printf"),
        ("x[0] = 1;", ""),
    ],
)
def test_what_has_no_known_time_is_doubted(tool, tmp_path, body, doubt):
    path = tmp_path / "mine.cu"
    path.write_text(f"#include <cstdio>\n__global__ void k(float *x) {{ {body} }}\n")
    words = ("--grid", "1", "--block", "32", "--arg", "x=f32[1]:0..0", "--json")
    (row,) = json.loads(tool("time", str(path), *words)[1])["rows"]
    assert len(row["doubts"]) == bool(doubt) and doubt in " ".join(row["doubts"])


def test_ptx_of_another_architecture_is_told_what_to_write(tool, tmp_path):
    path = tmp_path / "mine.ptx"
    path.write_text(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n")
    for words in ((), ("--arch", "sm_90")):
        code, out, err = tool("time", str(path), "--grid", "1", "--block", "32", *words)
        assert (code, out) == (1, "") and "write `.target sm_90a` in a copy" in err and err.count("\n") == 1
    code, out, _ = tool("check", str(path), "--grid", "1", "--block", "32", "--time")
    assert code == 0 and "not predicted: k: its PTX is for sm_80" in out


def test_a_launch_that_fails_has_no_time(tool, tmp_path):
    path = tmp_path / "mine.cu"
    path.write_text("__global__ void k(float *x) { x[threadIdx.x + 4096] = 1; }\n")
    code, out, err = tool("time", str(path), "--grid", "1", "--block", "32", "--arg", "x=f32[32]")
    assert (code, out) == (1, "") and "out_of_bounds" in err and "has no time: see what `check` says" in err
    assert err.count("\n") == 1


def test_a_kernel_for_another_architecture_is_not_predicted(report):
    with pytest.raises(ts.CheckFailed, match="executes code for sm_80, not for sm_90a"):
        table = TABLE.model_copy(update={"arch": "sm_80"})
        timed.predicted(report.rows[0].binaries, [{}], ["C"], Target("a100", table), 0)


@pytest.mark.parametrize("given", [{}, {"gpu": "x"}, {"clock": "fast"}, {"grid": 4}])
def test_the_library_refuses_alike(given):
    subjects = ("sgemm/naive",) if given else ()
    with pytest.raises(ts.BadInput):
        ts.time(*subjects, **given)


def test_a_gpu_that_was_not_measured_says_what_is_verified(tool):
    code, out, _ = tool("time", "sgemm/naive", "--gpu", "t4", "--mnk", "64,64,64")
    assert (
        code == 0 and "Tesla T4 (40 SMs); of its figures multiprocessors, l2_bytes, mhz are verified" in out
    )
