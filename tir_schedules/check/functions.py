"""numpy's functions that an expected output may be written with, over arrays with bounds (see types.py)."""

from __future__ import annotations

import math
from functools import reduce, wraps
from inspect import signature
from math import prod
from typing import Any, Callable

import numpy as np

from tir_schedules.check.expressions import COMPARISONS, Refused, functions_in, nodes_in
from tir_schedules.check.spellings import STEPS, as_reals, is_whole, spelled, told_by_text
from tir_schedules.check.types import (
    ULPS,
    UNITS,
    Bounded,
    Rounding,
    check_size,
    elementwise,
    plain,
    spread,
    step_of,
)
from tir_schedules.check.windows import bilinear, of_windows

EXACT = (
    "abs absolute sign floor ceil rint trunc maximum minimum fmax fmin where clip negative isnan isfinite"
    " isinf logical_and logical_or logical_not equal bitwise_and bitwise_or bitwise_xor left_shift"
    " right_shift"
).split()
"""Functions of elements that round nothing themselves."""

BY_ELEMENT = {name: np.vectorize(getattr(math, name), otypes=[float]) for name in ("erf", "erfc", "lgamma")}
"""Functions that CUDA has and numpy has not."""

ROUNDING = (
    "exp2 expm1 log log2 log10 log1p sqrt cbrt square reciprocal power hypot logaddexp tan arcsin arccos"
    " arctan arctan2 sinh cosh tanh mod fmod floor_divide heaviside copysign"
).split()

COMPARING = frozenset(
    "max amax min amin maximum minimum fmax fmin where clip sort argmax argmin argsort sign heaviside"
    " interp count_nonzero nonzero searchsorted bincount unique logical_and logical_or"
    " logical_not equal int64 relu softmax log_softmax logsumexp max_pool1d max_pool2d max_pool3d".split()
)
"""Functions that compare, or go by an order of numbers."""

SELECTING = frozenset(
    "abs absolute negative max amax min amin maximum minimum fmax fmin where transpose reshape ravel flip"
    " fliplr flipud roll rot90 squeeze expand_dims broadcast_to repeat tile take swapaxes concatenate stack"
    " hstack vstack permute moveaxis relu contiguous clone copy max_pool1d"
    " max_pool2d max_pool3d".split()
)
"""Functions that move elements, or choose among them."""

TO_INTEGERS = frozenset("rint floor ceil trunc int64 floor_divide round astype int long".split())

CURVED = (
    "exp exp2 expm1 log1p sinh cosh tanh erf erfc logaddexp arctan sigmoid expit silu gelu softmax"
    " log_softmax logsumexp"
).split()
"""Functions with limits, beyond which kernels may cut them off."""

MOVING = (
    "transpose reshape ravel flip fliplr flipud roll rot90 squeeze expand_dims broadcast_to repeat tile diag"
    " diagonal tril triu pad take swapaxes moveaxis atleast_2d"
).split()
"""Functions that move elements."""

JOINING = ("concatenate", "stack", "hstack", "vstack")
PICKING = "any all argsort count_nonzero nonzero searchsorted unique".split()
"""Functions whose results are integers, or that only integers are for."""

MAKING: dict[str, Callable[..., Any]] = {
    "arange": lambda start, stop=None, step=1, **_: abs((start if stop is None else stop - start) / step),
    "linspace": lambda start, stop, num=50, **_: num,
    "eye": lambda N, M=None, **_: N * (M or N),
    "zeros": lambda shape, **_: prod(flat([shape])),
    "ones": lambda shape, **_: prod(flat([shape])),
    "full": lambda shape, fill_value, **_: prod(flat([shape])),
}
"""Functions that make arrays, and of how many elements."""

MODES = ("same", "valid", "full", "constant", "edge", "reflect", "symmetric", "wrap")
AXES = {"dim": "axis", "keepdim": "keepdims", "dims": "axis", "a_min": "min", "a_max": "max"}
"""Names that others have for parameters -> ours."""


def moving(function: Callable[..., Any]) -> Callable[..., Any]:
    """Values and bounds go the same way."""

    def call(array: Any, *others: Any, **named: Any) -> Any:
        others = tuple(map(plain, others))
        if function in (np.repeat, np.tile, np.pad):
            check_size(np.size(plain(array)) * max(1, prod(flat([*others, *named.values()]))))
        if function is np.broadcast_to:
            check_size(prod(flat([*others, *named.values()])))
        if function is np.diag and np.ndim(plain(array)) == 1:
            check_size(np.size(plain(array)) ** 2)
        if not isinstance(array, Bounded):
            return function(array, *others, **named)
        found = function(array.value, *others, **named)
        step = array.step if function is not np.pad else 0.0
        return Bounded(found, function(spread(array), *others, **named), array.rounding, step)

    return call


