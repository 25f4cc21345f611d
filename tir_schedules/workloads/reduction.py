"""Sum of an array, the algorithm every Reduce ladder schedules."""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tir_schedules.errors import BadInput
from tir_schedules.model.launch import Dim3, ceil_div
from tir_schedules.model.workload import Arguments
from tir_schedules.workloads import MOST, array_of
from tir_schedules.workloads.drawing import EXACT, REALS, ZEROS, Draws
from tir_schedules.workloads.rounding import SPREAD, bias, growth, largest_exact

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

    from tir_schedules.model.workload import Workload

OCTAVES = 8
"""Reals differ by up to so many powers of two in either direction."""

TELLING = 4095
"""Integers up to this have more bits than float16 and TF32 hold: rounding terms to those shows."""
RARE = 4099  # a prime: rare terms are any thread's

C_TYPES = {"int32": "int", "float32": "float"}
POISON = {"int32": -0x21524111, "float32": np.nan}
"""What an output holds before anybody writes it."""


@dataclass(frozen=True)
class Reduction:
    """Y[0] = X[0] + ... + X[n-1] of int32, which wraps around, or of float32.

    A launch leaves one partial sum per block along x; they are summed by further launches of the same rung
    until one is left. Raises BadInput for n below 1 or from MOST on, and for another dtype.
    """

    n: int
    dtype: str = "int32"

    inputs = ("X",)
    outputs = ("Y",)
    workspaces = ()

    def __post_init__(self) -> None:
        if self.n < 1:
            raise BadInput(f"N is {self.n}; it must be at least 1")
        if self.n >= MOST:
            raise BadInput(f"N is {self.n}; it must be below 2**31 - 2**16 (32-bit indices)")
        if self.dtype not in C_TYPES:
            raise BadInput(f"dtype is {self.dtype!r}; it can be {' or '.join(C_TYPES)}")

    def __str__(self) -> str:
        return f"{self.n} {self.dtype}"

    @property
    def shape(self) -> tuple[int]:
        return (self.n,)

    @property
    def macros(self) -> dict[str, str]:
        """What a twin must know of the workload when it is compiled."""
        return {} if self.dtype == "int32" else {"DTYPE": C_TYPES[self.dtype]}

    @property
    def parameters(self) -> dict[str, str]:
        """What a kernel may take, and its C type."""
        return {"X": f"const {C_TYPES[self.dtype]}*", "Y": f"{C_TYPES[self.dtype]}*", "N": "int"}

    @property
    def flops(self) -> int:
        """Additions."""
        return self.n - 1

    @property
    def bytes(self) -> int:
        """Compulsory global traffic in bytes: every element read once."""
        return 4 * self.n

    def array_shapes(self, grid: Dim3) -> dict[str, tuple[int, ...]]:
        """Shapes of X and Y, which has one sum per block along x."""
        return {"X": (self.n,), "Y": (grid[0],)}

    def draws(self, seed: int = 0) -> list[tuple[str, int]]:
        """Kinds and seeds of the inputs that a kernel is verified with: sums of int32 are always exact."""
        return [(EXACT, seed)] if self.dtype == "int32" else [(EXACT, seed), (REALS, seed)]

    def arguments(self, seed: int = 0, xp: Any = np, kind: str = REALS) -> Arguments:
        """X and N of the first launch: int32 over its whole range; or float32 of a kind of inputs, whose sum
        is far from 0.

        Sums of exact inputs are positive, those of reals negative.

        xp: the array module that draws, numpy or cupy.
        """
        if kind == ZEROS:
            return {"X": xp.zeros(self.n, self.dtype), "N": self.n}
        draws, odds = Draws(seed, xp), bias(self.n)
        if self.dtype == "int32":
            x = draws.int32(self.n)
        elif kind == EXACT:
            x = self.integers(draws, odds)
        else:
            x = draws.reals(OCTAVES, self.n, odds)
        if self.dtype != "int32" and (x.sum(dtype=np.float64) < 0) == (kind == EXACT):
            x = -x
        return {"X": x, "N": self.n}

    def integers(self, draws: Draws, odds: float) -> Any:
        """X of integers without 0, up to TELLING at least where there is room; else one in RARE is larger, so
        that squares double."""
        largest = largest_exact(self.n, self.dtype)
        if largest >= TELLING:
            return draws.integers(largest, self.n, self.dtype, odds)
        most = (int(largest / 2**0.5), int(largest * (RARE / 2) ** 0.5))
        x, rare = (draws.integers(one, self.n, self.dtype, odds) for one in most)
        return draws.xp.where(draws.xp.arange(self.n) % RARE == 0, rare, x)

    def prepared(self, arguments: Arguments, grid: Dim3) -> Arguments:
        """Arguments of the next launch, with `grid` blocks: it sums what the launch before left in Y, if
        there was one."""
        source = array_of(arguments, "Y" if "Y" in arguments else "X")
        return {"X": source, "Y": np.full_like(source, POISON[self.dtype], shape=grid[0]), "N": source.size}

    def rest(self, grid: Dim3) -> Reduction | None:
        """What is left to do after a launch of `grid` blocks."""
        return Reduction(grid[0], self.dtype) if grid[0] > 1 else None

    def truth(self, arguments: Arguments) -> dict[str, np.ndarray]:
        """The exact sum: of integers modulo 2**32, of floats in float64."""
        x = array_of(arguments, "X")
        if self.dtype == "int32":
            return {"Y": x.sum(dtype=np.int64, keepdims=True).astype(np.int32)}
        return {"Y": x.sum(dtype=np.float64, keepdims=True)}

    def tolerance(self, arguments: Arguments, kind: str = REALS) -> dict[str, np.ndarray | float]:
        """Zero for integers and exact inputs; for reals what rounding can explain in any order of summation.

        The bound of n - 1 additions, with the largest partial sum that terms with signs at random can have.
        """
        if kind == EXACT or self.dtype == "int32":
            return {"Y": 0.0}
        x = np.abs(array_of(arguments, "X")).astype(np.float64)
        largest = np.minimum(x.sum(keepdims=True), SPREAD * np.sqrt((x * x).sum(keepdims=True)))
        return {"Y": growth(self.n) * largest}

    def prim_func(self, name: str) -> PrimFunc:
        """The algorithm as a TensorIR PrimFunc with one block "sum", entry point `name`: all of X in one
        sum."""
        return self.partial_sums(name, 1, self.n)

    def partial_sums(self, name: str, blocks: int, chunk: int) -> PrimFunc:
        """The algorithm of a launch that leaves one sum per block.

        Y[b] is the sum of chunks b, b + blocks, b + 2 blocks, ... of X. Loops: blocks, turns, elements of a
        chunk.
        """
        from tvm.script import tirx as T

        n, dtype = self.n, self.dtype
        turns, zero = ceil_div(n, blocks * chunk), constant_zero(dtype)

        @T.prim_func(s_tir=True)
        def reduce(X: T.Buffer((n,), dtype), Y: T.Buffer((blocks,), dtype)):
            T.func_attr({"global_symbol": name, "tirx.noalias": True})
            for b, turn, i in T.grid(blocks, turns, chunk):
                with T.sblock("sum"):
                    vb, vturn, vi = T.axis.remap("SRR", [b, turn, i])
                    with T.init():
                        Y[vb] = zero
                    Y[vb] = Y[vb] + T.if_then_else(
                        (vturn * blocks + vb) * chunk + vi < n, X[(vturn * blocks + vb) * chunk + vi], zero
                    )

        return reduce


def constant_zero(dtype: str) -> Any:
    """Zero as TensorIR knows it from sums."""
    from tvm.tirx import const

    return const(0, dtype)


if TYPE_CHECKING:  # holds it to the protocol
    CHECKED: type[Workload] = Reduction
