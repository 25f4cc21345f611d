"""How predicted times are held against measured ones."""

from math import prod

import numpy as np
import prediction_tables
import predictions
import pytest
from prediction_figures import causes, figures_of, spearman
from stall_tables import STATES, apart, counted_shares, model_shares

from tir_schedules.files import read_json
from tir_schedules.ladders.known import workload_class
from tir_schedules.subjects.results import load_results
from tir_schedules.timing.gpus import find_table
from tir_schedules.timing.paths import follow
from tir_schedules.timing.prediction import REASONS
from tir_schedules.workloads.drawing import ZEROS

SAMPLE = {
    "sgemm_h100": [(f"sgemm/{name}", "schedule", "1024x1024x1024") for name in
                   ("vectorized", "warp_tiling", "split_k")],
    "hgemm_h100": [(f"hgemm/{name}", "schedule", "1024x1024x1024 nt float16") for name in
                   ("mma_ldmatrix", "tma_store")],
}  # fmt: skip
GROWTH = 0.005
"""Of the mean error of the sample, which is no growth."""


def of_sample(figures):
    """The mean error of the sample as it was recorded, and as the model of today has it."""
    before, now = [], []
    for name, wanted in SAMPLE.items():
        said = read_json(predictions.PREDICTIONS / f"{name}.json", "predict it")
        rows = [row for row in said["rows"] if predictions.identity(row) in wanted]
        assert len(rows) == len(wanted)
        before += [(row["us"], row["median_us"]) for row in rows]
        measured = load_results(predictions.recorded_files([name])[name])["rows"]
        asked = [row for row in measured if predictions.identity(row) in wanted]
        now += [(row["us"], row["median_us"]) for row in predictions.predicted(asked, figures)]
    return figures_of(before), figures_of(now)


def test_the_error_of_a_sample_has_not_grown():
    before, now = of_sample(find_table("h100"))
    assert now.refused == before.refused == 0
    assert now.mean <= before.mean + GROWTH


@pytest.mark.parametrize(
    "name, refused, mean, most, usual_mean, worst",
    [
        ("sgemm_h100", 2, 0.058, 0.125, 0.058, 0.18),
        ("hgemm_h100", 0, 0.082, 0.145, 0.078, 0.265),
        ("reduce_h100", 0, 0.046, 0.13, 0.046, 0.23),
        ("sgemm_h200", 2, 0.066, 0.138, 0.056, 0.16),
        ("hgemm_h200", 0, 0.059, 0.135, 0.062, 0.195),
        ("reduce_h200", 0, 0.053, 0.105, 0.053, 0.175),
    ],
)
def test_what_is_recorded_is_as_near_as_was_reached(name, refused, mean, most, usual_mean, worst):
    """usual_mean and worst are of the gemms from 1024 to 4096 cubed. The model refuses none of those."""
    rows = read_json(predictions.PREDICTIONS / f"{name}.json", "predict it")["rows"]
    found = predictions.of_rows(rows)
    assert found.refused <= refused and found.mean <= mean and found.most <= most
    usual = [row for row in rows if predictions.extents(row)[0] not in (256, 512, 8192)]
    found = predictions.of_rows(usual)
    assert found.refused == 0 and found.mean <= usual_mean and found.worst <= worst


@pytest.mark.slow
def test_a_wrong_figure_makes_it_grow():
    table = find_table("h100")
    slow = {width: 4 * cycles for width, cycles in table.shared_latency.items()}
    before, now = of_sample(table.model_copy(update={"shared_latency": slow}))
    assert now.mean > before.mean + GROWTH


