"""The machine's C++ core and lane functions: compiled once by the host's g++, kept in the cache, loaded with
ctypes."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Iterable

from tir_schedules import processes
from tir_schedules.compiler.cache import default_cache
from tir_schedules.compiler.inputs import environment, fingerprint, heeded_variables
from tir_schedules.compiler.places import is_plain
from tir_schedules.errors import MissingTool, one_line
from tir_schedules.machines.cpu.codegen import TABLE, generated
from tir_schedules.machines.cpu.signatures import Signature, library_source

FLAGS = (
    "-std=c++17", "-I.", "-O2", "-fPIC", "-fno-semantic-interposition", "-march=native", "-ftree-vectorize",
    "-fvect-cost-model=unlimited", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
    "-fno-strict-aliasing", "-w",
)  # fmt: skip
"""No fast-math: a lane computes what IEEE arithmetic says, fused where PTX says fma and nowhere else. Without
semantic interposition, functions of one file are inlined into another."""

LANE_HEADERS = (
    "abi.h", "lanes/arithmetic.h", "lanes/bits.h", "lanes/conversion.h", "lanes/lanes.h", "lanes/numeric.h",
)  # fmt: skip
"""All that functions of lanes need: what the core shares besides takes as long to read as they to compile."""

LANE_PARTS, LARGE = 2, 100
"""Libraries that instructions are compiled to side by side, where there are so many of them."""
ANSWER_SECONDS, COMPILE_SECONDS = 30, 900
UNIT, LIBRARY = "library.cpp", "library.so"


class Library:
    """Addresses of functions, by name (core) or signature (lanes). Safe to use from several threads."""

    def __init__(self) -> None:
        self.sources = read_core() | generated()
        self.compiler = find_compiler()
        self._lock = threading.Lock()
        self._loaded: list[ctypes.CDLL] = []
        self._lanes: dict[str, int] = {}
        shipped = shipped_signatures()
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            core = pool.submit(self._core)
            self._add_all(shipped, pool)
        self.core = core.result()
        self.core.function_named.restype = ctypes.c_void_p

    def function(self, name: str) -> int:
        """Address of a function of the core, such as "ld.shared"."""
        address = self.core.function_named(name.encode())
        if not address:
            raise KeyError(name)
        return address

    def lane_functions(self, signatures: Iterable[Signature]) -> dict[str, int]:
        """Address of each signature's function, by its text; a new one is compiled in about a second."""
        wanted = {signature.text: signature for signature in signatures}
        with self._lock:
            missing = [signature for text, signature in sorted(wanted.items()) if text not in self._lanes]
            if missing:
                with ThreadPoolExecutor(LANE_PARTS) as pool:
                    self._add_all(missing, pool)
            return {text: self._lanes[text] for text in wanted}

    def _add_all(self, signatures: list[Signature], pool: ThreadPoolExecutor) -> None:
        count = LANE_PARTS if len(signatures) >= LARGE else 1
        parts = [signatures[k::count] for k in range(count)]
        for part, library in zip(parts, pool.map(self._lane_library, parts)):
            self._add(part, library)

    def _add(self, signatures: list[Signature], library: ctypes.CDLL) -> None:
        self._loaded.append(library)
        for signature in signatures:
            function = getattr(library, signature.function_name)
            self._lanes[signature.text] = ctypes.cast(function, ctypes.c_void_p).value or 0

    def _core(self) -> ctypes.CDLL:
        """All of the core as one translation unit: the headers of each cost more than its code."""
        units = [name for name in self.sources if name.endswith(".cpp") and name != TABLE] + [TABLE]
        unit = "".join(f'#include "{name}"\n' for name in units)
        return compiled(self.compiler, "machinecore", unit, self.sources)

    def _lane_library(self, signatures: list[Signature]) -> ctypes.CDLL:
        headers = {name: self.sources[name] for name in LANE_HEADERS}
        unit = library_source(signatures, LANE_HEADERS)
        return compiled(self.compiler, "machinelanes", unit, headers)


