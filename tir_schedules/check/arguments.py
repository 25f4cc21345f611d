"""What a kernel is given: `A=f32[M,K]`, `C=f32[M,N]:zeros:inout`, `X=data.npy`, `alpha=2`, `mask=null`; and
other numbers for the same arrays.

[NAME=] [FORMAT] [EXTENT,...] [:WORD ...]    an array; FORMAT is the pointer's own where it is left out
[NAME=] FILE.npy [:in | :out | :inout]       the array of a file
[NAME=] EXPRESSION                           a number
[NAME=] null                                 a null pointer
"""

from __future__ import annotations

import math
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

from tir_schedules.check.expressions import number, wholes
from tir_schedules.check.types import DENORMAL, FLOATS, FORMATS, LARGEST, dtype_of, format_of
from tir_schedules.compiler.signature import split
from tir_schedules.errors import BadInput, shown
from tir_schedules.files import read_bytes
from tir_schedules.workloads.drawing import Draws

IN, OUT, INOUT = "in", "out", "inout"
ROLES = (IN, OUT, INOUT)
FILLS = ("random", "zeros", "ones", "iota", "nan")
NAMED = re.compile(r"\s*([A-Za-z_]\w*(?:\.\w+)*)\s*=(?!=)\s*(.*)", re.S)
ARRAY = re.compile(r"\s*([a-z]\w*)?\s*\[(.*)\]\s*((?::.*)?)", re.S)
RANGE = re.compile(r"(.+?)\.\.(.+)")
FILE = re.compile(r"(.*\.npy)\s*((?::\s*(?:in|out|inout)\s*)?)", re.S)

OTHER_FILE = re.compile(r"[\w./~-]+\.(npy|npz|pt|pth|bin|csv|txt|safetensors|h5)(?!\w)")

LARGEST_FILE = 1 << 30
MOST_BYTES = 1 << 32
"""Most bytes of an array that is drawn."""

WIDEST = 1e300
"""Largest magnitude of LOW and HIGH."""

OCTAVES = 2
"""Random reals differ by so many powers of two in either direction."""

MOST_RANDOM = 99
"""Random integers go up to this, and down to its negative where there are signs."""


@dataclass(frozen=True)
class Argument:
    """What a parameter is given. value: an array, a number, or None for a null pointer. role: of ROLES, or ""
    where the run is to show whether it is written. text: as the user has it. drawn: from the least to the
    largest number that a random array may have; None where its content is given."""

    value: Any = field(repr=False)
    role: str = ""
    text: str = ""
    drawn: tuple[float, float] | None = None

    @property
    def has_no_limit(self) -> bool:
        """Whether it is drawn from all numbers."""
        return self.drawn is not None and math.isinf(self.drawn[0])

    @property
    def array(self) -> np.ndarray | None:
        return self.value if isinstance(self.value, np.ndarray) else None

    @property
    def holds_nothing(self) -> bool:
        """Whether it is an array in which nothing is before the launch."""
        if self.role != OUT or self.array is None:
            return False
        return self.array.tobytes() == poison_array(self.array.shape, self.array.dtype).tobytes()


@dataclass(frozen=True)
class Given:
    """An argument as it is written, before sizes and formats are known. name: "" where it goes by its
    place."""

    name: str
    text: str


def parse_argument(text: str) -> Given:
    """`--arg` as a name and what follows."""
    match = NAMED.fullmatch(text)
    return Given(match[1], match[2].strip()) if match else Given("", text.strip())


