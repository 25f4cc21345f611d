"""What outputs should be: an expression, an array, and how far from it a kernel may be."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from tir_schedules.check.arguments import Argument, is_real, load_array
from tir_schedules.check.expressions import (
    axis_taken_for_value,
    evaluate,
    functions_in,
    names_read,
    other_constants,
)
from tir_schedules.check.functions import CURVED, FUNCTIONS, compares, functions_of
from tir_schedules.check.types import (
    HALVES,
    NUMPY_NAMES,
    UNITS,
    Arithmetic,
    Bounded,
    Rounding,
    dtype_of,
    format_of,
    plain,
    rounding_of,
    spread,
    step_of,
)
from tir_schedules.errors import BadInput, nearest, shown
from tir_schedules.model.verify import Mismatch, compare
from tir_schedules.workloads.rounding import half_spacing

TARGET = re.compile(r"\s*([A-Za-z_]\w*(?:\.\w+)*)\s*(?:\[([^=]*)\])?\s*")
"""`C` or `C[0]`: an output, or a part of it; `p.C` of a struct."""

WORD = re.compile(r"[^\W\d]\w*")
"""A name in an expression."""

WHOLE = 0.25
"""How far, in steps, a kernel may be from numbers that no order of sums rounds: it may compute them in a way
of its own."""

NEAR = {"f16": 2.0**-8, "bf16": 2.0**-5, "f32": 2.0**-12, "f64": 2.0**-40}
"""How far an element may be off that of an array that is given, as a share of it. It is not known how it was
computed: this covers sums of some thousand terms, unless they cancel."""

OF_ARRAY = "nothing says how this array was computed; sums that cancel need a --tolerance"

ROUNDINGS = 2
"""How often a value may be rounded to 16 bits where it is before the end: in shared memory, for instance."""

OTHER = 1.25
"""A constant matters when this many times it is told from it."""

VISIBLE = 2
"""What an element changes shows when it exceeds the tolerance so many times: what a kernel leaves may be off
once in either direction."""


@dataclass(frozen=True)
class Expected:
    """What an output should be. output: its name. where: a part of it, such as "0" of `C[0]`; "" for all.
    value: an expression, or an array."""

    output: str
    value: Any
    where: str = ""

    @property
    def key(self) -> str:
        """The output, with its part in brackets."""
        return f"{self.output}[{self.where}]"

    @property
    def what(self) -> str:
        return f"--expect {self.output}{f'[{self.where}]' if self.where else ''}="


def expectation(target: str, value: Any) -> Expected:
    """What an output, or a part of it such as `C[0]`, should be."""
    match = TARGET.fullmatch(target)
    if not match:
        raise BadInput(f"{shown(target)} is not an output; name an argument, C, or a part of it, C[0]")
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
    are, in row-major order; None for all. telling: whether there are sums, or whole numbers, and no order of
    summation rounds. work: elements that were handled to compute it. hint: for a mismatch.
    vague: why these values tell nothing, if they do not."""

    value: np.ndarray
    allowed: Any
    flat: np.ndarray | None = None
    telling: bool = False
    work: int = 0
    hint: str = ""
    vague: str = ""

    def same(self, numbers: np.ndarray) -> np.ndarray:
        """Elements that are right without being near: NaN and infinity where they should be."""
        value = self.value
        return np.isinf(value) & (numbers == value) | np.isnan(value) & np.isnan(numbers)

    def mismatch(self, name: str, got: np.ndarray) -> Mismatch | None:
        """What of an output is not right. What should be NaN or infinite has to be the same."""
        numbers = to_numpy(got if self.flat is None else got.reshape(-1)[self.flat])
        expected, allowed = self.value, self.allowed
        if numbers.dtype.kind in "iu" and expected.dtype.kind in "iub":
            expected = expected.astype(numbers.dtype)
        same = self.same(numbers)
        numbers, expected, allowed = (np.where(same, 0, one) for one in (numbers, expected, allowed))
        return self.located(compare(name, numbers, expected, allowed, "should be"), got.shape)

    def located(self, found: Mismatch | None, shape: tuple[int, ...]) -> Mismatch | None:
        """A mismatch of the part, by its place in the output."""
        found = found and replace(found, hint=self.hint)
        if found is None or self.flat is None:
            return found
        place = np.unravel_index(int(np.asarray(self.flat[found.index])), shape)
        return replace(found, index=tuple(map(int, place)))


