"""What `tir-schedules doctor` tells: what is installed, where it was found, what is missing and how to get
it.

Nothing heavy is imported: versions of Python packages come from their metadata, those of programs from the
programs.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Callable, Iterator

from tir_schedules import processes
from tir_schedules.compiler.cache import default_cache
from tir_schedules.compiler.toolchain import INSTALL, Toolchain, find_toolchain, version_of
from tir_schedules.errors import TirSchedulesError, printable

OLDEST_PYTHON = (3, 10)
PINNED = {"apache-tvm": "0.27.0.post1", "apache-tvm-ffi": "0.1.14.post1"}
"""Versions the package asks for: TVM's API moves with each, and newer apache-tvm-ffi crash in every
tensorize."""

NEEDED = (
    "numpy",
    "ml_dtypes",
    "jinja2",
    "platformdirs",
    "pydantic",
    "markdown-it-py",
    "markupsafe",
    "pygments",
    "rich",
)
"""The package's other libraries, any version that it asks for."""

SAME_RELEASE = ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt")
CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy")
XGBOOST = ("xgboost-cpu", "xgboost")


@dataclass(frozen=True)
class Item:
    """One line of the diagnosis.

    status: "ok"; "missing" when something needed is absent or unusable; "optional" when something not needed
    is absent.
    detail: version and place, or what is wrong. remedy: what to do, "" when there is nothing to do.
    """

    name: str
    status: str
    detail: str
    remedy: str = ""


def diagnose() -> list[Item]:
    """Look at everything this project uses, needed things first. Takes well under a second and changes
    nothing."""
    looks: list[Callable[[], Iterator[Item]]] = [python, tvm, libraries, compiler, host_compiler, gpu, cache]
    return [item for look in looks for item in look()]


def clear_cache() -> int:
    """Remove everything compiled so far; return the bytes freed."""
    return default_cache().clear()


def python() -> Iterator[Item]:
    detail = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info >= OLDEST_PYTHON:
        yield Item("Python", "ok", detail)
    else:
        yield Item("Python", "missing", detail, "use Python {}.{} or newer".format(*OLDEST_PYTHON))


def tvm() -> Iterator[Item]:
    for package, pinned in PINNED.items():
        install = f"pip install {package}=={pinned}"
        version = installed_version(package)
        if version is None:
            yield Item(package, "missing", "not installed", install)
        elif version != pinned:
            yield Item(
                package,
                "missing",
                f"{version}, which is known to fail or untested; {pinned} is right",
                install,
            )
        else:
            yield Item(package, "ok", version)


def libraries() -> Iterator[Item]:
    for package in NEEDED:
        version = installed_version(package)
        yield (
            Item(package, "ok", version)
            if version
            else Item(package, "missing", "not installed", f"pip install {package}")
        )
    yield optional_package("xgboost", XGBOOST, "for `tir-schedules tune`", "pip install xgboost-cpu")
    yield optional_package("cupy", CUPY, "for running on a GPU", "pip install cupy-cuda13x")
    yield optional_package(
        "pynvml", ("nvidia-ml-py",), "for clocks and power in benchmarks", "pip install nvidia-ml-py"
    )


def optional_package(name: str, packages: tuple[str, ...], purpose: str, install: str) -> Item:
    """The first of several packages that bring the same import."""
    for package in packages:
        version = installed_version(package)
        if version:
            return Item(name, "ok", f"{version} ({package})")
    return Item(name, "optional", f"not installed; needed {purpose}", install)


def compiler() -> Iterator[Item]:
    try:
        toolchain = find_toolchain()
    except TirSchedulesError as error:
        yield missing("nvcc", error)
        return
    yield nvcc(toolchain)
    yield ptxas(toolchain)
    yield tool(toolchain, "nvdisasm", "for `tir-schedules emit --sass`")
    yield tool(toolchain, "cuobjdump", "for looking into a cubin by hand")


