"""The cache: shared by threads and processes, surviving kills, damage, clearing and a full or unusable
disk."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cached import entry

from tir_schedules.compiler import cache as cache_module
from tir_schedules.compiler.cache import Cache, default_cache
from tir_schedules.errors import BadInput, MissingTool

PAYLOAD = b"payload" * 1000


class Builder:
    """Fills an entry with one file and counts how often it was asked to; `meanwhile` runs during each
    build."""

    def __init__(self, meanwhile=lambda: None):
        self.meanwhile, self.calls = meanwhile, 0

    def __call__(self, folder: Path) -> None:
        self.calls += 1
        self.meanwhile()
        (folder / "data").write_bytes(PAYLOAD)


def read(folder: Path) -> bytes:
    return (folder / "data").read_bytes()


def hidden(root: Path) -> list[str]:
    """Temporary folders and trash."""
    return [name for name in os.listdir(root) if name.startswith(".")]


@pytest.fixture
def cache(tmp_path) -> Cache:
    return Cache(tmp_path / "cache")


def test_an_entry_is_built_once_and_found_again(cache, capsys):
    builder = Builder()
    path = entry(cache, "kernel", "a", builder)
    assert read(path) == PAYLOAD
    assert path.parent == cache.path and path.name.startswith("kernel-")
    assert entry(cache, "kernel", "a", builder) == path
    assert entry(Cache(cache.path), "kernel", "a", builder) == path
    assert builder.calls == 1
    assert capsys.readouterr().err == ""
    assert hidden(cache.path) == []


def test_kind_and_key_tell_entries_apart(cache):
    names = {entry(cache, kind, key, Builder()).name for kind in ("kernel", "sass") for key in ("a", "b")}
    assert len(names) == 4


def test_a_key_may_hold_a_path_that_is_no_text(cache):
    assert (
        len({entry(cache, "kernel", os.fsdecode(key), Builder()).name for key in (b"/\xff", b"/\xfe")}) == 2
    )


def test_threads_build_a_key_once_and_other_keys_at_the_same_time(cache):
    both_at_work = threading.Barrier(2, timeout=60)
    same, other = Builder(both_at_work.wait), Builder(both_at_work.wait)
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(cache.load, "kernel", "same", same, read) for _ in range(7)]
        answers.append(pool.submit(cache.load, "kernel", "other", other, read))
        assert {answer.result() for answer in answers} == {PAYLOAD}
    assert (same.calls, other.calls) == (1, 1)


def in_process(code: str, *arguments: object) -> subprocess.Popen:
    """Another Python with the cache under test imported."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


HAMMER = """
import sys, time
from pathlib import Path
from tir_schedules.compiler.cache import Cache

def build(folder):
    (folder / "a").write_text("x" * 100000)
    time.sleep(0.05)
    (folder / "b").write_text("y")

cache = Cache(Path(sys.argv[1]))
for key in "abcd":
    sizes = cache.load("kernel", key, build, lambda at: [len((at / name).read_text()) for name in "ab"])
    assert sizes == [100000, 1]
    path = cache.place("kernel", key)
    assert len((path / "a").read_text()) == 100000
"""


def test_processes_may_build_the_same_keys_at_the_same_time(cache):
    processes = [in_process(HAMMER, cache.path) for _ in range(6)]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    assert len(os.listdir(cache.path)) == 4, "four entries and nothing left behind"


# Without the keeper, who would remove the folder at some moment after: it, too, may be killed.
HANG = """
import sys, time
from pathlib import Path
from tir_schedules import processes
from tir_schedules.compiler.cache import Cache

processes.keep = lambda *arguments: None

def build(folder):
    (folder / "data").write_bytes(b"half")
    print("building", flush=True)
    time.sleep(60)

Cache(Path(sys.argv[1])).load("kernel", "a", build, lambda folder: None)
"""


def test_a_killed_build_is_neither_trusted_nor_in_the_way(cache):
    process = in_process(HANG, cache.path)
    assert process.stdout.readline() == "building\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (left,) = hidden(cache.path)
    assert read(entry(cache, "kernel", "a", Builder())) == PAYLOAD
    assert hidden(cache.path) == [left], "it may still be at work, for all we know"

    os.utime(cache.path / left, (0, time.time() - 2 * cache_module.ABANDONED_SECONDS))
    entry(Cache(cache.path), "kernel", "b", Builder())
    assert hidden(cache.path) == []


def test_trash_that_a_killed_process_left_is_removed(cache):
    (cache.path / ".trash-0").mkdir(parents=True)
    entry(cache, "kernel", "a", Builder())
    assert hidden(cache.path) == []


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:10])


def replace_by_file(folder: Path) -> None:
    (folder / "data").unlink()
    (folder / cache_module.MANIFEST).unlink()
    folder.rmdir()
    folder.write_text("not a folder")


