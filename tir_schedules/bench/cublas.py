"""cuBLAS: `cublasGemmEx`, and what it has in common with cuBLASLt.

Both are called directly: CuPy's wrapper of cuBLAS refuses to be captured into a graph.
"""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, Mapping, NamedTuple, Sequence

import numpy as np

from tir_schedules.bench.binding import BoundSubject
from tir_schedules.errors import CheckFailed, MissingTool
from tir_schedules.machines.gpu import GpuMachine
from tir_schedules.model.workload import Arguments, Workload

INSTALL = "pip install 'cuda-toolkit[cublas]==13.0.*'"
RELEASES = (".13", ".12", "")
WORKSPACE = 32 << 20  # bytes, what NVIDIA advises for Hopper
DEFAULT_MATH, HOST_POINTERS, DEFAULT_ALGORITHM = 0, 0, -1
PLAIN, TRANSPOSED = 0, 1

FLOAT, HALF, BFLOAT = 0, 2, 14  # CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF
FLOAT_SUMS, HALF_SUMS = 68, 64  # CUBLAS_COMPUTE_32F, which uses no TF32, and CUBLAS_COMPUTE_16F


class Types(NamedTuple):
    """Numbers that both libraries have for formats. scalar: of alpha and beta, the format of the sums."""

    operands: int
    compute: int
    scalar: int
    result: int


TYPES = {
    ("float32", "float32", "float32"): Types(FLOAT, FLOAT_SUMS, FLOAT, FLOAT),
    ("float16", "float16", "float16"): Types(HALF, HALF_SUMS, HALF, HALF),
    ("float16", "float32", "float16"): Types(HALF, FLOAT_SUMS, FLOAT, HALF),
    ("float16", "float32", "float32"): Types(HALF, FLOAT_SUMS, FLOAT, FLOAT),
    ("bfloat16", "float32", "bfloat16"): Types(BFLOAT, FLOAT_SUMS, FLOAT, BFLOAT),
    ("bfloat16", "float32", "float32"): Types(BFLOAT, FLOAT_SUMS, FLOAT, FLOAT),
}
"""Formats of A and B, of the sums, and of C -> what the libraries call them."""

SCALARS = {FLOAT: np.array([1, 0], "float32"), HALF: np.array([1, 0], "float16")}
"""Alpha and beta."""

MATRIX = [c_void_p, c_int, c_int]
SIGNATURES = {
    "cublasCreate_v2": [c_void_p],
    "cublasGetVersion_v2": [c_void_p, c_void_p],
    "cublasSetMathMode": [c_void_p, c_int],
    "cublasSetPointerMode_v2": [c_void_p, c_int],
    "cublasSetStream_v2": [c_void_p, c_void_p],
    "cublasSetWorkspace_v2": [c_void_p, c_void_p, c_size_t],
    "cublasGemmEx": [c_void_p, *[c_int] * 5, c_void_p, *MATRIX, *MATRIX, c_void_p, *MATRIX, c_int, c_int],
}


class Matrix(NamedTuple):
    """A column-major matrix without gaps between its columns."""

    rows: int
    columns: int


@dataclass(frozen=True)
class Product:
    """A GEMM as cuBLAS sees it, column-major: our matrices are transposes, so it computes C^T = B^T A^T.

    left, right, result: B, A and C as they are stored. transposed: whether left is to be transposed, which
    it is where B is stored n x k.
    """

    left: Matrix
    right: Matrix
    result: Matrix
    transposed: bool
    types: Types

    @classmethod
    def of(cls, workload: Workload) -> "Product":
        """CheckFailed for formats that are not in TYPES."""
        m, n, k = workload.shape
        transposed = getattr(workload, "transposed", False)
        left = Matrix(k, n) if transposed else Matrix(n, k)
        return cls(left, Matrix(k, m), Matrix(n, m), transposed, types_of(workload))

    @property
    def operation(self) -> int:
        """What is done with left."""
        return TRANSPOSED if self.transposed else PLAIN

    @property
    def scalars(self) -> tuple[int, int]:
        """Addresses of alpha, which is 1, and of beta, which is 0."""
        both = SCALARS[self.types.scalar]
        return both.ctypes.data, both.ctypes.data + both.itemsize


