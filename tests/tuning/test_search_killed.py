"""A search is killed again and again: what it said it had is there, and each run goes on where the last one
was."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("xgboost")

from tir_schedules.tuning.records.database import Database
from tir_schedules.tuning.space.points import key

MOST = 90  # of the 96 points there are

CHILD = """
import os
import sys
import time
from pathlib import Path

from test_tuner import GEMM, SPACE, MadeUp
from tir_schedules.tuning.records.database import Database
from tir_schedules.tuning.space.points import key
from tir_schedules.tuning.search.tuner import tune


class Slow(MadeUp):
    builders = 1

    def evaluate(self, rung, workload, arch):
        time.sleep(0.25)
        return super().evaluate(rung, workload, arch)


def told(record):
    os.write(1, (key(record.point) + "\\n").encode())


database, budget, seed = Database(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
tune(SPACE, GEMM, "sm_90", budget, database, seed=seed, on_trial=told, evaluator=Slow())
"""


def run(path, budget: int, seed: int, kill_after: float | None = None) -> list[str]:
    """Keys of the points that a search said it had tried before it was killed, so many seconds after the
    first, or ended by itself."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    command = [sys.executable, "-c", CHILD, str(path), str(budget), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as child:
        begun = child.stdout.readline()
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(child.pid, signal.SIGKILL)
        told = (begun + child.stdout.read()).split()
    assert kill_after is not None or child.returncode == 0
    return [line.decode() for line in told]


def check_kills(path, kills: int, budget: int) -> None:
    rng, told = random.Random(7), []
    for seed in range(kills):
        told += run(path, budget=budget, seed=seed, kill_after=rng.uniform(0, 0.3))
        tried = [key(record.point) for record in Database(path).records()]
        assert len(tried) == len(set(tried)), "a point was tried twice"
        assert set(told) <= set(tried), "what was told is gone"
        assert len(tried) - len(told) <= 3 * (seed + 1), "more than what was under way"
    told += run(path, budget=budget, seed=kills)
    records = Database(path).records()
    assert len({key(record.point) for record in records}) == budget and records[-1].seconds


def test_killed_once(tmp_path):
    check_kills(tmp_path / "records.jsonl", 1, 12)


@pytest.mark.slow
def test_killed_eight_times(tmp_path):
    check_kills(tmp_path / "records.jsonl", 8, MOST)
