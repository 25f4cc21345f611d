"""A process that appends records is killed at random moments: what it acknowledged is there, and the file
loads."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from tir_schedules.tuning.records.database import Database

CHILD = """
import io
import os
import sys
import time
from pathlib import Path
from tir_schedules.tuning.records import journal
from tir_schedules.tuning.records.database import Database
from made_records import record

if sys.argv[3] == "piecemeal":

    class Piecemeal(io.FileIO):
        def write(self, line):
            for start in range(0, len(line), 25):
                super().write(line[start : start + 25])
                time.sleep(0.002)
            return len(line)

    journal.open = lambda path, mode, buffering: Piecemeal(path, "a+")
database = Database(Path(sys.argv[1]))
trial = int(sys.argv[2])
while True:
    database.append(record(trial))
    os.write(1, f"{trial}\\n".encode())
    trial += 1
"""


def killed_after(path, first: int, how: str, seconds: float) -> list[int]:
    """Trials that a child acknowledged before it was killed. seconds: from its first acknowledgement to its
    end."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    command = [sys.executable, "-c", CHILD, str(path), str(first), how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as child:
        begun = child.stdout.readline()
        time.sleep(seconds)
        os.kill(child.pid, signal.SIGKILL)
        rest = child.stdout.read()
    return [int(line) for line in (begun + rest).split()]


def check_kills(path, kills: int, seed: int) -> int:
    """Kill, load, kill again, all on one file; every second child writes its lines in pieces, so that some
    are torn: returns how many."""
    rng, acknowledged, torn = random.Random(seed), [], 0
    for kill in range(kills):
        first = 10_000 * kill
        acknowledged += killed_after(
            path, first, "piecemeal" if kill % 2 == 0 else "whole", rng.uniform(0, 0.3)
        )
        content = path.read_bytes()
        ends_well = content.endswith(b"\n")
        torn += not ends_well
        trials = [record.trial for record in Database(path).records()]
        assert path.read_bytes() == content, "reading changed the file"
        assert len(trials) == len(set(trials))
        assert set(acknowledged) <= set(trials)
        assert len(trials) - len(acknowledged) <= kill + 1, (
            "more than one record that a killed child had not acknowledged yet"
        )
    return torn


def test_killed_three_times(tmp_path):
    check_kills(tmp_path / "records.jsonl", 3, seed=1)


@pytest.mark.slow
def test_killed_twelve_times(tmp_path):
    assert check_kills(tmp_path / "records.jsonl", 12, seed=2), "no kill met a line that was being written"
