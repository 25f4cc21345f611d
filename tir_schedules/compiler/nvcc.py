"""From a `Kernel` to a `Binary`: nvcc compiles the CUDA source to PTX, ptxas assembles exactly that PTX.

The flags are the same for a scheduled kernel and its hand-written twin, and none of them trades accuracy for speed.
"""
from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Iterable

from tir_schedules.compiler.cache import default_cache
from tir_schedules.compiler.toolchain import Toolchain, check_arch, find_toolchain
from tir_schedules.errors import CheckFailed, MissingTool, TirSchedulesError
from tir_schedules.kernel import Binary, Kernel, Resources

FLAGS = ("-O3", "-lineinfo", "-std=c++17")
PTX, CUBIN, REPORT = "kernel.ptx", "kernel.cubin", "ptxas.txt"
MAX_THREADS = 1024
LINES_SHOWN = 10

FOREIGN_FLAGS = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
"""Variables with which nvcc lets the environment change its flags, and so its results."""

FILE_DIRECTIVE = re.compile(r'^(\s*\.file\s+\d+\s+")([^"]+)"', re.M)
PROPERTIES = re.compile(r"Function properties for (\S+)\n\s*(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers(.*)")
ERROR_LINE = re.compile(r"\berror\b|\bfatal\b|undefined reference", re.I)


def compile_kernel(kernel: Kernel) -> Binary:
    """Compile for the kernel's architecture; the result is kept in the cache.

    In the PTX, `.file` names the source after the kernel's label (sgemm_naive_tir.cu) and `.loc` counts lines of
    `kernel.source`. CheckFailed shows nvcc's own lines when the source does not compile or the launch exceeds what the
    architecture has; BadInput for an unknown architecture; MissingTool when there is no nvcc or no host compiler.
    """
    if kernel.threads > MAX_THREADS:
        raise CheckFailed(f"{kernel.label}: {kernel.threads} threads per block; CUDA allows {MAX_THREADS}")
    toolchain = find_toolchain()
    key = "\0".join([kernel.source, file_name(kernel), kernel.entry, kernel.arch, *FLAGS, toolchain.version])
    ptx, cubin, report = default_cache().load(
        "kernel", key, lambda folder: build(kernel, toolchain, folder), read_build
    )
    return Binary(kernel, ptx, cubin, parse_resources(report, kernel.entry))


def compile_kernels(kernels: Iterable[Kernel], jobs: int | None = None) -> list[Binary]:
    """Compile many, `jobs` at a time (default: one per processor); binaries come in the order of the kernels."""
    with ThreadPoolExecutor(max_workers=jobs or os.cpu_count()) as pool:
        return list(pool.map(compile_kernel, kernels))


def file_name(kernel: Kernel) -> str:
    """The kernel's label as the name of a source file: "sgemm/naive (tir)" gives sgemm_naive_tir.cu."""
    return re.sub(r"\W+", "_", kernel.label).strip("_") + ".cu"


def build(kernel: Kernel, toolchain: Toolchain, folder: Path) -> None:
    """Leave the PTX, the cubin and the report of ptxas in the folder."""
    check_arch(kernel.arch)
    source = file_name(kernel)
    (folder / source).write_text(kernel.source, encoding="utf-8")
    nvcc(kernel, toolchain, folder, *FLAGS, "-ptx", source, "-o", PTX)
    ptx = (folder / PTX).read_text(encoding="utf-8")
    (folder / PTX).write_text(FILE_DIRECTIVE.sub(shorten_path, ptx), encoding="utf-8")
    report = nvcc(kernel, toolchain, folder, *FLAGS, "-Xptxas", "-v", "-cubin", PTX, "-o", CUBIN)
    (folder / REPORT).write_text(report, encoding="utf-8")
    if not PROPERTIES.search(report) or kernel.entry not in report:
        raise CheckFailed(f'{kernel.label}: the source has no extern "C" __global__ function named {kernel.entry}')


def read_build(folder: Path) -> tuple[str, bytes, str]:
    return (
        (folder / PTX).read_text(encoding="utf-8"),
        (folder / CUBIN).read_bytes(),
        (folder / REPORT).read_text(encoding="utf-8"),
    )


def shorten_path(directive: re.Match) -> str:
    """A `.file` directive that says the same on every machine: the kernel's file, or a CUDA header below include/."""
    opening, path = directive.groups()
    _, include, header = path.rpartition("/include/")
    return f'{opening}{header if include else Path(path).name}"'


def nvcc(kernel: Kernel, toolchain: Toolchain, folder: Path, *arguments: str) -> str:
    """Run nvcc in the folder and return what it reports; raise its errors."""
    environment = {name: value for name, value in os.environ.items() if name not in FOREIGN_FLAGS}
    # nvcc and gcc keep their own temporary files in TMPDIR: in here they go when a killed build is cleaned up.
    environment |= {"TMPDIR": str(folder), "LC_ALL": "C"}
    command = [str(toolchain.nvcc), f"-arch={kernel.arch}", *arguments]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, errors="replace")
    output = result.stdout + result.stderr
    if result.returncode:
        raise failure(kernel, toolchain, output)
    return output


def failure(kernel: Kernel, toolchain: Toolchain, output: str) -> TirSchedulesError:
    """nvcc's complaint as the error it is: something missing on this machine, or something wrong in the source."""
    if "Failed to preprocess host compiler properties" in output or "gcc: not found" in output:
        return MissingTool(
            "nvcc needs a C++ compiler and finds no gcc on PATH: install g++"
            " (`apt install g++`, `dnf install gcc-c++`), or set NVCC_CCBIN to one"
        )
    unsupported = re.search(r"unsupported GNU version! (gcc versions .*? are not supported)", output)
    if unsupported:
        return MissingTool(f"nvcc {toolchain.version}: {unsupported[1]}; install an older g++ and set NVCC_CCBIN to it")
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if ERROR_LINE.search(line)] or lines or ["nvcc says nothing"]
    more = [f"... and {len(errors) - LINES_SHOWN} more lines"] if len(errors) > LINES_SHOWN else []
    shown = "".join(f"\n  {line}" for line in errors[:LINES_SHOWN] + more)
    return CheckFailed(f"{kernel.label}: nvcc {toolchain.version} does not compile it for {kernel.arch}:{shown}")


def parse_resources(report: str, entry: str) -> Resources:
    """Resources of one kernel in the report of `ptxas -v`, which may tell of several functions."""
    for section in re.split(r"(?=ptxas info\s*: Compiling entry function)", report):
        if f"'{entry}'" not in section:
            continue
        registers, rest = USED.search(section).groups()
        stack, stores, loads = next(
            (map(int, numbers) for name, *numbers in PROPERTIES.findall(section) if name == entry), (0, 0, 0)
        )

        def count(pattern: str) -> int:
            found = re.search(pattern, rest)
            return int(found[1]) if found else 0

        shared, barriers = count(r"(\d+) bytes smem"), count(r"used (\d+) barriers")
        return Resources(int(registers), shared, stack, stores, loads, barriers)
    raise CheckFailed(f"ptxas reports nothing of {entry}")
