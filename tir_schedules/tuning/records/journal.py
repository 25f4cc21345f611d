"""A file of JSON objects, one per line, that only grows: no whole line is lost when a writer is killed.

Reading changes nothing. What a killed writer left of a last line, which it had not acknowledged, is left out,
and the next line takes its place. Each line begins with the SHA-256 of the rest of its object. That shows
accidents and careless edits; it is not a signature, for anyone can compute it.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from tir_schedules.errors import BadInput, CheckFailed, one_line, printable
from tir_schedules.files import check_folder, plain_json, read_bytes

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


def append(path: Path, entry: Entry) -> None:
    """Add a line, which is on the disk when this returns. Other processes may append and read at the same
    time. BadInput, with nothing added, when a file cannot be written or is of another kind."""
    line = line_of(entry)
    check_path(path)
    try:
        with open(path, "a+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            size = file.seek(0, os.SEEK_END)
            end = mended(path, os.pread(file.fileno(), size, 0))
            file.truncate(min(end, size))
            line = b"\n" * (end > size) + line
            if file.write(line) != len(line):
                file.truncate(size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())
            if not size:
                sync_folder(path.parent)
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror or error}") from None


def load(path: Path) -> list[Entry]:
    """All objects of a file, which stays as it is. No file holds none.

    BadInput for a path that cannot be read or a file of another kind; Damaged, with the line's number and
    what is wrong with it, for a line that `append` did not write.
    """
    check_path(path)
    if not os.path.lexists(path):
        return []
    content = read_bytes(path, REMEDY, LARGEST)
    lines = content[: mended(path, content)].split(b"\n")
    return [entry_at(path, number, line) for number, line in enumerate(lines, 1) if line]


def check_path(path: Path) -> None:
    """BadInput where there can be no journal: a folder, a device, no folder to hold the file."""
    check_folder(path)
    if path.exists() and not path.is_file():
        raise BadInput(f"{path} is not a regular file; {REMEDY}")


def mended(path: Path, content: bytes) -> int:
    """How many bytes of a file are whole lines: one more than there are where the last lacks its newline.

    BadInput for a file of another kind; Damaged for a last line that is neither whole nor the beginning of
    one: an object that was changed, or records whose line ends are lost.
    """
    if content and not begins_one(content):
        raise BadInput(f"{path} is not a file of tuning records; {REMEDY}")
    start = content.rfind(b"\n") + 1
    last = content[start:]
    if not last:
        return start
    if begins_one(last) and PREFIX not in last[1:]:
        try:
            plain_json(last)
        except ValueError:
            return start
    entry_at(path, content.count(b"\n") + 1, last)
    return len(content) + 1


def begins_one(content: bytes) -> bool:
    """Whether content begins as a line does, as far as it goes; a crash of the computer can leave zeros where
    more was to come."""
    head = content[: len(PREFIX)].rstrip(b"\0")
    return PREFIX.startswith(head) and bool(head)


def entry_at(path: Path, number: int, line: bytes) -> Entry:
    """The object of a line; Damaged with its number and the reason where there is none."""
    try:
        return entry_of(line)
    except ValueError as error:
        raise bad_line(path, number, error) from None


def bad_line(path: Path, number: int, reason: object) -> Damaged:
    """The error about a line that is not an object, or no record."""
    text, remedy = str(reason), "restore the file, or remove the line"
    if text == JOINED:
        remedy = f"put one before each {PREFIX.decode()}"
    short = printable(text[:MESSAGE]) + "..." * (len(text) > MESSAGE)
    return Damaged(f"{path}, line {number}: {short}; {remedy}")


def sync_folder(folder: Path) -> None:
    """Make the name of a new file last."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
