"""A folder of things that are slow to make: compiled kernels, disassembly, the CPU machine's shared
libraries.

An entry is a folder named after a hash of all that went into it, so it never goes out of date. It is built in
a temporary folder of a plain name (see places.py) and renamed into place in one step: a process killed at any
moment leaves no half-made entry, two processes that make the same entry do not disturb each other, and there
is not a lock file to be left behind.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import sys
import threading
import time
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Callable, Iterator, TypeVar

from tir_schedules.compiler.places import new_folder, scratch_folders
from tir_schedules.errors import BadInput, MissingTool, TirSchedulesError, one_line, printable
from tir_schedules.processes import passing, unused

T = TypeVar("T")
Build = Callable[[Path], None]

DEFAULT_LIMIT = 1 << 30
FORMAT = 1
"""Part of every hash; a change of the entry layout raises it, and entries of the old layout age away."""

MANIFEST = "manifest.json"
ENTRY = re.compile(r"[a-z]+-[0-9a-f]{32}")
BUILDING = ".building-"
TRASH = ".trash-"
ABANDONED_SECONDS = 3600

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
OCCUPIED = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}
FULL = {errno.ENOSPC, errno.EDQUOT}
UNUSABLE = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOTDIR,
    errno.EEXIST,
    errno.ENOENT,
    errno.ENAMETOOLONG,
}


class Cache:
    """Entries under `root`, at most `limit_bytes` of them; the least recently used go first.

    root: default the environment variable TIR_SCHEDULES_CACHE, then the user's cache folder. limit_bytes:
    default TIR_SCHEDULES_CACHE_LIMIT ("500M", "2G"), then 1 GiB. Threads and processes may share a root
    freely.
    """

    def __init__(self, root: Path | None = None, limit_bytes: int | None = None):
        self.path = Path(root).absolute() if root is not None else default_root()
        self.limit = limit_bytes if limit_bytes is not None else default_limit()
        self._used: int | None = None  # bytes, as this process knows; None before the first look
        self._lock = threading.Lock()
        self._building: dict[str, threading.Lock] = {}

    def load(self, kind: str, key: str, build: Build, read: Callable[[Path], T]) -> T:
        """What `read(folder)` returns for the folder of the entry `key`; when there is none, `build(folder)`
        fills one first.

        kind: a lower-case word that names the sort of entry, readable in the folder's name. key: everything
        the content depends on; it is hashed. A damaged entry is built again, and a line on stderr says so.
        """
        path = self.place(kind, key)
        with self._one_thread(path):
            if self._usable(path):
                try:
                    return read(path)
                except FileNotFoundError:
                    pass  # another process cleared the cache after the check
            return self._build(path, build, read)

    def size(self) -> int:
        """Bytes in all entries, in what is being built here, and in what killed processes left elsewhere."""
        return sum(folder_size(path) for path in (*self._ours(), *filter(is_abandoned, scratch_folders())))

    def clear(self) -> int:
        """Remove every entry and return the bytes freed. What other processes are building right now
        stays."""
        freed = 0
        for path in self._ours():
            if ENTRY.fullmatch(path.name) or leftover(path):
                freed += folder_size(path)
                self._discard(path)
        self._used = None
        return freed + sweep_scratch()

    @contextmanager
    def workplace(self) -> Iterator[Path]:
        """An empty folder that a compiler may work in, gone afterwards: beside the entries, or elsewhere
        where their path is not plain."""
        with self._explained():
            self.path.mkdir(parents=True, exist_ok=True)
            with new_folder(BUILDING, self.path) as folder:
                yield folder

    def place(self, kind: str, key: str) -> Path:
        """Where an entry is, if there is one."""
        digest = hashlib.sha256(f"{FORMAT}\0{key}".encode(errors="surrogateescape")).hexdigest()[:32]
        return self.path / f"{kind}-{digest}"

    def _one_thread(self, path: Path) -> threading.Lock:
        """Threads of one process wait for each other rather than build the same entry twice."""
        return self._building.setdefault(path.name, threading.Lock())

    def _usable(self, path: Path) -> bool:
        """Whether there is a sound entry; it then counts as used now."""
        if damage(path) is not None:
            return False
        try:
            os.utime(path)
        except OSError:
            pass  # a cache that may only be read is still good to read
        return True

    def _build(self, path: Path, build: Build, read: Callable[[Path], T]) -> T:
        """Build the entry, read it, and put it in place."""
        with self.workplace() as work:
            build(work)
            with self._beside_entries(work) as folder:
                added = write_manifest(folder)
                value = read(folder)
                self._publish(folder, path)
            self._make_room(added, keep=path)
        return value

    @contextmanager
    def _beside_entries(self, work: Path) -> Iterator[Path]:
        """A finished folder from where a rename puts it in place: a copy of one that was made elsewhere."""
        if work.parent == self.path:
            yield work
            return
        with passing(unused(self.path, BUILDING)) as folder:
            yield shutil.copytree(work, folder, dirs_exist_ok=True)

    def _publish(self, folder: Path, path: Path) -> None:
        """Rename a finished folder into place, unless another process put a sound one there meanwhile."""
        broken = None
        while True:
            try:
                os.rename(folder, path)
                break
            except OSError as error:
                if error.errno not in OCCUPIED:
                    raise
            fault = damage(path)
            if fault is None:
                break
            if self._discard(path):
                broken = fault
        if broken:
            print(
                f"tir-schedules: cache entry {printable(path)} was broken ({broken}) and has been rebuilt",
                file=sys.stderr,
            )

    def _make_room(self, added: int, keep: Path) -> None:
        """Keep the whole within the limit. Only the first build of a process, and one that reaches the limit,
        look."""
        with self._lock:
            if self._used is not None and self._used + added <= self.limit:
                self._used += added
                return
            for path in self._ours():
                if leftover(path):
                    self._discard(path)
            sweep_scratch()
            entries = [path for path in self._ours() if ENTRY.fullmatch(path.name)]
            entries = sorted((last_use(path), folder_size(path), path) for path in entries)
            used = sum(size for _, size, _ in entries)
            # Some slack, or every further build would have to look again.
            goal = self.limit if used <= self.limit else self.limit * 9 // 10
            for _, size, path in entries:
                if used > goal and path != keep:
                    self._discard(path)
                    used -= size
            self._used = used

    def _discard(self, path: Path) -> bool:
        """Remove an entry; at no time is half of it visible. False when another process was faster."""
        trash = self.path / f"{TRASH}{os.urandom(8).hex()}"
        with self._explained():
            try:
                os.rename(path, trash)
            except FileNotFoundError:
                return False
            if trash.is_dir() and not trash.is_symlink():
                shutil.rmtree(trash, ignore_errors=True)
            else:
                trash.unlink(missing_ok=True)
        return True

    def _ours(self) -> list[Path]:
        """Entries and temporary folders; anything else under the root is not ours to count or to remove."""
        try:
            names = os.listdir(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [
            self.path / name for name in names if ENTRY.fullmatch(name) or name.startswith((BUILDING, TRASH))
        ]

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what the file system says about our root into a line for the user."""
        try:
            yield
        except OSError as error:
            explanation = self._explain(error)
            if explanation is None:
                raise
            raise explanation from error

    def _explain(self, error: OSError) -> TirSchedulesError | None:
        if error.errno in FULL:
            return MissingTool(
                f"no space left for the cache in {printable(self.path)}: free some, run `tir-schedules doctor"
                " --clear-cache`, or set TIR_SCHEDULES_CACHE to another folder"
            )
        place = Path(os.fsdecode(error.filename or ""))
        ours = self.path in (place, place.parent) or place in self.path.parents
        if ours and error.errno in UNUSABLE:
            return BadInput(
                f"the cache folder {printable(self.path)} cannot be used ({os.strerror(error.errno)}):"
                " set TIR_SCHEDULES_CACHE to a folder you can write to"
            )
        return None