@dataclass(frozen=True)
class SpecialTruth(Truth):
    """free: elements that are not judged, except for the sign of infinity. infinite: those that may be NaN or
    infinite alike."""

    free: Any = False
    infinite: Any = False

    def same(self, numbers: np.ndarray) -> np.ndarray:
        other_sign = np.isinf(numbers) & np.isinf(self.value) & (numbers != self.value)
        loose = self.free | self.infinite & ~np.isfinite(numbers)
        return super().same(numbers) | loose & ~other_sign


def to_numpy(array: np.ndarray) -> np.ndarray:
    """An array in a format that numpy has itself."""
    return array if np.dtype(array.dtype).kind in "fiub" else array.astype(np.float32)


def truth_of(
    one: Expected,
    output: np.ndarray,
    names: Mapping[str, Any],
    tolerance: float | None,
    arithmetic: Arithmetic = Arithmetic(),
) -> Truth:
    """names: arrays and numbers before the launches. tolerance: of each element, absolute and as a share of
    its value; None for what rounding explains. arithmetic: what the kernel computes with.
    BadInput for an expression that fails or has another shape than the output.
    """
    format = format_of(output.dtype)
    flat = select_positions(one, output, names) if one.where else None
    shape = output.shape if flat is None else flat.shape
    rounding = rounding_of(format, arithmetic)
    exact, vague = False, ""
    if isinstance(one.value, str):
        operands = {name: operand(value, rounding, arithmetic.tf32) for name, value in names.items()}
        with np.errstate(all="ignore"):
            found = evaluate(one.value, operands, functions_of(rounding), one.what)
        value = numbers_of(found, one)
        error = spread(found) if isinstance(found, Bounded) else np.zeros(value.shape)
        integers = value.dtype.kind in "iub"
        if not integers or format in UNITS:
            value = value.astype(np.float64)
            step = 1.0 if integers else found.step if isinstance(found, Bounded) else step_of(value)
            exact = bool(step) and not np.any(error)
            error = error + rounding_to(format, value, error, step, arithmetic)
        vague = why_vague(one, value, error, operands.values()) if tolerance is None else ""
    else:
        value = wide(numbers_of(one.value, one))
        near = max(NEAR.get(format, 0.0), 2.0**-8 if arithmetic.tf32 else 0.0)
        error = near * np.abs(value) + smallest(format) if value.dtype.kind == "f" else np.zeros(value.shape)
    if tolerance is not None:
        error = tolerance * (1 + np.abs(value))
    try:
        value, error = fit_shape(value, shape), fit_shape(np.asarray(error), shape)
    except ValueError:
        meant = axis_taken_for_value(one.value) if isinstance(one.value, str) else ""
        hint = f"; the maximum or minimum of two values is by element: say {meant}" if meant else ""
        raise BadInput(
            f"{one.what} has the shape {shown(value.shape)}; {one.output} has {shown(shape)}{hint}"
        ) from None
    telling = (exact or rounding.summed or value.dtype.kind in "iub") and not rounding.inexact
    rounded = value.dtype.kind == "f" and tolerance is None
    hint = OF_ARRAY if rounded and not isinstance(one.value, str) else ""
    return Truth(value, error, flat, telling, rounding.work, hint, vague)


def numbers_of(found: Any, one: Expected) -> np.ndarray:
    """The values of an expression. BadInput for text, `...`, None and types."""
    value = np.asarray(plain(found))
    if value.dtype.kind not in "fiub" and not format_of(value.dtype):
        what = {type(...): "`...`", type(None): "None", str: "text"}.get(type(found), "no number")
        raise BadInput(
            f"{one.what} {shown(one.value)}: its values are not numbers: it is {what}; an expression of"
            " numbers and arrays is taken, without quotes in it"
        )
    return value


def plain_value(
    one: Expected,
    output: np.ndarray,
    names: Mapping[str, Any],
    reals: Any,
    watch: Callable[[Any], None] | None = None,
) -> np.ndarray:
    """An expression's value alone, computed in a format of reals, float64 or float32."""
    operands = {name: in_format(value, reals) for name, value in names.items()}
    over = "call" if np.geterr()["over"] == "call" else "ignore"  # see Question.values_and_overflow
    with np.errstate(all="ignore"), np.errstate(over=over):
        value = numbers_of(evaluate(one.value, operands, FUNCTIONS, one.what, watch), one)
    shape = select_positions(one, output, names).shape if one.where else output.shape
    return fit_shape(value, shape)


def in_format(value: Any, reals: Any) -> Any:
    """Reals in a format, unless they have more digits; numbers stay Python's, which take any format."""
    if not isinstance(value, np.ndarray):
        return value
    array = wide(value)
    return array if array.dtype.kind != "f" or value.dtype == np.float64 else array.astype(reals)


