"""Arrays with bounds of what rounding does to them: what an expression's tolerance is derived from.

Each operation is done in float64, or int64 for integers, and carries along how far from it a kernel's own
arithmetic may be: by what it makes of its operands' errors, and by its own rounding. Sums err as
workloads/rounding.py has it, in any order of summation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np

from tir_schedules.workloads.rounding import MANTISSA, TRUNCATION, UNIT, worst_growth

ULPS = 16
"""Units that CUDA's own functions may be off by, `__expf` and the like of moderate arguments among them."""


@dataclass(frozen=True)
class Rounding:
    """How a kernel rounds. unit: unit roundoff of a number. sums: the same of additions, larger where tensor
    cores cut off."""

    unit: float
    sums: float
    inexact: list[str] = field(default_factory=list, compare=False)
    """Not empty once a value came up that is not whole, or a sum too large to be exact in every order."""

    def watch(self, value: np.ndarray) -> None:
        """Note reals that are not whole, or too large for all their digits."""
        if value.dtype.kind == "f" and not self.inexact:
            if not np.all((np.abs(value) <= 1 / self.unit) & (np.trunc(value) == value)):
                self.inexact.append("value")

    def of_sum(self, terms: int, magnitude: Any) -> Any:
        """What sums may be off by. magnitude: the sum of their magnitudes."""
        self.watch(np.trunc(magnitude))
        return self.growth(terms) * magnitude

    def growth(self, terms: int) -> float:
        """What a sum may be off by, per sum of magnitudes: the worst case, or 10*sqrt(terms) units where that
        is less and sums are not cut off, or cannot be told from noise in the worst case."""
        worst = worst_growth(terms + 1, self.sums)
        cut_off = self.sums > self.unit and worst < 1
        return worst if cut_off else min(worst, 10 * (terms + 1) ** 0.5 * self.sums)


def rounding_of(output: str, inputs: set[str]) -> Rounding:
    """Of a kernel that leaves a format from inputs of others; see types.py for formats."""
    if output == "f64":
        return Rounding(2.0**-53, 2.0**-53)
    if output in ("f16", "bf16"):
        unit = 2.0 ** -MANTISSA["float16"] if output == "f16" else 2.0**-8
        return Rounding(unit, TRUNCATION["float16"] if output == "f16" else 2.0**-7)
    tensor = inputs & {"f16", "bf16"}
    return Rounding(UNIT, TRUNCATION["float32"] if tensor else UNIT)


