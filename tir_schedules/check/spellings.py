"""Functions as methods and torch have them, where they differ from numpy's, and those that numpy has not: see
functions.py. Those that a kernel may compute in several ways, or that mean several things, are refused with
what says it in numpy."""

from __future__ import annotations

import math
from typing import Any, Callable, Mapping

import numpy as np

from tir_schedules.check.expressions import Format, Refused
from tir_schedules.check.types import (
    FORMAT_WORDS,
    ULPS,
    Bounded,
    check_size,
    dtype_of,
    elementwise,
    plain,
    spread,
)

Function = Callable[..., Any]

STEPS = 8
"""Roundings of a kernel that interpolates between two values, per sum of their magnitudes."""

FORMS = {
    "leaky_relu": "where(x > 0, x, {} * x)",
    "elu": "where(x > 0, x, {} * expm1(x))",
    "softplus": "logaddexp(x, 0)",
    "rms_norm": "x / sqrt(mean(x * x, -1, keepdims=True) + eps) * weight, with the kernel's eps",
    "einsum": "A @ B for 'ij,jk->ik', or a sum of products such as sum(A[:, :, None] * B, 1)",
    "cross_entropy": "logsumexp(x, -1) - x[arange(n), target]",
    "median": "sort(x, axis=-1)[..., n // 2] for an odd n along that axis",
    "numel": "x.size",
    "torch.max": "max(x, axis=...): torch's is a pair along a dimension",
    "torch.min": "min(x, axis=...): torch's is a pair along a dimension",
    "torch.sort": "sort(x, axis=...): torch's is a pair",
    "topk": "sort(x, axis=...)[..., -k:]",
    "torch.pad": "pad(x, ((0, 0), (1, 1))): torch begins with the last axis",
    "torch.var": "var(x, axis=..., ddof=1), as torch has it by default",
    "torch.std": "std(x, axis=..., ddof=1), as torch has it by default",
}
"""Functions that are refused, and what to write."""

OF_TWO = ("torch.max", "torch.min", "torch.var", "torch.std")
"""Those of them that are taken where they mean one thing."""


FACTORS = {"leaky_relu": ("negative_slope", 0.01), "elu": ("alpha", 1.0)}
"""The parameter of a function that stands in its form, and its default."""


def refusal(name: str) -> Function:
    def call(*given: Any, **named: Any) -> Any:
        parameter, default = FACTORS.get(name, ("", ""))
        factor = plain(given[1] if len(given) > 1 else named.get(parameter, default))
        form = FORMS[name].format(factor) if name in FACTORS else FORMS[name]
        raise Refused(f"{name.removeprefix('torch.')} is not taken; write {form}")

    return call


def unless(allowed: Function, function: Function, name: str) -> Function:
    """A function where its arguments are of one meaning; refused where they are of two."""

    def call(*given: Any, **named: Any) -> Any:
        return (function if allowed(given, named) else refusal(name))(*given, **named)

    return call


def is_whole(value: Any) -> bool:
    return np.ndim(plain(value)) == 0 and np.asarray(plain(value)).dtype.kind in "iu"


def gathered(function: Function) -> Function:
    """Extents or axes one by one are those in brackets: `x.reshape(n, 4)`."""

    def call(array: Any, *others: Any, **named: Any) -> Any:
        if any(isinstance(one, Format) for one in others):
            raise Refused("a view in another format is not taken; astype(...) converts")
        return function(array, others, **named) if len(others) > 1 else function(array, *others, **named)

    return call


def expanded(broadcast: Function) -> Function:
    """broadcast_to, in which -1 keeps an extent, as torch has it."""

    def call(array: Any, shape: Any) -> Any:
        wanted = [int(one) for one in np.atleast_1d(plain(shape))]
        own = (1,) * (len(wanted) - np.ndim(plain(array))) + np.shape(plain(array))
        return broadcast(array, tuple(had if one == -1 else one for one, had in zip(wanted, own)))

    return call


def swapping(functions: Mapping[str, Function]) -> Function:
    """transpose, which of two axes one by one swaps them, as torch has it."""

    def call(array: Any, *axes: Any, **named: Any) -> Any:
        if len(axes) == 2 and all(map(is_whole, axes)):
            return functions["swapaxes"](array, *axes)
        return gathered(functions["transpose"])(array, *axes, **named)

    return call


