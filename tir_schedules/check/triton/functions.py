"""Triton kernels in a Python file."""

from __future__ import annotations
import __future__

import ast
import hashlib
import sys
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, Iterator, TypeGuard

from tir_schedules.check.triton.library import the_triton
from tir_schedules.check.triton.standins import standing_in
from tir_schedules.errors import BadInput, MissingTool, TirSchedulesError, nearest, one_line, printable
from tir_schedules.files import read_bytes

REMEDY = "name a Python file with Triton kernels"
UNDER_MAIN = 'put what launches kernels under `if __name__ == "__main__":`'


def kernels_in(path: Path) -> dict[str, Any]:
    """Every `@triton.jit` function that a Python file defines, also under `@triton.autotune` and
    `@triton.heuristics`, by name, in the order of the file. The file is executed, as `import` does, but
    without a GPU and what is not installed: see standins.py.

    BadInput when it cannot be read, or is not Python.
    """
    module = executed(path).module
    triton = the_triton()
    kinds = (triton.JITFunction, triton.Autotuner, triton.Heuristics)
    found = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, kinds) and innermost(value).fn.__module__ == module.__name__
    }
    return dict(sorted(found.items(), key=lambda pair: innermost(pair[1]).starting_line_number))


def executed(path: Path) -> Executed:
    """A file as it is now, which is executed once for all that is asked of it."""
    content = hashlib.sha256(read_bytes(path, REMEDY)).digest()
    return execute_once(path.absolute(), path, content)


@lru_cache(maxsize=8)
def execute_once(place: Path, path: Path, content: bytes) -> Executed:
    return import_file(path)


def kernel_of(path: Path, name: str = "") -> Any:
    """One kernel of a Python file; with one in it none need be named. BadInput lists those there are.
    MissingTool if there is none and the file imports a package that is not installed."""
    kernels, known = kernels_in(path), executed(path)
    if not kernels and known.failed:
        raise BadInput(f"{known.failed}; {UNDER_MAIN}")
    if not kernels and known.missing:
        raise MissingTool(
            f"{printable(path)} defines no @triton.jit function, and imports {known.missing[0]}, which is not"
            f" installed: pip install {known.missing[0].partition('.')[0]}, or name the file with the kernel"
        )
    if not kernels:
        raise BadInput(f"{printable(path)} defines no @triton.jit function: {REMEDY}")
    if name in kernels:
        return kernels[name]
    every = ", ".join(kernels)
    if name:
        failed = f"; {known.failed}" if known.failed else ""
        hint = nearest(name, kernels)
        raise BadInput(f"{printable(path)} has no kernel {name!r}{hint}; it has {every}{failed}")
    called = {callee for kernel in kernels.values() for callee in names_of(innermost(kernel))}
    entries = [one for one in kernels if one not in called]
    if len(entries) == 1:
        return kernels[entries[0]]
    raise BadInput(f"{printable(path)} has several kernels; name one: {every}")


def innermost(kernel: Any) -> Any:
    """The `@triton.jit` function under what decorates it. BadInput when there is none."""
    triton = the_triton()
    while isinstance(kernel, (triton.Autotuner, triton.Heuristics)):
        kernel = kernel.fn
    if not isinstance(kernel, triton.JITFunction):
        raise BadInput(f"{kernel!r} is not a Triton kernel: give a function under @triton.jit")
    return kernel


def names_of(function: Any) -> set[str]:
    """All that the code of a function mentions."""
    return set(function.fn.__code__.co_names)


@dataclass(frozen=True)
class Executed:
    """What a file has made. missing: modules that are not installed. failed: what the first statement that
    raised says, and how many others did; statements behind them are executed all the same."""

    module: ModuleType
    missing: tuple[str, ...] = ()
    failed: str = ""
    others: int = 0

    @property
    def note(self) -> str:
        """What is left out of it; "" where all has run."""
        if not self.failed:
            return ""
        more = f"and {self.others} more are" if self.others else "is"
        return f"{self.failed.rstrip('.')}: this statement {more} left out"


def import_file(path: Path) -> Executed:
    """The module that a file makes, statement by statement, with its folder's other modules at hand."""
    tree = parse_file(path)
    place = path.absolute()
    packages = packages_of(place)
    module = ModuleType(f"_checked_{path.stem}")
    module.__file__, module.__package__ = str(place), [*packages][-1]
    failed = []
    folder, own = place.parents[len(packages) - 1], {**packages, module.__name__: module}
    with first_on_path(place.parent), standing_in(folder, own) as missing:
        for node in tree.body:
            code = compile(ast.Module([node], []), str(place), "exec", flags_of(tree), True)
            try:
                exec(code, module.__dict__)
            except TirSchedulesError:
                raise
            except (Exception, SystemExit) as error:
                told = f"{type(error).__name__}: {one_line(error)}"
                failed.append(f"{place_of(error, path)} raises {told[:300]}")
    return Executed(module, tuple(missing), failed[0] if failed else "", len(failed[1:]))


def packages_of(place: Path) -> dict[str, ModuleType]:
    """Packages around a file, outermost first, by names that relative imports go by: their own files are not
    executed."""
    folders = [place.parent]
    while (folders[-1] / "__init__.py").is_file() and folders[-1].parent != folders[-1]:
        folders.append(folders[-1].parent)
    folders = folders[:-1] or folders
    names = [f"_checked_{folder.name}" for folder in reversed(folders)]
    found = {}
    for depth, folder in enumerate(reversed(folders), 1):
        made = ModuleType(".".join(names[:depth]))
        made.__path__ = [str(folder)]
        found[made.__name__] = made
    return found


def parse_file(path: Path) -> ast.Module:
    try:
        return ast.parse(read_bytes(path, REMEDY))
    except SyntaxError as error:
        raise BadInput(f"{printable(path)}:{error.lineno or 1} is not Python: {error.msg}") from None
    except ValueError as error:
        raise BadInput(f"{printable(path)} is not Python: {one_line(error)}") from None


def flags_of(tree: ast.Module) -> int:
    """What the file's `from __future__ import` ask of the compiler."""
    named = [one.name for node in tree.body if is_future(node) for one in node.names]
    return sum(getattr(__future__, name).compiler_flag for name in named)


def is_future(node: ast.stmt) -> TypeGuard[ast.ImportFrom]:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


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