def types_of(workload: Any) -> Types:
    """Of a Gemm or HalfGemm. CheckFailed for formats that are not in TYPES."""
    operands, sums = getattr(workload, "dtype", "float32"), getattr(workload, "accumulate", "float32")
    types = TYPES.get((operands, sums, workload.result))
    if types is None:
        raise CheckFailed(
            f"cuBLAS has no product of {operands} with {sums} sums and {workload.result} results"
        )
    return types


class Library:
    """Functions of one of NVIDIA's libraries.

    name: how messages name it. functions: the library as ctypes has it. status_name: its function that names
    an error.
    """

    def __init__(self, name: str, functions: Any, signatures: Mapping[str, Sequence[Any]], status_name: str):
        self.name, self.functions, self.status_name = name, functions, status_name
        for function, types in signatures.items():
            getattr(functions, function).argtypes = types

    def call(self, function: str, *arguments: Any) -> None:
        """CheckFailed when the function returns an error."""
        status = getattr(self.functions, function)(*arguments)
        if status:
            text = getattr(self.functions, self.status_name)
            text.restype = c_char_p
            raise CheckFailed(f"{self.name}: {function} returns {text(status).decode()}")

    def created(self, function: str, *arguments: Any) -> c_void_p:
        """What a function puts to the address that is its first argument."""
        thing = c_void_p()
        self.call(function, ctypes.byref(thing), *arguments)
        return thing


class Cublas:
    """cublasGemmEx on the GPU. library: libcublas as ctypes has it."""

    def __init__(self, library: Any, machine: GpuMachine):
        self.library, self.machine = Library("cuBLAS", library, SIGNATURES, "cublasGetStatusName"), machine
        self.handle = self.library.created("cublasCreate_v2")
        self.workspace = machine.xp.empty(WORKSPACE, "uint8")
        self.library.call("cublasSetMathMode", self.handle, DEFAULT_MATH)
        self.library.call("cublasSetPointerMode_v2", self.handle, HOST_POINTERS)

    def bind(self, workload: Workload, arguments: Arguments) -> BoundSubject:
        given = gemm_arguments(
            Product.of(workload), *(self.machine.address(arguments[name]) for name in "ABC")
        )
        workspace = self.machine.address(self.workspace)

        def enqueue(stream: Any) -> None:
            self.library.call("cublasSetStream_v2", self.handle, stream.ptr)
            # Setting a stream takes the workspace away; without one of ours cuBLAS allocates, which a capture
            # does not allow.
            self.library.call("cublasSetWorkspace_v2", self.handle, workspace, WORKSPACE)
            self.library.call("cublasGemmEx", self.handle, *given)

        return BoundSubject(enqueue, {"C": arguments["C"]}, arguments)

    def version(self) -> str:
        """Such as "13.1.0"."""
        number = c_int(0)
        self.library.call("cublasGetVersion_v2", self.handle, ctypes.byref(number))
        return release(number.value)


def gemm_arguments(product: Product, a: int, b: int, c: int) -> tuple[Any, ...]:
    """What cublasGemmEx takes after its handle. a, b, c: where the matrices begin."""
    left, right, result, types = product.left, product.right, product.result, product.types
    alpha, beta = product.scalars
    return (
        *(product.operation, PLAIN),
        *(result.rows, result.columns, right.rows),
        alpha,
        *(b, types.operands, left.rows),
        *(a, types.operands, right.rows),
        beta,
        *(c, types.result, result.rows),
        *(types.compute, DEFAULT_ALGORITHM),
    )


def release(number: int) -> str:
    """130100 as "13.1.0"."""
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def load(name: str) -> Any:
    """libcublas or libcublasLt, for "cuBLAS" or "cuBLASLt", where CuPy finds it. MissingTool when there is
    none."""
    library = name.replace("cuBLAS", "cublas")
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib  # pyright: ignore[reportMissingImports]

        return ctypes.CDLL(load_nvidia_dynamic_lib(library).abs_path)
    except (
        Exception
    ):  # an older CuPy comes without it; a library that it does not find may still be on the loader's path
        pass
    for number in RELEASES:
        try:
            return ctypes.CDLL(f"lib{library}.so{number}")
        except OSError:
            continue
    raise MissingTool(f"{name} not found: {INSTALL}")
