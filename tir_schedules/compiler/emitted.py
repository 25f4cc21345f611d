"""What TVM makes of a schedule, kept in the cache: a kernel is lowered once on a machine.

Importing TVM takes a second, lowering a schedule a tenth of one to a half; reading the result again takes a
millisecond.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from types import FunctionType
from typing import Any, Callable

from tir_schedules.compiler.cache import default_cache
from tir_schedules.compiler.code import KEEP, PACKAGE, hash_of
from tir_schedules.errors import BadInput, MissingTool
from tir_schedules.files import lists_to_tuples
from tir_schedules.model.launch import Launch, TensorMap
from tir_schedules.model.rung import Rung

SOURCES = ("errors.py", "model", "workloads", "tir", "ladders", "compiler")
"""The code that decides what becomes of a schedule: the rows that the compiler imports, itself included."""

CODE = hash_of(*SOURCES) + hash_of("", package="cuda_reference", ending=".cuh")
"""Taken when this is imported: what is edited later is not what runs. Headers of twins have the text of
device functions that schedules call."""

LIBRARIES = ("apache-tvm", "apache-tvm-ffi", "numpy")
FILE = "emitted.json"


@dataclass(frozen=True)
class Emitted:
    """CUDA source with one kernel, the kernel's parameters in order (names as in the PrimFunc), and its
    launch."""

    source: str
    params: tuple[str, ...]
    launch: Launch


def load_or_make(rung: Rung, workload: Any, arch: str, make: Callable[[], Emitted]) -> Emitted:
    """What `make()` returns, from the cache where it is there.

    rung: in the configuration that it takes for the workload. A rung or workload from outside this package is
    made anew each time, because what its functions depend on is unknown. So is every one in a process that is
    not a command of ours, unless it sets TIR_SCHEDULES_KEEP: it may replace anything.
    """
    ours = is_ours(rung) and is_class_of_ours(workload)
    if not (os.environ.get(KEEP) and ours and package_is_unpatched()):
        return make()

    def build(folder: Path) -> None:
        (folder / FILE).write_text(json.dumps(asdict(make())), encoding="utf-8")

    key = "\0".join(
        [repr(decisive_facts(rung)), repr(workload), repr(type(workload)), arch, CODE, libraries()]
    )
    try:
        return default_cache().load("emitted", key, build, read)
    except (BadInput, MissingTool):  # a cache that is full, or cannot be written to
        return make()


def read(folder: Path) -> Emitted:
    """FileNotFoundError, on which the cache has it built again, also for one that cannot be read."""
    path = folder / FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        launch = lists_to_tuples(found["launch"])
        maps = tuple(TensorMap(**each) for each in launch["maps"])
        return Emitted(found["source"], tuple(found["params"]), Launch(**{**launch, "maps": maps}))
    except (ValueError, KeyError, TypeError):
        raise FileNotFoundError(path) from None


def decisive_facts(rung: Rung) -> tuple:
    """All of a rung that lowering depends on, besides the code."""
    functions = [f"{function.__module__}.{function.__qualname__}" for function in functions_of(rung)]
    return rung.id, rung.entry, functions, type(rung.config), rung.config


def functions_of(rung: Rung) -> list[Any]:
    return [function for function in (rung.schedule, rung.launch, rung.prim_func) if function]


def is_ours(rung: Rung) -> bool:
    """Whether the rung's functions and the class of its configuration are found in this package under their
    names."""
    functions = all(isinstance(each, FunctionType) and is_unpatched(each) for each in functions_of(rung))
    return functions and is_class_of_ours(rung.config)


def is_unpatched(function: Any) -> bool:
    """Whether a function is what its module has under its name, and its code is in that module's file.
    Functions in functions are in no place."""
    module = sys.modules.get(function.__module__)
    ours = function.__module__.partition(".")[0] == PACKAGE
    place = getattr(module, "__file__", None)
    return (
        ours
        and getattr(module, function.__qualname__, None) is function
        and function.__code__.co_filename == place
    )


def is_class_of_ours(value: Any) -> bool:
    """Whether a value's class is what a module of this package has under its name."""
    kind = type(value)
    ours = kind.__module__.partition(".")[0] == PACKAGE
    return ours and getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind


def package_is_unpatched() -> bool:
    """Whether no function of others stands in one of our modules that decide what a kernel becomes."""
    rows = tuple(f"{PACKAGE}.{Path(name).stem}" for name in SOURCES)
    modules = [module for name, module in sys.modules.copy().items() if name.startswith(rows)]
    values = (value for module in modules for value in vars(module).values())
    return all(is_known(value.__module__) for value in values if isinstance(value, FunctionType))


def is_known(module: str) -> bool:
    root = module.partition(".")[0]
    return root in (PACKAGE, "tvm", "tvm_ffi", "numpy") or root in sys.stdlib_module_names


@lru_cache(maxsize=1)
def libraries() -> str:
    """Names and versions of what lowers."""
    return " ".join(f"{name} {metadata.version(name)}" for name in LIBRARIES)
