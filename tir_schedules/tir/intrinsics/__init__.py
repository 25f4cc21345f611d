"""Tensor intrinsics: what a block must compute to be replaced, and the tensor-core instructions that replace
it.

Each function returns the name under which its intrinsic is registered, for `sch.tensorize`, and registers it
at the first call. `wmma` and `mma` say why they do not take TVM's own. TVM 0.27 has no intrinsics of wgmma,
boxes, mbarriers or stmatrix.
"""

from __future__ import annotations

from functools import wraps
from typing import Callable

from tir_schedules.tir.schedule import PrimFunc
from tir_schedules.tir.tvm import import_tvm

REGISTERED: set[str] = set()

Intrinsic = tuple[PrimFunc, PrimFunc]
"""What a block must compute, and the instructions that take its place."""


def intrinsic(make: Callable[..., Intrinsic]) -> Callable[..., str]:
    """Decorate a function that makes an intrinsic; it then returns the name that this is registered under."""

    @wraps(make)
    def name_of(*arguments: str | bool) -> str:
        module = make.__module__.rpartition(".")[2]
        name = ".".join(["tir_schedules", module, make.__name__, *map(str, arguments)])
        if name not in REGISTERED:
            import_tvm().s_tir.TensorIntrin.register(name, *make(*arguments))
            REGISTERED.add(name)
        return name

    return name_of


def in_halves(make: Callable[..., PrimFunc]) -> Callable[..., str]:
    """The same for a function that makes either half, from buffers declared once. Its first argument,
    `describes`, asks for what a block must compute; without it the instructions are made."""

    @intrinsic
    @wraps(make)
    def both(*arguments: str | bool) -> Intrinsic:
        return make(True, *arguments), make(False, *arguments)

    return both
