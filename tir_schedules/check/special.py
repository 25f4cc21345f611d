"""NaN, infinity, -0, denormal numbers and the largest power of two in single places of the inputs, judged by
what IEEE arithmetic makes of the expected expression.

An output that depends on NaN or infinity has to be what the expression gives. Three things are not judged,
because kernels that are all right differ there: what a comparison makes of NaN; a value that overflows in
float32 on the way; and an element that the expression multiplies by 0, which a kernel may skip.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Any, Iterator, Mapping, Sequence

import numpy as np

from tir_schedules.check.arguments import Argument, is_real, seed_of
from tir_schedules.check.expecting import Expected, Truth
from tir_schedules.check.expressions import functions_in, nodes_in
from tir_schedules.check.functions import SELECTING, compares
from tir_schedules.check.trials import (
    Question,
    Trial,
    drawn_arrays,
    drawn_reals,
    values_and_overflow,
    values_of,
    with_values,
)
from tir_schedules.check.types import DENORMAL, LARGEST, dtype_of, format_of
from tir_schedules.errors import BadInput
from tir_schedules.model.verify import element

Places = Mapping[str, Sequence[tuple[int, ...]]]

SHOWN = 1
"""Special numbers that a message names."""

FINITE_AT = 2
"""Special numbers of an array that are replaced by finite ones, each by itself."""

FINITE = (-1.0, 1.0, 0.3)
"""What takes the place of special numbers, in fourth roots of the largest: a value that is the same with all
three does not depend on it."""

SMALL_INTEGER = 50
"""What takes the place of the largest integers."""

ALIKE = 1e-4
"""How far apart, as a share, a value in float32 and one in float64 may be that do not overflow on the way."""


@dataclass(frozen=True)
class SpecialTruth(Truth):
    """free: elements that are not judged, but for the sign of infinity. infinite: those that may be NaN or
    infinite alike."""

    free: Any = False
    infinite: Any = False

    def same(self, numbers: np.ndarray) -> np.ndarray:
        other_sign = np.isinf(numbers) & np.isinf(self.value) & (numbers != self.value)
        loose = self.free | self.infinite & ~np.isfinite(numbers)
        return super().same(numbers) | loose & ~other_sign


def special_trials(question: Question, trials: Sequence[Trial]) -> Iterator[Trial]:
    """A trial with NaN, -0 and a denormal number; one with infinity and the largest power of two; one with
    the negatives of these. trials: those before. The first of them gives all other numbers."""
    arrays = trials[0].arguments
    names = question.names() if all(isinstance(one.value, str) for one in question.expect) else set()
    arithmetic = question.arithmetic
    small = [] if arithmetic.flushes else ["denormal"]
    large = [] if arithmetic.added | arithmetic.cut else ["largest"]
    kinds = (
        ("NaN", ["nan", "-0.0", *small], drawn_reals(question, arrays)),
        ("infinite", ["inf", *large], drawn_arrays(question, arrays)),
        ("negative infinite", ["-inf", *(f"-{one}" for one in large)], drawn_arrays(question, arrays)),
    )
    for kind, values, drawn in kinds:
        used = {name: one for name, one in drawn.items() if name in names and one.has_no_limit}
        changed, places = special_values(used, values, seed_of(kind, question.seed))
        try:
            truths = special_truths(question, arrays, changed, places, kind == "NaN") if changed else {}
        except BadInput:  # the expression has no value for these
            continue
        if truths:
            yield Trial(with_values(arrays, changed), truths, kind, True, noted(changed, places))


def noted(changed: Mapping[str, np.ndarray], places: Places) -> str:
    """Which elements are special, as far as there is room: "x[3] is nan"."""
    found = [
        f"{element(name, each)} is {changed[name][each]:g}" for name, some in places.items() for each in some
    ]
    return ", ".join(found[:SHOWN])


def special_truths(
    question: Question,
    arrays: Mapping[str, Argument],
    changed: Mapping[str, np.ndarray],
    places: Places,
    nan: bool,
) -> dict[str, SpecialTruth]:
    """What outputs should be, and which of them are judged."""
    special = {**values_of(arrays), **changed}
    in_float32, overflows = values_and_overflow(question, special)
    as_reals = {one.key: in_reals(question, one, special) for one in question.expect}
    ends = [[question.values(moved(arrays, places, at, by)) for by in FINITE] for at in range(FINITE_AT)]
    found = {}
    for one, (key, truth) in zip(
        question.expect, question.truths(with_values(arrays, changed), False).items()
    ):
        with np.errstate(all="ignore"):
            depends, on_largest = (
                ~np.all([end[key] == each[0][key] for end in each], axis=0) for each in ends
            )
            finite, real = np.isfinite(truth.value), truth.value.dtype.kind == "f"
            wrapped = False
            in_float64 = as_reals[key]
            if real and in_float64 is not None:  # integers of the expression may overflow
                wrapped = ~np.isclose(in_float64, truth.value, ALIKE, 0) & finite
            known = np.isclose(in_float32[key], truth.value, ALIKE, 0) & np.isfinite(truth.allowed)
            known &= np.abs(truth.value) < LARGEST.get(format_of(arrays[one.output].value.dtype), np.inf)
        free = finite & ~known | ~finite & ~depends | wrapped
        if compares(one.value):
            free |= depends if nan else np.isnan(truth.value)
        if overflows:
            free |= on_largest
        if real and not nan:
            free |= depends & on_largest  # a product that overflows first meets infinity
        infinite = ~finite & (not selects(one.value))
        allowed = np.where(np.isfinite(truth.allowed), truth.allowed, 0.0)
        if real and not functions_in(one.value) <= SELECTING:  # which may lose numbers that are not normal
            allowed = allowed + np.finfo(np.float32).tiny
        found[key] = SpecialTruth(truth.value, allowed, truth.flat, free=free, infinite=infinite)
    return found


def in_reals(question: Question, one: Expected, arrays: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """An expected value with reals in the place of integers; None where the expression needs integers."""
    reals = {
        name: array.astype(float) if array.dtype.kind in "iu" else array for name, array in arrays.items()
    }
    try:
        return replace(question, expect=[one]).values(reals)[one.key]
    except BadInput:
        return None


def moved(arrays: Mapping[str, Argument], places: Places, at: int, by: float) -> dict[str, np.ndarray]:
    """The arrays with other finite numbers where a special one will be: an expected value that does not
    change does not depend on it. at: 0 for NaN and infinity, 1 for the largest."""
    found = values_of(arrays)
    for name, chosen in places.items():
        found[name] = np.array(found[name])
        largest = LARGEST.get(format_of(found[name].dtype), SMALL_INTEGER**4) ** 0.25
        if at < len(chosen):
            found[name][chosen[at]] = np.array(by * largest).astype(found[name].dtype)
    return found


def selects(expression: str) -> bool:
    """Whether an expression moves and chooses elements, without arithmetic."""
    return ast.BinOp not in nodes_in(expression) and functions_in(expression) <= SELECTING


def special_values(
    arrays: Mapping[str, Argument], values: Sequence[str], seed: int
) -> tuple[dict[str, np.ndarray], dict[str, list[tuple[int, ...]]]]:
    """Arrays with special numbers in single places, and these places. arrays: those that may have some."""
    changed, places = {}, {}
    for number, (name, argument) in enumerate(arrays.items()):
        array = np.array(argument.value)
        if not array.size:
            continue
        draw = np.random.default_rng((seed, number))
        count = len(values) if is_real(array) else 1  # the sum of two would be none of both
        flat = draw.choice(array.size, min(count, array.size), replace=False)
        places[name] = [tuple(map(int, np.unravel_index(at, array.shape))) for at in flat]
        for place, value in zip(places[name], values):
            array[place] = special(value, array.dtype)
        changed[name] = array
    return changed, places


def special(value: str, dtype: Any) -> Any:
    """A special number of a format; of integers the least and the largest."""
    format = format_of(dtype)
    if format not in LARGEST:
        return np.iinfo(dtype).min if value == "-inf" else np.iinfo(dtype).max
    numbers = {"largest": LARGEST[format], "-largest": -LARGEST[format], "denormal": DENORMAL[format]}
    return np.array(numbers[value] if value in numbers else float(value), dtype_of(format))
