"""NVIDIA's own libraries, timed and verified beside the kernels: cuBLAS and cuBLASLt for GEMMs, CUB for
sums."""

from __future__ import annotations

import ctypes
import os
import tempfile
from ctypes import c_int, c_size_t, c_void_p
from dataclasses import replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from tir_schedules.bench.binding import BoundSubject
from tir_schedules.bench.cublas import Cublas, load
from tir_schedules.bench.cublaslt import CublasLt
from tir_schedules.errors import CheckFailed, MissingTool
from tir_schedules.machines.gpu import GpuMachine
from tir_schedules.model.kernel import Kernel
from tir_schedules.model.workload import Arguments, Workload
from tir_schedules.subjects.subject import Subject

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
        """Of the libraries used so far, those that tell."""
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
