"""Processes that answer pickled requests: as many at a time as there are places, whatever happens to one."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from killing import wait_for

from tir_schedules.tuning.building.pool import Ended, Late, Lost, Place, Pool, Useless, answering
from tir_schedules.tuning.records.timesheet import Timesheet


def answer(request):
    """What the processes of these tests do with a request: this module is theirs, too."""
    if request == "die":
        os._exit(3)
    if request == os.environ["PLACE"]:
        return Useless(f"{os.getpid()} cannot")
    if isinstance(request, Path):
        wait_for(request.exists)
    time.sleep(request if isinstance(request, (int, float)) else 0)
    print("no answer")
    return os.getpid(), os.environ["PLACE"]


class Noted(Timesheet):
    """now: how many requests are at what. counted: how many have been."""

    def __init__(self):
        super().__init__()
        self.now, self.counted, self.noting = Counter(), Counter(), threading.Lock()

    @contextmanager
    def during(self, what):
        self.add_to(self.now, what, 1)
        with super().during(what):
            yield
        self.add_to(self.now, what, -1)
        self.add_to(self.counted, what, 1)

    def add_to(self, counter, what, number):
        with self.noting:
            counter[what] += number


@pytest.fixture
def pool_of(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parent), *sys.path])
    made = []

    def make(places, **more):
        every = [Place({"PLACE": str(number)}) for number in range(places)]
        made.append(Pool("test_pool", every, Noted(), "waiting", "working", **more))
        return made[-1]

    yield make
    for pool in made:
        pool.close()


def test_all_places_work_at_once_and_whoever_is_free_is_asked(pool_of, tmp_path):
    pool, go = pool_of(2), tmp_path / "go"
    with ThreadPoolExecutor(6) as threads:
        asked = [threads.submit(pool.ask, go) for _ in range(6)]
        try:
            wait_for(lambda: pool.spent.now == {"working": 2, "waiting": 4})
        finally:
            go.touch()
        found = [each.result() for each in asked]
    assert {place for _, place in found} == {"0", "1"} and len(set(found)) == 2
    assert pool.spent.counted == {"working": 6, "waiting": 6} and min(pool.spent.seconds.values()) > 0
    processes = [place.process for place in pool.all]
    pool.close()
    assert all(process.poll() is not None for process in processes)


def test_one_place_has_one_process_that_is_begun_when_it_is_needed(pool_of):
    pool = pool_of(3)
    assert pool.ask(0) == pool.ask(0)
    assert [bool(place.process) for place in pool.all] == [True, False, False]


def test_a_process_that_ends_costs_its_request_alone(pool_of):
    pool = pool_of(1)
    first, _ = pool.ask(0)
    with pytest.raises(Ended, match="^exit code 3$"):
        pool.ask("die")
    second, _ = pool.ask(0)
    assert second != first


def test_an_answer_that_takes_too_long_ends_its_process(pool_of):
    pool = pool_of(1, seconds=1.5)
    with pytest.raises(Late, match=r"^not done after 1\.5 s$"):
        pool.ask(60)  # would have an answer then
    pool.seconds = None
    assert pool.ask(0)


def test_a_process_that_has_had_enough_or_was_killed_meanwhile_is_followed_by_another(pool_of, monkeypatch):
    monkeypatch.setenv("ENOUGH", "1")
    pool = pool_of(1)
    first, _ = pool.ask(0)
    assert pool.all[0].process is None
    monkeypatch.delenv("ENOUGH")
    second, _ = pool.ask(0)
    pool.all[0].process.kill()
    pool.all[0].process.wait()
    assert len({first, second, pool.ask(0)[0]}) == 3


def test_a_place_of_no_use_is_given_up_and_its_request_goes_to_another(pool_of, capsys):
    pool = pool_of(2)
    for _ in range(2):
        assert pool.ask("0")[1] == "1"
    assert re.fullmatch(r".*\d cannot; the others go on without it\n", capsys.readouterr().err)
    assert [place.environment["PLACE"] for place in pool.all] == ["1"]
    for _ in range(2):
        with pytest.raises(Lost, match="cannot, and there is no other: --resume goes on"):
            pool.ask("1")


if __name__ == "__main__":
    answering(answer, str, lambda: "ENOUGH" in os.environ)