def converted(array: Any, format: Any = None, dtype: Any = None) -> Any:
    """astype: rounded to a format of reals, cut off and wrapped to integers, or whether it is not 0."""
    format = dtype if format is None else format
    if isinstance(format, str) and format in FORMAT_WORDS:
        format = Format(FORMAT_WORDS[format])
    if not isinstance(format, Format):
        raise Refused("astype takes a type, such as float16, float32 or int32")
    if format.name == "f64":
        return as_reals(array)
    if format.name == "bool":
        return array != 0
    kind = dtype_of(format.name)

    def convert(value: Any) -> Any:
        if format.name[0] in "iu":
            whole = np.asarray(value)
            whole = whole if whole.dtype.kind in "iub" else np.trunc(whole).astype(np.int64)
            return whole.astype(kind).astype(np.uint64 if format.name == "u64" else np.int64)
        return np.asarray(value, np.float64).astype(kind).astype(np.float64)

    return elementwise(convert, 0)(array)


def to_format(name: str) -> Function:
    return lambda array: converted(array, Format(name))


def as_reals(array: Any) -> Any:
    if isinstance(array, Bounded):
        return Bounded(array.value.astype(np.float64), array.error, array.rounding, array.step)
    return np.asarray(array, np.float64)


def made_array(value: Any) -> Any:
    """Numbers in brackets, also in several layers."""
    if not isinstance(value, tuple):
        return value
    parts = [made_array(one) for one in value]
    one = next((each for each in parts if isinstance(each, Bounded)), None)
    if one is None:
        return np.stack(parts) if parts else np.zeros(0)
    every = [one.of(each) for each in parts]
    check_size(sum(each.size for each in every))
    values, errors = np.stack([each.value for each in every]), np.stack([spread(each) for each in every])
    return Bounded(values, errors, one.rounding, min(each.step for each in every))


def extent(array: Any, axis: Any = None) -> Any:
    shape = np.shape(plain(array))
    return math.prod(shape) if axis is None else shape[int(plain(axis))]


def filled(fill: float) -> Function:
    """zeros_like and ones_like."""

    def call(array: Any) -> Any:
        made = np.full(np.shape(plain(array)), fill)
        return Bounded.given(made, array.rounding) if isinstance(array, Bounded) else made

    return call


def interpolated(x: Any, places: Any, values: Any) -> Any:
    """interp. A kernel rounds places, differences and products of the two values beside each x."""
    one = next((each for each in (x, places, values) if isinstance(each, Bounded)), None)
    if one is None:
        return np.interp(x, places, values)
    x, places, values = map(one.of, (x, places, values))
    if np.any(places.error):
        raise Refused("the second argument of interp has to be exact, such as arange(n)")
    found = elementwise(lambda at: np.interp(at, places.value, values.value), 0)(x)
    last = max(0, places.size - 2)
    before = np.clip(np.searchsorted(places.value, x.value, "right") - 1, 0, last)
    after = np.minimum(before + 1, places.size - 1)
    low, high = values.value[before], values.value[after]
    width = np.maximum(np.abs(places.value[after] - places.value[before]), np.finfo(np.float64).tiny)
    steep = np.abs(high - low) * (np.abs(x.value) + np.abs(places.value[before])) / width
    rounded = STEPS * one.rounding.unit * (np.abs(low) + np.abs(high) + steep)
    own = np.maximum(spread(values)[before], spread(values)[after])
    return Bounded(found.value, found.error + rounded + own, one.rounding)


def sigmoid(value: Any) -> Any:
    return np.where(value < 0, np.exp(np.minimum(value, 0)), 1) / (1 + np.exp(-np.abs(value)))


