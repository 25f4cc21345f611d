"""Triton itself, where it is installed, and what of it is asked for here.

Triton has no public door for compiling as a launch would, but without a GPU: the names below the top are
those of Triton 3.
"""

from __future__ import annotations

import importlib
from functools import lru_cache
from types import ModuleType
from typing import Any

from tir_schedules.errors import MissingTool, one_line

INSTALL = "pip install 'tir_schedules[triton]'"


class Triton:
    """The parts of Triton that are used; 3.4 to 3.9 have them. MissingTool where one is not there."""

    def __init__(self) -> None:
        self.version = attribute(part("triton"), "__version__")
        self.jit = part("triton.runtime.jit")
        self.autotuner = part("triton.runtime.autotuner")
        self.compiler = part("triton.compiler")
        self.errors = part("triton.compiler.errors")
        self.language = part("triton.language")
        self.testing = part("triton.testing")
        self.driver = attribute(part("triton.runtime"), "driver")
        self.GPUTarget = attribute(part("triton.backends.compiler"), "GPUTarget")
        self.JITFunction = attribute(self.jit, "JITFunction")
        self.Autotuner = attribute(self.autotuner, "Autotuner")
        self.Heuristics = attribute(self.autotuner, "Heuristics")
        self.CompilationError = attribute(self.errors, "CompilationError")

    @property
    def cuobjdump(self) -> str:
        """The program that reads what Triton's assembler wrote."""
        return part("triton.knobs").nvidia.cuobjdump.path

    def bind(self, function: Any, arch: int, arguments: dict[str, Any], options: dict[str, Any]) -> Any:
        """What a launch with these arguments makes of them: all arguments by name, those that a function's
        defaults give among them; the source that is compiled; options."""
        target = self.GPUTarget("cuda", arch, 32)
        backend = attribute(self.compiler, "make_backend")(target)
        binder = attribute(self.jit, "create_function_from_signature")(
            function.signature, function.params, backend
        )
        asked = {"debug": bool(function.debug), **options}
        bound, specialization, _ = binder(**{**arguments, **asked})
        kinds = list(enumerate(specialization))
        signature = {name: kind for name, (kind, *_) in zip(function.arg_names, specialization)}
        constants = {(at,): bound[function.arg_names[at]] for at, (kind, *_) in kinds if kind == "constexpr"}
        attributes = {
            (at,): backend.parse_attr(known)
            for at, (kind, known) in kinds
            if kind != "constexpr" and isinstance(known, str)
        }
        source = attribute(self.compiler, "ASTSource")(function, signature, constants, attributes)
        return bound, source, backend.parse_options(asked)

    def compile(self, source: Any, arch: int, options: Any) -> Any:
        return self.compiler.compile(
            source, target=self.GPUTarget("cuda", arch, 32), options=options.__dict__
        )


@lru_cache(maxsize=1)
def the_triton() -> Triton:
    """MissingTool when Triton is not installed, does not load, or is not of a version that is known."""
    return Triton()


def part(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == "triton":
            raise MissingTool(f"Triton is not installed: {INSTALL}") from None
        raise MissingTool(f"this Triton has no {name}: {INSTALL}") from None
    except Exception as error:
        raise MissingTool(f"Triton does not load ({one_line(error)}): {INSTALL}") from None


def attribute(module: ModuleType, name: str) -> Any:
    try:
        return getattr(module, name)
    except AttributeError:
        raise MissingTool(f"this Triton has no {module.__name__}.{name}: {INSTALL}") from None
