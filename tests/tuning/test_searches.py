"""Searches: what is said of a run, and the plot of one."""

import pytest
from made_records import predicted, record

from tir_schedules.bench.plots import pyplot
from tir_schedules.tuning.records import searches


def test_a_run_has_a_pace():
    assert searches.Run(96, 48, None).pace == "96 trials in 48 s: 120 per minute"
    assert searches.Run(1, 60, None).pace == "1 trial in 60 s: 1 per minute"


def test_a_picture_has_the_best_so_far_and_marks_what_is_refused():
    figure, axes = pyplot().subplots()
    records = tuple(predicted(trial, record().problem) for trial in (0, 1, 5, 2))
    searches.draw_trials(axes, searches.Search("sgemm/multistage", records))
    line = {line.get_label(): line for line in axes.lines}["best so far"]
    assert list(line.get_ydata()) == pytest.approx([1000, 1000, 1000 / 6, 1000 / 6])
    points = {points.get_label(): points for points in axes.collections}
    assert len(points["predicted"].get_offsets()) == 3 and len(points["predicted"].get_facecolors()) == 0, (
        "predicted points are hollow"
    )
    assert points["refused"].get_offsets()[:, 0].tolist() == [1]
    pyplot().close(figure)
