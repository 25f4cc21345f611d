"""What is under way while a search goes on: later candidates beside earlier ones, always the same ones, and
where the time of all went."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

pytest.importorskip("xgboost")

from clocks import Clock
from test_tuner import GEMM, SPACE, MadeUp

from tir_schedules.errors import CheckFailed
from tir_schedules.tuning.records import timesheet
from tir_schedules.tuning.records.database import Database
from tir_schedules.tuning.records.timesheet import BUILDING, TIMED, VERIFYING, Spent, Timesheet
from tir_schedules.tuning.search.tuner import AHEAD, BATCH, LESSONS, together, tune
from tir_schedules.tuning.space.points import key

FEW = replace(SPACE, fields={"bm": (32,), "bk": (8, 16, 32), "stages": (3, 4, 5), "padding": (0, 4, 8)})
"""Points for three batches, and a few."""

MANY = replace(FEW, fields=FEW.fields | {"bm": (32, 64)})
"""Twice as many."""


class Sleeping(MadeUp):
    """Takes so many seconds, on a computer with so many builders."""

    def __init__(self, builders, seconds):
        super().__init__(lambda config: config.padding == 8)
        self.builders, self.seconds = builders, seconds

    def evaluate(self, rung, workload, arch):
        time.sleep(self.seconds)
        return super().evaluate(rung, workload, arch)


def tried(path, trials, evaluator):
    records = tune(MANY, GEMM, "sm_90", trials, Database(path), seed=3, evaluator=evaluator).records
    return {key(record.point): record.seconds and record.median for record in records}


def test_how_many_build_does_not_change_what_is_tried(tmp_path):
    one, many = (
        tried(tmp_path / f"{builders}.jsonl", 24, Sleeping(builders, seconds))
        for builders, seconds in ((1, 0.1), (9, 0))
    )
    assert len(one) == 24 and one == many


def test_candidates_of_later_batches_are_evaluated_while_the_first_batch_is_awaited(tmp_path):
    class Blocking(MadeUp):
        """The first candidate waits until one of the next batch has begun."""

        def __init__(self):
            super().__init__()
            self.builders, self.begun, self.lock = 4, 0, threading.Lock()
            self.later, self.late = threading.Event(), False

        def evaluate(self, rung, workload, arch):
            with self.lock:
                self.begun += 1
                first = self.begun == 1
                if self.begun > BATCH:
                    self.later.set()
            self.late |= first and not self.later.wait(60)
            return super().evaluate(rung, workload, arch)

    evaluator, size = Blocking(), FEW.size(GEMM, "sm_90")
    tuned = tune(
        FEW, GEMM, "sm_90", 2 * LESSONS * BATCH, Database(tmp_path / "records.jsonl"), evaluator=evaluator
    )
    assert not evaluator.late and 2 * BATCH < len(tuned.records) == evaluator.begun == size


def test_short_searches_learn_and_long_ones_keep_gpus_busy():
    assert together(20, 1) == (BATCH // 2, BATCH)
    assert together(64, 1) == (BATCH, 2 * BATCH) and 2 * BATCH == 64 // LESSONS
    assert together(1000, 1) == together(1000, 0) == (BATCH, AHEAD * BATCH)
    assert together(1000, 4) == (4 * BATCH, 4 * AHEAD * BATCH)


def test_a_search_says_where_its_time_went(tmp_path):
    class Counting(MadeUp):
        def evaluate(self, rung, workload, arch):
            with self.spent.during(TIMED):
                time.sleep(0.2)
            return super().evaluate(rung, workload, arch)

    database = Database(tmp_path / "records.jsonl")
    spent = tune(SPACE, GEMM, "sm_90", 8, database, evaluator=Counting()).spent
    assert spent.candidates == 8 and spent.on.keys() == {TIMED} and spent.places == 1
    assert spent.awaited > 0 and spent.own > 0 and spent.compared >= 0
    assert spent.own + spent.awaited + spent.compared == pytest.approx(spent.seconds)
    assert tune(SPACE, GEMM, "sm_90", 8, database, evaluator=Counting()).spent is None


def test_the_lines_about_it_are_short():
    spent = Spent(40, 20, 5, 50, {BUILDING: 100, VERIFYING: 12, TIMED: 28}, 16, 2)
    assert [*spent.lines] == [
        "of 40 s: 20 s waiting for candidates, 15 s choosing them, 5 s comparing the fastest",
        "a candidate, in the mean: 2 s building, 0.24 s verifying, 0.56 s at a GPU;"
        " 16 builders busy 20%; 2 GPUs busy 40%",
    ]
    assert [*Spent(40, 20, 0, 0).lines] == []


def test_a_timesheet_counts_what_fails_too(monkeypatch):
    clock, sheet = Clock(), Timesheet()
    monkeypatch.setattr(timesheet, "time", clock)
    for _ in range(2):
        with pytest.raises(CheckFailed), sheet.during(BUILDING):
            clock.now += 3
            raise CheckFailed("refused")
    assert sheet.seconds == {BUILDING: 6}
