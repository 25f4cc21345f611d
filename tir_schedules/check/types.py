"""Numbers as kernels have them: C++ types of parameters, formats, how a kernel rounds, and arrays with bounds
of what rounding does to them. An expression's tolerance is derived from these bounds.

An operation on a `Bounded` is done in float64, or int64 for integers. It carries along how far from it a
kernel's own arithmetic may be: by what it makes of its operands' errors, and by its own rounding. Sums err as
workloads/rounding.py has it, in any order of summation.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from math import prod
from typing import Any, Callable

import numpy as np

from tir_schedules.errors import BadInput
from tir_schedules.workloads import element_type
from tir_schedules.workloads.rounding import TRUNCATION, worst_growth

FLOATS = ("f16", "bf16", "f32", "f64")
FORMATS = (*FLOATS, "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
"""Names of formats, as `--arg` takes them."""

NUMPY_NAMES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}
"""Formats that a C of hgemm can have."""

FORMAT_WORDS = {
    **{format: format for format in FORMATS},
    **{f"{kind}{bits}": f"{kind[0]}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{name: format for format, name in NUMPY_NAMES.items()},
    "float64": "f64", "float": "f64", "double": "f64", "half": "f16", "int": "i64", "long": "i64",
    "bool": "bool",
}  # fmt: skip
"""Types as numpy and torch spell them -> formats, and "bool"."""

UNITS = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53}
"""Unit roundoff of a format: whole numbers up to 1 / UNITS[format] are exact."""

LARGEST = {"f16": 2.0**15, "bf16": 2.0**127, "f32": 2.0**127, "f64": 2.0**1023}
"""The largest power of two of a format."""

DENORMAL = {"f16": 2.0**-20, "bf16": 2.0**-130, "f32": 2.0**-140, "f64": 2.0**-1060}
"""A denormal number of a format."""

SMALLEST = {
    "f16": (2.0**-14, 2.0**-24), "bf16": (2.0**-126, 2.0**-133),
    "f32": (2.0**-126, 2.0**-149), "f64": (2.0**-1022, 2.0**-1074),
}  # fmt: skip
"""The smallest normal number of a format, and the smallest denormal one."""

NAMES = {
    "float": "f32", "double": "f64", "__half": "f16", "half": "f16", "_Float16": "f16", "half_t": "f16",
    "__nv_bfloat16": "bf16", "nv_bfloat16": "bf16", "__bf16": "bf16",
    "char": "i8", "signed char": "i8", "unsigned char": "u8", "bool": "u8", "int8_t": "i8", "uint8_t": "u8",
    "short": "i16", "unsigned short": "u16", "int16_t": "i16", "uint16_t": "u16",
    "int": "i32", "unsigned int": "u32", "unsigned": "u32", "int32_t": "i32", "uint32_t": "u32",
    "long": "i64", "unsigned long": "u64", "long long": "i64", "unsigned long long": "u64",
    "int64_t": "i64", "uint64_t": "u64", "size_t": "u64", "uint": "u32", "uchar": "u8", "ushort": "u16",
    "c10::Half": "f16", "at::Half": "f16", "c10::BFloat16": "bf16", "at::BFloat16": "bf16",
}  # fmt: skip
"""C++ types -> formats."""

VECTOR = re.compile(
    r"(float|double|int|uint|char|uchar|short|ushort|long|ulong|longlong"
    r"|ulonglong|half|nv_bfloat16)[1-4]"
)
LONGER = {"ulong": "u64", "longlong": "i64", "ulonglong": "u64"}
"""Of CUDA's vector types the scalar type; `__half2`, `nv_bfloat162` and the like are found without `__`."""

HALVES, CARRIERS = ("f16", "bf16"), ("u16", "u32")
"""Halves are also read as their bits, one or two at a time."""

QUALIFIERS = re.compile(r"\b(?:const|volatile|__restrict__|__restrict|restrict|struct|std::)\b|std::")


@dataclass(frozen=True)
class CType:
    """A type as C++ writes it. pointer: None where it is not known. format: that of a number or of what is
    pointed to; "" for a type that is not built in. const: whether what is pointed to is. ptx: the type in
    PTX, where that is all there is. elements: the format of a vector's elements."""

    text: str
    pointer: bool | None = False
    format: str = ""
    const: bool = False
    depth: int = 0
    ptx: str = ""
    elements: str = ""