def make_argument(one: Given, sizes: Mapping[str, Any], pointed: str, folder: Path, seed: int) -> Argument:
    """The argument. pointed: the format that its pointer is of, "" where any may be. folder: where relative
    names of files begin. seed: of random numbers."""
    what = f"--arg {one.name}=" if one.name else "--arg"
    if one.text in ("null", "nullptr", "NULL"):
        return Argument(None, text=one.text)
    file = FILE.fullmatch(one.text)
    if file:
        array = load_array(folder / file[1].strip())
        return Argument(array, file[2].strip(" :"), one.text)
    if other := OTHER_FILE.match(one.text):
        raise BadInput(
            f"{what} {shown(one.text)}: a whole .npy file is taken, as numpy.save writes it, not"
            f" {'a part of one' if other[1] == 'npy' else f'a .{other[1]} file'}"
        )
    match = ARRAY.fullmatch(one.text)
    if not match or (match[1] and match[1] not in FORMATS and "(" in one.text.partition("[")[0]):
        return Argument(number(one.text, sizes, what), text=one.text)
    format = match[1] or pointed
    if not format:
        raise BadInput(
            f"{what} {shown(one.text)}: say its format, such as f32[...]; the source does not tell"
        )
    dtype = dtype_of(format)
    shape = wholes(match[2], sizes, what) if match[2].strip() else ()
    if any(extent < 0 for extent in shape) or not shape:
        raise BadInput(f"{what} {shown(one.text)}: extents are {list(shape)}; they must be 0 or more")
    if int(np.prod(shape, dtype=object)) * dtype.itemsize > MOST_BYTES:
        raise BadInput(f"{what} {shown(one.text)}: an array of more than {MOST_BYTES >> 30} GiB is too large")
    words = [word.strip() for word in match[3].split(":") if word.strip()]
    roles = [word for word in words if word in ROLES]
    fills = [word for word in words if word not in ROLES]
    if len(roles) > 1 or len(fills) > 1:
        raise BadInput(f"{what} {shown(one.text)}: {' and '.join(words)} exclude each other")
    role = roles[0] if roles else ""
    fill = fills[0] if fills else "poison" if role == OUT else "random"
    drawn = (-math.inf, math.inf) if fill == "random" else range_of(fill, sizes, what)
    return Argument(fill_array(fill, drawn, shape, format, sizes, what, seed), role, one.text, drawn)


def load_array(path: Path) -> np.ndarray:
    """The array of a .npy file. BadInput for another."""
    read_bytes(path, "name a .npy file", LARGEST_FILE)
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError):
        raise BadInput(
            f"cannot read {path}: it is not a .npy file of numbers, as numpy.save writes one"
        ) from None
    if not isinstance(array, np.ndarray) or (not format_of(array.dtype) and not array.dtype.names):
        raise BadInput(f"cannot read {path}: it holds no array of {', '.join(FORMATS)}")
    return np.ascontiguousarray(array)


def range_of(fill: str, sizes: Mapping[str, Any], what: str) -> tuple[float, float] | None:
    """The ends of LOW..HIGH; None for another fill."""
    ends = RANGE.fullmatch(fill)
    if not ends:
        return None
    low, high = (number(end, sizes, what) for end in ends.groups())
    if low > high:
        raise BadInput(f"{what} {fill}: {low} is above {high}")
    if high - low > WIDEST:
        raise BadInput(f"{what} {shown(fill)}: the range is wider than {WIDEST:g}")
    return low, high


def fill_array(
    fill: str,
    drawn: tuple[float, float] | None,
    shape: tuple[int, ...],
    format: str,
    sizes: Mapping[str, Any],
    what: str,
    seed: int,
) -> np.ndarray:
    """An array of a shape: random, zeros, ones, iota (0, 1, 2, ...), LOW..HIGH (random between), or a
    number."""
    dtype = dtype_of(format)
    if fill == "random":
        return random(shape, format, seed)
    if fill == "poison":
        return poison_array(shape, dtype)
    if fill == "iota":
        return np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)
    if fill in FILLS:
        return np.full(shape, {"zeros": 0, "ones": 1, "nan": np.nan}[fill], dtype)
    if drawn is None:
        try:
            return np.full(shape, number(fill, sizes, what), dtype)
        except (BadInput, OverflowError):
            raise BadInput(
                f"{what}: {shown(fill)} fills no array: say {', '.join(FILLS)}, LOW..HIGH or a number, and"
                f" for its use {', '.join(ROLES)}"
            ) from None
    low, high = drawn
    draw = np.random.default_rng(seed)
    if format[0] in "iu":
        return draw.integers(int(low), int(high), shape, np.int64, endpoint=True).astype(dtype)
    return draw.uniform(low, high, shape).astype(dtype)


