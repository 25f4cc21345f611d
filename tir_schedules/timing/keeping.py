"""Times of launches that were predicted before, kept in the cache by all that they depend on: the code, the
launch, its arguments with what arrays hold, the figures of the GPU, and the sources of the model.
"""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import replace
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Callable, Iterator, Sequence, TypeVar

import numpy as np

from tir_schedules.compiler.cache import default_cache
from tir_schedules.model.kernel import Binary
from tir_schedules.model.workload import Arguments

T = TypeVar("T")

PACKAGES = ("timing", "machines", "model")
"""Of this package: those whose sources a prediction depends on."""

FILE = "time.pickle"


def kept(
    does: Callable[..., T], binary: Binary, arguments: Arguments, outputs: Sequence[str], *rest: Any
) -> T:
    """What `does(binary, arguments, outputs, *rest)` returns, from the cache where it has been asked for
    before. outputs: names of arrays that are written. rest: what tells all of itself by repr. What
    is raised is not kept."""
    content = hashlib.sha256()
    for part in parts_of(binary, arguments, (tuple(outputs), *rest)):
        content.update(hashlib.sha256(part).digest())

    def build(folder: Path) -> None:
        (folder / FILE).write_bytes(pickle.dumps(does(binary, arguments, outputs, *rest)))

    return default_cache().load(
        "time", content.hexdigest(), build, lambda folder: pickle.loads((folder / FILE).read_bytes())
    )


def parts_of(binary: Binary, arguments: Arguments, asked: tuple[Any, ...]) -> Iterator[bytes | memoryview]:
    """All that a prediction depends on. asked: outputs, and what else."""
    yield sources()
    yield binary.cubin
    yield binary.ptx.encode()
    yield repr((replace(binary.kernel, source="", folder=""), binary.resources, asked)).encode()
    for name, value in arguments.items():
        if isinstance(value, np.ndarray):
            yield f"{name} {value.dtype} {value.shape} {value.strides}".encode()
            yield np.ascontiguousarray(value).reshape(-1).view(np.uint8).data
        else:
            yield f"{name} {value!r}".encode()


@lru_cache(maxsize=1)
def sources() -> bytes:
    """A digest of the model's sources."""
    content = hashlib.sha256()
    for package in PACKAGES:
        for file in files_of(resources.files("tir_schedules") / package):
            content.update(hashlib.sha256(file.read_bytes()).digest())
    return content.digest()


def files_of(folder: Traversable) -> Iterator[Traversable]:
    """Those that a compiler or Python reads, in the order of their names."""
    for each in sorted(folder.iterdir(), key=lambda one: one.name):
        if each.is_dir():
            yield from files_of(each)
        elif each.name.endswith((".py", ".cpp", ".h", ".json")):
            yield each