def c_type(text: str) -> CType:
    """ "float const*", "const float *__restrict__", "float (*) [32]" or "unsigned int"."""
    shown = " ".join(text.split())
    marks = shown.count("*") + shown.count("&")
    head = re.split(r"[*&(]", shown)[0]
    words = QUALIFIERS.sub(" ", head).split()
    number = [word for word in words if word in ("unsigned", "signed", "long", "short", "int", "char")]
    if number and len(number) == len(words) and len(words) > 1:  # in any order, with or without int
        sign = ["unsigned"] * ("unsigned" in words) + ["signed"] * ("signed" in words and "char" in words)
        rest = [word for word in words if word not in ("unsigned", "signed", "int")]
        words = [*sign, *(rest or ["int"])]
    base = " ".join(words)
    vector = VECTOR.fullmatch(base.removeprefix("__"))
    elements = (LONGER.get(vector[1]) or NAMES[vector[1]]) if vector else ""
    const = bool(re.search(r"\bconst\b", head))
    return CType(shown, bool(marks), NAMES.get(base, ""), const, marks, elements=elements)


def dtype_of(format: str) -> Any:
    """numpy's dtype of a format. BadInput for one there is not."""
    if format == "bf16":
        return element_type("bfloat16")
    if format not in FORMATS:
        raise BadInput(f"{format!r} is not a format of numbers; there are {', '.join(FORMATS)}")
    return np.dtype(f"{format[0]}{int(format[1:]) // 8}")


def format_of(dtype: Any) -> str:
    """The format of a dtype; "" for another."""
    dtype = np.dtype(dtype)
    if dtype.name == "bfloat16":
        return "bf16"
    if dtype.kind == "b":
        return "u8"
    return f"{dtype.kind}{dtype.itemsize * 8}" if dtype.kind in "fiu" and dtype.itemsize <= 8 else ""


def fits(type_: CType, format: str) -> bool:
    """Whether an array of a format may be given for a pointer. Signed and unsigned integers may stand for
    each other; vectors, structs and void take any format, as kernels copy by them."""
    wanted = type_.format
    if not wanted or not format or wanted == format:
        return True
    if wanted in CARRIERS and format in HALVES:
        return True
    return wanted[0] in "iu" and format[0] in "iu" and wanted[1:] == format[1:]


# ---- how far a kernel may be from what an expression says ---
ULPS = 16
"""Units that CUDA's own functions may be off by, `__expf` and the like of moderate arguments among them."""

POWER = 1.173 * 2.0**-23
"""What `__expf(x)` may be off by, as CUDA documents it: 2 + 1.173 |x| units in the last place."""

FINEST = 12
"""Numbers with up to so many bits behind the point are recognised as multiples of a power of two."""

MOST = 1 << 26
"""Most elements of an array that an expression makes."""


class TooLarge(ValueError):
    """An array of more elements than MOST."""


def check_size(elements: int) -> None:
    if elements > MOST:
        raise TooLarge(f"an array of {elements} elements is too large; {MOST} are the most")


def check_broadcast(*operands: Any) -> None:
    """TooLarge where operands together make too large an array."""
    check_size(prod(np.broadcast_shapes(*map(np.shape, operands))))


@dataclass(frozen=True)
class Arithmetic:
    """What a kernel computes with, as its PTX says: see target.py. multiplied, added: formats of 16 bits
    ("f16", "bf16") in which it does. cut: formats in which tensor cores add up, and cut sums off. tensor:
    whether they add up in float32. narrowed: whether a value may be rounded to 16 bits before the end. tf32:
    whether tensor cores read float32 as TF32. flushes: whether an instruction takes denormal numbers for
    zeros. angles: whether sines are approximate. powers: whether powers are, as of `__expf`.
    """

    multiplied: frozenset[str] = frozenset()
    added: frozenset[str] = frozenset()
    cut: frozenset[str] = frozenset()
    tensor: bool = False
    narrowed: bool = False
    tf32: bool = False
    flushes: bool = False
    angles: bool = False
    powers: bool = False

    @property
    def narrow(self) -> frozenset[str]:
        """Formats of 16 bits in which it computes at all."""
        return self.multiplied | self.added | self.cut