def of_networks(functions: Mapping[str, Function]) -> dict[str, Function]:
    """relu, softmax and the like, of numpy's."""
    exp, log = functions["exp"], functions["log"]
    root, most, total, mean = (functions[name] for name in ("sqrt", "max", "sum", "mean"))
    of_powers = elementwise(sigmoid, ULPS + 5)  # with the sum and the quotient

    def logistic(array: Any) -> Any:
        found = of_powers(array)
        if isinstance(found, Bounded) and found.rounding.power:
            share = np.abs(np.minimum(array.value, 0)) + 1  # |x| exp(-|x|) is below 1
            found.error = found.error + found.rounding.power * share * found.value
        return found

    def along(array: Any, axis: Any, name: str) -> Any:
        if axis is None and np.ndim(plain(array)) != 1:
            raise Refused(f"say along which axis: {name}(x, axis=-1)")
        return -1 if axis is None else axis

    def softmax(array: Any, axis: Any = None) -> Any:
        axis = along(array, axis, "softmax")
        powers = exp(array - most(array, axis=axis, keepdims=True))
        return powers / total(powers, axis=axis, keepdims=True)

    def logsumexp(array: Any, axis: Any = None, keepdims: bool = False) -> Any:
        axis = along(array, axis, "logsumexp")
        peak = most(array, axis=axis, keepdims=True)
        found = peak + log(total(exp(array - peak), axis=axis, keepdims=True))
        return found if keepdims else functions["squeeze"](found, axis=axis)

    def log_softmax(array: Any, axis: Any = None) -> Any:
        axis = along(array, axis, "log_softmax")
        return array - logsumexp(array, axis, True)

    def layer_norm(array: Any, shape: Any, weight: Any = None, bias: Any = None, eps: Any = 1e-5) -> Any:
        extents = [int(one) for one in np.atleast_1d(plain(shape))]
        if extents != list(np.shape(plain(array))[-1:]):
            raise Refused("it is layer_norm(x, n, weight, bias, eps), where n is the last extent of x")
        off = array - mean(array, axis=-1, keepdims=True)
        found = off / root(mean(off * off, axis=-1, keepdims=True) + eps)
        found = found if weight is None else found * weight
        return found if bias is None else found + bias

    def norm(array: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return root(total(array * array, axis=axis, keepdims=keepdims))

    return {
        "relu": lambda array: functions["maximum"](array, 0),
        "sigmoid": logistic,
        "expit": logistic,
        "silu": lambda array: array * logistic(array),
        "softmax": softmax,
        "log_softmax": log_softmax,
        "logsumexp": logsumexp,
        "rsqrt": elementwise(lambda value: 1 / np.sqrt(value), ULPS),
        "layer_norm": layer_norm,
        "norm": norm,
    }


def gelu_of(functions: Mapping[str, Function]) -> Function:
    erf, tanh = functions["erf"], functions["tanh"]

    def gelu(array: Any, approximate: str = "none") -> Any:
        if approximate == "tanh":
            return 0.5 * array * (1 + tanh(0.7978845608028654 * (array + 0.044715 * array * array * array)))
        if approximate != "none":
            raise Refused("gelu's approximate is 'none' or 'tanh'")
        return 0.5 * array * (1 + erf(array * 0.7071067811865476))

    return gelu


def clipped(functions: Mapping[str, Function]) -> Function:
    def call(array: Any, low: Any = None, high: Any = None, min: Any = None, max: Any = None) -> Any:
        low, high = (one if other is None else other for one, other in ((low, min), (high, max)))
        array = array if low is None else functions["maximum"](array, low)
        return array if high is None else functions["minimum"](array, high)

    return call


def told_by_text(functions: Mapping[str, Function]) -> dict[str, Function]:
    """Functions that take text of their own, and those that are refused whatever they are given."""
    refused = {name: refusal(name) for name in FORMS if name not in OF_TWO}
    return {**refused, "astype": converted, "gelu": gelu_of(functions)}


def spelled(functions: Mapping[str, Function]) -> dict[str, Function]:
    """What is taken beside `functions`, which are numpy's by name. "torch.max" is max where torch is named,
    or its `dim`; "np.max" of numpy's, and ".max" the method."""
    most, least = functions["max"], functions["min"]

    def along(function: Function) -> Function:
        return lambda array, axis=None, keepdims=False: function(array, axis=axis, keepdims=keepdims)

    def is_of_elements(given: Any, named: Any) -> bool:
        return not named and (len(given) == 1 or (len(given) == 2 and np.ndim(plain(given[1])) > 0))

    def says_divisor(given: Any, named: Any) -> bool:
        return bool(named.keys() & {"ddof", "unbiased", "correction"})

    def same(array: Any, *_: Any) -> Any:
        return array

    return {
        **of_networks(functions),
        "reshape": gathered(functions["reshape"]),
        "permute": gathered(functions["transpose"]),
        "broadcast_to": gathered(expanded(functions["broadcast_to"])),
        "transpose": swapping(functions),
        "clip": clipped(functions),
        "interp": interpolated,
        "round": functions["rint"],
        "add": lambda one, other: one + other,
        "subtract": lambda one, other: one - other,
        "multiply": lambda one, other: one * other,
        "divide": lambda one, other: one / other,
        "linear": lambda x, w, bias=None: x @ w.T if bias is None else x @ w.T + bias,
        "half": to_format("f16"),
        "bfloat16": to_format("bf16"),
        "float": to_format("f32"),
        "double": as_reals,
        "int": to_format("i32"),
        "long": to_format("i64"),
        "bool": to_format("bool"),
        **dict.fromkeys(("contiguous", "clone", "copy", "cuda", "cpu", "numpy", "detach"), same),
        "array": made_array,
        "shape": lambda array: np.shape(plain(array)),
        "size": extent,
        "len": lambda array: extent(array, 0),
        "zeros_like": filled(0.0),
        "ones_like": filled(1.0),
        **dict.fromkeys((".max", "np.max", "amax"), along(most)),
        **dict.fromkeys((".min", "np.min", "amin"), along(least)),
        "torch.max": unless(is_of_elements, most, "torch.max"),
        "torch.min": unless(is_of_elements, least, "torch.min"),
        "torch.var": unless(says_divisor, functions["var"], "torch.var"),
        "torch.std": unless(says_divisor, functions["std"], "torch.std"),
    }
