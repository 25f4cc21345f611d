"""Finds the CUDA compiler and its tools, and knows which architectures it compiles for."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Iterator

from tir_schedules import processes
from tir_schedules.compiler.places import scratch
from tir_schedules.errors import BadInput, MissingTool, shown

OLDEST = (12, 0)
INSTALL = 'pip install "cuda-toolkit[nvcc,nvvm,crt,cudart,cccl]==13.0.*"'
REPLACE = f"set TIR_SCHEDULES_NVCC to an nvcc that works, or {INSTALL}"
PACKAGES = {"cuobjdump": "nvidia-cuda-cuobjdump", "nvdisasm": "nvidia-cuda-nvdisasm"}
FOREIGN = (
    "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "INCLUDES", "SYSTEM_INCLUDES", "LIBRARIES", "CUDAFE_FLAGS",
    "PTXAS_FLAGS",
    "DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES",
)  # fmt: skip
"""Variables with which the environment would change the flags of nvcc and gcc, and so their results or the
files they write."""

ANSWER_SECONDS = 60
VERSION = re.compile(r"\bV(\d+\.\d+\.\d+)")


@dataclass(frozen=True)
class Toolchain:
    """An nvcc that runs.

    nvcc: its path. origin: how it was found, such as "CUDA_HOME" or "PyPI packages". version: "13.0.88".
    """

    nvcc: Path
    origin: str
    version: str

    @property
    def release(self) -> tuple[int, int]:
        """Major and minor version, (13, 0)."""
        major, minor, _ = self.version.split(".")
        return int(major), int(minor)

    def tool(self, name: str) -> Path:
        """ptxas, cuobjdump or nvdisasm: beside nvcc, in the toolkit behind it, from the PyPI packages, or on
        PATH.

        MissingTool says which package has it.
        """
        for path in self.candidates(name):
            if is_program(path):
                return path
        package = PACKAGES.get(name)
        raise MissingTool(
            f"{name} not found: " + (f'pip install "{package}==13.2.*"' if package else INSTALL)
        )

    def candidates(self, name: str) -> Iterator[Path]:
        """Where the program may be, best first; it need not exist."""
        yield self.nvcc.parent / name
        yield self.nvcc.resolve().parent / name
        yield toolkit_folder(self.nvcc) / name
        yield from packaged_path(name)
        yield from on_path(name)


def find_toolchain() -> Toolchain:
    """The CUDA compiler to use: TIR_SCHEDULES_NVCC, CUDA_HOME, CUDA_PATH, PATH, then the PyPI packages.

    BadInput when one of the variables is set and wrong; MissingTool when there is none, or it is older than
    12.0.
    """
    path, origin = find_nvcc()
    version = version_of(path)
    toolchain = Toolchain(path, origin, version)
    if toolchain.release < OLDEST:
        others = [str(other) for other in packaged_path("nvcc")] or [INSTALL]
        raise MissingTool(
            f"nvcc {version} at {path} (from {origin}) is too old, 12.0 or newer is needed:"
            f" set TIR_SCHEDULES_NVCC to another, such as {others[0]}"
        )
    return toolchain


def find_nvcc() -> tuple[Path, str]:
    """Path of nvcc and how it was found; it is not run."""
    chosen = os.environ.get("TIR_SCHEDULES_NVCC")
    if chosen:
        if not is_program(Path(chosen)):
            raise BadInput(
                f"TIR_SCHEDULES_NVCC is {chosen!r}, which is not a program: set it to nvcc, or unset it"
            )
        return Path(chosen).absolute(), "TIR_SCHEDULES_NVCC"
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        home = os.environ.get(variable)
        if home:
            path = Path(home, "bin", "nvcc").absolute()
            if not is_program(path):
                raise BadInput(
                    f"{variable} is {home!r}, which has no bin/nvcc: set it to a CUDA toolkit, or unset it"
                )
            return path, variable
    for path in on_path("nvcc"):
        return path, "PATH"
    for path in packaged_path("nvcc"):
        return path, "PyPI packages"
    raise MissingTool(f"nvcc not found: {INSTALL}, or set CUDA_HOME to a CUDA toolkit")


def architectures() -> tuple[str, ...]:
    """Every architecture this nvcc compiles for, oldest first: "sm_80", "sm_90", "sm_90a", ..."""
    return known_architectures(find_toolchain().nvcc)


def check_arch(arch: str) -> None:
    """BadInput when `arch` is not an architecture such as "sm_80", or not one that nvcc knows."""
    known = architectures()
    if arch in known:
        return
    if re.fullmatch(r"sm_[0-9]{1,4}[af]?", arch):
        problem = f"nvcc {find_toolchain().version} does not know {arch}"
    else:
        problem = f"{shown(arch)} is not an architecture"
    raise BadInput(f"{problem}: did you mean {nearest_arch(arch, known)}? Known are {', '.join(known)}")


def nearest_arch(arch: str, known: tuple[str, ...]) -> str:
    """The newest architecture that is not newer than the one asked for: its code runs there too."""
    asked = number_of(arch)
    older = [name for name in known if name[-1].isdigit() and number_of(name) <= asked]
    return older[-1] if older else known[0]


def number_of(arch: str) -> int:
    """90 for "sm_90a", "9.0" or "compute_90"; 0 when there is no number."""
    return int(re.sub("[^0-9]", "", arch)[:9] or 0)


@lru_cache(maxsize=None)
def known_architectures(nvcc: Path) -> tuple[str, ...]:
    # --list-gpu-code leaves out the variants with a suffix (sm_90a); the help text has them, among outdated
    # examples.
    listed = ask(nvcc, "--list-gpu-code")
    plain = re.findall(r"\bsm_\d+\b", listed)
    if not plain:
        raise MissingTool(f"{nvcc} does not tell its architectures, it says {last_line(listed)!r}: {REPLACE}")
    mentioned = re.findall(r"\bsm_\d+[af]\b", ask(nvcc, "--help"))
    names = {*plain, *(name for name in mentioned if name[:-1] in plain)}
    return tuple(sorted(names, key=lambda name: (number_of(name), name)))


@lru_cache(maxsize=None)
def version_of(program: Path) -> str:
    """Version of nvcc, ptxas, cuobjdump or nvdisasm, such as "13.0.88". MissingTool when it does not run."""
    answer = ask(program, "--version")
    match = VERSION.search(answer)
    if not match:
        raise MissingTool(f"{program} does not tell a CUDA version, it says {last_line(answer)!r}: {REPLACE}")
    return match[1]


@lru_cache(maxsize=None)
def toolkit_folder(nvcc: Path) -> Path:
    """The folder of the real nvcc when `nvcc` is a script that calls another: a dry run tells."""
    match = re.search(r"_HERE_=(.+?)\s*(?:\n#\$ |\Z)", ask(nvcc, "--dryrun", "-ptx", "none.cu"), re.S)
    return Path(match[1].strip()) if match else nvcc.parent


def ask(program: Path, *arguments: str) -> str:
    """All that a program prints. MissingTool when it cannot be started."""
    environment = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    command = [program, *arguments]
    try:
        with scratch() as folder:
            result = processes.run(command, timeout=ANSWER_SECONDS, env={**environment, "TMPDIR": folder})
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", None) or f"no answer within {ANSWER_SECONDS} s"
        raise MissingTool(f"{program} does not run ({reason}): {REPLACE}") from error
    return result.stdout + result.stderr


def last_line(text: str) -> str:
    return (text.strip() or "nothing").splitlines()[-1]


def packaged_path(name: str) -> list[Path]:
    """Where the PyPI packages put the program: site-packages/nvidia/cu13/bin, newest release first."""
    spec = importlib.util.find_spec("nvidia")
    roots = list(spec.submodule_search_locations or ()) if spec else []
    paths = [path for root in roots for path in Path(root).glob(f"*/bin/{name}") if is_program(path)]
    return sorted(
        paths, key=lambda path: [int(number) for number in re.findall(r"\d+", path.parts[-3])], reverse=True
    )


def on_path(name: str) -> list[Path]:
    found = shutil.which(name)
    return [Path(found).absolute()] if found else []


def is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
