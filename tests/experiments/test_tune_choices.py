"""What `tune` chooses without a GPU: how it is held against what a GPU has timed."""

import pytest
import tune_choices
from tune_choices import GPUS, TASKS, arch_of, best_of, found_at, of_task, shares, timed

from tir_schedules.files import read_json

LEAST = {
    ("h100", "sgemm/multistage"): 0.9, ("h100", "hgemm/tma_store"): 0.65,
    ("h200", "sgemm/multistage"): 0.93, ("h200", "hgemm/tma_store"): 0.91,
}  # fmt: skip
"""Of the best rate, what the first of each pool has."""


def rows(*times):
    """(predicted, measured) of a pool."""
    task = TASKS[0]
    found = [
        {"rung": task.rung, "shape": str(task.workload), "name": f"{task.rung}:n={n}", "from": "drawn"}
        for n in range(len(times))
    ]
    for row, (predicted, measured) in zip(found, times):
        row |= {"us": predicted} if predicted else {"refused": "no"}
        row |= {"median_us": measured} if measured else {}
    return found


def test_the_first_is_that_with_the_least_prediction():
    """Here one that was not predicted is the fastest, and one that was predicted was not timed."""
    found = rows((5, 10.0), (3, 12.0), (4, 11.0), (None, 8.0), (1, None))
    pool = timed(found, TASKS[0])
    assert [row["us"] for row in pool] == [3, 4, 5]
    assert best_of(found, TASKS[0]) == 8 and shares(pool, 8.0) == (8 / 12, 8 / 10)


def test_shapes_are_drawn_once():
    assert tune_choices.shapes() == [
        (1936, 536, 552), (816, 2368, 1672), (3272, 616, 824), (544, 808, 1040), (544, 776, 1552)
    ]  # fmt: skip


@pytest.mark.parametrize("task", [TASKS[0], TASKS[-1]], ids=lambda task: task.rung)
def test_a_configuration_is_told_by_its_name(task):
    point = next(iter(task.space.points(task.workload, arch_of(task))))
    assert task.point(task.name(point)) == point


@pytest.mark.parametrize("gpu", GPUS)
def test_what_was_recorded(gpu):
    """A pool for each shape and rung; what is first by its predicted time is as near the best as is said."""
    found = read_json(found_at(gpu), "search it")["rows"]
    assert len({(row["rung"], row["shape"], row["name"]) for row in found}) == len(found)
    for task in TASKS:
        assert {"drawn", "tune"} == {row["from"] for row in of_task(found, task) if "median_us" in row}
        pool = timed(found, task)
        assert len(pool) >= 15 and shares(pool, best_of(found, task))[0] >= LEAST[gpu, task.rung]


def test_times_of_something_else_are_told(calling, tmp_path, monkeypatch):
    monkeypatch.setattr(tune_choices, "load_results", lambda path: {"rows": []})
    code, _, said = calling(tune_choices.main)("compare", tmp_path / "other.json")
    assert code == 2 and "has no time of what was predicted" in said
