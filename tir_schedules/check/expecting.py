"""What outputs should be: an expression, an array, and how far from it a kernel may be."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Iterable, Mapping

import numpy as np

from tir_schedules.check.arguments import load_array
from tir_schedules.check.bounded import Bounded, Rounding, plain, rounding_of, spread
from tir_schedules.check.expressions import evaluate
from tir_schedules.check.functions import FUNCTIONS
from tir_schedules.check.types import dtype_of, format_of
from tir_schedules.errors import BadInput, shown
from tir_schedules.model.verify import Mismatch, compare

TARGET = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\[([^=]*)\])?\s*")
"""`C` or `C[0]`: an output, or a part of it."""

WORD = re.compile(r"[^\W\d]\w*")
"""A name in an expression."""

WHOLE = 0.25
"""How far from a whole number a kernel may be, which computes it in a way of its own."""

ROUNDING = 1 << 10
"""How many units of the last place of its largest value an output may be off an array that is given."""


@dataclass(frozen=True)
class Expected:
    """What an output should be. output: its name. where: a part of it, such as "0" of `C[0]`; "" for all.
    value: an expression, or an array."""

    output: str
    value: Any
    where: str = ""

    @property
    def what(self) -> str:
        return f"--expect {self.output}{f'[{self.where}]' if self.where else ''}="


def expectation(target: str, value: Any) -> Expected:
    """What an output, or a part of it such as `C[0]`, should be."""
    match = TARGET.fullmatch(target)
    if not match:
        raise BadInput(f"{shown(target)} is no output; name an argument, C, or a part of it, C[0]")
    return Expected(match[1], value, match[2] or "")


def parse_expectation(text: str, folder: Path) -> Expected:
    """`C=EXPRESSION`, or `C=FILE.npy`, whose relative name begins in the folder."""
    target, equals, value = text.partition("=")
    if not equals or value.startswith("="):
        raise BadInput(
            f"--expect takes NAME=EXPRESSION such as C='A @ B', or NAME=FILE.npy, not {shown(text)}"
        )
    value = value.strip()
    return expectation(target, load_array(folder / value) if value.endswith(".npy") else value)


@dataclass(frozen=True)
class Truth:
    """An output's right values, float64 or integers, and the tolerance of each. flat: which elements these
    are, in row-major order; None for all. whole: whether it is whole numbers that no order of sums rounds."""

    value: np.ndarray
    allowed: Any
    flat: np.ndarray | None = None
    whole: bool = False

    def mismatch(self, name: str, got: np.ndarray) -> Mismatch | None:
        """What of an output is not right."""
        compared = got if self.flat is None else got.reshape(-1)[self.flat]
        expected = self.value
        if np.dtype(got.dtype).kind in "iu" and expected.dtype.kind in "iub":
            expected = expected.astype(got.dtype)
        numbers = to_numpy(compared)
        same = np.isinf(expected) & (numbers == expected)  # which `compare` passes nowhere
        allowed = np.where(same, 0, self.allowed)
        with np.errstate(over="ignore"):
            found = compare(
                name, np.where(same, 0, numbers), np.where(same, 0, expected), allowed, "should be"
            )
        if found is None or self.flat is None:
            return found
        place = np.unravel_index(int(np.asarray(self.flat[found.index])), got.shape)
        return replace(found, index=tuple(map(int, place)))


def to_numpy(array: np.ndarray) -> np.ndarray:
    """An array in a format that numpy has itself."""
    return array if np.dtype(array.dtype).kind in "fiub" else array.astype(np.float32)


def truth_of(
    one: Expected, output: np.ndarray, names: Mapping[str, Any], tolerance: float | None, tf32: bool = False
) -> Truth:
    """names: arrays and numbers before the launches. tolerance: of each element, absolute and as a share of
    its value; None for what rounding explains. tf32: whether the kernel reads float32 as TF32.

    BadInput for an expression that fails or has another shape than the output.
    """
    format = format_of(output.dtype)
    flat = select_positions(one, output) if one.where else None
    shape = output.shape if flat is None else flat.shape
    if isinstance(one.value, str):
        formats = {format_of(value.dtype) for value in names.values() if isinstance(value, np.ndarray)}
        formats |= {"f16"} if tf32 else set()  # tensor cores sum alike
        rounding = rounding_of(format, formats)
        operands = {name: operand(value, rounding, tf32) for name, value in names.items()}
        rounding.inexact.clear()  # of operands that the expression has not
        for name in WORD.findall(one.value):
            if name in operands:
                rounding.watch(operands[name].value)
        with np.errstate(all="ignore"):
            found = evaluate(one.value, operands, FUNCTIONS, one.what)
        value = np.asarray(plain(found))
        error = spread(found) if isinstance(found, Bounded) else np.zeros(value.shape)
        if format in ("f16", "bf16", "f32", "f64") and value.dtype.kind == "f":
            error = error + rounding.unit * np.abs(value) + smallest(format)
        whole = not rounding.inexact
        error = np.minimum(error, WHOLE) if whole else error
        if tolerance is None:
            check_bounds(one, value, error, operands.values())
    else:
        whole = False
        value = wide(np.asarray(one.value))
        eps = max(2 * rounding_of(format, set()).unit, 2.0**-18 if tf32 else 0)
        largest = np.max(np.abs(value), initial=0) if value.size else 0
        error = np.full(value.shape, ROUNDING * eps * largest if value.dtype.kind == "f" else 0.0)
    if value.dtype.kind not in "fiub":
        raise BadInput(f"{one.what}: its values are no numbers")
    if tolerance is not None:
        error = tolerance * (1 + np.abs(value))
    try:
        value, error = fit_shape(value, shape), fit_shape(error, shape)
    except ValueError:
        raise BadInput(
            f"{one.what} has the shape {shown(value.shape)}; {one.output} has {shown(shape)}"
        ) from None
    return Truth(value, error, flat, whole and tolerance is None)


def check_bounds(one: Expected, value: np.ndarray, error: np.ndarray, operands: Iterable[Bounded]) -> None:
    """BadInput where an expression says nothing about its output."""
    if np.isnan(value).any():
        raise BadInput(
            f"{one.what} {shown(one.value)}: it is NaN for these inputs, which nothing can be compared with:"
            " choose others, such as x=f32[N]:0..1"
        )
    numbers = [np.abs(each.value) for each in operands] + [np.abs(value)]
    largest = max((float(np.max(each, where=np.isfinite(each), initial=0)) for each in numbers), default=0)
    widest = float(np.max(np.nan_to_num(error, nan=np.inf), where=np.isfinite(value), initial=0))
    if widest > largest:
        raise BadInput(
            f"{one.what} {shown(one.value)}: by its rounding it may be off by {widest:.3g}, more than"
            " any of its values: write it in another way, or say --tolerance"
        )


def operand(value: Any, rounding: Rounding, tf32: bool) -> Bounded:
    """What an expression is made of. TF32 has 10 bits of a float32's fraction."""
    plain_value = wide(value)
    cut = tf32 and isinstance(value, np.ndarray) and format_of(value.dtype) == "f32"
    return Bounded(plain_value, 2.0**-10 * np.abs(plain_value) if cut else 0.0, rounding)


def fit_shape(value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Values in another shape of as many elements; one value for all."""
    return value.reshape(shape) if value.size == int(np.prod(shape)) else np.broadcast_to(value, shape)


def select_positions(one: Expected, output: np.ndarray) -> np.ndarray:
    """Row-major positions of the part of an output that is meant."""
    places = Bounded(np.arange(output.size).reshape(output.shape), 0.0, rounding_of("f64", set()))
    found = evaluate(f"{one.output}[{one.where}]", {one.output: places}, {}, one.what)
    places = np.asarray(plain(found))
    if not places.size:
        raise BadInput(f"{one.what}: it is no element of {one.output}, whose shape is {shown(output.shape)}")
    return places


def wide(value: Any) -> Any:
    """An array or number as it is computed with: float64, or int64."""
    array = np.asarray(value)
    if array.dtype.kind in "iub":
        return array.astype(np.int64) if array.dtype != np.uint64 else array
    return array.astype(np.float64)


def smallest(format: str) -> float:
    """What is lost of numbers too small for a format."""
    if format == "bf16":
        return 2.0**-133
    return float(np.finfo(dtype_of(format)).smallest_subnormal)
