"""What the code of this package is, so that a cache entry is not taken for one that other code made."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Iterator

PACKAGE = "tir_schedules"

KEEP = "TIR_SCHEDULES_KEEP"
"""The variable that a command sets for itself and what it starts: no code of ours is replaced here."""


@lru_cache(maxsize=None)
def hash_of(*names: str, package: str = PACKAGE, ending: str = ".py") -> str:
    """A hash of every Python file in some folders and files of this package; or of the files with another
    ending in those of another package."""
    root = resources.files(package)
    digest = hashlib.sha256()
    for name in names:
        for path, content in contents(root / name, name, ending):
            digest.update(b"%s\0%d\0%s" % (path.encode(), len(content), content))
    return digest.hexdigest()


def contents(place: Traversable, path: str, ending: str = ".py") -> Iterator[tuple[str, bytes]]:
    """Every Python file there, or those with another ending, by its path. What an editor leaves beside them,
    such as `.#name.py`, is none."""
    if place.is_dir():
        for child in sorted(place.iterdir(), key=lambda child: child.name):
            yield from contents(child, f"{path}/{child.name}", ending)
    elif path.endswith(ending) and not place.name.startswith(".") and place.is_file():
        yield path, place.read_bytes()
