"""What the compilers see besides the text they compile: their own files, the environment, and the files that
a source includes."""

from __future__ import annotations

import os
import re
import shutil
from functools import lru_cache
from pathlib import Path

from tir_schedules.compiler.toolchain import FOREIGN, Toolchain, toolkit_folder
from tir_schedules.errors import BadInput

SEARCHED = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH")
"""Variables that name folders of headers."""

KEPT = ("GCC_EXEC_PREFIX", "COMPILER_PATH", "LIBRARY_PATH")
"""Variables that say where gcc finds its parts."""

COMPILERS_HEADERS = {
    "cuda.h", "cuda_bf16.h", "cuda_fp16.h", "cuda_fp8.h", "cuda_pipeline.h", "cuda_runtime.h", "mma.h",
    "cstddef", "cstdint", "stdint.h", "type_traits", "cuda/std/cstdint", "cuda/std/type_traits",
}  # fmt: skip
"""Headers that come with the compilers, as do all that they include; the last two stand in TVM's sources, for
NVRTC alone."""

CONTINUATION = re.compile(r"\\[ \t\f\v]*\r?\n")
INCLUDING = re.compile(r"include|import|embed|incbin|\?\?")
PLAIN_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<([\w./]+)>[ \t]*$", re.M)


def reads_files(source: str) -> bool:
    """Whether what a source becomes may depend on files other than the compilers' own. True when in doubt."""
    if any(os.environ.get(name) for name in SEARCHED):
        return True
    text = CONTINUATION.sub("", source)
    plain = [name for name in PLAIN_INCLUDE.findall(text) if name in COMPILERS_HEADERS]
    return len(INCLUDING.findall(text)) != len(plain)


def identity(toolchain: Toolchain) -> str:
    """Text that differs when any part of the compilers does: a file, a version, a variable they heed."""
    chosen = host_compiler()
    parts = [fingerprint(path) for path in (*programs(toolchain), *([chosen] if chosen else ()))]
    headers = [line for folder in header_folders(toolchain) for line in files_of(folder)]
    return "\n".join([toolchain.version, *parts, *headers, *heeded_variables()])


def heeded_variables() -> list[str]:
    """What the environment tells gcc of where to look; relative folders mean others elsewhere."""
    variables = environment()
    return [f"{name}={variables[name]}" for name in (*SEARCHED, *KEPT) if variables.get(name)]


def programs(toolchain: Toolchain) -> list[Path]:
    """The files that compile a kernel, one behind the other; not all of them need exist."""
    folder = toolkit_folder(toolchain.nvcc)
    nvvm = folder.parent / "nvvm"
    own = [folder / name for name in ("nvcc", "nvcc.profile", "ptxas")]
    return [toolchain.nvcc, *own, nvvm / "bin/cicc", nvvm / "libdevice/libdevice.10.bc"]


@lru_cache(maxsize=None)
def header_folders(toolchain: Toolchain) -> list[str]:
    """Where CUDA's own headers are."""
    root = toolkit_folder(toolchain.nvcc).parent
    found = {os.path.realpath(folder) for folder in (root / "include", *root.glob("targets/*/include"))}
    return [path for folder in sorted(found) for path in (folder, os.path.join(folder, "crt"))]


def files_of(folder: str) -> list[str]:
    """A line for each file of a folder, which differs when the file does."""
    try:
        with os.scandir(folder) as entries:
            return sorted(f"{entry.path} {state_of(entry)}" for entry in entries)
    except OSError:
        return []


def fingerprint(path: str | os.PathLike) -> str:
    """A line that says which file a path means: another one there, or the same one edited, has another."""
    real = Path(os.path.realpath(path))
    return f"{real} {state_of(real)}"


def state_of(file: Path | os.DirEntry) -> str:
    """Size and time of the last change."""
    try:
        found = file.stat()
    except OSError:
        return "absent"
    return f"{found.st_size} {found.st_mtime_ns}"


def host_compiler() -> Path | None:
    """The C++ compiler that nvcc preprocesses with: NVCC_CCBIN, a program or its folder, else gcc on PATH;
    None where there is none.

    BadInput when NVCC_CCBIN names no compiler.
    """
    chosen = os.environ.get("NVCC_CCBIN")
    found = shutil.which(os.path.join(chosen, "gcc") if chosen and os.path.isdir(chosen) else chosen or "gcc")
    if chosen and not found:
        raise BadInput(
            f"NVCC_CCBIN is {chosen!r}, which is not a program: set it to a C++ compiler such as g++, or"
            " unset it"
        )
    return Path(found).absolute() if found else None


def environment() -> dict[str, str]:
    """The environment in which a kernel is compiled: ours without foreign flags, and with folders of headers
    as absolute paths.

    The compilers know no date: what they make of a source today they make of it tomorrow.
    """
    kept = {name: value for name, value in os.environ.items() if name not in (*FOREIGN, "NVCC_CCBIN")}
    folders = {
        name: ":".join(map(os.path.abspath, kept[name].split(":"))) for name in SEARCHED if kept.get(name)
    }
    return kept | folders | {"LC_ALL": "C", "SOURCE_DATE_EPOCH": "0"}