@dataclass
class Rounding:
    """How a kernel rounds. unit: unit roundoff of one operation. sums: the same of additions, larger where
    tensor cores cut off. whole: whole numbers up to this are sums without any error. work: elements that
    operations have handled so far. summed: whether a sum came up; inexact: one that some order rounds. angle:
    what sin.approx and cos.approx may be off by, per 1 + |x|; power: the share of exp(x) that ex2.approx of a
    product may be off by, per |x|. normal: magnitudes below it are denormal numbers, where least is
    what a result loses."""

    unit: float
    sums: float
    whole: float
    work: int = 0
    summed: bool = False
    inexact: bool = False
    angle: float = 0.0
    power: float = 0.0
    normal: float = 0.0
    least: float = 0.0

    def bound_sum(self, terms: int, magnitude: Any, step: float) -> Any:
        """What sums may be off by. magnitude: the sum of their magnitudes. step: all terms are multiples of
        this power of two; 0 where there is no such power."""
        self.summed = True
        if step and np.max(magnitude, initial=0) <= step * self.whole:
            return 0.0
        self.inexact = True
        return self.growth(terms) * magnitude + terms * self.least

    def underflow(self, value: Any, error: Any) -> Any:
        """What a result loses where it may be a denormal number, except for zeros that are exact."""
        small = np.abs(value) - error < self.normal
        return np.where(small & ((value != 0) | (error != 0)), self.least, 0.0) if np.any(small) else 0.0

    def growth(self, terms: int) -> float:
        """What a sum may be off by, per sum of magnitudes: the worst case, or 10*sqrt(terms) units where that
        is less and sums are not cut off, or cannot be told from noise in the worst case."""
        worst = worst_growth(terms + 1, self.sums)
        cut_off = self.sums > self.unit and worst < 1
        return worst if cut_off else min(worst, 10 * (terms + 1) ** 0.5 * self.sums)

    def of_constant(self, value: Any) -> Any:
        """How far a real of the expression may be from the kernel's constant."""
        if value.dtype.kind != "f":
            return 0.0
        mantissa, _ = np.frexp(value)
        digits = mantissa / self.unit
        return np.where(np.trunc(digits) == digits, 0.0, self.unit * np.abs(value)) + self.underflow(
            value, 0.0
        )


def rounding_of(output: str, arithmetic: Arithmetic = Arithmetic()) -> Rounding:
    """The rounding of a kernel whose output has this format."""
    if output == "f64":
        normal, denormal = SMALLEST["f64"]
        return Rounding(UNITS["f64"], UNITS["f64"], 1 / UNITS["f64"], normal=normal, least=denormal)
    angle = 2.0**-20 if arithmetic.angles else 0.0
    power = POWER if arithmetic.powers else 0.0
    format = output if output in arithmetic.narrow else "f32"
    unit, (normal, denormal) = UNITS[format], SMALLEST[format]
    least = max(denormal / 2, SMALLEST["f32"][0] if arithmetic.flushes else 0.0)
    summed = output if output in arithmetic.added | arithmetic.cut else "f32"
    cut_off = output in arithmetic.cut or (summed == "f32" and arithmetic.tensor)
    sums = TRUNCATION[NUMPY_NAMES[summed]] if cut_off else UNITS[summed]
    return Rounding(unit, sums, 1 / UNITS[summed], angle=angle, power=power, normal=normal, least=least)


def step_of(value: np.ndarray) -> float:
    """The power of two, up to 1, that all numbers are multiples of; 0 where there is none."""
    if value.dtype.kind != "f":
        return 1.0
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = value * 2.0**FINEST
        if not np.all(np.trunc(scaled) == scaled):
            return 0.0
    step = 1.0
    while not np.all(np.trunc(value / step) * step == value):
        step /= 2
    return step


def elementwise(function: Callable[..., Any], ulps: float = 1) -> Callable[..., Any]:
    """A function of numbers: operands that are off show in what it makes of them at either end."""

    def call(*operands: Any) -> Any:
        if isinstance(function, np.ufunc) and len(operands) != function.nin:
            raise TypeError(f"{function.__name__} takes {function.nin} operands; {len(operands)} are given")
        one = next((each for each in operands if isinstance(each, Bounded)), None)
        if one is None:
            return function(*operands)
        every = unsigned([one.of(each) for each in operands])
        check_broadcast(*(each.value for each in every))
        with np.errstate(all="ignore"):
            value = np.asarray(function(*(each.value for each in every)))
            error: Any = 0.0
            for at, each in enumerate(every):
                if np.any(each.error):
                    error = error + moved(function, [other.value for other in every], at, each.error, value)
        exact = not ulps and all(each.step and not np.any(each.error) for each in every)
        return one.rounded(value, error, ulps, step_of(value) if exact else 0.0, chosen=not ulps)

    return call


