"""The algorithms, one per family: arguments, exact result, tolerance."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import numpy as np

    from tir_schedules.model.workload import Arguments

LAYOUTS = ("nt", "nn")
ACCUMULATORS = ("float16", "float32")
"""What kinds of half-precision GEMM there are; the first of each is the default."""

MOST = 2**31 - 2**16
"""Below this an extent, and where the tiles that cover it end, are indices of 32 bits."""


def array_of(arguments: Arguments, name: str) -> np.ndarray:
    """The array of that name, of numpy or CuPy, among arguments that are arrays and sizes."""
    return cast("np.ndarray", arguments[name])
