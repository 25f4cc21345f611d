"""A file of JSON objects, one per line, that only ever grows: whatever moment a writer is killed at, no whole line is lost.

Each line begins with the SHA-256 of the rest of its object. That shows accidents and careless edits; it is no signature, for anyone
can compute it.
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

from tir_schedules.emit import check_folder
from tir_schedules.errors import BadInput, CheckFailed

CHECKSUM = "checksum"
PREFIX = f'{{"{CHECKSUM}":"'.encode()
REMEDY = "name a file that `tune` wrote"


def canonical(value: Any) -> str:
    """JSON with sorted keys and without spaces; ValueError for what JSON cannot hold, such as NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def checksum(entry: dict[str, Any]) -> str:
    """SHA-256, in hex, of an object in canonical form."""
    return hashlib.sha256(canonical(entry).encode()).hexdigest()


def line_of(entry: dict[str, Any]) -> bytes:
    """The line of an object, its newline included."""
    return f'{PREFIX.decode()}{checksum(entry)}",{canonical(entry)[1:]}\n'.encode()


def entry_of(line: bytes) -> dict[str, Any]:
    """The object of a line. ValueError, with the reason, for a line that `line_of` did not write."""
    try:
        entry = json.loads(line)
    except ValueError:
        raise ValueError("it is not JSON") from None
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


def append(path: Path, entry: dict[str, Any]) -> None:
    """Add a line, which is on the disk when this returns. Other processes may append and read at the same time.

    A last line that a killed writer left unfinished is mended first. BadInput, with nothing added, when the file cannot be written.
    """
    line = line_of(entry)
    check_path(path)
    with locked(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, fcntl.LOCK_EX) as file:
        mend(path, file)
        size = os.fstat(file).st_size
        if os.write(file, line) != len(line):
            os.ftruncate(file, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file)
        if not size:
            sync_folder(path.parent)


def load(path: Path) -> tuple[list[dict[str, Any]], str]:
    """All objects of a file, and what was mended in it: a line of text, empty when nothing was. No file holds no objects.

    BadInput for a path that cannot be read or a file of another kind; CheckFailed, with the line's number and what is wrong with it,
    for a line that `append` did not write.
    """
    check_path(path)
    if not os.path.lexists(path):
        return [], ""
    with locked(path, os.O_RDONLY, fcntl.LOCK_SH) as file:
        content = whole(file)
    if content and not begins_one(content):
        raise BadInput(f"{path} is no file of tuning records; {REMEDY}")
    right = mended(path, content)
    found = [entry_at(path, number, line) for number, line in enumerate(right.split(b"\n")[:-1], 1)]
    if right == content:
        return found, ""
    excess = len(content) - len(right)
    done = f"{excess} bytes that a killed writer left of a last line are cut off" if excess > 0 else "the last line lacked its end"
    try:
        with locked(path, os.O_RDWR | os.O_APPEND, fcntl.LOCK_EX) as file:
            mend(path, file)
    except BadInput as error:
        done = f"{done}, though not in the file: {error}"
    return found, f"{path}: {done}"


def entry_at(path: Path, number: int, line: bytes) -> dict[str, Any]:
    """The object of a line; CheckFailed with its number and the reason where there is none."""
    try:
        return entry_of(line)
    except ValueError as error:
        raise bad_line(path, number, error) from None


def bad_line(path: Path, number: int, reason: Any) -> CheckFailed:
    return CheckFailed(f"{path}, line {number}: {reason}; restore the file, or remove the line")


def mended(path: Path, content: bytes) -> bytes:
    """Content as it should be: a last line that lacks only its newline has it, the beginning of a line is gone.

    CheckFailed for a last line that is neither.
    """
    start = content.rfind(b"\n") + 1
    last = content[start:]
    if not last:
        return content
    if begins_one(last):
        try:
            entry_of(last)
        except ValueError:
            return content[:start]
    entry_at(path, content.count(b"\n") + 1, last)
    return content + b"\n"


def mend(path: Path, file: int) -> None:
    """Make the end of a file, locked for writing, what `mended` says. Nothing else is touched."""
    size = os.fstat(file).st_size
    if not size or os.pread(file, 1, size - 1) == b"\n":
        return
    right = mended(path, whole(file))
    if len(right) > size:
        os.write(file, right[size:])
    else:
        os.ftruncate(file, len(right))
    os.fsync(file)


def begins_one(content: bytes) -> bool:
    """Whether content begins as a line does, as far as it goes; a crash of the computer can leave zeros where more was to come."""
    head = content[: len(PREFIX)].rstrip(b"\0")
    return PREFIX.startswith(head) and bool(head)


def whole(file: int) -> bytes:
    """All of an open file."""
    return os.pread(file, os.fstat(file).st_size, 0)


@contextmanager
def locked(path: Path, flags: int, lock: int) -> Iterator[int]:
    """The file, open and locked; whoever else wants it waits. BadInput for what the system refuses meanwhile."""
    file = None
    try:
        file = os.open(path, flags, 0o666)
        fcntl.flock(file, lock)
        yield file
    except OSError as error:
        verb = "read" if flags == os.O_RDONLY else "write"
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