def random(shape: tuple[int, ...], format: str, seed: int) -> np.ndarray:
    """Reals of either sign over some powers of two; integers up to MOST_RANDOM, or all of 8 bits."""
    if format[0] in "iu":
        dtype = dtype_of(format)
        limits = np.iinfo(dtype)
        low, high = limits.min, limits.max
        if dtype.itemsize > 1:
            low, high = max(-MOST_RANDOM, low), MOST_RANDOM
        return np.random.default_rng(seed).integers(low, high, shape, np.int64, endpoint=True).astype(dtype)
    return Draws(seed).reals(OCTAVES, shape).astype(dtype_of(format))


def poison_array(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """What memory that nothing wrote holds: NaN, or an odd number."""
    if np.dtype(dtype).kind in "iu":
        return np.full(shape, 0xDB, np.uint8).repeat(dtype.itemsize).view(dtype).reshape(shape)
    return np.full(shape, np.nan, dtype)


def seed_of(name: str, seed: int) -> int:
    """A seed of its own for each argument."""
    return zlib.crc32(f"{name}\0{seed}".encode())


def sizes_of(texts: list[str]) -> dict[str, int | float]:
    """The values of `--let M=512`. Each may use those before it. If two have the same name, the later one is
    taken."""
    written: dict[str, str] = {}
    for text in texts:
        for part in split(text):
            match = NAMED.fullmatch(part)
            if not match:
                raise BadInput(f"--let takes NAME=NUMBER such as M=512, not {shown(text)}")
            written[match[1]] = match[2]
    found: dict[str, int | float] = {}
    for name, text in written.items():
        found[name] = number(text, found, f"--let {name}=")
    return found


# ---- other numbers for an array that was drawn ---
# Random numbers hide wrong terms in their rounding errors. Whole numbers have sums that are exact in any
# order: a term that is left out or taken twice shows. Single large numbers show it where sums are rounded.
WHOLE, SMALL, SPARSE, NEGATIVE, QUARTERS = "whole", "small", "sparse", "negative", "quarters"
KINDS = (WHOLE, SMALL, SPARSE)
"""Whole numbers 1 to 3; 1 and 2, for sums in formats of few digits; 1 to 3 in some places, and zeros; -3 to
-1, also of integers; multiples of a quarter of either sign."""

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


def is_real(array: np.ndarray) -> bool:
    return format_of(array.dtype) in FLOATS


def whole_numbers(argument: Argument, kind: str, seed: int) -> np.ndarray:
    """An array in the place of another that was drawn: reals that are whole numbers, or multiples of a power
    of two where the range has few whole numbers; the least integers of a range, or small ones."""
    array, dtype = argument.value, argument.value.dtype
    assert argument.drawn is not None
    low, high = argument.drawn
    draw = np.random.default_rng(seed)
    if not is_real(array):
        least, most = (int(low), int(high)) if np.isfinite(low) else (int(kind in (WHOLE, SMALL)), 3)
        if kind == NEGATIVE and argument.has_no_limit and dtype.kind == "i":
            least, most = -3, -1
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
    low, high = argument.drawn
    wide = np.array(numbers, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # beyond the largest numbers, which are left out
        if is_real(array):
            near = wide.astype(array.dtype)
            wide, beside = near.astype(np.float64), [neighbours(near, sign) for sign in (1, -1)]
        else:
            wide = np.concatenate([np.floor(wide), np.ceil(wide)])
            beside = [wide + 1, wide - 1]
        found = np.concatenate([wide, -wide, 2 * wide, *beside])
        found = found[(found >= low) & (found <= high) & is_in_format(found, array.dtype)]
    return np.random.default_rng(seed).choice(found, array.shape).astype(array.dtype) if found.size else array


def is_in_format(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Which reals a format has, rounded, as finite numbers."""
    if dtype.kind not in "iu":
        return np.isfinite(values.astype(dtype))
    ends = np.iinfo(dtype)
    return (values >= float(ends.min)) & (values < float(ends.max))


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


def impulses(argument: Argument, sign: int) -> tuple[float, ...]:
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
    for turn, (name, argument) in enumerate(arrays.items()):
        array = np.array(argument.value)
        if not array.size:
            continue
        draw = np.random.default_rng((seed, turn))
        count = len(values) if is_real(array) else 1  # the sum of two would be neither of them
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
