"""Further inputs for a kernel, which show what random numbers hide in their rounding errors.

Whole numbers, whose sums are exact in any order: a term that is left out or taken twice shows. Single large
numbers, where sums cannot be exact. Single numbers that are special: NaN, infinity, -0, denormal numbers, and
the largest power of two.
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import numpy as np

from tir_schedules.check.arguments import Argument
from tir_schedules.check.types import dtype_of, format_of

WHOLE, SMALL, SPARSE, NEGATIVE, QUARTERS = "whole", "small", "sparse", "negative", "quarters"
KINDS = (WHOLE, SMALL, SPARSE)
"""Whole numbers 1 to 3; 1 and 2, for sums in formats of few digits; 1 to 3 in some places, and zeros; -3 to
-1; multiples of a quarter of either sign."""

WIDE = 10.0
"""Where sigmoids and the like are next to their limits; exp of it is a number of float16."""

SHRINK = 2.0**-10
"""What random numbers are multiplied by to be small beside constants."""

TERMS = 128
"""About how many numbers of a row or column are not 0 where few are."""

EDGES = (8, 16, 32, 64, 128, 256)
"""Where kernels go wrong: around the last multiples of these."""

IMPULSES = (64.0, 8.0, 1024.0)
"""Values that a single number may have among small ones."""

INTEGERS = (99, 50)
"""The same of integers."""

LARGEST = {"f16": 2.0**15, "bf16": 2.0**127, "f32": 2.0**127, "f64": 2.0**1023}
"""The largest power of two of a format."""

DENORMAL = {"f16": 2.0**-20, "bf16": 2.0**-130, "f32": 2.0**-140, "f64": 2.0**-1060}


def is_real(array: np.ndarray) -> bool:
    return format_of(array.dtype) in LARGEST


def whole_numbers(argument: Argument, kind: str, seed: int) -> np.ndarray:
    """An array in the place of another that was drawn: reals that are whole numbers, or multiples of a power
    of two where the range has few whole numbers; the least integers of a range, or small ones."""
    array, dtype = argument.value, argument.value.dtype
    assert argument.drawn is not None
    low, high = argument.drawn
    draw = np.random.default_rng(seed)
    if not is_real(array):
        least, most = (int(low), int(high)) if np.isfinite(low) else (0, 3)
        return draw.integers(least, min(most, least + 3), array.shape, endpoint=True).astype(dtype)
    if np.isfinite(low) and np.isfinite(high):
        return multiples(low, high, array.shape, draw).astype(dtype) if high > low else array
    if kind == QUARTERS:
        return (draw.integers(-15, 15, array.shape, endpoint=True) / 4).astype(dtype)
    found = draw.integers(1, 3 if kind == SMALL else 4, array.shape).astype(np.float64)
    found *= -1 if kind == NEGATIVE else 1
    if kind == SPARSE:
        found *= draw.random(array.shape) < (TERMS / max(TERMS, *array.shape)) ** 0.5
    return found.astype(dtype)


def wide_numbers(argument: Argument, seed: int) -> np.ndarray:
    """Reals of either sign up to WIDE."""
    draw = np.random.default_rng(seed)
    return draw.uniform(-WIDE, WIDE, argument.value.shape).astype(argument.value.dtype)


def borders(argument: Argument, numbers: Sequence[float], seed: int) -> np.ndarray:
    """An array of some numbers, their negatives, doubles and neighbours in the array's format, as far as they
    are in its range."""
    array = argument.value
    assert argument.drawn is not None
    near = np.array(numbers, array.dtype)
    wide = near.astype(np.float64)
    found = np.concatenate([wide, -wide, 2 * wide, *(neighbours(near, sign) for sign in (1, -1))])
    low, high = argument.drawn
    found = found[(found >= low) & (found <= high) & np.isfinite(found)]
    return np.random.default_rng(seed).choice(found, array.shape).astype(array.dtype) if found.size else array


def neighbours(values: np.ndarray, sign: int) -> np.ndarray:
    """The next number of a format, away from 0 or towards it."""
    bits = values.view(f"i{values.dtype.itemsize}")
    return np.where(values == 0, 0, bits + sign).astype(bits.dtype).view(values.dtype).astype(np.float64)


def multiples(low: float, high: float, shape: tuple[int, ...], draw: np.random.Generator) -> np.ndarray:
    """Multiples of a power of two between two numbers. There are at least 32 of them. No number is 0."""
    step = 2.0 ** min(0, np.floor(np.log2((high - low) / 32)))
    first, last = int(np.ceil(low / step)), int(np.floor(high / step))
    found = draw.integers(first, last, shape, endpoint=True)
    other = last if last else first
    return np.where(found == 0, other, found) * step


def sampled_places(shape: tuple[int, ...], count: int, draw: np.random.Generator) -> list[tuple[int, ...]]:
    """Positions in an array: the first and last along each axis, those around multiples of EDGES near the
    end, and random ones."""
    if not all(shape):
        return []
    axes = [edges(extent) for extent in shape]
    found = {tuple(0 for _ in shape): None, tuple(extent - 1 for extent in shape): None}
    turn = 0
    while len(found) < min(count, int(np.prod(shape))) and turn < 8 * count:
        place = [int(draw.integers(extent)) for extent in shape]
        axis, at = turn % len(shape), turn // len(shape)
        if at < len(axes[axis]):
            place[axis] = axes[axis][at]
        found[tuple(place)] = None
        turn += 1
    return list(found)[:count]


def edges(extent: int) -> list[int]:
    """Positions along an axis where a tile or a warp may end."""
    last = [extent - 1, 0]
    for tile in EDGES:
        start = (extent - 1) // tile * tile
        last += [start, start - 1]
    return [place for place in dict.fromkeys(last) if 0 <= place < extent]


def impulses(argument: Argument, sign: int = 1) -> tuple[float, ...]:
    """Values for a single number of an array. sign: -1 for negative ones."""
    assert argument.drawn is not None
    low, high = argument.drawn
    if np.isfinite(low):
        return (high, low)
    if argument.value.dtype.kind == "u":
        return INTEGERS if sign > 0 else ()
    return tuple(sign * each for each in (IMPULSES if is_real(argument.value) else INTEGERS))


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
