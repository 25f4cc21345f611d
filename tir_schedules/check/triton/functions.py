"""Triton kernels in a Python file."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, Iterator

from tir_schedules.check.triton.library import the_triton
from tir_schedules.errors import BadInput, MissingTool, TirSchedulesError, nearest, one_line, printable
from tir_schedules.files import read_bytes

REMEDY = "name a Python file with Triton kernels"
UNDER_MAIN = 'put what launches kernels under `if __name__ == "__main__":`'


def kernels_in(path: Path) -> dict[str, Any]:
    """Every `@triton.jit` function that a Python file defines, also under `@triton.autotune` and
    `@triton.heuristics`, by name, in the order of the file. The file is executed, as `import` does.

    MissingTool when it imports a module that is not installed; BadInput when it cannot be read, is no Python,
    or raises.
    """
    content = hashlib.sha256(read_bytes(path, REMEDY)).digest()
    return dict(find_kernels(path.absolute(), path, content))


@lru_cache(maxsize=8)
def find_kernels(place: Path, path: Path, content: bytes) -> dict[str, Any]:
    """Of a file as it is now, which is executed once for all that is asked of it."""
    triton = the_triton()
    module = import_file(path)
    kinds = (triton.JITFunction, triton.Autotuner, triton.Heuristics)
    found = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, kinds) and innermost(value).fn.__module__ == module.__name__
    }
    return dict(sorted(found.items(), key=lambda pair: innermost(pair[1]).starting_line_number))


def kernel_of(path: Path, name: str = "") -> Any:
    """One kernel of a Python file; with one in it none need be named. BadInput lists those there are."""
    kernels = kernels_in(path)
    if not kernels:
        raise BadInput(f"{printable(path)} defines no @triton.jit function: {REMEDY}")
    if name in kernels:
        return kernels[name]
    known = ", ".join(kernels)
    if name:
        raise BadInput(f"{printable(path)} has no kernel {name!r}{nearest(name, kernels)}; it has {known}")
    called = {callee for kernel in kernels.values() for callee in names_of(innermost(kernel))}
    entries = [known for known in kernels if known not in called]
    if len(entries) == 1:
        return kernels[entries[0]]
    raise BadInput(f"{printable(path)} has several kernels; name one: {known}")


def innermost(kernel: Any) -> Any:
    """The `@triton.jit` function under what decorates it. BadInput when there is none."""
    triton = the_triton()
    while isinstance(kernel, (triton.Autotuner, triton.Heuristics)):
        kernel = kernel.fn
    if not isinstance(kernel, triton.JITFunction):
        raise BadInput(f"{kernel!r} is no Triton kernel: give a function under @triton.jit")
    return kernel


def names_of(function: Any) -> set[str]:
    """All that the code of a function mentions."""
    return set(function.fn.__code__.co_names)


def import_file(path: Path) -> ModuleType:
    """The module that a file makes, with its folder's other modules at hand."""
    name = f"_checked_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.absolute())
    if spec is None or spec.loader is None:
        raise BadInput(f"{printable(path)} is no Python file: {REMEDY}")
    module = importlib.util.module_from_spec(spec)
    with first_on_path(path.absolute().parent):
        try:
            spec.loader.exec_module(module)
        except ModuleNotFoundError as error:
            raise MissingTool(
                f"{place_of(error, path)} imports {error.name}, which is not installed: pip install"
                f" {(error.name or '').partition('.')[0]}, or move the kernel to a file of its own"
            ) from None
        except TirSchedulesError:
            raise
        except SyntaxError as error:
            raise BadInput(f"{printable(path)}:{error.lineno or 1} is no Python: {error.msg}") from None
        except (Exception, SystemExit) as error:
            what = f"{type(error).__name__}: {one_line(error)}"
            raise BadInput(f"{place_of(error, path)} raises {what[:300]}; {UNDER_MAIN}") from None
    return module


def place_of(error: BaseException, path: Path) -> str:
    """The line of the file at which an error came up."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path.absolute())
    ]
    return f"{printable(path)}:{lines[-1]}" if lines else printable(path)


@contextmanager
def first_on_path(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        if str(folder) in sys.path:
            sys.path.remove(str(folder))
