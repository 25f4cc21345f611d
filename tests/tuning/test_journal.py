"""The end of a file of records: what a killed writer left there is left out, and nothing else is touched."""

from __future__ import annotations

import builtins
import fcntl
import os
import resource
import signal
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict

import pytest
from made_records import filled, record

from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.tuning.records import journal
from tir_schedules.tuning.records.database import Database


@pytest.fixture
def path(tmp_path):
    return tmp_path / "records.jsonl"


def test_an_unfinished_last_line_is_left_out_wherever_it_ends_and_reading_changes_nothing(path):
    made = filled(path)
    content = path.read_bytes()
    start = content.rstrip(b"\n").rfind(b"\n") + 1
    for end in range(start + 1, len(content) - 1, 7):
        path.write_bytes(content[:end])
        assert Database(path).records() == made[:2]
        assert path.read_bytes() == content[:end] and list(path.parent.iterdir()) == [path]


def test_an_appended_record_takes_the_place_of_an_unfinished_line(path):
    filled(path)
    content = path.read_bytes()
    start = content.rstrip(b"\n").rfind(b"\n") + 1
    path.write_bytes(content[:-20])
    Database(path).append(record(9))
    assert path.read_bytes() == content[:start] + journal.line_of(asdict(record(9)))
    assert list(path.parent.iterdir()) == [path]


def test_a_last_line_that_lacks_only_its_newline_is_read_and_ended_by_the_next(path):
    made = filled(path)
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    database = Database(path)
    assert database.records() == made
    assert path.read_bytes() == content[:-1]
    database.append(record(9))
    assert (
        path.read_bytes().startswith(content)
        and database.records() == [*made, record(9)]
        and list(path.parent.iterdir()) == [path]
    )


def test_zeros_that_a_crash_left_after_an_unfinished_line_are_left_out(path):
    made = filled(path)
    content = path.read_bytes()
    path.write_bytes(content + b'{"check' + bytes(100))
    assert Database(path).records() == made
    journal.append(path, asdict(record(9)))
    assert Database(path).records() == [*made, record(9)]


@pytest.mark.parametrize("ends", [b"", b"\r", b" "])
def test_a_file_whose_line_ends_are_lost_is_refused_and_nothing_of_it_is_lost(path, ends):
    filled(path)
    content = path.read_bytes().replace(b"\n", ends)
    for changed in (content, content[:-40]):
        path.write_bytes(changed)
        with pytest.raises(
            BadInput, match="line 1: it has several records: the line ends.*put one before"
        ) as error:
            Database(path)
        assert "remove" not in str(error.value)
        with pytest.raises(BadInput, match="line 1"):
            journal.append(path, asdict(record(9)))
        assert path.read_bytes() == changed and list(path.parent.iterdir()) == [path]


def test_a_writer_waits_for_one_that_may_be_mending_the_end(path):
    made = filled(path)
    with ThreadPoolExecutor(1) as threads, open(path, "rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        appended = threads.submit(journal.append, path, asdict(record(9)))
        assert not wait([appended], timeout=0.5).done and Database(path).records() == made
        fcntl.flock(other, fcntl.LOCK_UN)
        appended.result()
    assert Database(path).records() == [*made, record(9)]


def test_line_ends_of_windows_are_read(path):
    made = filled(path)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    Database(path).append(record(9))
    assert Database(path).records() == [*made, record(9)]


def test_a_last_line_that_was_changed_is_no_unfinished_one(path):
    filled(path)
    changed = path.read_bytes()[:-1].replace(b'"trial":2', b'"trial":3')
    path.write_bytes(changed)
    for use in (Database, lambda path: journal.append(path, {})):
        with pytest.raises(CheckFailed, match="line 3: it does not fit its checksum"):
            use(path)
    assert path.read_bytes() == changed


@pytest.mark.parametrize("content", [b"# notes\n", b"# notes", b"{}\n", b"\xff\xfe\n"])
def test_nothing_is_appended_to_another_kind_of_file(path, content):
    path.write_bytes(content)
    with pytest.raises(BadInput, match="not a file of tuning records"):
        journal.append(path, asdict(record()))
    assert path.read_bytes() == content and list(path.parent.iterdir()) == [path]


def test_an_appended_record_is_synced_before_it_is_acknowledged(path, monkeypatch):
    """A write without fsync outlives a killed process, and so every other test, but no power cut."""
    synced, fsync = [], os.fsync

    def noted(file):
        fsync(file)
        name = os.readlink(f"/proc/self/fd/{file}")
        synced.append((name, 0 if os.path.isdir(name) else os.path.getsize(name)))

    monkeypatch.setattr(os, "fsync", noted)
    journal.append(path, asdict(record(0)))
    assert synced == [(str(path), path.stat().st_size), (str(path.parent), 0)]
    journal.append(path, asdict(record(1)))
    assert synced[2:] == [(str(path), path.stat().st_size)]
    content = path.read_bytes()
    path.write_bytes(content + b'{"checksum":')
    journal.append(path, asdict(record(2)))
    assert synced[3:] == [(str(path), path.stat().st_size)] and path.read_bytes().startswith(content)


def test_the_end_of_a_file_that_is_no_record_is_not_touched(path):
    filled(path)
    content = path.read_bytes() + b"a note of mine"
    path.write_bytes(content)
    with pytest.raises(CheckFailed, match="line 4: it is not JSON"):
        Database(path)
    with pytest.raises(CheckFailed, match="line 4"):
        journal.append(path, {})
    assert path.read_bytes() == content


def test_a_torn_file_that_cannot_be_written_is_still_read(path, monkeypatch):
    made = filled(path)
    path.write_bytes(path.read_bytes()[:-5])
    before, really = path.read_bytes(), open

    def refuse_writing(name, mode="r", *rest, **more):
        if name == path and "+" in mode:
            raise PermissionError(13, "Permission denied")
        return really(name, mode, *rest, **more)

    monkeypatch.setattr(builtins, "open", refuse_writing)
    database = Database(path)
    assert database.records() == made[:2] and path.read_bytes() == before
    with pytest.raises(BadInput, match="cannot write .*Permission denied"):
        database.append(record(9))


def test_a_full_disk_leaves_the_file_as_it_was(path):
    made, database = filled(path), Database(path)
    content = path.read_bytes()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        for room in (0, 30):
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(content) + room, before[1]))
            with pytest.raises(BadInput, match="cannot write .*: (File too large|No space left on device)"):
                database.append(record(3))
            assert path.read_bytes() == content and database.records() == made
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
