"""Whether a kernel computed the right thing: every output element against the float64 truth, and against its
twin.

A kernel is verified with more than one set of inputs, see `workloads.drawing`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Iterator, Mapping, Sequence

import numpy as np

from tir_schedules.model.workload import Workload

Outputs = Mapping[str, Any]
"""Arrays of numpy or CuPy, or numbers, by the name of the output."""


@dataclass(frozen=True)
class Mismatch:
    """The worst element of an output that is not what it should be.

    index: its position. got, expected: the two values; integers have all their digits. error:
    |got - expected|, NaN when got is not a number.
    allowed: the tolerance there. count, size: wrong elements and all elements. against: "should be", or what
    else is expected.
    inputs: the kind of inputs, where there is more than one. hint: what else to know, in words.
    """

    output: str
    index: tuple[int, ...]
    got: float | int
    expected: float | int
    error: float
    allowed: float
    count: int
    size: int
    against: str
    inputs: str = ""
    hint: str = ""

    @property
    def element(self) -> str:
        """The element, such as C[0, 5]."""
        return element(self.output, self.index)

    def __str__(self) -> str:
        kind = f" with {self.inputs} inputs" if self.inputs else ""
        kind += f" ({self.hint})" if self.hint else ""
        return (
            f"{self.element} is {digits(self.got)}, {self.against} {digits(self.expected)}: off by"
            f" {self.error:.3g} where {self.allowed:.3g} is allowed; {self.count} of {self.size} elements"
            f" wrong{kind}"
        )

    def flat_index(self, shape: tuple[int, ...]) -> int:
        """Position of the element in row-major order."""
        return int(np.ravel_multi_index(self.index, shape)) if shape else 0


def element(name: str, place: Sequence[int]) -> str:
    """An element of an array as messages have it, such as C[0, 5]."""
    return f"{name}[{', '.join(map(str, place))}]"


def digits(value: float | int) -> str:
    """All digits of an integer, nine of a real."""
    return str(value) if isinstance(value, int) else f"{value:.9g}"


def compare(
    output: str, got: np.ndarray, expected: np.ndarray, allowed: Any, against: str
) -> Mismatch | None:
    """None when |got - expected| <= allowed everywhere; else the worst element. Integers are compared as
    integers.

    NaN and infinity never pass, whatever is expected of them and allowed. allowed: array of got's shape, or a
    number. Arrays may also be CuPy's, all of them: then only the worst element leaves the GPU.
    """
    if got.shape != expected.shape:
        raise ValueError(f"{output} has shape {got.shape}, expected {expected.shape}")
    integers = got.dtype.kind in "iub" and expected.dtype.kind in "iub"
    with np.errstate(invalid="ignore", over="ignore"):
        if integers:
            values, wanted = got, expected
            error = difference(got, expected)
            wrong = error > allowed
        else:
            values, wanted = (array.astype(np.float64, copy=False) for array in (got, expected))
            error = np.abs(values - wanted)
            wrong = ~(np.isfinite(values) & np.isfinite(wanted) & (error <= allowed))
        if not wrong.any():
            return None
        excess = np.where(wrong, np.where(np.isfinite(error), error - allowed, np.inf), -np.inf)
    worst = np.unravel_index(int(excess.argmax()), got.shape)
    limit = allowed[worst] if np.ndim(allowed) else allowed
    number = int if integers else float
    got_there, expected_there = number(values[worst]), number(wanted[worst])
    off, index = float(error[worst]), tuple(map(int, worst))
    count, size = int(wrong.sum()), got.size
    return Mismatch(output, index, got_there, expected_there, off, float(limit), count, size, against)


def difference(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """|one - other| of integers, as reals: right also where they have 64 bits, and 0 only where they are
    equal."""
    first, second = one.astype(np.uint64), other.astype(np.uint64)
    return np.where(one > other, first - second, second - first).astype(np.float64)


def first_mismatch(outputs: Outputs, expected: Outputs, allowed: Outputs, against: str) -> Mismatch | None:
    """The first of the expected arrays, by name, that an output of that name is too far from."""
    mismatches = (
        compare(name, outputs[name], array, allowed[name], against) for name, array in expected.items()
    )
    return next((m for m in mismatches if m), None)


@dataclass(frozen=True, eq=False)
class Check:
    """One set of inputs of a workload and what a kernel has to make of them.

    kind: of the inputs. inputs: what a kernel is given. truth: by output, float64. allowed: the tolerance, as
    arrays or numbers.
    """

    workload: Workload
    kind: str
    inputs: dict[str, Any] = field(repr=False)
    truth: dict[str, Any] = field(repr=False)
    allowed: dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, workload: Workload, kind: str, seed: int, xp: Any = np) -> "Check":
        """With inputs drawn from a seed by an array module, numpy or cupy."""
        inputs = workload.arguments(seed, xp, kind)
        return cls(workload, kind, inputs, workload.truth(inputs), workload.tolerance(inputs, kind))

    def arguments(self) -> dict[str, Any]:
        """The inputs with outputs and workspaces of their own, poisoned."""
        written = (*self.workload.outputs, *self.workload.workspaces)
        return self.inputs | {name: self.inputs[name].copy() for name in written if name in self.inputs}

    def mismatch(self, outputs: Outputs) -> Mismatch | None:
        """What of a kernel's outputs is not right."""
        return self.named(first_mismatch(outputs, self.truth, self.allowed, "should be"))

    def disagreement(self, outputs: Outputs, others: Outputs) -> Mismatch | None:
        """What of a kernel's outputs is further from its twin's than two kernels within the tolerance can
        be."""
        allowed = {name: 2 * limit for name, limit in self.allowed.items()}
        return self.named(first_mismatch(outputs, others, allowed, "its twin has"))

    def named(self, mismatch: Mismatch | None) -> Mismatch | None:
        return mismatch and replace(mismatch, inputs=self.kind)


def checks_of(workload: Workload, seed: int = 0, xp: Any = np) -> Iterator[Check]:
    """The checks that a kernel must pass, one at a time, for they may be large."""
    for kind, number in workload.draws(seed):
        yield Check.of(workload, kind, number, xp)


_drawing = threading.Lock()


def shared_checks(workload: Workload) -> tuple[Check, ...]:
    """The same in this computer's memory, made once for all kernels that are verified on a workload.

    A ladder goes through the same few workloads again with each rung; of large ones there is memory for few.
    """
    with _drawing:
        return (small_ones if workload.bytes <= SMALL else large_ones)(workload)


def drawn(workload: Workload) -> tuple[Check, ...]:
    return tuple(checks_of(workload))


SMALL = 4 << 20
"""Up to so many bytes a workload is small, and several are kept; its checks take about ten times as many."""

small_ones, large_ones = lru_cache(maxsize=8)(drawn), lru_cache(maxsize=2)(drawn)
