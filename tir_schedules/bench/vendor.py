"""NVIDIA's own libraries, timed and verified beside the kernels: cuBLAS for GEMMs, CUB for sums.

cuBLAS is called directly: CuPy's wrapper of it refuses to be captured into a graph.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from ctypes import c_char_p, c_int, c_size_t, c_void_p
from importlib import resources
from pathlib import Path
from typing import Any, Callable

import numpy as np

from tir_schedules.bench.binding import BoundSubject
from tir_schedules.errors import CheckFailed, MissingTool
from tir_schedules.machines.gpu import GpuMachine
from tir_schedules.model.kernel import Kernel
from tir_schedules.model.workload import Arguments, Workload
from tir_schedules.subjects.subject import Subject

CUBLAS_NAMES = ("libcublas.so.13", "libcublas.so.12", "libcublas.so")
CUBLAS_INSTALL = "pip install 'cuda-toolkit[cublas]==13.0.*'"
WORKSPACE = 32 << 20  # bytes, what NVIDIA advises for Hopper
DEFAULT_MATH, HOST_POINTERS, DEFAULT_ALGORITHM = 0, 0, -1
PLAIN, TRANSPOSED = 0, 1
DATA_TYPES = {"float32": 0, "float16": 2}  # CUDA_R_32F, CUDA_R_16F
COMPUTE_TYPES = {"float32": 68, "float16": 64}  # CUBLAS_COMPUTE_32F, which uses no TF32, and _16F
SCALARS = {dtype: (np.array(1, dtype), np.array(0, dtype)) for dtype in DATA_TYPES}
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
CUB_FLAGS = ("-O3", "-std=c++17", "-shared", "-Xcompiler", "-fPIC")
CUB_LIBRARY = "cub_sum.so"


class Vendors:
    """Binds vendor subjects. cub: the library that `build_cub` makes; without it, it is built when first
    needed.

    Libraries are loaded when first needed: MissingTool where one is absent.
    """

    def __init__(self, machine: GpuMachine, cub: bytes | None = None):
        self.machine, self.cub_library = machine, cub
        self.loaded: dict[str, Cublas | Cub] = {}

    def bind(self, subject: Subject, arguments: Arguments) -> BoundSubject:
        if subject.name not in self.loaded:
            self.loaded[subject.name] = {"cuBLAS": self.cublas, "CUB": self.cub}[subject.name]()
        return self.loaded[subject.name].bind(subject.workload, arguments)

    def versions(self) -> dict[str, str]:
        """Of the libraries used so far, those that tell."""
        library = self.loaded.get("cuBLAS")
        return {"cublas": library.version()} if isinstance(library, Cublas) else {}

    def cublas(self) -> "Cublas":
        return Cublas(load_cublas(), self.machine)

    def cub(self) -> "Cub":
        return Cub(load_library(self.cub_library or build_cub(self.machine.arch)), self.machine)


class Cublas:
    """cublasGemmEx on the GPU. library: libcublas as ctypes has it."""

    def __init__(self, library: Any, machine: GpuMachine):
        self.library, self.machine = library, machine
        for name, types in SIGNATURES.items():
            getattr(library, name).argtypes = types
        handle = c_void_p()
        self.call("cublasCreate_v2", ctypes.byref(handle))
        self.handle = handle
        self.workspace = machine.xp.empty(WORKSPACE, "uint8")
        self.call("cublasSetMathMode", handle, DEFAULT_MATH)
        self.call("cublasSetPointerMode_v2", handle, HOST_POINTERS)

    def bind(self, workload: Workload, arguments: Arguments) -> BoundSubject:
        return BoundSubject(lambda stream: self.enqueue(workload, arguments, stream), {"C": arguments["C"]})

    def enqueue(self, workload: Workload, arguments: Arguments, stream: Any) -> None:
        self.call("cublasSetStream_v2", self.handle, stream.ptr)
        # Setting a stream takes the workspace away; without one of ours cuBLAS allocates, which a capture
        # does not allow.
        self.call("cublasSetWorkspace_v2", self.handle, self.machine.address(self.workspace), WORKSPACE)
        self.call("cublasGemmEx", self.handle, *gemm_arguments(workload, arguments, self.machine.address))

    def version(self) -> str:
        """Such as "13.1.0"."""
        number = c_int(0)
        self.call("cublasGetVersion_v2", self.handle, ctypes.byref(number))
        return f"{number.value // 10000}.{number.value // 100 % 100}.{number.value % 100}"

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the library; CheckFailed when it returns an error."""
        status = getattr(self.library, name)(*arguments)
        if status:
            text = self.library.cublasGetStatusName
            text.restype = c_char_p
            raise CheckFailed(f"cuBLAS: {name} returns {text(status).decode()}")


def gemm_arguments(
    workload: Workload, arguments: Arguments, address: Callable[[Any], int]
) -> tuple[Any, ...]:
    """What cublasGemmEx takes after its handle. address: of an array on the GPU.

    cuBLAS sees matrices column-major, in which ours are their transposes: it computes C^T = B^T A^T, n x m.
    """
    m, n, k = workload.shape
    transposed = getattr(workload, "transposed", False)  # B is stored n x k
    a, b, c = (arguments[name] for name in "ABC")
    one, zero = (number.ctypes.data for number in SCALARS[str(c.dtype)])

    def matrix(array: Any, row: int) -> tuple[int, int, int]:
        return address(array), DATA_TYPES[str(array.dtype)], row

    operands = (one, *matrix(b, k if transposed else n), *matrix(a, k), zero, *matrix(c, n))
    return (
        TRANSPOSED if transposed else PLAIN,
        PLAIN,
        n,
        m,
        k,
        *operands,
        COMPUTE_TYPES[str(c.dtype)],
        DEFAULT_ALGORITHM,
    )


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


def load_cublas() -> Any:
    """libcublas where CuPy finds it. MissingTool when there is none."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib  # pyright: ignore[reportMissingImports]

        return ctypes.CDLL(load_nvidia_dynamic_lib("cublas").abs_path)
    except (
        Exception
    ):  # an older CuPy comes without it; a library that it does not find may still be on the loader's path
        pass
    for name in CUBLAS_NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise MissingTool(f"cuBLAS not found: {CUBLAS_INSTALL}")


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
