"""The database of tuning records: what is added is there, and what is damaged or changed is refused."""

from __future__ import annotations

import json
import multiprocessing
import os
from dataclasses import asdict

import pytest
from made_records import add_many, filled, record

from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.tuning.records import database, journal
from tir_schedules.tuning.records.database import Database, best, latest, shipped, shipped_records
from tir_schedules.workloads.gemm import Gemm


@pytest.fixture
def path(tmp_path):
    return tmp_path / "records.jsonl"


def test_records_come_back_as_they_were(path):
    made = [
        record(),
        record(1, seconds=(), error="a race\non line 3: é"),
        record(2, metaschedule=[["a", {"b": None}], 1.5]),
    ]
    kept = Database(path)
    assert kept.records() == []
    for one in made:
        kept.append(one)
    assert kept.records() == made == Database(path).records()
    entry = json.loads(path.read_text().splitlines()[2])
    assert entry.pop("checksum") == journal.checksum(entry)


def test_two_databases_see_what_the_other_adds(path):
    one, other = Database(path), Database(path)
    one.append(record(0))
    other.append(record(1))
    assert [r.trial for r in one.records()] == [r.trial for r in other.records()] == [0, 1]


def test_processes_that_append_at_the_same_time_lose_nothing(path):
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(2)
    writers = [context.Process(target=add_many, args=(path, first, together)) for first in (0, 50)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    trials = [r.trial for r in Database(path).records()]
    assert sorted(trials) == list(range(100))
    assert [t for t in trials if t < 50] == list(range(50))


@pytest.mark.parametrize("fields, reason", [
    ({"seconds": (0.0,)}, "not positive"),
    ({"seconds": (float("nan"),)}, "not positive"),
    ({"seconds": ()}, "either seconds or an error"),
    ({"error": "wrong"}, "either seconds or an error"),
    ({"family": "hgemm"}, "rung is 'sgemm/pipelined' and its family 'hgemm'"),
    ({"workload": {"m": 1, "n": 1}}, "workload"),
    ({"workload": {"m": 0, "n": 1, "k": 1}}, "M is 0"),
])  # fmt: skip
def test_a_record_that_cannot_be_is_not_made(fields, reason):
    with pytest.raises(ValueError, match=reason):
        record(**fields)


@pytest.mark.parametrize("old, new, reason", [
    (b'"seconds":[0.5', b'"seconds":[0.4', "it does not fit its checksum"),
    (b'"trial":1', b'"trial":11', "it does not fit its checksum"),
    (b'"checksum":"', b'"checksum":"0', "it does not fit its checksum"),
    (b'"checksum"', b'"checksam"', "it has no checksum"),
    (b'"seconds":[', b'"seconds":', "it is not JSON"),
])  # fmt: skip
def test_a_line_that_was_changed_is_refused(path, old, new, reason):
    filled(path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(old, new)
    path.write_bytes(b"".join(lines))
    with pytest.raises(CheckFailed) as error:
        Database(path)
    assert str(error.value).startswith(f"{path}, line 2: {reason}") and "\n" not in str(error.value)


@pytest.mark.parametrize("change, reason", [
    ({"seconds": ["fast"]}, r"seconds\[0\]: 'fast' is not a number"),
    ({"seconds": [0.0]}, r"seconds\[0\]: 0.0"),
    ({"more": 1}, "the file: 'more' is too much"),
    ({"kind": "guessed"}, "kind: 'guessed'"),
    ({"point": "bm"}, "point: 'bm' is not an object"),
    ({"workload": {}}, "workload: {} is not a workload of sgemm"),
    ({"workload": {"m": 256.5, "n": 256, "k": 64}}, "workload.m: 256.5 is not an integer"),
    ({"workload": {"m": True, "n": 256, "k": 64}}, "workload.m: true is not an integer"),
    ({"mo\x1bre" + "x" * 9999: 1}, r"the file: 'mo\\x1brexxx"),
    ({"trial": True}, "trial: true is not an integer"),
    ({"trial": -1}, "trial: -1"),
    ({"seconds": [True]}, r"seconds\[0\]: true is not a number"),
    ({"versions": {"nvcc": 13}}, "versions.nvcc: 13 is not a text"),
    ({"device": "a\x1bc"}, "device: 'a.x1bc' has control characters"),
    ({"point": {"bm": [1]}}, "point.bm: a list is not a single value"),
])  # fmt: skip
def test_a_line_with_a_good_checksum_that_is_no_record_is_refused(path, change, reason):
    filled(path)
    journal.append(path, {**asdict(record()), **change})
    with pytest.raises(CheckFailed, match=f"line 4: it is not a record: {reason}") as error:
        Database(path)
    assert error.value.exit_code == 2 and len(str(error.value)) < 1000


@pytest.mark.parametrize("make, reason", [
    (lambda path: path.mkdir(), "cannot write .*: it is a folder; name a file in it"),
    (lambda path: path.write_text("# notes\n"), "not a file of tuning records"),
    (lambda path: path.write_text("{}"), "not a file of tuning records"),
    (lambda path: path.write_bytes(bytes(64)), "not a file of tuning records"),
    (lambda path: path.write_bytes(b"\xff\xfe\n"), "not a file of tuning records"),
    (lambda path: os.mkfifo(path), "not a regular file"),
    (lambda path: path.symlink_to(path), "symbolic link"),
])  # fmt: skip
def test_what_is_no_database_is_refused_in_one_line_and_left_alone(path, make, reason):
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(BadInput, match=reason) as error:
        Database(path)
    assert "\n" not in str(error.value)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_file_in_no_folder_is_refused_before_anything_is_tried(path):
    with pytest.raises(BadInput, match="folder that exists"):
        Database(path / "records.jsonl")


def test_the_best_is_the_fastest_of_what_is_asked_for_and_measured_before_predicted():
    big = Gemm(512, 256, 64)
    found = [
        record(0, seconds=(3.0, 1.0, 1.1)),
        record(1, seconds=(1.2, 1.2, 1.2)),
        record(2, seconds=(), error="wrong"),
        record(3, big, seconds=(0.1,)),
        record(4, device="NVIDIA L4", seconds=(0.2,)),
        record(5, kind="predicted", seconds=(0.001,)),
    ]
    here = {"rung": "sgemm/pipelined", "device": "NVIDIA H200"}
    assert best(found, **here, workload=asdict(Gemm(256, 256, 64))).trial == 0
    assert best(found, **here, workload=asdict(big)).trial == 3
    assert best(found, **here, workload=asdict(Gemm(512, 512, 64))) is None
    assert best(found, rung="sgemm/multistage") is None
    assert best(found, **here | {"device": "NVIDIA L4"}, workload=asdict(big)) is None
    assert best([record(error="wrong", seconds=())]) is None
    assert best([record(7, kind="predicted")]).trial == 7


def test_a_later_record_of_a_point_takes_the_place_of_the_first():
    again = record(0, seconds=(2.0,))
    assert latest([record(0, seconds=(1.0,)), record(1, seconds=(1.5,)), again]) == [
        again,
        record(1, seconds=(1.5,)),
    ]
    assert best([record(0, seconds=(1.0,)), record(1, seconds=(1.5,)), again]).trial == 1


def test_shipped_records_are_those_of_the_gpu(path, monkeypatch):
    monkeypatch.setattr(database, "SHIPPED", path.parent)
    assert shipped("NVIDIA H200") == path.parent / "nvidia_h200.jsonl"
    assert shipped_records("NVIDIA H200") == []
    Database(shipped("NVIDIA H200")).append(record())
    assert shipped_records("NVIDIA H200") == [record()]
    assert shipped_records("NVIDIA L4") == []


def test_records_of_a_package_that_ships_none():
    assert shipped_records("a GPU that nobody has") == []