def unsigned(operands: list[Bounded]) -> list[Bounded]:
    """Integers beside uint64 as uint64, as CUDA has them; numpy would make reals of both."""
    kinds = {each.value.dtype.str[1:] for each in operands}
    if not {"i8", "u8"} <= kinds:
        return operands
    return [
        Bounded(each.value.astype(np.uint64), each.error, each.rounding, each.step)
        if each.value.dtype.kind == "i"
        else each
        for each in operands
    ]


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


def swapped(operation: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """The operator where the array stands on the right."""
    return lambda self, other: operation(self.of(other), self)


def comparing(compare: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda self, other: self.compared(compare, other)


class Bounded:
    """An array, or a number, and how far from it a kernel may be. value: float64 or int64; error: like it, or
    0.0. step: the power of two that all its numbers are multiples of where none is off, else 0."""

    __array_ufunc__ = None  # numpy's operators leave an operation to ours

    def __init__(self, value: Any, error: Any, rounding: Rounding, step: float = 0.0):
        self.value, self.error, self.rounding, self.step = np.asarray(value), error, rounding, step

    @classmethod
    def given(cls, value: Any, rounding: Rounding, error: Any = 0.0) -> Bounded:
        """What an expression begins with."""
        array = np.asarray(value)
        return cls(array, error, rounding, 0.0 if np.any(error) else step_of(array))

    def of(self, other: Any) -> Bounded:
        """Another operand as one of these."""
        if isinstance(other, Bounded):
            return other
        value = np.asarray(other)
        error = self.rounding.of_constant(value) if value.ndim == 0 else 0.0
        return Bounded.given(value, self.rounding, error)

    def rounded(
        self, value: Any, error: Any, ulps: float = 1, step: float = 0.0, chosen: bool = False
    ) -> Bounded:
        """A result, which is rounded unless it is an integer, or a multiple of `step` that needs no
        rounding. chosen: whether it is one of the operands, or their sign, and also no denormal number is
        rounded."""
        value, rounding = np.asarray(value), self.rounding
        rounding.work += value.size
        if value.dtype.kind != "f":
            return Bounded(value, error, rounding, step)
        exact = step >= min(rounding.normal, 2 * rounding.least) and step and not np.any(error)
        if exact and np.max(np.abs(value), initial=0) <= step / rounding.unit:
            return Bounded(value, 0.0, rounding, step)
        lost = 0.0 if chosen else max(ulps, 1) * rounding.underflow(value, error)
        return Bounded(value, error + ulps * rounding.unit * np.abs(value) + lost, rounding)

    def __add__(self, other: Any) -> Bounded:
        other = self.of(other)
        one, another = alike(self.value, other.value)
        return self.rounded(one + another, self.error + other.error, 1, min(self.step, other.step))

    def __sub__(self, other: Any) -> Bounded:
        other = self.of(other)
        one, another = alike(self.value, other.value)
        return self.rounded(one - another, self.error + other.error, 1, min(self.step, other.step))

    def __mul__(self, other: Any) -> Bounded:
        other = self.of(other)
        one, another = alike(self.value, other.value)
        ulps = 0 if power_of_two(self) or power_of_two(other) else 1
        return self.rounded(one * another, product_error(self, other), ulps, self.step * other.step)

    def __truediv__(self, other: Any) -> Bounded:
        other = self.of(other)
        check_broadcast(self.value, other.value)
        with np.errstate(all="ignore"):
            value = self.value / other.value
            error = (self.error + np.abs(value) * other.error) / np.maximum(
                np.abs(other.value) - other.error, np.finfo(np.float64).tiny
            )
        divisor = power_of_two(other)
        return self.rounded(value, error, 0 if divisor else 4, self.step / divisor if divisor else 0.0)

    def __matmul__(self, other: Any) -> Bounded:
        other = self.of(other)
        one, another = (each.value for each in (self, other))
        check_size(prod(one.shape[:-1]) * prod(another.shape[-1:] if another.ndim > 1 else ()))
        value = one @ another
        large, larger = (np.abs(each.value) + each.error for each in (self, other))
        error, step = large @ larger - np.abs(one) @ np.abs(another), self.step * other.step
        self.rounding.work += value.size * one.shape[-1]
        if value.dtype.kind == "f":
            error = error + self.rounding.bound_sum(one.shape[-1], large @ larger, step)
        return self.rounded(value, error if np.any(error) else 0.0, 1, step)

    __pow__ = elementwise(np.power, 4)
    __mod__, __floordiv__ = elementwise(np.mod), elementwise(np.floor_divide)
    __and__, __or__, __xor__ = map(elementwise, (np.bitwise_and, np.bitwise_or, np.bitwise_xor))
    __lshift__, __rshift__ = elementwise(np.left_shift), elementwise(np.right_shift)
    __invert__ = elementwise(np.invert)
    __radd__, __rsub__, __rmul__ = map(swapped, (operator.add, operator.sub, operator.mul))
    __rtruediv__, __rpow__ = swapped(operator.truediv), swapped(operator.pow)
    __rmod__, __rfloordiv__ = swapped(operator.mod), swapped(operator.floordiv)
    __lt__, __le__, __gt__, __ge__ = map(comparing, (operator.lt, operator.le, operator.gt, operator.ge))
    __eq__, __ne__ = comparing(operator.eq), comparing(operator.ne)

    def __neg__(self) -> Bounded:
        return Bounded(-self.value, self.error, self.rounding, self.step)

    def __pos__(self) -> Bounded:
        return self

    def compared(self, compare: Callable[[Any, Any], Any], other: Any) -> Any:
        """A comparison: exact, or with an error of 1 where rounding may decide it otherwise."""
        other = self.of(other)
        found = compare(self.value, other.value)
        if not np.any(self.error) and not np.any(other.error):
            return found
        with np.errstate(invalid="ignore"):
            near = np.abs(self.value - other.value) <= self.error + other.error
        return Bounded(found, near.astype(float), self.rounding)

    def __getitem__(self, key: Any) -> Bounded:
        keys = tuple(map(as_index, key)) if isinstance(key, tuple) else as_index(key)
        found = self.value[keys]
        check_size(found.size)
        return Bounded(found, spread(self)[keys], self.rounding, self.step)

    def __bool__(self) -> bool:
        return bool(self.value)

    @property
    def T(self) -> Bounded:
        return Bounded(self.value.T, spread(self).T, self.rounding, self.step)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def size(self) -> int:
        return self.value.size

    @property
    def ndim(self) -> int:
        return self.value.ndim


def plain(value: Any) -> Any:
    """A value, or values in brackets, without bounds."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value.value if isinstance(value, Bounded) else value


def as_index(key: Any) -> Any:
    """A subscript: whole reals, such as those of floor, as integers; the ends of a slice as numbers."""
    if isinstance(key, slice):
        ends = (key.start, key.stop, key.step)
        return slice(*(int(end.value) if isinstance(end, Bounded) else end for end in ends))
    array = np.asarray(plain(key)) if isinstance(key, (Bounded, np.ndarray)) else None
    if array is None or array.dtype.kind != "f" or not np.all(np.trunc(array) == array):
        return plain(key)
    return array.astype(np.int64)


def spread(one: Bounded) -> np.ndarray:
    """The bounds as an array like the values."""
    return np.broadcast_to(np.asarray(one.error, np.float64), one.value.shape)


def alike(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two operands in one format: numpy would add int64 and uint64 as reals, where CUDA has uint64."""
    check_broadcast(one, other)
    if {one.dtype.str[1:], other.dtype.str[1:]} == {"i8", "u8"}:
        return one.astype(np.uint64), other.astype(np.uint64)
    return one, other


def power_of_two(one: Bounded) -> float:
    """The value of a number that is a power of two; 0 of any other."""
    if one.value.size != 1 or np.any(one.error) or one.value.flat[0] <= 0:
        return 0.0
    value = float(one.value.flat[0])
    return value if np.frexp(value)[0] == 0.5 else 0.0


def product_error(one: Bounded, other: Bounded) -> Any:
    return np.abs(one.value) * other.error + np.abs(other.value) * one.error + one.error * other.error
