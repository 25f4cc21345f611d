"""Convolutions and pooling as torch has them, over arrays with bounds: see functions.py and types.py. A
window moves along the last axes of an array. Before these it has images and channels."""

from __future__ import annotations

from itertools import product
from math import gcd, prod
from typing import Any, Callable, Iterator, Mapping

import numpy as np

from tir_schedules.check.expressions import Refused
from tir_schedules.check.types import Bounded, check_size, plain, spread

Function = Callable[..., Any]
Extents = tuple[int, ...]


def bilinear(function: Function, terms: Function) -> Function:
    """A function that is linear in each of two arrays, with the bounds of sums of so many products."""

    def call(one: Any, other: Any, *how: Any) -> Any:
        first = one if isinstance(one, Bounded) else other
        if not isinstance(first, Bounded):
            return function(one, other, *how)
        a, b = first.of(one), first.of(other)
        value = function(a.value, b.value, *how)
        large = function(np.abs(a.value) + spread(a), np.abs(b.value) + spread(b), *how)
        step, count = a.step * b.step, terms(a.value, b.value, *how)
        grown = first.rounding.bound_sum(count, large, step) if value.dtype.kind == "f" else 0.0
        error = large - function(np.abs(a.value), np.abs(b.value), *how) + grown
        first.rounding.work += value.size * count
        return first.rounded(value, error if np.any(error) else 0.0, 1, step)

    return call


def each(value: Any, axes: int, what: str, least: int) -> Extents:
    """A number per axis, where one number stands for all of them."""
    numbers = np.atleast_1d(plain(value))
    if numbers.dtype.kind not in "iu" or numbers.size not in (1, axes) or numbers.min() < least:
        raise Refused(f"{what} is a whole number from {least} on, or {axes} of them")
    return tuple(int(one) for one in np.broadcast_to(numbers, axes))


def windows(kernel: Extents, dilation: Extents, stride: Extents, out: Extents) -> Iterator[tuple[Any, Any]]:
    """Each place in a window, and the elements that stand there, one per window."""
    for place in product(*map(range, kernel)):
        first = [at * gap for at, gap in zip(place, dilation)]
        taken = (slice(at, at + step * (n - 1) + 1, step) for at, step, n in zip(first, stride, out))
        yield place, (..., *taken)


def padded(array: np.ndarray, padding: Extents, fill: float = 0) -> np.ndarray:
    """An array with so many elements before and behind it along its last axes."""
    before = [(0, 0)] * (array.ndim - len(padding))
    return np.pad(array, [*before, *((one, one) for one in padding)], constant_values=fill)


