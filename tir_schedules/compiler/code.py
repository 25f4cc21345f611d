"""What the code of this package is, so that a cache entry is not taken for one that other code made."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Iterator

PACKAGE = "tir_schedules"


@lru_cache(maxsize=None)
def hash_of(*names: str) -> str:
    """A hash of every Python file in some folders and files of this package."""
    root = resources.files(PACKAGE)
    digest = hashlib.sha256()
    for name in names:
        for path, text in texts(root / name, name):
            digest.update(f"{path}\0{text}\0".encode())
    return digest.hexdigest()


def texts(place: Traversable, path: str) -> Iterator[tuple[str, str]]:
    """Every Python file there, by its path."""
    if place.is_dir():
        for child in sorted(place.iterdir(), key=lambda child: child.name):
            yield from texts(child, f"{path}/{child.name}")
    elif path.endswith(".py"):
        yield path, place.read_text(encoding="utf-8")
