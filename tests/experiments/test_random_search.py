"""Searches among recorded times: what is drawn, looked up, counted and shown."""

import json
import random

import pytest
import search_points
import search_replays
import searches
from search_points import TASKS, emitted
from search_replays import BUDGET, MODEL, RANDOM, drawn, progress_of, random_search, times_of, tuned
from search_tables import found_table, ranking_table

from tir_schedules.errors import BadInput
from tir_schedules.tuning.space.points import key

SUMS = TASKS[-1]


def made_up(task):
    """Times that grow with the block and fall with what a thread unrolls."""
    return {key(point): 1e-6 * (point["block"] + 64 / point["unroll"]) for point in task.drawn()}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.rung)
def test_configurations_are_drawn_from_the_whole_space_and_named(task):
    points = task.drawn()
    assert len({key(point) for point in points}) == len(points) <= search_points.DRAWN
    for point in points[:20]:
        assert not task.space.refusal(point, task.workload, search_points.ARCH)
        assert task.point(task.name(point)) == point
    assert [*map(key, points)] == [*map(key, task.drawn())]


def test_progress_is_the_best_so_far_and_a_refused_trial_changes_nothing():
    assert progress_of([None, 4.0, 8.0, None, 2.0], 1.0) == [0, 0.25, 0.25, 0.25, 0.5]


def test_random_search_tries_each_configuration_once():
    times = {str(number): float(number) for number in range(1, 200)}
    found = random_search(times, 3)
    assert len(set(found)) == len(found) == BUDGET and found != random_search(times, 4)


def test_times_are_those_of_one_rung():
    name = SUMS.name(SUMS.drawn()[0])
    results = {
        "rows": [{"name": name, "median_us": 3.0}, {"name": "hgemm/mma_multistage:bm=64", "median_us": 1.0}],
        "refused": [{"name": SUMS.name(SUMS.drawn()[1])}],
    }
    assert times_of(SUMS, results) == {key(SUMS.drawn()[0]): 3e-6, key(SUMS.drawn()[1]): None}


def test_only_what_was_timed_is_in_the_space_and_nothing_chosen_by_hand_begins():
    few = dict(random.Random(1).sample(sorted(made_up(SUMS).items()), 9))
    space = drawn(SUMS, few)
    assert {key(point) for point in space.points(SUMS.workload, search_points.ARCH)} == set(few)
    assert space.by_hand() == [] and SUMS.space.by_hand()


@pytest.mark.slow
def test_tune_finds_its_configurations_among_recorded_times(monkeypatch):
    monkeypatch.setattr(search_replays, "BUDGET", 24)
    times = made_up(SUMS)
    refused = min(times, key=lambda name: times[name])
    found = tuned(SUMS, times | {refused: None}, 0)
    assert len(found) == 24 and set(found) <= {*times.values(), None}
    assert found == tuned(SUMS, times | {refused: None}, 0)
    (row, *_) = search_replays.correlations(SUMS, times)
    assert 0.5 < row["spearman"] <= 1


def test_too_few_times_are_refused():
    rows = [{"name": TASKS[0].name(point), "median_us": 1.0} for point in TASKS[0].drawn()[:5]]
    with pytest.raises(BadInput, match="multistage: 5 configurations were timed; a search takes 64"):
        search_replays.replayed({"rows": rows, "refused": []}, lambda what: None)


def test_the_readme_has_what_was_recorded_and_a_changed_figure_shows(tmp_path, capsys):
    assert searches.main(["--check"]) == 0
    recorded = json.loads(searches.RECORDED.read_text())
    recorded["searches"][0]["shares"] = [0.1] * BUDGET
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(recorded))
    assert searches.main(["--check", "--from", str(changed)]) == 1
    assert "is not what the recorded results say" in capsys.readouterr().err


def test_tables_name_every_rung_both_searches_and_their_spread(capsys):
    rows = searches.load_searches(searches.RECORDED)["searches"]
    _, heads, lines = found_table(rows)
    assert [(line[0], line[3]) for line in lines] == [
        (task.rung, search) for task in TASKS for search in (MODEL, RANDOM)
    ]
    assert heads[-1] == f"after {BUDGET}" and all(" to " in cell for line in lines for cell in line[4:])
    assert [line[0] for line in ranking_table(rows)[2]] == [task.rung for task in TASKS]
    assert searches.main([]) == 0 and "random search" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["nothing.zip"], "add -o FILE.json"),
        (["nothing.json", "-o", "x.json"], "nothing.json"),
        (["--emit", "x.zip", "nothing.zip"], "--emit does not go with"),
        (["--from", "pyproject.toml"], "pyproject.toml"),
    ],
)
def test_bad_input_is_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert searches.main(arguments) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_a_file_that_is_no_pack_of_candidates_is_refused(tmp_path):
    (tmp_path / "x.zip").write_text("no archive")
    with pytest.raises(BadInput, match=r"x.zip has no emitted candidates .*--emit"):
        emitted(tmp_path / "x.zip")