class Bounded:
    """An array, or a number, and how far from it a kernel may be. value: float64 or int64; error: like it, or
    0.0."""

    __array_ufunc__ = None  # numpy's operators leave an operation to ours

    def __init__(self, value: Any, error: Any, rounding: Rounding):
        self.value, self.error, self.rounding = np.asarray(value), error, rounding
        rounding.watch(self.value)

    def of(self, other: Any) -> Bounded:
        """Another operand as one of these."""
        return other if isinstance(other, Bounded) else Bounded(plain(other), 0.0, self.rounding)

    def rounded(self, value: Any, error: Any, ulps: float = 1) -> Bounded:
        """A result, which is rounded unless it is an integer."""
        value = np.asarray(value)
        own = ulps * self.rounding.unit * np.abs(value) if value.dtype.kind == "f" else 0.0
        return Bounded(value, error + own, self.rounding)

    def __add__(self, other: Any) -> Bounded:
        other = self.of(other)
        return self.rounded(self.value + other.value, self.error + other.error)

    def __sub__(self, other: Any) -> Bounded:
        other = self.of(other)
        return self.rounded(self.value - other.value, self.error + other.error)

    def __mul__(self, other: Any) -> Bounded:
        other = self.of(other)
        return self.rounded(self.value * other.value, product_error(self, other))

    def __truediv__(self, other: Any) -> Bounded:
        other = self.of(other)
        with np.errstate(all="ignore"):
            value = self.value / other.value
            error = (self.error + np.abs(value) * other.error) / np.maximum(
                np.abs(other.value) - other.error, np.finfo(np.float64).tiny
            )
        return self.rounded(value, error, 4)

    def __matmul__(self, other: Any) -> Bounded:
        other = self.of(other)
        value = self.value @ other.value
        large, larger = (np.abs(one.value) + one.error for one in (self, other))
        error = large @ larger - np.abs(self.value) @ np.abs(other.value)
        if value.dtype.kind == "f":
            error = error + self.rounding.of_sum(self.value.shape[-1], large @ larger)
        return self.rounded(value, error if np.any(error) else 0.0)

    def __pow__(self, other: Any) -> Bounded:
        return elementwise(np.power, 4)(self, other)

    def __mod__(self, other: Any) -> Bounded:
        return elementwise(np.mod)(self, other)

    def __floordiv__(self, other: Any) -> Bounded:
        return elementwise(np.floor_divide)(self, other)

    def __radd__(self, other: Any) -> Bounded:
        return self.of(other) + self

    def __rsub__(self, other: Any) -> Bounded:
        return self.of(other) - self

    def __rmul__(self, other: Any) -> Bounded:
        return self.of(other) * self

    def __rtruediv__(self, other: Any) -> Bounded:
        return self.of(other) / self

    def __rpow__(self, other: Any) -> Bounded:
        return self.of(other) ** self

    def __rmod__(self, other: Any) -> Bounded:
        return self.of(other) % self

    def __rfloordiv__(self, other: Any) -> Bounded:
        return self.of(other) // self

    def __neg__(self) -> Bounded:
        return Bounded(-self.value, self.error, self.rounding)

    def __pos__(self) -> Bounded:
        return self

    def __lt__(self, other: Any) -> np.ndarray:
        return self.value < plain(other)

    def __le__(self, other: Any) -> np.ndarray:
        return self.value <= plain(other)

    def __gt__(self, other: Any) -> np.ndarray:
        return self.value > plain(other)

    def __ge__(self, other: Any) -> np.ndarray:
        return self.value >= plain(other)

    def __eq__(self, other: Any) -> np.ndarray:  # type: ignore[override]
        return self.value == plain(other)

    def __ne__(self, other: Any) -> np.ndarray:  # type: ignore[override]
        return self.value != plain(other)

    def __and__(self, other: Any) -> Bounded:
        return elementwise(np.bitwise_and)(self, other)

    def __or__(self, other: Any) -> Bounded:
        return elementwise(np.bitwise_or)(self, other)

    def __xor__(self, other: Any) -> Bounded:
        return elementwise(np.bitwise_xor)(self, other)

    def __lshift__(self, other: Any) -> Bounded:
        return elementwise(np.left_shift)(self, other)

    def __rshift__(self, other: Any) -> Bounded:
        return elementwise(np.right_shift)(self, other)

    def __invert__(self) -> Bounded:
        return elementwise(np.invert)(self)

    def __getitem__(self, key: Any) -> Bounded:
        keys = tuple(map(plain, key)) if isinstance(key, tuple) else plain(key)
        return Bounded(self.value[keys], spread(self)[keys], self.rounding)

    def __bool__(self) -> bool:
        return bool(self.value)

    @property
    def T(self) -> Bounded:
        return Bounded(self.value.T, spread(self).T, self.rounding)


def plain(value: Any) -> Any:
    """A value without its bound."""
    return value.value if isinstance(value, Bounded) else value


def spread(one: Bounded) -> np.ndarray:
    """The bounds as an array like the values."""
    return np.broadcast_to(np.asarray(one.error, np.float64), one.value.shape)


def product_error(one: Bounded, other: Bounded) -> Any:
    return np.abs(one.value) * other.error + np.abs(other.value) * one.error + one.error * other.error


def elementwise(function: Callable[..., Any], ulps: float = 1) -> Callable[..., Any]:
    """A function of numbers: operands that are off show in what it makes of them at either end."""

    def call(*operands: Any) -> Any:
        if isinstance(function, np.ufunc) and len(operands) != function.nin:
            raise TypeError(f"{function.__name__} takes {function.nin} operands; {len(operands)} are given")
        one = next((each for each in operands if isinstance(each, Bounded)), None)
        if one is None:
            return function(*operands)
        every = [one.of(each) for each in operands]
        with np.errstate(all="ignore"):
            value = np.asarray(function(*(each.value for each in every)))
            error: Any = 0.0
            for at, each in enumerate(every):
                if np.any(each.error):
                    error = error + moved(function, [other.value for other in every], at, each.error, value)
        return one.rounded(value, error, ulps)

    return call


def moved(
    function: Callable[..., Any], values: list[np.ndarray], at: int, error: Any, value: np.ndarray
) -> np.ndarray:
    """How far a result moves when an operand does by its error."""
    ends = []
    for sign in (-1, 1):
        others = [*values]
        others[at] = values[at] + sign * error
        ends.append(np.nan_to_num(np.abs(function(*others) - value), nan=0.0, posinf=0.0))
    return np.maximum(*ends)