def default_cache() -> Cache:
    """The cache that the environment asks for; the same object as long as the environment stays the same."""
    return cache_at(default_root(), default_limit())


@lru_cache(maxsize=None)
def cache_at(root: Path, limit: int) -> Cache:
    return Cache(root, limit)


def default_root() -> Path:
    """TIR_SCHEDULES_CACHE, or this user's cache folder as the operating system has it.

    BadInput where a home it names is not known, MissingTool without the library that knows the operating
    system.
    """
    chosen = os.environ.get("TIR_SCHEDULES_CACHE")
    try:
        if chosen:
            return Path(chosen).expanduser().absolute()
        import platformdirs

        return Path(platformdirs.user_cache_dir("tir_schedules"))
    except ImportError:
        raise MissingTool(
            "platformdirs, which knows the folder of the cache, is missing: pip install platformdirs"
        ) from None
    except (
        RuntimeError,
        OSError,
    ) as error:  # "~nobody", or no home at all; a relative name where the working directory is gone
        raise BadInput(
            f"TIR_SCHEDULES_CACHE is {chosen!r}: {one_line(error)}; name a folder you can write to"
        ) from None


def default_limit() -> int:
    """TIR_SCHEDULES_CACHE_LIMIT in bytes, or 1 GiB."""
    text = os.environ.get("TIR_SCHEDULES_CACHE_LIMIT")
    if not text:
        return DEFAULT_LIMIT
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]+)?)\s*([KMGT]?)(?:I?B)?", text.strip().upper())
    if not match:
        raise BadInput(f"TIR_SCHEDULES_CACHE_LIMIT is {text!r}: expected a size such as 500M or 2G")
    return int(float(match[1]) * UNITS[match[2]])