def periodic(function: Callable[..., Any]) -> Callable[..., Any]:
    """sin and cos, which CUDA's approximate instructions compute to an absolute error that grows with |x|."""
    exact = elementwise(function, ULPS)

    def call(array: Any) -> Any:
        found = exact(array)
        if isinstance(found, Bounded) and found.rounding.angle:
            found.error = found.error + found.rounding.angle * (1 + np.abs(array.value))
        return found

    return call


def power(array: Any) -> Any:
    """exp. The relative error of `__expf` grows with |x|."""
    found = elementwise(np.exp, ULPS)(array)
    if isinstance(found, Bounded) and found.rounding.power:
        found.error = found.error + found.rounding.power * np.abs(array.value) * np.abs(found.value)
    return found


def flat(values: Any) -> list[int]:
    """The whole numbers among values, and in tuples among them."""
    inner = [flat(one) if isinstance(one, tuple) else [one] for one in values]
    numbers = [one for many in inner for one in many if np.ndim(one) == 0]
    return [max(1, abs(int(one))) for one in numbers if np.asarray(one).dtype.kind in "iu"]


def joining(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(arrays: Any, *axis: Any, **named: Any) -> Any:
        if not isinstance(arrays, tuple) or not all(map(is_whole, axis)):
            name = function.__name__
            raise Refused(f"{name} takes arrays in brackets: {name}((x, y))")
        one = next((each for each in arrays if isinstance(each, Bounded)), None)
        check_size(sum(np.size(plain(each)) for each in arrays))
        if one is None:
            return function(arrays, *axis, **named)
        every = [one.of(each) for each in arrays]
        found = function([each.value for each in every], *axis, **named)
        error = function([spread(each) for each in every], *axis, **named)
        return Bounded(found, error, one.rounding, min(each.step for each in every))

    return call


def picking(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        given, named = tuple(map(plain, given)), {name: plain(value) for name, value in named.items()}
        return function(*given, **named)

    return call


def extreme_place(function: Callable[..., Any], sign: int) -> Callable[..., Any]:
    """argmax and argmin: any index may be right where rounding decides between values."""

    def call(array: Any, axis: Any = None, keepdims: bool = False) -> Any:
        found = function(plain(array), axis=axis, keepdims=keepdims)
        if not isinstance(array, Bounded) or not np.any(array.error):
            return found
        value, error = sign * array.value, spread(array)
        best = np.max(value - error, axis=axis, keepdims=True)
        several = np.sum(value + error >= best, axis=axis, keepdims=keepdims) > 1
        return Bounded(found, np.where(several, np.inf, 0.0), array.rounding)

    return call


def counted(array: Any, weights: Any = None, minlength: int = 0) -> Any:
    """bincount; sums of weights have the bounds of sums."""
    places = plain(array)
    check_size(int(np.max(places, initial=0)) + int(plain(minlength)))
    found = np.bincount(places, plain(weights), plain(minlength))
    if not isinstance(weights, Bounded):
        return found
    magnitude = np.bincount(places, np.abs(weights.value) + spread(weights), plain(minlength))
    terms = int(np.max(np.bincount(places), initial=0))
    error = np.bincount(places, spread(weights), plain(minlength))
    error = error + weights.rounding.bound_sum(terms, magnitude, weights.step)
    return weights.rounded(found, error if np.any(error) else 0.0, 1, weights.step)


def making(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(MAKING[function.__name__])
    def call(*given: Any, **named: Any) -> Any:
        if any(isinstance(one, (Bounded, np.ndarray)) and np.ndim(plain(one)) for one in given):
            raise Refused("sizes are numbers")
        given, dtype = plain(given), named.pop("dtype", None)
        check_size(int(MAKING[function.__name__](*given, **named)))
        made = function(*given, **named)
        return FUNCTIONS["astype"](made, dtype) if dtype else made

    return call


def total(array: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """A sum, with what its rounding may be in any order."""
    if not isinstance(array, Bounded):
        return np.sum(array, axis=axis, keepdims=keepdims)
    value = np.sum(array.value, axis=axis, keepdims=keepdims)
    error = np.sum(spread(array), axis=axis, keepdims=keepdims)
    if value.dtype.kind == "f":
        magnitude = np.sum(np.abs(array.value) + spread(array), axis=axis, keepdims=keepdims)
        terms = array.value.size // max(1, np.size(value))
        error = error + array.rounding.bound_sum(terms, magnitude, array.step)
        array.rounding.work += array.value.size
    return array.rounded(value, error if np.any(error) else 0.0, 1, array.step)


def mean(array: Any, axis: Any = None, keepdims: bool = False) -> Any:
    whole = total(array, axis, keepdims)
    return whole / (np.size(plain(array)) // max(1, np.size(plain(whole))))


def variance(
    array: Any,
    axis: Any = None,
    keepdims: bool = False,
    ddof: int = 0,
    *,
    unbiased: bool = False,
    correction: int = 0,
) -> Any:
    """By differences from the mean; a kernel that subtracts squares may need a tolerance of its own."""
    ddof = max(ddof, int(unbiased), correction)
    off = array - mean(array, axis, True)
    whole = total(off * off, axis, keepdims)
    return whole / (np.size(plain(array)) // max(1, np.size(plain(whole))) - ddof)


def product(array: Any, axis: Any = None, keepdims: bool = False) -> Any:
    if not isinstance(array, Bounded):
        return np.prod(array, axis=axis, keepdims=keepdims)
    value = np.prod(array.value, axis=axis, keepdims=keepdims)
    return array.rounded(value, 0.0, array.value.size // max(1, np.size(value)))


def running(array: Any, axis: Any = None) -> Any:
    """cumsum."""
    if not isinstance(array, Bounded):
        return np.cumsum(array, axis=axis)
    value = np.cumsum(array.value, axis=axis)
    error = np.cumsum(spread(array), axis=axis)
    if value.dtype.kind == "f":
        terms = array.value.size if axis is None else array.value.shape[axis]
        magnitude = np.cumsum(np.abs(array.value), axis=axis)
        error = error + array.rounding.bound_sum(terms, magnitude, array.step)
    return array.rounded(value, error if np.any(error) else 0.0, 1, array.step)


def extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    """The largest or smallest: as far off as the operand that is most."""

    def call(array: Any, *others: Any, axis: Any = None, keepdims: bool = False) -> Any:
        if others:  # max(a, b), as C++ has it
            of_two = elementwise(np.maximum if function is np.max else np.minimum, 0)
            return reduce(of_two, (array, *others))
        if not isinstance(array, Bounded):
            return function(array, axis=axis, keepdims=keepdims)
        value = function(array.value, axis=axis, keepdims=keepdims)
        error = np.max(spread(array), axis=axis, keepdims=keepdims)
        return Bounded(value, error, array.rounding, array.step)

    return call


def ordered(array: Any, axis: int = -1) -> Any:
    if not isinstance(array, Bounded):
        return np.sort(array, axis=axis)
    value = np.sort(array.value, axis=axis)
    return Bounded(value, np.max(spread(array), initial=0.0), array.rounding, array.step)


def matmul(one: Any, other: Any) -> Any:
    return one @ other if np.ndim(plain(one)) and np.ndim(plain(other)) else one * other


def dot(one: Any, other: Any) -> Any:
    """Of stacks of matrices numpy's is all pairs of them, which a kernel hardly computes."""
    if np.ndim(plain(one)) > 1 and np.ndim(plain(other)) > 2:
        raise Refused("dot takes vectors and matrices; stacks of matrices are multiplied by A @ B")
    return matmul(one, other)


def inner(one: Any, other: Any) -> Any:
    """Sums over the last axis of both."""
    if max(np.ndim(plain(one)), np.ndim(plain(other))) > 2:
        raise Refused("inner takes vectors and matrices; write sum(x * y, axis=-1), or A @ B.T")
    return matmul(one, moving(np.transpose)(other) if np.ndim(plain(other)) > 1 else other)


def vdot(one: Any, other: Any) -> Any:
    return matmul(moving(np.ravel)(one), moving(np.ravel)(other))


def outer(one: Any, other: Any) -> Any:
    check_size(np.size(plain(one)) * np.size(plain(other)))
    return moving(np.reshape)(one, (-1, 1)) * moving(np.reshape)(other, (1, -1))


def sliding(function: Callable[..., Any]) -> Callable[..., Any]:
    """convolve and correlate of rows; without a mode as numpy has it, which is another for each."""
    usual = signature(function).parameters["mode"].default
    products = bilinear(function, lambda one, other, _: min(one.size, other.size))
    return lambda one, other, mode=usual: products(one, other, mode)


def called(function: Callable[..., Any]) -> Callable[..., Any]:
    """With parameters by any of their names. Text is taken for modes alone."""

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        for one in (*given, *(value for name, value in named.items() if name != "dtype")):
            if isinstance(one, str) and one not in MODES:
                raise Refused(f"text is taken only for modes: {', '.join(MODES)}")
        return function(*given, **{AXES.get(name, name): value for name, value in named.items()})

    return call


def made_finite(array: Any, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """nan_to_num: infinity becomes the largest float32, or float64 where the kernel leaves that."""
    of_double = isinstance(array, Bounded) and array.rounding.unit == UNITS["f64"]
    most = float(np.finfo(np.float64 if of_double else np.float32).max)
    high, low = (most if posinf is None else plain(posinf)), (-most if neginf is None else plain(neginf))
    ends = {"nan": plain(nan), "posinf": high, "neginf": low}
    return elementwise(lambda one: np.nan_to_num(one, **ends), 0)(array)


def as_integers(array: Any) -> Any:
    """int64, cut off towards 0."""
    value = plain(array)
    return np.asarray(value).astype(np.int64) if np.ndim(value) else int(value)


def of_numpy(names: Any, wrap: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    return {name: wrap(getattr(np, name)) for name in names}


NUMPY: dict[str, Callable[..., Any]] = {
    **of_numpy(EXACT, lambda function: elementwise(function, 0)),
    **of_numpy(ROUNDING, lambda function: elementwise(function, ULPS)),
    **of_numpy(("sin", "cos"), periodic),
    "exp": power,
    **{name: elementwise(function, ULPS) for name, function in BY_ELEMENT.items()},
    **of_numpy(MOVING, moving),
    **of_numpy(JOINING, joining),
    **of_numpy(PICKING, picking),
    "argmax": extreme_place(np.argmax, 1), "argmin": extreme_place(np.argmin, -1), "bincount": counted,
    **of_numpy(MAKING, making),
    **of_numpy(("convolve", "correlate"), sliding),
    "max": extreme(np.max), "min": extreme(np.min),
    "sum": total, "mean": mean, "average": mean, "var": variance, "prod": product, "cumsum": running,
    "std": lambda *given, **named: elementwise(np.sqrt, ULPS)(variance(*given, **named)),
    "nan_to_num": made_finite,
    "dot": dot, "matmul": matmul, "inner": inner, "vdot": vdot, "outer": outer, "sort": ordered,
    "int64": as_integers, "float64": as_reals,
    "float32": elementwise(lambda array: np.asarray(array, np.float32).astype(np.float64)),
}  # fmt: skip
"""Name -> function, as numpy spells it."""

FUNCTIONS = {
    name: called(function) for name, function in {**NUMPY, **spelled(NUMPY), **of_windows(NUMPY)}.items()
}
FUNCTIONS |= told_by_text(NUMPY)
"""Name -> function. Axes and the like are given as numpy takes them."""


def compares(expression: str) -> bool:
    """Whether an expression compares numbers."""
    return bool(functions_in(expression) & COMPARING or nodes_in(expression) & COMPARISONS)


def functions_of(rounding: Rounding) -> dict[str, Callable[..., Any]]:
    """The functions, where arrays that are made carry bounds as well: a kernel computes with them, too."""

    def bounded(name: str) -> Callable[..., Any]:
        """For numbers between two, such as those of linspace, a kernel rounds the step and each product."""

        def call(*given: Any, **named: Any) -> Any:
            made = np.asarray(FUNCTIONS[name](*given, **named))
            if made.dtype.kind != "f" or (name != "linspace" and step_of(made)):
                return Bounded.given(made, rounding)
            return Bounded.given(made, rounding, STEPS * rounding.unit * np.max(np.abs(made), initial=0))

        return wraps(FUNCTIONS[name])(call)

    def literal(value: Any) -> Any:
        made = FUNCTIONS["array"](value)
        if isinstance(made, Bounded):
            return made
        return Bounded.given(made, rounding, rounding.of_constant(made))

    return {**FUNCTIONS, **{name: bounded(name) for name in MAKING}, "array": literal}
