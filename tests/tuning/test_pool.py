"""Processes that answer pickled requests: as many at a time as there are places, whatever happens to one."""

from __future__ import annotations

import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tir_schedules.tuning.building.pool import Ended, Late, Pool, Useless, answering
from tir_schedules.tuning.records.timesheet import Timesheet


def answer(request):
    """What the processes of these tests do with a request: this module is theirs, too."""
    if request == "die":
        os._exit(3)
    if request == os.environ["PLACE"]:
        return Useless(f"{os.getpid()} cannot")
    time.sleep(request if isinstance(request, (int, float)) else 0)
    print("no answer")
    return os.getpid(), os.environ["PLACE"]


@pytest.fixture
def pool_of(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parent), *sys.path])
    made = []

    def make(places, **more):
        environments = [{"PLACE": str(number)} for number in range(places)]
        made.append(Pool("test_pool", environments, Timesheet(), "waiting", "working", **more))
        return made[-1]

    yield make
    for pool in made:
        pool.close()


def test_all_places_work_at_once_and_whoever_is_free_is_asked(pool_of):
    pool = pool_of(2)
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(pool.ask, [0.5, 0.1, 0.1, 0.1, 0.1, 0.1]))
    assert {place for _, place in found} == {"0", "1"} and len(set(found)) == 2
    assert pool.spent.seconds["working"] > 1 and pool.spent.seconds["waiting"] > 0.3
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
    begin = time.monotonic()
    with pytest.raises(Late, match=r"^not done after 1\.5 s$"):
        pool.ask(30)
    assert time.monotonic() - begin < 10 and pool.ask(0)


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
        with pytest.raises(Useless, match="cannot"):
            pool.ask("1")


if __name__ == "__main__":
    answering(answer, str, lambda: "ENOUGH" in os.environ)
