"""A file of JSON objects, one per line, that only grows: no whole line is lost when a writer is killed.

Reading changes nothing. What a killed writer left of a last line is left out, and the next writer moves it
into a file beside this one. Each line begins with the SHA-256 of the rest of its object. That shows accidents
and careless edits; it is no signature, for anyone can compute it.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator

from tir_schedules.errors import BadInput, CheckFailed, one_line, printable
from tir_schedules.files import check_folder, plain_json

LARGEST = 256 << 20
"""Most bytes of a file; a record has one or two thousand."""

CHECKSUM = "checksum"
PREFIX = f'{{"{CHECKSUM}":"'.encode()
JOINED = "it has several records: the line ends (LF) between them are lost"
Entry = dict[str, Any]
"""A JSON object."""
MESSAGE = 400  # characters of what is wrong with a line
REMEDY = "name a file that `tune` wrote"


class Damaged(BadInput, CheckFailed):
    """A line is not as it was written: the input is bad, and a checksum may be what shows it."""

    exit_code = BadInput.exit_code


def canonical(value: object) -> str:
    """JSON with sorted keys and without spaces; ValueError for what JSON cannot hold, such as NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def checksum(entry: Entry) -> str:
    """SHA-256, in hex, of an object in canonical form."""
    return hashlib.sha256(canonical(entry).encode()).hexdigest()


def line_of(entry: Entry) -> bytes:
    """The line of an object, its newline included."""
    return f'{PREFIX.decode()}{checksum(entry)}",{canonical(entry)[1:]}\n'.encode()


def entry_of(line: bytes) -> Entry:
    """The object of a line. ValueError, with the reason, for a line that `line_of` did not write."""
    if PREFIX in line[1:]:
        raise ValueError(JOINED)
    try:
        entry = plain_json(line)
    except ValueError as error:
        raise ValueError(f"it is not JSON ({one_line(error)})") from None
    if not isinstance(entry, dict) or CHECKSUM not in entry:
        raise ValueError("it has no checksum")
    if entry.pop(CHECKSUM) != checksum(entry):
        raise ValueError("it does not fit its checksum: it was changed after it was written")
    return entry


def check_path(path: Path) -> None:
    """BadInput where there can be no journal: a folder, a device, no folder to hold the file."""
    check_folder(path)
    if path.exists() and not path.is_file():
        raise BadInput(f"{path} is no regular file; {REMEDY}")


def append(path: Path, entry: Entry) -> str:
    """Add a line, which is on the disk when this returns. Other processes may append and read at the same
    time.

    A last line that a killed writer left unfinished goes into the file at `rejects_path` first; returns a
    line of text that says so, else nothing. BadInput, with nothing added, when a file cannot be written or is
    of another kind.
    """
    line = line_of(entry)
    check_path(path)
    with open_locked(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, fcntl.LOCK_EX) as file:
        check_kind(path, os.pread(file, len(PREFIX), 0))
        done = mend(path, file)
        size = os.fstat(file).st_size
        if os.write(file, line) != len(line):
            os.ftruncate(file, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file)
        if not size:
            sync_folder(path.parent)
    return done


def load(path: Path) -> tuple[list[Entry], str]:
    """All objects of a file, which stays as it is, and what its last line lacks: a line of text, empty when
    nothing. No file holds none.

    BadInput for a path that cannot be read or a file of another kind; Damaged, with the line's number and
    what is wrong with it, for a line that `append` did not write.
    """
    check_path(path)
    if not os.path.lexists(path):
        return [], ""
    with open_locked(path, os.O_RDONLY | os.O_NONBLOCK, fcntl.LOCK_SH) as file:
        content = whole(path, file)
    check_kind(path, content)
    right = mend_content(path, content)
    found = [entry_at(path, number, line) for number, line in enumerate(right.split(b"\n")[:-1], 1)]
    if len(right) < len(content):
        excess = f"{len(content) - len(right)} bytes that a killed writer left of a last line"
        return (
            found,
            f"{path}: {excess} are left out; the next record moves them to {rejects_path(path).name}",
        )
    if len(right) > len(content):
        return found, f"{path}: the last line lacks its end, which the next record adds"
    return found, ""