@pytest.mark.parametrize(
    "name", ["reduce/shuffle", "reduce/unrolled", "sgemm/vectorized", "hgemm/wmma_padded"]
)
def test_a_block_executes_what_ncu_counted(name):
    """Of the first launch, in all blocks alike."""
    counted = read_json(predictions.PREDICTIONS / "stalls_h100.json", "write it by `compare`")["rows"]
    row = next(row for row in counted if row["name"] == name)
    workload = workload_class(name.partition("/")[0])(**row["workload"])
    subject = predictions.compiled(name, workload, "sm_90a")["schedule"]
    (given, *_), outputs = predictions.launched(subject, workload.arguments(kind=ZEROS))
    paths = follow(subject.binaries[0], given, outputs)
    executed = sum(len(path.numbers) for path in paths.warps) * prod(subject.binaries[0].kernel.grid)
    assert executed == row["counted"]


def test_figures():
    found = figures_of([(11, 10), (18, 20), (None, 5), (30, 30), (52, 40)])
    assert (found.kernels, found.refused) == (4, 1)
    assert found.mean == pytest.approx((0.1 + 0.1 + 0 + 0.3) / 4) and found.worst == pytest.approx(0.3)
    assert found.bias == pytest.approx((0.1 - 0.1 + 0 + 0.3) / 4) and found.spearman == 1
    assert found.most == pytest.approx(np.quantile([0.1, 0.1, 0, 0.3], 0.9))
    assert figures_of([(None, 1)]).cells == ("0", "1", "", "", "", "", "")


def test_equal_values_share_their_places():
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 1, 2], [1, 2, 3]) == pytest.approx(np.sqrt(3) / 2)
    assert spearman([1, 2], [1, 2]) is None and spearman([1, 1, 1], [1, 2, 3]) is None


def test_causes_are_counted():
    rows = [{"refused": "a: too long"}, {"refused": "b: too long"}, {"us": 1}, {"refused": "waits"}]
    assert causes(rows) == {"too long": 2, "waits": 1}


def row(name, predicted, measured, shape="64"):
    said = {"us": predicted, "own_us": predicted} if predicted else {"refused": "no"}
    return {"name": name, "form": "schedule", "shape": shape, "median_us": measured} | said


def test_configurations_are_ranked_within_their_rung():
    """All in wrong order within each of two rungs, whose own order is right."""
    rows = [
        row(f"r/{one}:{n}", base - n, base + n) for one, base in (("a", 100), ("b", 1000)) for n in range(3)
    ]
    assert predictions.of_rows(rows).spearman > 0.4
    assert predictions.within_rungs(rows).spearman == pytest.approx(-1)
    assert predictions.within_rungs(rows[:2]).kernels == 0


def test_groups_are_by_form_and_shape():
    rows = [row("r/a", 1, 1, "2048x1x1"), row("r/a", None, 1, "512x1x1"), row("r/b", 3, 2, "2048x1x1")]
    found = dict(predictions.lines(rows))
    assert [*found] == ["all", "schedules", "twins", "512 x 1 x 1", "2048 x 1 x 1", "all, in time"]
    assert (found["512 x 1 x 1"].refused, found["2048 x 1 x 1"].kernels) == (1, 2)


def test_states_of_warps_are_shares_of_all_cycles():
    name = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
    counted = {name.format("selected"): 1.0, name.format("wait"): 2.0, name.format("branch_resolving"): 1.0}
    theirs = counted_shares(counted | {"smsp__inst_executed.sum": 7.0})
    assert theirs["issues"] == 0.25 and theirs["fixed latency, branches"] == 0.75
    ours = model_shares({"dependency": 50, "barrier": 25}, 25)
    assert ours["barrier"] == ours["issues"] == 0.25 and apart(ours, theirs) == 0.25


def test_every_reason_of_the_model_has_its_line():
    listed = [each for names, _ in STATES.values() for each in names]
    assert {*REASONS} <= {*listed} and len(listed) == len({*listed})


def test_the_readme_says_what_was_predicted(capsys):
    assert prediction_tables.main(["--check"]) == 0


def test_who_asks_for_times_that_are_not_recorded_is_told(capsys):
    assert predictions.main(["sgemm_h300"]) == 2
    assert "there are no recorded times 'sgemm_h300'; there are: " in capsys.readouterr().err
