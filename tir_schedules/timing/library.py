"""The C++ of the model of time: compiled once by the host's g++, kept in the cache, loaded with ctypes."""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache

import numpy as np

from tir_schedules.machines.cpu.library import compiled, find_compiler, read_core
from tir_schedules.timing import abi

UNIT = '#include "sm.cpp"\n#include "walk.cpp"\n'


def library() -> ctypes.CDLL:
    """`simulate`, `walk` and `walked`."""
    return load((os.environ.get("CXX", ""), os.environ.get("TIR_SCHEDULES_CACHE", "")))


@lru_cache(maxsize=4)
def load(environment: tuple[str, ...]) -> ctypes.CDLL:
    sources = read_core("tir_schedules.timing") | {"abi.h": abi.header()}
    found = compiled(find_compiler(), "timing", UNIT, sources)
    found.simulate.restype = ctypes.c_uint64
    found.walk.restype = ctypes.c_void_p
    return found


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    """The address of an array."""
    return ctypes.c_void_p(array.ctypes.data)