def nvcc(toolchain: Toolchain) -> Item:
    """nvcc, and whether its parts are of one release when they come from PyPI: pip mixes them unless told not
    to."""
    detail = f"{toolchain.version} at {toolchain.nvcc} (from {toolchain.origin})"
    if toolchain.origin == "PyPI packages":
        releases = {
            package: (installed_version(package) or "absent").split(".")[:2] for package in SAME_RELEASE
        }
        if len(set(map(tuple, releases.values()))) > 1:
            parts = ", ".join(
                f"{package} {installed_version(package) or 'absent'}" for package in SAME_RELEASE
            )
            return Item(
                "nvcc", "missing", f"{detail}, but its parts are of different releases: {parts}", INSTALL
            )
    return Item("nvcc", "ok", detail)


def ptxas(toolchain: Toolchain) -> Item:
    """The assembler, which must be of nvcc's release: it refuses the PTX of a newer one."""
    try:
        path = toolchain.tool("ptxas")
        version = version_of(path)
    except TirSchedulesError as error:
        return missing("ptxas", error)
    if version.split(".")[:2] != toolchain.version.split(".")[:2]:
        return Item("ptxas", "missing", f"{version} at {path}, but nvcc is {toolchain.version}", INSTALL)
    return Item("ptxas", "ok", f"{version} at {path}")


def tool(toolchain: Toolchain, name: str, purpose: str) -> Item:
    try:
        path = toolchain.tool(name)
        return Item(name, "ok", f"{version_of(path)} at {path}")
    except TirSchedulesError as error:
        item = missing(name, error)
        return replace(item, status="optional", detail=f"{item.detail}; needed {purpose}")


def host_compiler() -> Iterator[Item]:
    """gcc is what nvcc preprocesses with, g++ what the CPU machine is compiled with."""
    paths = {name: shutil.which(name) for name in ("gcc", "g++")}
    absent = [name for name, path in paths.items() if path is None]
    if absent:
        detail = f"no {' and no '.join(absent)} on PATH"
        yield Item("C++ compiler", "missing", detail, "apt install g++, or dnf install gcc-c++")
    else:
        yield Item("C++ compiler", "ok", f"{first_line(['g++', '--version'])} at {paths['g++']}")


def gpu() -> Iterator[Item]:
    """NVIDIA GPUs the driver knows; every check also runs without one, on the CPU machine."""
    names = first_line(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    if names:
        name, _, driver = names.partition(", ")
        yield Item("GPU", "ok", f"{name}, driver {driver}")
    elif any(Path("/proc/driver/nvidia/gpus").glob("*")):
        yield Item(
            "GPU",
            "optional",
            "there is one, but nvidia-smi does not answer",
            "install the NVIDIA driver again",
        )
    else:
        yield Item("GPU", "optional", "none seen; kernels run on the CPU machine")


def cache() -> Iterator[Item]:
    try:
        found = default_cache()
        mebibytes = f"{found.size() / (1 << 20):.1f} of at most {found.limit / (1 << 20):.0f} MiB"
    except TirSchedulesError as error:
        yield missing("cache", error)
        return
    nearest = next(path for path in (found.path, *found.path.parents) if path.exists())
    if nearest.is_dir() and os.access(nearest, os.W_OK):
        yield Item("cache", "ok", f"{mebibytes} in {printable(found.path)}")
    else:
        remedy = "set TIR_SCHEDULES_CACHE to a folder you can write to"
        yield Item("cache", "missing", f"{printable(found.path)} cannot be written", remedy)


def missing(name: str, error: TirSchedulesError) -> Item:
    """An error's line, split into what is wrong and what to do."""
    problem, _, remedy = str(error).rpartition(": ")
    return Item(name, "missing", problem, remedy)


def installed_version(package: str) -> str | None:
    """Version of an installed Python package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def first_line(command: list[str]) -> str | None:
    """The first line a program prints, or None when it is absent, fails or is silent."""
    try:
        result = processes.run(command, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = result.stdout.strip().splitlines()
    return lines[0] if lines and result.returncode == 0 else None
