"""What TVM makes of a schedule, kept in the cache: a kernel is lowered once on a machine.

Importing TVM takes a second, lowering a schedule a tenth of one to a half; reading the result again takes a
millisecond.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from types import FunctionType
from typing import Any, Callable

from tir_schedules.compiler.cache import default_cache
from tir_schedules.compiler.code import PACKAGE, hash_of
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import Rung

SOURCES = ("errors.py", "model", "workloads", "tir", "ladders", "compiler")
"""The code that decides what becomes of a schedule: the rows that the compiler imports, itself included."""

CODE = hash_of(*SOURCES)
"""Taken when this is imported: what is edited later is not what runs."""

LIBRARIES = ("apache-tvm", "apache-tvm-ffi", "numpy")
FILE = "emitted.json"


@dataclass(frozen=True)
class Emitted:
    """CUDA source with one kernel, the kernel's parameters in order (names as in the PrimFunc), and its
    launch."""

    source: str
    params: tuple[str, ...]
    launch: Launch


def kept(rung: Rung, workload: Any, arch: str, make: Callable[[], Emitted]) -> Emitted:
    """What `make()` returns, from the cache where it is there.

    rung: in the configuration that it takes for the workload. A rung or workload from outside this package is
    made anew each time: nobody knows what its functions depend on. So is every one as long as a function of
    ours is replaced by another, as tests do.
    """
    if not (is_ours(rung) and type(workload).__module__.startswith(f"{PACKAGE}.") and as_written()):
        return make()

    def build(folder: Path) -> None:
        (folder / FILE).write_text(json.dumps(asdict(make())), encoding="utf-8")

    key = "\0".join([repr(asked(rung)), repr(workload), repr(type(workload)), arch, CODE, libraries()])
    return default_cache().load("emitted", key, build, read)


def read(folder: Path) -> Emitted:
    found = json.loads((folder / FILE).read_text(encoding="utf-8"))
    grid, block = (tuple(found["launch"][name]) for name in ("grid", "block"))
    launch = Launch(grid, block, found["launch"]["dynamic_shared"])
    return Emitted(found["source"], tuple(found["params"]), launch)


def asked(rung: Rung) -> tuple:
    """All of a rung that lowering depends on, besides the code."""
    functions = [f"{function.__module__}.{function.__qualname__}" for function in functions_of(rung)]
    settings = type(rung.config), rung.config, sorted(rung.pass_config.items()), rung.passes, rung.explicit
    return rung.id, rung.entry, functions, settings


def functions_of(rung: Rung) -> list[Any]:
    return [function for function in (rung.schedule, rung.launch, rung.prim_func) if function]


def is_ours(rung: Rung) -> bool:
    """Whether the rung's functions are found in this package under their names."""
    return all(isinstance(function, FunctionType) and in_place(function) for function in functions_of(rung))


def in_place(function: Any) -> bool:
    """Whether a function is what its module has under its name. Functions in functions are in no place."""
    module = sys.modules.get(function.__module__)
    ours = function.__module__.partition(".")[0] == PACKAGE
    return ours and getattr(module, function.__qualname__, None) is function


def as_written() -> bool:
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