def rejects_path(path: Path) -> Path:
    """The file for what is cut off another."""
    return path.with_name(f"{path.name}.cut")


def check_kind(path: Path, content: bytes) -> None:
    """BadInput unless content begins as a journal does, or is empty."""
    if content and not begins_one(content):
        raise BadInput(f"{path} is no file of tuning records; {REMEDY}")


def entry_at(path: Path, number: int, line: bytes) -> Entry:
    """The object of a line; Damaged with its number and the reason where there is none."""
    try:
        return entry_of(line)
    except ValueError as error:
        raise bad_line(path, number, error) from None


def bad_line(path: Path, number: int, reason: object) -> Damaged:
    """The error about a line that is no object, or no record."""
    text, remedy = str(reason), "restore the file, or remove the line"
    if text == JOINED:
        remedy = f"put one before each {PREFIX.decode()}"
    short = printable(text[:MESSAGE]) + "..." * (len(text) > MESSAGE)
    return Damaged(f"{path}, line {number}: {short}; {remedy}")


def mend_content(path: Path, content: bytes) -> bytes:
    """Content as it should be: a last line that lacks only its newline has it, the beginning of a line is
    gone.

    Damaged for a last line that is neither: a whole object that was changed, or records whose line ends are
    lost.
    """
    start = content.rfind(b"\n") + 1
    last = content[start:]
    if not last:
        return content
    if begins_one(last) and PREFIX not in last[1:]:
        try:
            plain_json(last)
        except ValueError:
            return content[:start]
    entry_at(path, content.count(b"\n") + 1, last)
    return content + b"\n"


def mend(path: Path, file: int) -> str:
    """Make the end of a file, locked for writing, what `mend_content` says; returns a line of text if
    anything is cut off and kept beside it."""
    size = os.fstat(file).st_size
    if not size or os.pread(file, 1, size - 1) == b"\n":
        return ""
    content = whole(path, file)
    right = mend_content(path, content)
    if len(right) > size:
        os.write(file, right[size:])
        os.fsync(file)
        return ""
    keep(rejects_path(path), content[len(right) :] + b"\n")
    os.ftruncate(file, len(right))
    os.fsync(file)
    cut = f"{size - len(right)} bytes that a killed writer left of a last line"
    return f"{path}: {cut} are now in {rejects_path(path)}"


def keep(path: Path, content: bytes) -> None:
    """Add content to a file; it is on the disk when this returns. BadInput when it cannot be."""
    check_path(path)
    with open_locked(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, fcntl.LOCK_EX) as file:
        if os.write(file, content) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file)
        sync_folder(path.parent)


def begins_one(content: bytes) -> bool:
    """Whether content begins as a line does, as far as it goes; a crash of the computer can leave zeros where
    more was to come."""
    head = content[: len(PREFIX)].rstrip(b"\0")
    return PREFIX.startswith(head) and bool(head)


def whole(path: Path, file: int) -> bytes:
    """All of an open file. BadInput when that is more than LARGEST."""
    size = os.fstat(file).st_size
    if size > LARGEST:
        raise BadInput(f"{path} is too large: more than {LARGEST >> 20} MiB; {REMEDY}")
    return os.pread(file, size, 0)


@contextmanager
def open_locked(path: Path, flags: int, lock: int) -> Iterator[int]:
    """The file, open and locked; whoever else wants it waits. BadInput for what the system refuses
    meanwhile."""
    file = None
    try:
        file = os.open(path, flags, 0o666)
        fcntl.flock(file, lock)
        yield file
    except OSError as error:
        verb = "write" if flags & os.O_RDWR else "read"
        raise BadInput(f"cannot {verb} {path}: {error.strerror or error}") from None
    finally:
        if file is not None:
            os.close(file)


def sync_folder(folder: Path) -> None:
    """Make the name of a new file last."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
