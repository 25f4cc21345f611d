"""Sweeps drawn: what is predicted, and what was measured."""

import pytest
import sweep_plots
from sweep_points import SWEEPS
from sweep_tables import tables
from test_sweeps import DEEP, LDMATRIX, results_of
from test_sweeps_block import SHUFFLE

from tir_schedules.bench.plots import pyplot
from tir_schedules.workloads.half_gemm import HalfGemm


def panels(sweep, results):
    figure, rows = pyplot().subplots(1, 2)
    table = tables(sweep, results)[0]
    for axes, quantity in zip(rows, (sweep_plots.PREDICTED[sweep.name], sweep_plots.MEASURED)):
        sweep_plots.draw(axes, table, quantity)
    pyplot().close(figure)
    return [sorted(bar.get_height() for bar in axes.patches if bar.get_height()) for axes in rows], rows


def test_a_plot_has_what_is_predicted_and_what_was_measured():
    (predicted, measured), (axes, _) = panels(SWEEPS["padding"], results_of(LDMATRIX))
    assert predicted == sorted(4 * [4989, 4990, 4991, 4992, 4995])  # reads and writes of both forms
    assert (
        max(measured) == pytest.approx(HalfGemm(4096, 4096, 4096).flops / 1.5625 / 1e6)
        and len(measured) == 10
    )
    assert [text.get_text() for text in axes.texts] == ["cannot be", "cannot be"]
    (predicted, measured), rows = panels(SWEEPS["block"], results_of(SHUFFLE))
    assert predicted == sorted(2 * [7000, 7001, 7002, 7003]) and len(measured) == 8
    assert [axes.get_ylabel() for axes in rows] == ["warp instructions", "GB/s"]
    (_, measured), _ = panels(SWEEPS["stages"], results_of(DEEP, timed=False))
    assert measured == []