def rounding_to(format: str, value: np.ndarray, error: Any, step: float, arithmetic: Arithmetic) -> Any:
    """What the output's format adds to an error. step: all values are multiples of it where none is off."""
    exact = step and not np.any(error)
    if format not in UNITS:
        return WHOLE * step if exact else 0.0
    unit, half = UNITS[format], format in HALVES
    if exact and np.max(np.abs(value), initial=0) <= step / unit:
        return 0.0 if half else WHOLE * step + unit / 2 * np.abs(value)
    least = float(np.finfo(np.float32).tiny) if arithmetic.flushes else smallest(format)
    if not half:
        return unit * np.abs(value) + least
    times = ROUNDINGS if arithmetic.narrowed or arithmetic.narrow else 1
    with np.errstate(all="ignore"):
        magnitude = np.nan_to_num(np.abs(value) + error, posinf=0.0)
    return times * half_spacing(magnitude, NUMPY_NAMES[format]) + least


def why_vague(one: Expected, value: np.ndarray, error: np.ndarray, operands: Iterable[Bounded]) -> str:
    """Why an expression says nothing about its output; "" where it does."""
    if value.size and np.isnan(value).all():
        return (
            f"{one.what} {shown(one.value)}: it is NaN for these inputs, so that nothing can be compared with"
            " it: choose others, such as x=f32[N]:0..1"
        )
    numbers = [np.abs(each.value) for each in operands] + [np.abs(value)]
    largest = max((float(np.max(each, where=np.isfinite(each), initial=0)) for each in numbers), default=0)
    widest = float(np.max(np.nan_to_num(error, nan=np.inf), where=np.isfinite(value), initial=0))
    if np.isinf(widest):
        return (
            f"{one.what} {shown(one.value)}: it divides by numbers that may be 0 when rounded: choose other"
            " inputs, such as x=f32[N]:1..2, or say --tolerance"
        )
    if widest > largest:
        return (
            f"{one.what} {shown(one.value)}: by its rounding it may be off by {widest:.3g}, more than"
            " any of its values: write it in another way, or say --tolerance"
        )
    return ""


def operand(value: Any, rounding: Rounding, tf32: bool) -> Bounded:
    """What an expression is made of. A number is a constant of the kernel's. TF32 has 11 bits of a float32's
    significand."""
    array = wide(value)
    if not isinstance(value, np.ndarray):
        return Bounded.given(array, rounding, rounding.of_constant(array))
    error: Any = 0.0
    if tf32 and format_of(value.dtype) == "f32":
        mantissa, _ = np.frexp(array)
        whole = np.trunc(mantissa * 2**11) == mantissa * 2**11
        error = np.where(whole, 0.0, 2.0**-10 * np.abs(array))
    return Bounded.given(array, rounding, error if np.any(error) else 0.0)


