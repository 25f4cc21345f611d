# pyright: strict
"""GPU kernels as ladders of TensorIR schedules, each with a hand-written CUDA twin; compiled, executed and
verified alike.

import tir_schedules as ts

ts.ladders()
print(ts.emit("sgemm/warp_tiling"))
assert ts.run("sgemm/warp_tiling", mnk=(128, 128, 64)).ok
assert ts.check(schedule, expect={"C": "A @ B"}, beside="mine.cu").ok  # a TVM Schedule of one's own

Nothing is imported before it is used: TVM takes seconds.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from tir_schedules.version import VERSION as __version__  # noqa: F401

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from tir_schedules.api.benching import Times as Times
    from tir_schedules.api.benching import bench as bench
    from tir_schedules.api.checking import Check as Check
    from tir_schedules.api.checking import check as check
    from tir_schedules.api.checking import run as run
    from tir_schedules.api.emitting import Code as Code
    from tir_schedules.api.emitting import emit as emit
    from tir_schedules.api.inspecting import Costs as Costs
    from tir_schedules.api.inspecting import inspect as inspect
    from tir_schedules.api.ladders import Ladders as Ladders
    from tir_schedules.api.ladders import ladders as ladders
    from tir_schedules.api.ladders import rung as rung
    from tir_schedules.api.ladders import workload as workload
    from tir_schedules.api.layouts import Layout as Layout
    from tir_schedules.api.layouts import layout as layout
    from tir_schedules.api.learning import Graded as Graded
    from tir_schedules.api.learning import Lessons as Lessons
    from tir_schedules.api.learning import learn as learn
    from tir_schedules.api.learning import lessons as lessons
    from tir_schedules.api.running import Verdicts as Verdicts
    from tir_schedules.api.timing import TimeReport as TimeReport
    from tir_schedules.api.timing import time as time
    from tir_schedules.api.tracing import Trace as Trace
    from tir_schedules.api.tracing import trace as trace
    from tir_schedules.api.triton import check_triton as check_triton
    from tir_schedules.api.tuning import Searches as Searches
    from tir_schedules.api.tuning import tune as tune
    from tir_schedules.errors import BadInput as BadInput
    from tir_schedules.errors import CheckFailed as CheckFailed
    from tir_schedules.errors import MissingTool as MissingTool
    from tir_schedules.errors import TirSchedulesError as TirSchedulesError
    from tir_schedules.model.rung import Rung as Rung
    from tir_schedules.model.workload import Workload as Workload

HOMES = {
    "tir_schedules.api.benching": ("Times", "bench"),
    "tir_schedules.api.checking": ("Check", "check", "run"),
    "tir_schedules.api.emitting": ("Code", "emit"),
    "tir_schedules.api.inspecting": ("Costs", "inspect"),
    "tir_schedules.api.ladders": ("Ladders", "ladders", "rung", "workload"),
    "tir_schedules.api.layouts": ("Layout", "layout"),
    "tir_schedules.api.learning": ("Graded", "Lessons", "learn", "lessons"),
    "tir_schedules.api.running": ("Verdicts",),
    "tir_schedules.api.timing": ("TimeReport", "time"),
    "tir_schedules.api.tracing": ("Trace", "trace"),
    "tir_schedules.api.triton": ("check_triton",),
    "tir_schedules.api.tuning": ("Searches", "tune"),
    "tir_schedules.errors": ("BadInput", "CheckFailed", "MissingTool", "TirSchedulesError"),
    "tir_schedules.model.rung": ("Rung",),
    "tir_schedules.model.workload": ("Workload",),
}
"""Modules, and what of them is public."""

__all__ = [
    "BadInput", "Check", "CheckFailed", "Code", "Costs", "Graded", "Ladders", "Layout", "Lessons",
    "MissingTool", "Rung", "Searches", "TimeReport", "Times", "TirSchedulesError", "Trace", "Verdicts",
    "Workload", "bench", "check", "check_triton", "emit", "inspect", "ladders", "layout", "learn",
    "lessons", "run", "rung", "time", "trace", "tune", "workload",
]  # fmt: skip


class Function:
    # A public function that a module of this package has the name of: `check(...)` calls it, and
    # `check.session` is of the module. So both go by one name, and what is set here is set there.
    __slots__ = ("__wrapped__", "of_module")
    __wrapped__: Callable[..., object]
    of_module: str

    def __init__(self, function: Callable[..., object], module: str) -> None:
        object.__setattr__(self, "__wrapped__", function)
        object.__setattr__(self, "of_module", module)

    def __call__(self, *given: object, **named: object) -> object:
        return self.__wrapped__(*given, **named)

    __doc__ = property(lambda self: self.__wrapped__.__doc__)  # pyright: ignore
    __dict__ = property(lambda self: vars(import_module(self.of_module)))  # pyright: ignore

    def __getattr__(self, name: str) -> object:
        return getattr(import_module(self.of_module), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(import_module(self.of_module), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(import_module(self.of_module), name)

    def __repr__(self) -> str:
        return f"<function {self.of_module}>"


class Package(ModuleType):
    """Some public functions have the name of a module of this package, such as `check` and `run`. Python sets
    a module as an attribute of its package when it is imported; the name stays that of the function."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in __all__):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = Package


def __getattr__(name: str) -> object:
    home = next((module for module, names in HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(home), name)
    if home.startswith("tir_schedules.api.") and name.islower():
        found = import_module("tir_schedules.api.wording").in_python(found)
        module = f"{__name__}.{name}"
        found = Function(found, module) if find_spec(module) else found
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