def counted(
    extents: Extents, kernel: Extents, stride: Extents, padding: Extents, dilation: Extents
) -> Extents:
    """How many windows there are along each axis."""
    spare = (
        extent + 2 * pad - gap * (size - 1) - 1
        for extent, size, pad, gap in zip(extents, kernel, padding, dilation)
    )
    out = tuple(left // step + 1 for left, step in zip(spare, stride))
    if min(out) < 1:
        raise Refused("a window is larger than the array with its padding")
    return out


Geometry = tuple[Extents, Extents, Extents, Extents, int]


def correlated(x: np.ndarray, w: np.ndarray, how: Geometry) -> np.ndarray:
    """x of images x channels x extents, w of outputs x channels of a group x window."""
    stride, padding, dilation, _, groups = how
    kernel, outputs = w.shape[2:], w.shape[0]
    out = counted(x.shape[2:], kernel, stride, padding, dilation)
    check_size(x.shape[0] * outputs * prod(out))
    wide = padded(x, padding).reshape(len(x), groups, -1, *(n + 2 * p for n, p in zip(x.shape[2:], padding)))
    taps, found = w.reshape(groups, -1, *w.shape[1:]), 0
    for place, taken in windows(kernel, dilation, stride, out):
        found = found + np.einsum("ngc...,goc->ngo...", wide[taken], taps[(..., *place)])
    return np.reshape(found, (len(x), outputs, *out))


def transposed(x: np.ndarray, w: np.ndarray, how: Geometry) -> np.ndarray:
    """x of images x channels x extents, w of channels x outputs of a group x window: what correlated()
    gathers, scattered."""
    stride, padding, dilation, extra, groups = how
    kernel, extents = w.shape[2:], x.shape[2:]
    spans = [
        (n - 1) * step + gap * (size - 1) + 1 for n, step, gap, size in zip(extents, stride, dilation, kernel)
    ]
    full = [span + more for span, more in zip(spans, extra)]
    outputs = w.shape[1] * groups
    check_size(len(x) * outputs * prod(full))
    parts = x.reshape(len(x), groups, -1, *extents)
    taps = w.reshape(groups, -1, *w.shape[1:])
    found = np.zeros((len(x), groups, w.shape[1], *full), np.result_type(x, w))
    for place, taken in windows(kernel, dilation, stride, extents):
        found[taken] += np.einsum("ngc...,gco->ngo...", parts, taps[(..., *place)])
    kept = (slice(pad, span - pad) for pad, span in zip(padding, full))
    return found.reshape(len(x), outputs, *full)[(..., *kept)]


def convolution(axes: int, function: Function, gathers: bool) -> Function:
    def terms(x: np.ndarray, w: np.ndarray, how: Geometry) -> int:
        """Products that an output has at most."""
        if gathers:
            return w[0].size
        stride, _, dilation, _, groups = how
        met = (-(-n * gcd(s, d) // s) for n, s, d in zip(w.shape[2:], stride, dilation))
        return w.shape[0] // groups * prod(met)

    products = bilinear(function, terms)

    def convolve(x: Any, w: Any, bias: Any, how: Geometry) -> Any:
        groups, shapes = how[-1], [np.shape(plain(one)) for one in (x, w)]
        if any(len(shape) != axes + 2 for shape in shapes):
            raise Refused(f"it takes x and w with {axes + 2} axes: x.reshape(...), w[None]")
        channels, taken = shapes[0][1], shapes[1][1] * groups if gathers else shapes[1][0]
        if channels != taken or shapes[1][0] % groups:
            raise Refused(f"x has {channels} channels, and w of {groups} groups is for {taken}")
        found = products(x, w, how)
        return found if bias is None else found + bias[(slice(None), *(None,) * axes)]

    def geometry(stride: Any, padding: Any, dilation: Any, extra: Any, groups: Any) -> Geometry:
        of_windows = ((stride, "stride", 1), (padding, "padding", 0), (dilation, "dilation", 1))
        s, p, d = (each(value, axes, what, least) for value, what, least in of_windows)
        return s, p, d, each(extra, axes, "output_padding", 0), each(groups, 1, "groups", 1)[0]

    def gathered(
        x: Any,
        w: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: Any = 1,
    ) -> Any:
        return convolve(x, w, bias, geometry(stride, padding, dilation, 0, groups))

    def scattered(
        x: Any, w: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        groups: Any = 1, dilation: Any = 1,
    ) -> Any:  # fmt: skip
        return convolve(x, w, bias, geometry(stride, padding, dilation, output_padding, groups))

    return gathered if gathers else scattered


def pooling(axes: int, functions: Mapping[str, Function], takes_most: bool) -> Function:
    most, total = functions["max"], functions["sum"]

    def stacked(x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, fill: float) -> Any:
        """Each window along the first axis."""
        size = each(kernel, axes, "kernel_size", 1)
        step = size if stride is None else each(stride, axes, "stride", 1)
        pad, gap = each(padding, axes, "padding", 0), each(dilation, axes, "dilation", 1)
        if any(2 * one > extent for one, extent in zip(pad, size)):
            raise Refused("padding is at most half of kernel_size")
        shape = np.shape(plain(x))
        if len(shape) < axes:
            raise Refused(f"it takes an array with {axes} axes or more: x.reshape(...)")
        out = counted(shape[len(shape) - axes :], size, step, pad, gap)
        check_size(prod(size) * prod(shape[: len(shape) - axes]) * prod(out))
        places = [taken for _, taken in windows(size, gap, step, out)]

        def of(array: np.ndarray, fill: float) -> np.ndarray:
            wide = padded(array, pad, fill) if any(pad) else array
            return np.stack([wide[taken] for taken in places])

        if not isinstance(x, Bounded):
            return of(np.asarray(x), fill)
        return Bounded(of(x.value, fill), of(spread(x), 0), x.rounding, x.step)

    def max_pool(x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> Any:
        fill = -np.inf if np.asarray(plain(x)).dtype.kind == "f" else np.iinfo(np.int64).min
        return most(stacked(x, kernel_size, stride, padding, dilation, fill), axis=0)

    def avg_pool(
        x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, *, count_include_pad: Any = True
    ) -> Any:
        sums = total(stacked(x, kernel_size, stride, padding, 1, 0), axis=0)
        whole = prod(each(kernel_size, axes, "kernel_size", 1))
        if plain(count_include_pad):
            return sums / whole
        ones = np.ones(np.shape(plain(x)))
        return sums / np.sum(stacked(ones, kernel_size, stride, padding, 1, 0), axis=0)

    return max_pool if takes_most else avg_pool


def of_windows(functions: Mapping[str, Function]) -> dict[str, Function]:
    """conv1d, conv_transpose2d, max_pool3d, ... with torch's parameters. functions: numpy's by name."""
    found: dict[str, Function] = {}
    for axes in (1, 2, 3):
        found[f"conv{axes}d"] = convolution(axes, correlated, True)
        found[f"conv_transpose{axes}d"] = convolution(axes, transposed, False)
        found[f"max_pool{axes}d"] = pooling(axes, functions, True)
        found[f"avg_pool{axes}d"] = pooling(axes, functions, False)
    return found
