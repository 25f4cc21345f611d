"""What stands in for torch, a GPU and other modules that are not there while a Python file is executed for
its kernels."""

from __future__ import annotations

import dis
import importlib.abc
import importlib.machinery
import sys
from abc import ABCMeta
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from functools import partialmethod
from io import StringIO
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Iterator, Mapping, Sequence
from unittest.mock import patch

from tir_schedules.check.triton.library import Triton, the_triton

PATIENCE = 10000
"""Times that an unknown value is asked whether it is true: more is a loop."""

INSTALLED = {"site-packages", "dist-packages"}
LONGEST = 200
"""Letters of what a value is called."""

UNPACK = dis.opmap["UNPACK_SEQUENCE"]
BINARY = (
    "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift radd rsub rmul rtruediv rfloordiv"
    " rmod rpow rmatmul rand ror rxor rlshift rrshift"
).split()
UNARY = "neg pos abs invert".split()
SAME = {"eq": True, "le": True, "ge": True, "ne": False, "lt": False, "gt": False}
"""Comparisons: unknown values are taken to be alike, so that assertions hold."""

DTYPES = {
    "float16": "half", "bfloat16": "", "float32": "float", "float64": "double", "int8": "", "int16": "short",
    "int32": "int", "int64": "long", "uint8": "", "uint16": "", "uint32": "", "uint64": "",
}  # fmt: skip
"""torch's types that Triton has by the same name, and what torch also calls them."""

FLOAT8 = {"float8_e5m2": "float8e5", "float8_e4m3fn": "float8e4nv", "float8_e4m3fnuz": "float8e4b8"}

DEVICE = {
    "multiprocessor_count": 108, "max_shared_mem": 166912, "max_num_regs": 65536, "warpSize": 32,
    "sm_clock_rate": 1410000, "mem_clock_rate": 1215000, "mem_bus_width": 5120,
}  # fmt: skip
"""What Triton's driver says of an A100."""

CAPABILITY = (8, 0)


class StandIn:
    """A value of a module that is not there: whatever is done with it makes another. As a decorator it leaves
    a function as it is, and a class may be derived from it. truth: whether it is true."""

    asked = 0

    def __init__(self, path: str, values: dict[str, Any], truth: bool = True):
        self._path, self._values, self._truth = path[:LONGEST], values, truth

    def __repr__(self) -> str:
        return f"{self._path}, of what is not installed,"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(f"{self._path}.{name}", self._values)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            super().__setattr__(name, value)

    def __call__(self, *given: Any, **named: Any) -> Any:
        if len(given) == 1 and not named and is_decorated(given[0]):
            return given[0]
        return stand_in(f"{self._path}()", self._values)

    def __getitem__(self, key: Any) -> Any:
        return stand_in(f"{self._path}[]", self._values)

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    def __bool__(self) -> bool:
        StandIn.asked += 1
        if StandIn.asked > PATIENCE:
            raise RuntimeError(f"a loop waits for {self._path}")
        return self._truth

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return (Derived,)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, StandIn)

    def __contains__(self, value: Any) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        """As many as names take them, as in `rows, columns = x.shape`; none in a loop."""
        frame = sys._getframe(1)
        code, at = frame.f_code.co_code, frame.f_lasti
        return iter([self[k] for k in range(code[at + 1] if code[at] == UNPACK else 0)])

    def __len__(self) -> int:
        return 0

    def __index__(self) -> int:
        return 1

    __int__ = __index__

    def __float__(self) -> float:
        return 1.0

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    __hash__ = object.__hash__


def is_decorated(value: Any) -> bool:
    return isinstance(value, type) or (callable(value) and not isinstance(value, StandIn))


def made_another(self: StandIn, *_: Any) -> Any:
    return StandIn(self._path, self._values)


def compared(self: StandIn, truth: bool, other: Any) -> Any:
    return StandIn(self._path, self._values, truth)


class KindOfDerived(ABCMeta):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(f"{cls.__name__}.{name}", {})


class Derived(metaclass=KindOfDerived):
    """What classes are derived from in place of classes that are missing, such as torch.nn.Module."""

    def __getattr__(self, name: str) -> Any:
        return getattr(type(self), name)

    def __call__(self, *given: Any, **named: Any) -> Any:
        return StandIn(f"{type(self).__name__}()", {})


for name in (*BINARY, *UNARY):
    setattr(StandIn, f"__{name}__", made_another)
