"""Sum of an array, the algorithm every Reduce ladder schedules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tir_schedules.errors import BadInput
from tir_schedules.workloads import MOST
from tir_schedules.workloads.drawing import EXACT, REALS, Draws
from tir_schedules.workloads.rounding import SPREAD, bias, growth, largest_exact

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

    A launch leaves one partial sum per block; they are summed by further launches of the same rung until one
    is left. Raises BadInput for n below 1 or from MOST on, and for another dtype.
    """

    n: int
    dtype: str = "int32"

    inputs = ("X",)
    outputs = ("Y",)

    def __post_init__(self):
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
        """Least global traffic in bytes: every element read once."""
        return 4 * self.n

    def draws(self, seed: int = 0) -> list[tuple[str, int]]:
        """Kinds and seeds of the inputs that a kernel is verified with: sums of int32 are always exact."""
        return [(EXACT, seed)] if self.dtype == "int32" else [(EXACT, seed), (REALS, seed)]

    def arguments(self, seed: int = 0, xp: Any = np, kind: str = REALS) -> dict[str, np.ndarray | int]:
        """X and N of the first launch: int32 over its whole range; or float32 of a kind of inputs, whose sum
        is far from 0.

        Sums of exact inputs are positive, those of reals negative.

        xp: the array module that draws, numpy or cupy.
        """
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

    def prepared(self, arguments, grid) -> dict[str, np.ndarray | int]:
        """Arguments of the next launch, with `grid` blocks: it sums what the launch before left in Y, if
        there was one."""
        source = arguments.get("Y", arguments["X"])
        return {"X": source, "Y": np.full_like(source, POISON[self.dtype], shape=grid[0]), "N": source.size}

    def rest(self, grid) -> "Reduction | None":
        """What is left to do after a launch of `grid` blocks."""
        return Reduction(grid[0], self.dtype) if grid[0] > 1 else None

    def truth(self, arguments) -> dict[str, np.ndarray]:
        """The exact sum: of integers modulo 2**32, of floats in float64."""
        x = arguments["X"]
        if self.dtype == "int32":
            return {"Y": x.sum(dtype=np.int64, keepdims=True).astype(np.int32)}
        return {"Y": x.sum(dtype=np.float64, keepdims=True)}

    def tolerance(self, arguments, kind: str = REALS) -> dict[str, np.ndarray | float]:
        """Zero for integers and exact inputs; for reals what rounding can explain in any order of summation.

        The bound of n - 1 additions, with the largest partial sum that terms with signs at random can have.
        """
        if kind == EXACT or self.dtype == "int32":
            return {"Y": 0.0}
        x = np.abs(arguments["X"]).astype(np.float64)
        largest = np.minimum(x.sum(keepdims=True), SPREAD * np.sqrt((x * x).sum(keepdims=True)))
        return {"Y": growth(self.n) * largest}
