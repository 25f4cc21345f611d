"""NVIDIA's own libraries, timed and verified beside the kernels: cuBLAS and cuBLASLt for GEMMs, CUB for sums.

They are called directly: CuPy's wrapper of cuBLAS refuses to be captured into a graph. Descriptors,
algorithms and workspace of cuBLASLt are made once for a workload, outside of all that is timed.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from ctypes import (
    c_char_p,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, Mapping, NamedTuple, Sequence

import numpy as np

from tir_schedules.bench.binding import BoundSubject
from tir_schedules.errors import CheckFailed, MissingTool
from tir_schedules.machines.gpu import GpuMachine
from tir_schedules.model.kernel import Kernel
from tir_schedules.model.workload import Arguments, Workload
from tir_schedules.subjects.subject import Candidate, Subject

INSTALL = "pip install 'cuda-toolkit[cublas]==13.0.*'"
RELEASES = (".13", ".12", "")
CUBLAS_WORKSPACE = 32 << 20  # bytes, what NVIDIA advises for Hopper
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
CUBLAS_FUNCTIONS = {
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
    """The types of a Gemm or HalfGemm. CheckFailed for formats that are not in TYPES."""
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

    def create(self, function: str, *arguments: Any) -> c_void_p:
        """What a function puts to the address that is its first argument."""
        thing = c_void_p()
        self.call(function, ctypes.byref(thing), *arguments)
        return thing


class Cublas:
    """cublasGemmEx on the GPU. library: libcublas as ctypes has it."""

    def __init__(self, library: Any, machine: GpuMachine):
        self.library, self.machine = (
            Library("cuBLAS", library, CUBLAS_FUNCTIONS, "cublasGetStatusName"),
            machine,
        )
        self.handle = self.library.create("cublasCreate_v2")
        self.workspace = machine.xp.empty(CUBLAS_WORKSPACE, "uint8")
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
            self.library.call("cublasSetWorkspace_v2", self.handle, workspace, CUBLAS_WORKSPACE)
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


CANDIDATES = 32
"""The most algorithms that are asked for. For one product there are mostly fewer."""

CUBLASLT_WORKSPACE = 64 << 20  # bytes
LEFT_OPERATION = 3  # CUBLASLT_MATMUL_DESC_TRANSA
MOST_WORKSPACE = 1  # CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
FACTS = {
    "algorithm": (0, c_int32),
    "tile": (1, c_uint32),
    "stages": (6, c_uint32),
    "split_k": (2, c_uint32),
    "cluster": (8, c_uint16),
    "reduction": (3, c_uint32),
}
"""What is recorded of an algorithm -> the number of its attribute, CUBLASLT_ALGO_CONFIG_*, and its type."""

CUBLASLT_FUNCTIONS = {
    "cublasLtCreate": [c_void_p],
    "cublasLtMatmulDescCreate": [c_void_p, c_int, c_int],
    "cublasLtMatmulDescSetAttribute": [c_void_p, c_int, c_void_p, c_size_t],
    "cublasLtMatrixLayoutCreate": [c_void_p, c_int, c_uint64, c_uint64, c_int64],
    "cublasLtMatmulPreferenceCreate": [c_void_p],
    "cublasLtMatmulPreferenceSetAttribute": [c_void_p, c_int, c_void_p, c_size_t],
    "cublasLtMatmulAlgoGetHeuristic": [*[c_void_p] * 7, c_int, c_void_p, c_void_p],
    "cublasLtMatmulAlgoConfigGetAttribute": [c_void_p, c_int, c_void_p, c_size_t, c_void_p],
    "cublasLtMatmul": [*[c_void_p] * 14, c_size_t, c_void_p],
}


class Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t. status: 0 where the algorithm can do it."""

    _fields_ = [
        ("algorithm", c_uint64 * 8),
        ("workspace", c_size_t),
        ("status", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    ]


@dataclass(frozen=True)
class Plan:
    """A product as the library has it. operation, left, right, result: its descriptors. found: algorithms
    that can do it, the one that the library thinks fastest first."""

    product: Product
    operation: c_void_p
    left: c_void_p
    right: c_void_p
    result: c_void_p
    found: tuple[Heuristic, ...]


class CublasLt:
    """cublasLtMatmul on the GPU. library: libcublasLt as ctypes has it."""

    def __init__(self, library: Any, machine: GpuMachine):
        self.library, self.machine = (
            Library("cuBLASLt", library, CUBLASLT_FUNCTIONS, "cublasLtGetStatusName"),
            machine,
        )
        self.handle = self.library.create("cublasLtCreate")
        self.workspace = machine.xp.empty(CUBLASLT_WORKSPACE, "uint8")
        self.preference = self.library.create("cublasLtMatmulPreferenceCreate")
        self.set(
            "cublasLtMatmulPreferenceSetAttribute",
            self.preference,
            MOST_WORKSPACE,
            c_uint64(CUBLASLT_WORKSPACE),
        )
        self.plans: dict[Workload, Plan] = {}

    def candidates(self, workload: Workload) -> list[Candidate]:
        """The algorithms for a workload, in the library's order. CheckFailed where it has none."""
        found = self.plan(workload).found
        return [
            Candidate(index, len(found), **self.facts(one), workspace_bytes=one.workspace)
            for index, one in enumerate(found)
        ]

    def bind(self, workload: Workload, arguments: Arguments, index: int) -> BoundSubject:
        """index: of the candidate."""
        plan, address = self.plan(workload), self.machine.address
        alpha, beta = plan.product.scalars
        a, b, c = (address(arguments[name]) for name in "ABC")
        given = (
            *(self.handle, plan.operation),
            *(alpha, b, plan.left, a, plan.right),
            *(beta, c, plan.result, c, plan.result),
            *(ctypes.addressof(plan.found[index]), address(self.workspace), CUBLASLT_WORKSPACE),
        )
        return BoundSubject(
            lambda stream: self.library.call("cublasLtMatmul", *given, stream.ptr),
            {"C": arguments["C"]},
            (arguments, plan),
        )

    def version(self) -> str:
        """Such as "13.1.0"."""
        number = self.library.functions.cublasLtGetVersion
        number.restype = c_size_t
        return release(number())

    def plan(self, workload: Workload) -> Plan:
        """The plan for a workload, made when it is first asked for."""
        if workload not in self.plans:
            self.plans[workload] = self.make_plan(Product.of(workload))
        return self.plans[workload]

    def make_plan(self, product: Product) -> Plan:
        types = product.types
        operation = self.library.create("cublasLtMatmulDescCreate", types.compute, types.scalar)
        self.set("cublasLtMatmulDescSetAttribute", operation, LEFT_OPERATION, c_int32(product.operation))
        left, right = (self.layout(one, types.operands) for one in (product.left, product.right))
        result = self.layout(product.result, types.result)
        found, count = (Heuristic * CANDIDATES)(), c_int(0)
        self.library.call(
            "cublasLtMatmulAlgoGetHeuristic",
            *(self.handle, operation, left, right, result, result, self.preference),
            *(CANDIDATES, found, ctypes.byref(count)),
        )
        able = tuple(one for one in found[: count.value] if not one.status)
        if not able:
            raise CheckFailed("cuBLASLt: its heuristic names no algorithm for this product")
        return Plan(product, operation, left, right, result, able)

    def layout(self, matrix: Matrix, form: int) -> c_void_p:
        """Descriptor of a matrix. form: number of its elements' format."""
        return self.library.create(
            "cublasLtMatrixLayoutCreate", form, matrix.rows, matrix.columns, matrix.rows
        )

    def set(self, function: str, thing: c_void_p, attribute: int, value: Any) -> None:
        """Set an attribute. value: of one of ctypes' types."""
        self.library.call(function, thing, attribute, ctypes.byref(value), ctypes.sizeof(value))

    def facts(self, one: Heuristic) -> dict[str, int]:
        """FACTS of an algorithm, numbered as in cublasLt.h."""
        found = {}
        for name, (attribute, kind) in FACTS.items():
            value, written = kind(), c_size_t()
            self.library.call(
                "cublasLtMatmulAlgoConfigGetAttribute",
                *(ctypes.addressof(one), attribute),
                *(ctypes.byref(value), ctypes.sizeof(value), ctypes.byref(written)),
            )
            found[name] = value.value
        return found


CUBLASLT = "cuBLASLt"
LIBRARIES = {"cuBLAS": "cublas", "CUB": "cub"}
"""Name of a subject -> the attribute of Vendors that binds it."""

CUB_FLAGS = ("-O3", "-std=c++17", "-shared", "-Xcompiler", "-fPIC")
CUB_LIBRARY = "cub_sum.so"


class Vendors:
    """Binds vendor subjects. cub: the library that `build_cub` makes; without it, it is built when first
    needed.

    Libraries are loaded when first needed: MissingTool where one is absent, but without cuBLASLt there is
    cuBLAS alone. notes: what is to be said of that.
    """

    def __init__(self, machine: GpuMachine, cub: bytes | None = None):
        self.machine, self.packed_cub = machine, cub
        self.notes: list[str] = []

    def candidates(self, subject: Subject) -> list[Subject]:
        """The subject once for each of its library's candidates, or itself where the library chooses."""
        if subject.name != CUBLASLT:
            return [subject]
        try:
            found = self.cublaslt.candidates(subject.workload)
        except MissingTool as error:
            self.notes = [f"not timed: {error}"]
            return []
        return [replace(subject, candidate=candidate) for candidate in found]

    def bind(self, subject: Subject, arguments: Arguments) -> BoundSubject:
        if subject.candidate:
            return self.cublaslt.bind(subject.workload, arguments, subject.candidate.index)
        library: Cublas | Cub = getattr(self, LIBRARIES[subject.name])
        return library.bind(subject.workload, arguments)

    def versions(self) -> dict[str, str]:
        """Versions of the libraries used so far, if they have a function for it."""
        return {name: vars(self)[name].version() for name in ("cublas", "cublaslt") if name in vars(self)}

    @cached_property
    def cublas(self) -> Cublas:
        return Cublas(load("cuBLAS"), self.machine)

    @cached_property
    def cublaslt(self) -> CublasLt:
        return CublasLt(load(CUBLASLT), self.machine)

    @cached_property
    def cub(self) -> "Cub":
        return Cub(load_library(self.packed_cub or build_cub(self.machine.arch)), self.machine)


class Cub:
    """cub::DeviceReduce::Sum on the GPU. library: what `build_cub` makes, as ctypes has it."""

    def __init__(self, library: Any, machine: GpuMachine):
        self.machine = machine
        self.sums = {dtype: getattr(library, f"cub_sum_{dtype}") for dtype in ("int32", "float32")}
        for function in self.sums.values():
            function.argtypes = [c_void_p, c_void_p, c_void_p, c_void_p, c_int, c_void_p]

    def bind(self, workload: Workload, arguments: Arguments) -> BoundSubject:
        given = workload.prepared(arguments, (1, 1, 1))
        x, y, size = self.machine.address(given["X"]), self.machine.address(given["Y"]), c_size_t(0)
        sum_up = self.sums[str(given["X"].dtype)]
        self.call(sum_up, given["N"], None, size, x, y, None)
        scratch = self.machine.xp.empty(max(1, size.value), "uint8")

        def enqueue(stream: Any) -> None:
            self.call(sum_up, given["N"], self.machine.address(scratch), size, x, y, stream.ptr)

        return BoundSubject(enqueue, {"Y": given["Y"]}, (given, scratch))

    def call(
        self, sum_up: Any, n: int, scratch: int | None, size: c_size_t, x: int, y: int, stream: int | None
    ) -> None:
        """Without scratch memory only `size` is set, to the bytes it must have."""
        status = sum_up(scratch, ctypes.byref(size), x, y, n, stream)
        if status:
            raise CheckFailed(f"CUB: DeviceReduce::Sum returns CUDA error {status}")


def build_cub(arch: str) -> bytes:
    """CUB's sums as a shared library for `arch` ("sm_90"), compiled by nvcc with the toolkit's own CUB and
    kept in the cache.

    MissingTool without nvcc.
    """
    try:
        from tir_schedules.compiler.cache import default_cache
        from tir_schedules.compiler.inputs import identity
        from tir_schedules.compiler.nvcc import file_name, nvcc
        from tir_schedules.compiler.places import plain_links
        from tir_schedules.compiler.toolchain import check_arch, find_toolchain
    except ModuleNotFoundError as error:
        raise MissingTool(
            f"CUB cannot be compiled, for {error.name} is not installed: pip install {error.name}"
        ) from error
    toolchain = find_toolchain()
    check_arch(arch)
    source = (resources.files("tir_schedules.bench") / "cub_sum.cu").read_text(encoding="utf-8")
    kernel = Kernel("CUB", source, "", (), (1, 1, 1), (1, 1, 1), arch)

    def build(folder: Path) -> None:
        (folder / file_name(kernel)).write_text(source, encoding="utf-8")
        libraries = (
            Path(toolchain.nvcc).parents[1] / "lib"
        )  # where PyPI's packages have them; nvcc itself looks into lib64
        with plain_links(folder) as links:
            plain = links.where_needed("libraries", libraries)
            nvcc(kernel, toolchain, folder, *CUB_FLAGS, f"-L{plain}", file_name(kernel), "-o", CUB_LIBRARY)

    key = "\0".join([source, arch, *CUB_FLAGS, identity(toolchain)])
    return default_cache().load("cub", key, build, lambda folder: (folder / CUB_LIBRARY).read_bytes())


def load_library(content: bytes) -> Any:
    """A shared library that is not a file yet."""
    handle, path = tempfile.mkstemp(suffix=".so")
    try:
        with open(handle, "wb") as file:
            file.write(content)
        return ctypes.CDLL(path)
    except OSError as error:
        raise MissingTool(
            f"the library with CUB's sums does not load ({error}): compile it on a computer like this one"
        ) from error
    finally:
        os.unlink(path)
