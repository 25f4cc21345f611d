"""Kernels that are ready to run: what they were lowered to is kept in the cache, as to read it takes a small
part of the time of lowering; then numbers become addresses of this process."""

from __future__ import annotations

import pickle
import sys
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from tir_schedules.compiler.cache import default_cache
from tir_schedules.compiler.code import hash_of
from tir_schedules.errors import BadInput, CheckFailed, MissingTool
from tir_schedules.machines.cpu import abi
from tir_schedules.machines.cpu.extents import rows_of
from tir_schedules.machines.cpu.library import Library
from tir_schedules.machines.cpu.lowering import LoweredKernel, lower
from tir_schedules.machines.cpu.parser import parse
from tir_schedules.machines.cpu.signatures import Signature

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
    """Parse and lower a kernel. CheckFailed where there is no kernel of that name, UnsupportedInstruction for
    an unknown instruction."""
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


@dataclass(frozen=True)
class LinkedKernel:
    """A kernel ready to run; the arrays are kept alive because the program points into them."""

    lowered: LoweredKernel
    program: abi.Program
    arrays: tuple[np.ndarray, ...]


def link(library: Library, kernel: LoweredKernel) -> LinkedKernel:
    """UnsupportedInstruction for a signature that is not known."""
    lanes = library.lane_functions(Signature(text, line) for text, line in kernel.lanes.items())
    functions = [lanes[name] if name in lanes else library.function(name) for name in kernel.functions]
    extents = rows_of(kernel.extents)
    rows = kernel.micro_ops.copy()
    rows["run"] = np.array(functions, np.uint64)[rows["run"]]
    rows["operands"] = kernel.operands.ctypes.data + kernel.operands.itemsize * rows["operands"]
    rows["extent"] = extents.ctypes.data + extents.itemsize * rows["extent"]
    addresses = (array.ctypes.data for array in (rows, kernel.blocks, kernel.registers))
    counts = (len(kernel.blocks), len(kernel.counted))
    sizes = (len(kernel.registers), kernel.deciding)
    program = abi.Program(*addresses, *sizes, kernel.special, kernel.traits, *counts)
    return LinkedKernel(kernel, program, (rows, extents))


lowered = lru_cache(maxsize=128)(lowered_kernel)
"""The same from memory; without addresses, so that a kernel may be lowered before there is a library."""


@lru_cache(maxsize=128)
def linked(library: Library, ptx: str, entry: str) -> LinkedKernel:
    """Launches of one kernel with other arguments share the result."""
    return link(library, lowered(ptx, entry))
