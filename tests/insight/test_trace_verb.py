"""The verb `trace` as users meet it: its table, its diffs, its JSON, its page, and one clear line for bad
input."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from tir_schedules.api import tracing
from tir_schedules.cli import main as cli
from tir_schedules.insight.trace.key_metrics import CHARTS, REGISTERS, SPILLS, cells, change
from tir_schedules.insight.trace.page import chart, page, sections
from tir_schedules.insight.trace.states import trace
from tir_schedules.ladders.registry import find
from tir_schedules.pages.folder import LINK
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.reduction import Reduction

SMALL = ("--mnk", "64,32,8")


@pytest.fixture(scope="module")
def found():
    return trace(find("sgemm/naive")[0], Gemm(64, 32, 8), "sm_80")


@pytest.fixture
def tool(capsys):
    def call(*arguments):
        code = cli.main(["trace", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_a_line_per_step_with_its_key_metrics(tool, found):
    code, out, err = tool("sgemm/naive", *SMALL)
    lines = out.splitlines()
    assert code == 0 and not err and len(lines) == 2 + 11 + 1 and "64x32x8, sm_80: 10 steps" in lines[0]
    last, metrics = re.split(r"\s{2,}", lines[-2].strip()), found.states[-1].metrics
    assert last[:2] == ["10", "C_init = sch.decompose_reduction(C, k)"]
    registers, sectors = (
        metrics.binary.resources.registers,
        sum(access.cost for access in metrics.counters.accesses.values()),
    )
    assert last[2:] == [
        str(registers),
        "0",
        "-",
        f"{sectors:,}",
        f"{metrics.counters.warp_instructions:,}",
        "pass",
    ]
    assert lines[-1].startswith("0 to 4: no kernel yet")


def test_what_each_step_changes(tool):
    out = tool("sgemm/naive", *SMALL, "--tir", "--cuda")[1]
    steps = out.split("\n\nstep ")[1:]
    assert len(steps) == 10 and steps[4].startswith('5: sch.bind(i_0, "blockIdx.x")\n  sgemm/naive.py:')
    assert '+    for i_0 in T.thread_binding(2, thread="blockIdx.x"):' in steps[4]
    assert "--- CUDA: no kernel yet" in steps[3] and '+extern "C" __global__' in steps[4]
    assert "--- TIR" not in tool("sgemm/naive", *SMALL, "--cuda")[1]


def test_json_has_every_state(tool):
    code, out, _ = tool("sgemm/naive", *SMALL, "--json")
    data = json.loads(out)
    states = data["states"]
    assert (
        code == 0
        and data["right"]
        and data["first_kernel"] == 5
        and [state["number"] for state in states] == list(range(11))
    )
    assert (
        states[0]["tir"].startswith("@T.prim_func")
        and "call" not in states[0]
        and states[1]["tir_diff"].startswith("@@ ")
    )
    assert states[5]["measured"]["outside"] == ["C_local"] and states[5]["measured"]["right"] is None
    assert (
        states[8]["measured"]["outside"] == ["C_local"] and states[8]["measured"]["metrics"]["findings"] == []
    ), "it may be written"
    assert (
        states[10]["places"][0]["file"] == "sgemm/naive.py"
        and states[10]["measured"]["metrics"]["counters"]["warp_instructions"] > 0
    )


class Ids(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [attributes["href"]] if tag == "a" else []


def test_the_page_has_a_place_for_every_step_and_needs_nothing_else(tool, found, tmp_path):
    code, out, err = tool("sgemm/naive", *SMALL, "-o", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text().replace(LINK, "")
    page = Ids(text)
    assert (code, out) == (0, "")
    assert err == f"wrote {tmp_path / 'page.html'}\nwrote {tmp_path / 'index.html'}\n"
    assert {f"step-{number}" for number in range(11)} < set(page.ids) and all(
        link[1:] in page.ids for link in page.links
    )
    assert not re.search(r'(?:src|href)="(?!#|data:)', text) and "@import" not in text and "url(" not in text
    for state in found.states[1:]:
        assert state.step.call.replace('"', "&#34;") in text and state.step.what in text


def test_the_page_in_a_browser(check_page, found):
    check_page(page(found))


def test_a_key_metric_is_compared_with_the_state_measured_before(found):
    threads, one_more = found.states[7], found.states[8]
    shown = {cell.name: cell for cell in cells(one_more, threads)}
    old, new = (REGISTERS.value(state.measured) for state in (threads, one_more))
    assert shown["registers"].value == str(new) and SPILLS.name not in shown
    assert shown["registers"].verdict == ("better" if new < old else "worse" if new > old else "")
    assert (
        {cell.change for cell in cells(one_more, one_more)}
        == {cell.change for cell in cells(one_more, None)}
        == {""}
    )


def test_to_begin_to_use_shared_memory_is_no_fault_but_conflicts_are():
    found = trace(find("reduce/interleaved")[0], Reduction(300), "sm_80")
    state = found.states[0]
    counters = replace(state.metrics.counters, accesses={})
    nothing = replace(
        state, measured=replace(state.measured, metrics=replace(state.metrics, counters=counters))
    )
    verdicts = {cell.name: cell.verdict for cell in cells(state, nothing)}
    assert (
        verdicts["shared wavefronts"] == ""
        and verdicts["bank conflicts"] == "worse"
        and verdicts["warp instructions"] == ""
    )
    assert {cell.name: cell.verdict for cell in cells(nothing, state)}["shared wavefronts"] == "better"


CHANGES = [
    (200, 150, "▼ 25.0 %"),
    (100, 310, "▲ 3.1x"),
    (310, 100, "▼ 3.1x"),
    (0, 1024, "▲ from 0"),
    (8, 0, "▼ from 8"),
]


@pytest.mark.parametrize("old, new, said", CHANGES)
def test_changes_are_said_in_percent_or_as_a_factor(old, new, said):
    assert change(old, new) == said


def test_a_chart_has_a_bar_for_each_state_and_none_where_nothing_is_known(found):
    for metric in CHARTS:
        drawn = chart(metric, found.states)
        assert len(drawn.bars) == len(found.states) and [bar.height for bar in drawn.bars[:5]] == [None] * 5
        heights = [bar.height for bar in drawn.bars if bar.height is not None]
        assert all(0 <= height <= 100 for height in heights) and (max(heights) == 100 or set(heights) == {0})


def test_steps_stand_under_the_line_that_makes_them():
    from tir_schedules.insight.trace.recorder import record
    from tir_schedules.insight.trace.states import State

    steps = record(find("sgemm/lane_quads")[0], Gemm(128, 128, 8)).steps
    listed = sections([State(step.number, step, "") for step in steps])
    assert [state.number for section in listed for state in section.states] == list(range(1, len(steps) + 1))
    titles = [section.place.text for section in listed]
    assert titles[0].startswith("copy_a, copy_b, write_back = staged or stage(")
    assert titles[1] == "parts = split_up(sch, config)" and titles[-1] == "finish(sch, gemm, parts, config)"
    assert all(len(section.states) <= 13 for section in listed)


@pytest.mark.parametrize(
    "arguments, code, parts",
    [
        (["sgemm"], 2, ["trace takes one rung", "sgemm/naive"]),
        (["sgemm/nave"], 2, ["did you mean 'sgemm/naive'"]),
        (["reduce/divergent", "--mnk", "8,8,8"], 2, ["--mnk is for", "reduce/divergent takes --n"]),
        (["sgemm/naive", "--arch", "sm_1"], 2, ["did you mean"]),
        (["sgemm/multistage", "--arch", "sm_75"], 2, ["needs sm_80"]),
        (["sgemm/naive", "-o", "no/such/folder.html"], 2, ["cannot write"]),
        (
            ["sgemm/tma", "--mnk", "2048,2048,2048"],
            2,
            ["would take the CPU machine minutes", "1024,1024,1024"],
        ),
    ],
)
def test_bad_input_is_one_line(tool, arguments, code, parts):
    got, out, err = tool(*arguments)
    assert got == code and not out and err.count("\n") == 1 and all(part in err for part in parts)


def test_a_page_that_could_not_be_written_is_said_before_anything_is_compiled(monkeypatch, tool, tmp_path):
    monkeypatch.setattr(tracing, "record", lambda *arguments: pytest.fail("it was traced"))
    assert tool("sgemm/naive", "-o", tmp_path)[0] == 2


@pytest.mark.parametrize("options", [(), ("-o",), ("-o", "--tir")])
def test_why_a_trace_is_not_right_is_one_line(tool, tmp_path, options):
    page = [tmp_path / "page.html"] * ("-o" in options)
    index = [tmp_path / "index.html"] * ("-o" in options)
    code, out, err = tool("reduce/unrolled_warp:article", "--n", "512", *options[:1], *page, *options[1:])
    *written, err = err.splitlines()
    assert code == 1 and written == [f"wrote {each}" for each in page + index]
    found = "reduce/unrolled_warp:article: 1 finding of the CPU machine: missing __syncwarp at"
    assert err.startswith(f"tir-schedules: {found} reduce_unrolled_warp_article_tir.cu:")


def test_a_schedule_that_is_refused_is_shown_and_fails(monkeypatch, tool, found, tmp_path):
    monkeypatch.setattr(
        tracing,
        "record",
        lambda *arguments: replace(found, refusal="sgemm/naive: TVM refuses <it>"),
    )
    code, out, err = tool("sgemm/naive", *SMALL)
    assert (
        code == 1 and "decompose_reduction" in out and err == "tir-schedules: sgemm/naive: TVM refuses <it>\n"
    )
    code, out, err = tool("sgemm/naive", *SMALL, "-o", tmp_path / "page.html")
    wrote = [f"wrote {tmp_path / name}" for name in ("page.html", "index.html")]
    assert (code, out) == (1, "")
    assert err.splitlines() == [*wrote, "tir-schedules: sgemm/naive: TVM refuses <it>"]
    assert "TVM refuses &lt;it&gt;" in (tmp_path / "page.html").read_text()
