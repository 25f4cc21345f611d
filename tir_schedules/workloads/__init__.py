"""The algorithms, one per family: arguments, exact result, tolerance."""

from __future__ import annotations

import importlib

CLASSES = {
    "sgemm": ("gemm", "Gemm"),
    "reduce": ("reduction", "Reduction"),
    "hgemm": ("half_gemm", "HalfGemm"),
}

LAYOUTS = ("nt", "nn")
ACCUMULATORS = ("float16", "float32")
"""What half-precision products there are; the first of each is the default."""

MOST = 2**31 - 2**16
"""Below this an extent, and where the tiles that cover it end, are indices of 32 bits."""


def workload_class(family: str) -> type:
    """The workload of a family, such as Gemm; imported when asked for."""
    module, name = CLASSES[family]
    return getattr(importlib.import_module(f"tir_schedules.workloads.{module}"), name)
