"""The algorithms, one per family: arguments, exact result, tolerance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tir_schedules.model.launch import LINE

if TYPE_CHECKING:
    import numpy as np

    from tir_schedules.model.workload import Arguments

LAYOUTS = ("nt", "nn")
ACCUMULATORS = ("float16", "float32")
OPERANDS = ("float16", "bfloat16")
RESULTS = ("float32", "float16", "bfloat16")
"""What kinds of half-precision GEMM there are: of B, of the sums, of A and B, of C. The first of each that is
possible is the default."""

PRODUCTS = ("float32", "tf32", "bf16x6_unpromoted", "bf16x6", "fp16x3")
"""What a float32 GEMM can be made of: fused multiply-adds, or products of parts of elements, see
split_gemm.py. The first is the default."""

EMULATED = "emulated"
"""In their place, a choice that is left to sgemm/fastest: of float32, and of what is as accurate."""

C_TYPES = {"float16": "half", "bfloat16": "__nv_bfloat16", "float32": "float"}
"""What formats are called in CUDA."""

MOST = 2**31 - 2**16
"""Below this an extent, and where the tiles that cover it end, are indices of 32 bits."""

MOST_ELEMENTS = 2**31
"""Below this the elements of a matrix are."""


def place_in_b(k: Any, j: Any, transposed: bool) -> tuple[Any, Any]:
    """Where B has its element of row k and column j. transposed: whether B is stored as n x k."""
    return (j, k) if transposed else (k, j)


def padded(columns: int, vector: int) -> int:
    """Elements of the shortest row of a multiple of 16 bytes that has so many columns. vector: elements in
    16 bytes."""
    return -(-columns // vector) * vector


def in_lines(columns: int, vector: int) -> int:
    """The same of a multiple of LINE, the bytes of a line of L2."""
    return padded(columns, vector * LINE // 16)


def array_of(arguments: Arguments, name: str) -> np.ndarray:
    """The array of that name, of numpy or CuPy, among arguments that are arrays and sizes."""
    return cast("np.ndarray", arguments[name])


def element_type(name: str) -> Any:
    """numpy's type of numbers of that name.

    numpy has no bfloat16. The type of ml_dtypes, which comes with TVM, has conversions and comparisons, and
    CuPy knows it from version 14 on. Integers of 16 bits in its place would need conversions wherever an
    array is read.
    """
    import numpy as np

    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)