def write_manifest(folder: Path) -> int:
    """List the size and SHA-256 of every file in the folder; return the bytes they take."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            files[path.relative_to(folder).as_posix()] = [len(content), hashlib.sha256(content).hexdigest()]
    (folder / MANIFEST).write_text(json.dumps(files, indent=1), encoding="utf-8")
    return folder_size(folder)


def damage(folder: Path) -> str | None:
    """How an entry differs from its manifest, or None. Reads every file: 0.1 ms for a kernel, some ms for a
    library."""
    try:
        files = json.loads((folder / MANIFEST).read_text(encoding="utf-8")).items()
        for name, (size, digest) in files:
            content = (folder / name).read_bytes()
            if len(content) != size:
                return f"{name} has {len(content)} bytes instead of {size}"
            if hashlib.sha256(content).hexdigest() != digest:
                return f"the content of {name} has changed"
    except OSError as error:
        return f"{Path(error.filename or folder).name}: {error.strerror}"
    except (ValueError, TypeError, AttributeError):
        return f"{MANIFEST} is not readable"
    return None


def folder_size(folder: Path) -> int:
    """Bytes of all files in a folder that may vanish while we look."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except FileNotFoundError:
                pass
    return total


def last_use(path: Path) -> float:
    """Seconds since the epoch; 0 for what is gone."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def leftover(path: Path) -> bool:
    """Whether a process that was killed left this: no build takes an hour, and a removal takes no time at
    all."""
    return path.name.startswith(TRASH) or (path.name.startswith(BUILDING) and is_abandoned(path))


def is_abandoned(path: Path) -> bool:
    return time.time() - last_use(path) > ABANDONED_SECONDS


def sweep_scratch() -> int:
    """Remove what killed processes left outside the cache; return the bytes freed."""
    freed = 0
    for path in filter(is_abandoned, scratch_folders()):
        freed += folder_size(path)
        shutil.rmtree(path, ignore_errors=True)
    return freed