DAMAGE = {
    "changed byte": (lambda folder: (folder / "data").write_bytes(b"P" + PAYLOAD[1:]), "content of data"),
    "truncated file": (lambda folder: truncate(folder / "data"), "10 bytes instead of 7000"),
    "missing file": (lambda folder: (folder / "data").unlink(), "data: No such file"),
    "truncated manifest": (
        lambda folder: truncate(folder / cache_module.MANIFEST),
        "manifest.json is not readable",
    ),
    "manifest of numbers": (
        lambda folder: (folder / cache_module.MANIFEST).write_text('{"data": 3}'),
        "not readable",
    ),
    "missing manifest": (
        lambda folder: (folder / cache_module.MANIFEST).unlink(),
        "manifest.json: No such file",
    ),
    "file in its place": (replace_by_file, "Not a directory"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_entry_is_rebuilt_with_one_line_of_warning(cache, capsys, damage):
    harm, said = DAMAGE[damage]
    path = entry(cache, "kernel", "a", Builder())
    harm(path)
    builder = Builder()
    assert cache.load("kernel", "a", builder, read) == PAYLOAD
    assert read(path) == PAYLOAD and builder.calls == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(path) in line and said in line and "has been rebuilt" in line
    assert hidden(cache.path) == []
    entry(cache, "kernel", "a", builder)
    assert builder.calls == 1 and capsys.readouterr().err == ""


def test_the_least_recently_used_entries_go_when_the_limit_is_reached(tmp_path):
    cache = Cache(tmp_path, limit_bytes=4 * 8000)
    paths = {key: entry(cache, "kernel", key, Builder()) for key in "abcd"}
    for age, key in enumerate("dcba"):
        os.utime(paths[key], (0, 1000 + 1000 * age))
    assert entry(cache, "kernel", "d", Builder()) == paths["d"], "a use, which makes it the youngest"
    newest = entry(cache, "kernel", "e", Builder())
    assert cache.size() <= cache.limit
    assert newest.exists() and paths["d"].exists() and not paths["c"].exists()


def test_the_limit_holds_for_what_other_processes_built(tmp_path):
    for key in "abcdef":
        entry(Cache(tmp_path, limit_bytes=1 << 20), "kernel", key, Builder())
    entry(Cache(tmp_path, limit_bytes=20000), "kernel", "g", Builder())
    assert Cache(tmp_path).size() <= 20000


def test_an_entry_larger_than_the_limit_can_be_used(tmp_path):
    cache = Cache(tmp_path, limit_bytes=10)
    assert read(entry(cache, "kernel", "a", Builder())) == PAYLOAD
    assert read(entry(cache, "kernel", "b", Builder())) == PAYLOAD
    assert len(os.listdir(tmp_path)) == 1


def test_clear_removes_ours_and_nothing_else(cache):
    entry(cache, "kernel", "a", Builder())
    at_work = cache.path / ".building-now"
    at_work.mkdir()
    (cache.path / "notes").mkdir()
    (cache.path / "notes" / "today").write_text("not the cache's")
    assert cache.size() > len(PAYLOAD)
    assert cache.clear() > len(PAYLOAD)
    assert sorted(os.listdir(cache.path)) == [".building-now", "notes"]
    assert cache.size() == cache.clear() == 0


def test_size_and_clear_of_a_cache_that_does_not_exist(cache):
    assert (cache.size(), cache.clear()) == (0, 0)
    assert not cache.path.exists()


def test_clearing_does_not_disturb_those_who_load(cache):
    done = threading.Event()

    def keep_clearing():
        while not done.is_set():
            Cache(cache.path).clear()

    with ThreadPoolExecutor(4) as pool:
        clearing = pool.submit(keep_clearing)
        loads = [pool.submit(cache.load, "kernel", str(key % 3), Builder(), read) for key in range(150)]
        try:
            assert {load.result() for load in loads} == {PAYLOAD}
        finally:
            done.set()
        clearing.result()


def test_an_entry_that_vanishes_while_it_is_read_is_built_again(cache):
    entry(cache, "kernel", "a", Builder())

    def read_too_late(folder: Path) -> bytes:
        if not folder.name.startswith("."):
            Cache(cache.path).clear()
        return read(folder)

    assert cache.load("kernel", "a", Builder(), read_too_late) == PAYLOAD


@pytest.mark.parametrize("place", ["file", "file/below", "file/further/below", "/proc/nowhere/below"])
def test_a_root_that_cannot_be_a_folder_is_one_line_with_a_remedy(tmp_path, place):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot be used .*: set TIR_SCHEDULES_CACHE to a folder") as caught:
        entry(Cache(tmp_path / place), "kernel", "a", Builder())
    assert "\n" not in str(caught.value)


def test_a_full_disk_is_one_line_with_a_remedy(cache):
    def build(folder: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(MissingTool, match="no space left .* --clear-cache"):
        entry(cache, "kernel", "a", build)
    assert os.listdir(cache.path) == []


def test_errors_of_the_builder_are_its_own_and_leave_nothing(cache):
    def build(folder: Path) -> None:
        (folder / "data").write_bytes(PAYLOAD)
        open("/nowhere/at/all")

    with pytest.raises(FileNotFoundError, match="/nowhere/at/all"):
        entry(cache, "kernel", "a", build)
    assert os.listdir(cache.path) == []


def test_place_and_limit_come_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("TIR_SCHEDULES_CACHE", str(tmp_path / "here"))
    monkeypatch.setenv("TIR_SCHEDULES_CACHE_LIMIT", "1.5M")
    cache = default_cache()
    assert (cache.path, cache.limit) == (tmp_path / "here", 3 << 19)
    assert default_cache() is cache

    monkeypatch.delenv("TIR_SCHEDULES_CACHE")
    monkeypatch.delenv("TIR_SCHEDULES_CACHE_LIMIT")
    assert default_cache().limit == 1 << 30
    assert default_cache().path.name == "tir_schedules"


@pytest.mark.parametrize(
    "text, size", [("500M", 500 << 20), ("2 GiB", 2 << 30), ("1gb", 1 << 30), ("70000", 70000)]
)
def test_limits(monkeypatch, text, size):
    monkeypatch.setenv("TIR_SCHEDULES_CACHE_LIMIT", text)
    assert cache_module.default_limit() == size


@pytest.mark.parametrize("text", ["much", "-1G", "5X", "M"])
def test_a_limit_that_is_no_size_is_refused(monkeypatch, text):
    monkeypatch.setenv("TIR_SCHEDULES_CACHE_LIMIT", text)
    with pytest.raises(BadInput, match="TIR_SCHEDULES_CACHE_LIMIT .* such as 500M"):
        Cache()
