"""Triton kernels: elementwise, over rows, on tensor cores, with atomics, autotuned."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    total = tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside)
    tl.store(out + at, total, mask=inside)


@triton.jit
def softmax(x, out, columns, stride, BLOCK: tl.constexpr):
    """Softmax of each row."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * stride + at, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + at, powers / tl.sum(powers, axis=0), mask=inside)


@triton.jit
def layer_norm(x, weight, bias, out, columns, epsilon, BLOCK: tl.constexpr):
    """Rows with mean 0 and variance 1, scaled and shifted."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=0.0)
    mean = tl.sum(values, axis=0) / columns
    centred = tl.where(inside, values - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / columns
    scale = tl.load(weight + at, mask=inside) / tl.sqrt(variance + epsilon)
    tl.store(out + row * columns + at, centred * scale + tl.load(bias + at, mask=inside), mask=inside)


@triton.jit
def tile(matrix, rows, columns, height, width, stride):
    """Part of a matrix, zeros where it ends."""
    inside = (rows[:, None] < height) & (columns[None, :] < width)
    return tl.load(matrix + rows[:, None] * stride + columns[None, :], mask=inside, other=0.0)


@triton.jit
def matmul(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """fp16 on tensor cores, accumulated in fp32. num_stages=1: without software pipelining."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        left = tile(a, rows, start + depth, m, k, k)
        right = tile(b, start + depth, columns, k, n, n)
        total = tl.dot(left, right, total)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=inside)


@triton.jit
def total(x, out, n, BLOCK: tl.constexpr):
    """The sum, to which each program adds its own."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + at, mask=at < n, other=0), axis=0))


@triton.autotune([triton.Config({"BLOCK": 128}, num_warps=2), triton.Config({"BLOCK": 256})], key=["n"])
@triton.heuristics({"DOUBLE": lambda given: given["n"] % 2 == 0})
@triton.jit
def scale(x, out, n, factor, BLOCK: tl.constexpr, DOUBLE: tl.constexpr):
    """By a factor, and by two where n is even."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    scaled = tl.load(x + at, mask=inside) * factor
    if DOUBLE:
        scaled *= 2
    tl.store(out + at, scaled, mask=inside)


@triton.jit
def less_their_sums(x, weight, out, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Rows, each less its weighted sum. Lanes add up in orders of their own, and store the sums together."""
    rows, at = tl.arange(0, ROWS)[:, None], tl.arange(0, BLOCK)[None, :]
    values = tl.load(x + rows * columns + at, mask=at < columns, other=0.0)
    weights = tl.load(weight + at, mask=at < columns, other=0.0)
    sums = tl.sum(values * weights, axis=1)[:, None]
    tl.store(out + rows * columns + at, values - sums, mask=at < columns)