def fit_shape(value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Values in another shape of as many elements; one value for all."""
    return value.reshape(shape) if value.size == int(np.prod(shape)) else np.broadcast_to(value, shape)


def select_positions(one: Expected, output: np.ndarray, names: Mapping[str, Any]) -> np.ndarray:
    """Row-major positions of the part of an output that is meant."""
    places = Bounded(np.arange(output.size).reshape(output.shape), 0.0, rounding_of("f64"))
    sizes = {name: value for name, value in names.items() if isinstance(value, int)}
    found = evaluate(f"{one.output}[{one.where}]", {**sizes, one.output: places}, {}, one.what)
    places = np.asarray(plain(found))
    if not places.size:
        raise BadInput(
            f"{one.what}: it is not an element of {one.output}, whose shape is {shown(output.shape)}"
        )
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


@dataclass(frozen=True)
class Question:
    """What is asked about a kernel, whatever its inputs. sizes: numbers that expressions may name.
    arithmetic: what the kernel computes with. fixed: arrays whose content cannot be changed. finite: whether
    to leave out NaN and the like."""

    expect: Sequence[Expected]
    sizes: Mapping[str, Any]
    tolerance: float | None
    arithmetic: Arithmetic
    seed: int
    fixed: frozenset[str] = frozenset()
    finite: bool = False

    def truths(self, arrays: Mapping[str, Argument], bounded: bool = True) -> dict[str, Truth]:
        """What outputs should be, by output and part of it. bounded: whether to refuse values that rounding
        errors exceed."""
        names = {**self.sizes, **values_of(arrays)}
        truths = {}
        for one in self.expect:
            if one.output not in arrays:
                raise BadInput(
                    f"{one.what}: there is no array {one.output!r}{nearest(one.output, arrays)}; arrays:"
                    f" {', '.join(arrays) or 'none is given'}"
                )
            output = arrays[one.output].value
            truths[one.key] = truth_of(one, output, names, self.tolerance, self.arithmetic)
            check_known_before(one, arrays)
        if bounded:
            refuse_vague(truths)
        return truths

    def values(self, arrays: Mapping[str, np.ndarray], kind: Any = np.float64) -> dict[str, np.ndarray]:
        """The expected values alone, computed in a format."""
        names = {**self.sizes, **arrays}
        return {one.key: plain_value(one, arrays[one.output], names, kind) for one in self.expect}

    def values_and_overflow(self, arrays: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], bool]:
        """The same in float32, and whether anything overflows on the way."""
        seen: list[str] = []
        before = np.seterrcall(lambda kind, flags: seen.append(kind))
        try:
            with np.errstate(over="call"):
                return self.values(arrays, np.float32), bool(seen)
        finally:
            np.seterrcall(before)

    def widest(self, one: Expected, arrays: Mapping[str, np.ndarray]) -> tuple[float, float]:
        """The largest finite magnitude in the array of any part of an expression, and of its numbers."""
        most = {True: 0.0, False: 0.0}

        def watch(value: Any) -> None:
            is_array = isinstance(value, np.ndarray)
            if is_array and value.dtype.kind in "iuf" or isinstance(value, (int, float)):
                found = np.abs(np.asarray(value, float))
                largest = float(np.max(found, initial=0.0, where=np.isfinite(found)))
                most[is_array] = max(most[is_array], largest)

        plain_value(one, arrays[one.output], {**self.sizes, **arrays}, np.float64, watch)
        return most[True], most[False]

    def drawn(self, arrays: Mapping[str, Argument]) -> dict[str, Argument]:
        """Arrays whose content may be changed."""
        return {name: one for name, one in arrays.items() if one.drawn and name not in self.fixed}

    def drawn_reals(self, arrays: Mapping[str, Argument]) -> dict[str, Argument]:
        """Those of them that are of reals."""
        return {name: one for name, one in self.drawn(arrays).items() if is_real(one.value)}

    def drawn_freely(self, arrays: Mapping[str, Argument]) -> dict[str, Argument]:
        """Those that are of reals, and those of integers that are drawn from all."""
        drawn = self.drawn(arrays)
        return {name: one for name, one in drawn.items() if is_real(one.value) or one.has_no_limit}

    def compares(self) -> bool:
        """Whether an expression compares numbers."""
        return any(compares(one.value) for one in self.expect)

    def other_constants(self) -> Iterator[tuple[str, Question]]:
        """Each real that the expressions have or are given, and the question with another in its place."""
        for number, one in enumerate(self.expect):
            for constant, text in other_constants(one.value, OTHER).items():
                expect = [*self.expect]
                expect[number] = replace(one, value=text)
                yield f"the constant {constant}", replace(self, expect=expect)
        for name, value in self.given_reals():
            yield f"{name}, which is {value:g}", replace(self, sizes={**self.sizes, name: OTHER * value})

    def given_reals(self) -> list[tuple[str, float]]:
        """Reals that the expressions name."""
        names = self.names()
        return [(n, v) for n, v in self.sizes.items() if isinstance(v, float) and v and n in names]

    def is_curved(self) -> bool:
        """Whether an expression has functions such as exp."""
        return any(functions_in(one.value) & {*CURVED} for one in self.expect)

    def names(self) -> set[str]:
        """Names in the expressions."""
        return {word for one in self.expect if isinstance(one.value, str) for word in WORD.findall(one.value)}


def check_known_before(one: Expected, arrays: Mapping[str, Argument]) -> None:
    """BadInput for an expression of an array in which nothing is."""
    read = names_read(one.value) if isinstance(one.value, str) else frozenset[str]()
    for name in sorted(read & arrays.keys()):
        if arrays[name].holds_nothing:
            raise BadInput(
                f"{one.what} {shown(one.value)}: {name} is :out and holds nothing before the launch: say"
                f" :inout in place of :out if the kernel reads it, else leave {name} out of the expression"
            )


def refuse_vague(truths: Mapping[str, Truth]) -> None:
    """BadInput where expected values tell nothing."""
    for truth in truths.values():
        if truth.vague:
            raise BadInput(truth.vague)


def values_of(arrays: Mapping[str, Argument]) -> dict[str, np.ndarray]:
    return {name: one.value for name, one in arrays.items()}
