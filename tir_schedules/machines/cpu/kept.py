"""What kernels were lowered to, kept in the cache: to read it takes a small part of the time of lowering."""

from __future__ import annotations

import pickle
import sys
import zlib
from pathlib import Path

import numpy as np

from tir_schedules.compiler.cache import default_cache
from tir_schedules.compiler.code import hash_of
from tir_schedules.errors import BadInput, CheckFailed, MissingTool
from tir_schedules.machines.cpu.lowering import LoweredKernel, lower
from tir_schedules.machines.cpu.parser import parse

CODE = hash_of("errors.py", "model", "machines/cpu")
"""The code that decides what becomes of a kernel: now, when it is loaded, as it may be changed later."""

FILE = "lowered"


def lowered_kernel(ptx: str, entry: str) -> LoweredKernel:
    """What `made()` returns, from the cache where it is there. Its errors are not kept."""

    def build(folder: Path) -> None:
        content = pickle.dumps(made(ptx, entry), pickle.HIGHEST_PROTOCOL)
        (folder / FILE).write_bytes(zlib.compress(content, level=1))

    key = "\0".join([ptx, entry, CODE, sys.version, np.__version__])
    try:
        return default_cache().load("lowered", key, build, read)
    except (BadInput, MissingTool):  # a cache that is full, or cannot be written to
        return made(ptx, entry)


def made(ptx: str, entry: str) -> LoweredKernel:
    """Parse and lower a kernel. CheckFailed where there is none of that name, UnsupportedInstruction for what
    is not known."""
    module = parse(ptx)
    if entry in module.refused:
        raise module.refused[entry]
    if entry not in module.kernels:
        raise CheckFailed(f"the PTX has no entry {entry}")
    return lower(module, module.kernels[entry])


def read(folder: Path) -> LoweredKernel:
    """FileNotFoundError, on which the cache has it built again, also for one that cannot be read."""
    path = folder / FILE
    try:
        kernel = pickle.loads(zlib.decompress(path.read_bytes()))
    except Exception:  # of whatever kind: that depends on the bytes
        raise FileNotFoundError(path) from None
    if not isinstance(kernel, LoweredKernel):
        raise FileNotFoundError(path)
    return kernel
