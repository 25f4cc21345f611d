"""Workers of pytest-xdist share the cache: what one builds the others wait for, rather than build it too."""

import fcntl
import os
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

from tir_schedules.compiler.cache import Cache


@contextmanager
def built_by_one_worker(locks: Path) -> Iterator[None]:
    """Entries of the cache that is the default here are built by one process at a time; tests of the cache
    have others. locks: a folder of the run's own."""
    root, of_threads = Cache().path, Cache._one_thread
    locks.mkdir(exist_ok=True)

    def one(cache: Cache, path: Path):
        threads = of_threads(cache, path)
        return OneProcess(threads, locks / path.name) if cache.path == root else threads

    Cache._one_thread = one
    try:
        yield
    finally:
        Cache._one_thread = of_threads


class OneProcess:
    """A lock between threads that is one between processes, too. Linux frees it when its process ends."""

    def __init__(self, threads: threading.Lock, path: Path):
        self.threads, self.path = threads, path

    def __enter__(self) -> None:
        self.threads.acquire()
        self.file = os.open(self.path, os.O_CREAT | os.O_RDWR)
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *failure: object) -> None:
        os.close(self.file)
        self.threads.release()
