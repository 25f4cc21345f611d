# pyright: strict
"""Triton kernels from notebooks and pytest:

import tir_schedules as ts

result = ts.check_triton(add, (4,), x, y, out, 1000, BLOCK=256, expect={"out": "x + y"})
assert result.ok, result.faults
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import numpy as np

from tir_schedules.api.checking import Check, result_of
from tir_schedules.check.arguments import OUT, Argument
from tir_schedules.check.expecting import expectation
from tir_schedules.check.preparing import Request
from tir_schedules.check.session import failed_check, perform
from tir_schedules.check.triton.checking import numbers, prepare_launch
from tir_schedules.check.triton.compiling import Grid, compile_triton
from tir_schedules.check.triton.functions import innermost
from tir_schedules.errors import BadInput, CheckFailed, nearest
from tir_schedules.machines.choice import CPU_ARCH, choose
from tir_schedules.source import Source


def check_triton(
    kernel: Any,
    grid: Grid,
    *arguments: Any,
    expect: Mapping[str, str | np.ndarray] | None = None,
    outputs: Sequence[str] = (),
    tolerance: float | None = None,
    arch: str = CPU_ARCH,
    orders: int = 2,
    finite: bool = False,
    **named: Any,
) -> Check:
    """Launch a Triton kernel as `kernel[grid](*arguments, **named)` would, on arrays of numpy.

    - kernel: a function under `@triton.jit`. With `@triton.autotune` the first configuration is taken.
    - arguments, named: those of the kernel, and num_warps and num_stages. Arrays are copied and not changed.
    - expect: what arrays should be, as arrays or expressions of arguments, by the names of the kernel's
      parameters.
    - outputs: names of arrays whose content counts as unwritten.
    - tolerance, orders, finite: see `check`.

    What is wrong with the kernel is in the result, also if it does not compile or has an instruction that the
    machine does not know. Raises BadInput if the request is not possible, and MissingTool if Triton is not
    installed.
    """
    function = innermost(kernel)
    given = name_arguments(function, arguments, named)
    unknown = next((name for name in outputs if not isinstance(given.get(name), np.ndarray)), None)
    if unknown is not None:
        raise BadInput(f"there is no array {unknown!r}{nearest(unknown, given)}")
    request = Request(
        Source(""), (), numbers(given),
        expect=tuple(expectation(name, value) for name, value in (expect or {}).items()), tolerance=tolerance,
        finite=finite,
    )  # fmt: skip
    try:
        launch = compile_triton(kernel, grid, given, arch=arch)
        made = {name: Argument(None, OUT if name in outputs else "") for name in given}
        done = perform(prepare_launch(request, launch, made), choose("cpu", orders))
    except CheckFailed as error:
        done = failed_check(function.__name__, error)
    return result_of(done)


def name_arguments(function: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by the names of the function's parameters."""
    if len(arguments) > len(function.arg_names):
        raise BadInput(
            f"{function.__name__} takes {len(function.arg_names)} arguments"
            f" ({', '.join(function.arg_names)}), {len(arguments)} are given"
        )
    by_place = dict(zip(function.arg_names, arguments))
    twice = next((name for name in named if name in by_place), None)
    if twice:
        raise BadInput(f"{function.__name__}: {twice} is given by its place and by its name")
    return {**by_place, **named}
