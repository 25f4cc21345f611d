"""64-bit offsets for asynchronous copies from matrices of 2 GiB and more.

The functions that TVM prints around `cp.async` count the offset into a matrix in bytes, as an int. It holds 2
GiB; beyond, a copy reads somewhere else. With a factor of 64 bits the offset is right. Smaller matrices keep
TVM's form, which may take fewer registers.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from tir_schedules.workloads import element_type

if TYPE_CHECKING:
    from tvm import IRModule

OFFSET = re.compile(r"(\(uint8_t\*\)src \+ src_off \* )(\d+);")
HELD = 1 << 31  # bytes


def wide_offsets(source: str, module: IRModule) -> str:
    """The CUDA source of a module, with offsets of asynchronous copies that reach all of its arguments."""
    functions = getattr(module, "functions").values()
    params = (one for function in functions for one in function.params)
    buffers = (one for one in params if hasattr(one, "shape"))  # others are numbers
    sizes = (math.prod(map(int, one.shape)) * element_type(str(one.dtype)).itemsize for one in buffers)
    largest = max(sizes, default=0)
    return OFFSET.sub(r"\1\2ll;", source) if largest >= HELD else source