def compiled(compiler: str, kind: str, unit: str, included: dict[str, str]) -> ctypes.CDLL:
    """A shared library of a translation unit, beside what it includes; from the cache where it is there.
    kind: that it is kept under. MissingTool where the compiler does not take it."""
    sources = included | {UNIT: unit}
    version, digest = compiler_version(compiler), fingerprint(compiler)
    key = "\0".join(
        [
            compiler,
            version,
            digest,
            *heeded_variables(),
            processor(),
            *FLAGS,
            *map("\0".join, sources.items()),
        ]
    )

    def build(folder: Path) -> None:
        for name, text in sources.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        gxx([compiler, *FLAGS, "-shared", UNIT, "-o", LIBRARY], folder)
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != LIBRARY:
                path.unlink()

    def loaded(folder: Path) -> ctypes.CDLL:
        try:
            return load_library(folder / LIBRARY)
        except OSError as error:
            if not (folder / LIBRARY).exists():  # another process cleared the cache
                raise FileNotFoundError(folder / LIBRARY) from None
            raise unfit(compiler, f"what it wrote does not load: {one_line(error)}") from None

    return default_cache().load(kind, key, build, loaded)


def load_library(path: Path) -> ctypes.CDLL:
    """A shared library; by way of a copy where the loader would not read its path as it is, such as
    "/home/$LIB"."""
    if is_plain(path):
        return ctypes.CDLL(str(path))
    with default_cache().workplace() as folder:
        return ctypes.CDLL(str(shutil.copy(path, folder)))


def gxx(command: list[str], folder: Path) -> None:
    try:
        result = processes.run(
            command, timeout=COMPILE_SECONDS, cwd=folder, env=environment() | {"TMPDIR": str(folder)}
        )
    except subprocess.TimeoutExpired:
        raise unfit(command[0], f"it is not done after {COMPILE_SECONDS} s") from None
    except OSError as error:
        raise unfit(command[0], error.strerror or "it does not start") from None
    if result.returncode:
        lines = [line for line in result.stderr.splitlines() if "error" in line] or result.stderr.splitlines()
        silent = f"it says nothing, exit code {result.returncode}"
        raise unfit(command[0], lines[0].strip() if lines else silent)
    if not (folder / command[command.index("-o") + 1]).is_file():
        raise unfit(command[0], "it reports no error, and writes nothing")


def unfit(compiler: str, reason: str) -> MissingTool:
    return MissingTool(
        f"{compiler} cannot compile the CPU machine ({reason}): a g++ of version 9 or newer is needed; set"
        " CXX to one"
    )


def find_compiler() -> str:
    """The C++ compiler: the environment variable CXX, then g++. MissingTool when there is none."""
    wanted = os.environ.get("CXX") or "g++"
    found = shutil.which(wanted)
    if not found:
        raise MissingTool(
            f"the CPU machine needs a C++ compiler, and there is no {wanted!r}:"
            " install g++ (`apt install g++`, `dnf install gcc-c++`), or set CXX to one"
        )
    return os.path.abspath(found)


@lru_cache(maxsize=None)
def compiler_version(compiler: str) -> str:
    """First line of --version; empty when it does not say. MissingTool when it cannot be started."""
    try:
        return processes.run([compiler, "--version"], timeout=ANSWER_SECONDS).stdout.partition("\n")[0]
    except (OSError, subprocess.TimeoutExpired) as error:
        late = f"no answer within {ANSWER_SECONDS} s"
        raise unfit(compiler, getattr(error, "strerror", None) or late) from None


@lru_cache(maxsize=None)
def processor() -> str:
    """What -march=native depends on: a cache shared between machines must not mix them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    flags = next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
    return f"{platform.machine()} {flags}"


def read_core(package: str = "tir_schedules.machines.cpu") -> dict[str, str]:
    """The C++ sources that come with a package, by their path in its folder `core`."""
    with resources.as_file(resources.files(package) / "core") as core:
        files = sorted(path for pattern in ("*.cpp", "*.h") for path in core.rglob(pattern))
        return {path.relative_to(core).as_posix(): path.read_text(encoding="utf-8") for path in files}


def shipped_signatures() -> list[Signature]:
    """Signatures compiled ahead of time, so that the ladders need no compiler run of their own."""
    text = (resources.files("tir_schedules.machines.cpu") / "signatures.txt").read_text(encoding="utf-8")
    return [Signature(line) for line in text.splitlines() if line and not line.startswith("#")]


@lru_cache(maxsize=1)
def library_for(environment: tuple[str, ...]) -> Library:
    return Library()


_building = threading.Lock()


def the_library() -> Library:
    """The library of this process; compiled again when the environment names another compiler or cache."""
    with _building:
        return library_for((os.environ.get("CXX", ""), str(default_cache().path)))
