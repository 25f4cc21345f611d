"""Plots of made-up results: a figure per kind, the same file every time, one clear line for what cannot be
drawn."""

import sys

import made_up
import pytest

from tir_schedules.bench import plots
from tir_schedules.bench.views import groups_of
from tir_schedules.errors import BadInput, MissingTool


def texts(axes):
    return [text.get_text() for text in axes.texts]


@pytest.mark.parametrize("form, start", [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_same_results_make_the_same_file(tmp_path, form, start):
    results = made_up.results("sgemm/naive", "sgemm/coalesced")
    contents = []
    for name in ("a", "b"):
        (path,) = plots.save_plots(results, tmp_path / f"{name}.{form}")
        contents.append(path.read_bytes())
    assert contents[0] == contents[1] and contents[0].startswith(start)


def test_kinds_have_figures_of_their_own(tmp_path):
    paths = plots.save_plots(made_up.results("hgemm/mma_xor_swizzle", "sgemm/naive"), tmp_path / "a.svg")
    names = ["hgemm_nt_float16", "hgemm_nt_float32", "hgemm_nn_float16", "hgemm_nn_float32", "sgemm"]
    assert sorted(path.name for path in paths) == sorted(f"a_{name}.svg" for name in names)
    assert all(path.stat().st_size > 1000 for path in paths)


def axes_of(results, draw, *arguments):
    figure, axes = plots.pyplot().subplots()
    draw(axes, groups_of(results)[0], *arguments)
    plots.pyplot().close(figure)
    return axes


def test_the_ladder_has_a_bar_per_kernel_and_lines_for_the_library_and_the_limit():
    results = made_up.results(
        "sgemm", refuse=lambda subject: "wrong" if subject.label == "sgemm/naive (twin)" else ""
    )
    axes = axes_of(results, plots.draw_ladder, results["limits"])
    last = {row["form"]: row["rate"] for row in results["rows"] if row["shape"] == "4096x4096x4096"}
    rungs = len(made_up.MULTIPLYING_FLOAT32)
    assert len(axes.patches) == 2 * rungs and axes.patches[rungs - 1].get_width() == last["schedule"]
    assert texts(axes).count("refused") == 1
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert (
        legend[:2] == ["schedule", "twin"]
        and legend[2].startswith("cuBLAS")
        and legend[3] == "fp32 peak 66.9"
    )


def test_sizes_have_a_line_per_rung_with_a_gap_where_it_was_refused():
    results = made_up.results(
        "sgemm", refuse=lambda s: "wrong" if (s.name, s.workload.m) == ("sgemm/naive", 1024) else ""
    )
    axes = axes_of(results, plots.draw_sizes)
    assert len(axes.lines) == len(made_up.MULTIPLYING_FLOAT32) + 1
    first, second = axes.lines[0].get_ydata()
    assert first != first and second > 0


def test_a_file_name_that_no_plot_can_have_is_bad_input(tmp_path):
    with pytest.raises(BadInput, match=r"\.png"):
        plots.check_plot(tmp_path / "a.txt")


def test_without_matplotlib_a_line_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingTool, match=r"pip install 'tir_schedules\[plot\]'"):
        plots.check_plot(tmp_path / "a.png")