for name, found in SAME.items():
    setattr(StandIn, f"__{name}__", partialmethod(compared, found))


def stand_in(path: str, values: dict[str, Any]) -> Any:
    return values[path] if path in values else StandIn(path, values)


class StandInModule(ModuleType):
    """A module that is not installed."""

    _values: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(f"{self.__name__}.{name}", self._values)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes modules that nothing else finds, for files of a folder: other programs that try what is installed
    are told that it is not. made: their names."""

    def __init__(self, folder: Path, values: dict[str, Any]):
        self.folder, self.values, self.made = str(folder), values, list[str]()

    def has(self, file: str) -> bool:
        """Whether a file is one of the folder, and of no package that is installed there."""
        return file.startswith(self.folder) and not INSTALLED.intersection(Path(file).parts)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        frame = sys._getframe(1)
        while frame.f_back and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        if not self.has(frame.f_code.co_filename):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> ModuleType:
        made = StandInModule(spec.name)
        made._values = self.values
        self.made.append(spec.name)
        return made

    def exec_module(self, module: ModuleType) -> None:
        pass


def values_of_torch(language: Any) -> dict[str, Any]:
    """What of torch is known without it. language: triton.language, whose types stand for torch's."""
    found: dict[str, Any] = {
        "torch.__version__": "2.8.0", "torch.version.cuda": "12.8", "torch.version.hip": None,
        "torch.version.xpu": None, "torch.cuda.is_available()": True, "torch.cuda.device_count()": 1,
        "torch.cuda.current_device()": 0, "torch.cuda.get_device_capability()": CAPABILITY,
        "torch.cuda.get_device_name()": "NVIDIA A100", "torch.xpu.is_available()": False,
        "torch.mps.is_available()": False, "torch.backends.mps.is_available()": False,
        "torch.cuda.get_device_properties().multi_processor_count": DEVICE["multiprocessor_count"],
        "torch.bool": language.int1,
    }  # fmt: skip
    for name, other in DTYPES.items():
        found |= {f"torch.{each}": getattr(language, name) for each in (name, other) if each}
    return found | {f"torch.{name}": getattr(language, own, None) for name, own in FLOAT8.items()}


def driver_of_a_gpu(triton: Triton, values: dict[str, Any]) -> Any:
    """What Triton's driver of a GPU is asked for where it is loaded."""
    major, minor = CAPABILITY
    return SimpleNamespace(
        get_current_target=lambda: triton.GPUTarget("cuda", 10 * major + minor, 32),
        get_current_device=lambda: 0,
        get_current_stream=lambda device=None: 0,
        get_active_torch_device=lambda: StandIn("torch.device()", values),
        get_device_interface=lambda: StandIn("torch.cuda", values),
        get_benchmarker=lambda: StandIn("benchmarker", values),
        utils=SimpleNamespace(get_device_properties=lambda device=None: dict(DEVICE)),
    )


@contextmanager
def standing_in(folder: Path, own: Mapping[str, ModuleType]) -> Iterator[Sequence[str]]:
    """While a file of a folder is executed: modules that are missing, a GPU, and launches that do nothing.
    Gives the names of the modules that were made, as far as it has come. What it prints is left out.
    own: the file's module and packages. These, and other modules of the folder, are forgotten afterwards."""
    triton = the_triton()
    values = values_of_torch(triton.language)
    finder, driver = Finder(folder, values), triton.driver

    def nothing(*_: Any, **__: Any) -> Any:
        return StandIn("what a launch returns", values)

    before = set(sys.modules)
    sys.modules.update(own)
    StandIn.asked = 0
    with ExitStack() as stack:
        for kind in (triton.JITFunction, triton.Autotuner, triton.Heuristics, triton.testing.Mark):
            stack.enter_context(patch.object(kind, "run", nothing))
        for name in ("do_bench", "do_bench_cudagraph"):
            stack.enter_context(patch.object(triton.testing, name, nothing))
        stack.enter_context(patch.object(driver, "_active", driver_of_a_gpu(triton, values)))
        stack.enter_context(patch.object(sys, "meta_path", [*sys.meta_path, finder]))
        stack.enter_context(redirect_stdout(StringIO()))
        stack.enter_context(redirect_stderr(StringIO()))
        try:
            yield finder.made
        finally:
            for name in set(sys.modules) - before:
                file = getattr(sys.modules[name], "__file__", None) or ""
                if name in own or name in finder.made or finder.has(file):
                    del sys.modules[name]
