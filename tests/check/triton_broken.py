"""Triton kernels with a fault; `# fault` marks the line that must be named."""

import triton
import triton.language as tl


@triton.jit
def add_without_mask(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x + at) + tl.load(y + at, mask=at < n)  # fault: beyond the end of x
    tl.store(out + at, total, mask=at < n)


@triton.jit
def total_without_atomic(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x + at, mask=at < n, other=0), axis=0)
    tl.store(out, tl.load(out) + part)  # fault: programs race


@triton.jit
def matmul_with_wrong_stride(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        left = tl.load(a + rows[:, None] * k + start + depth[None, :])
        right = tl.load(b + (start + depth[:, None]) * k + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total)  # fault: of b the rows are n apart, not k


@triton.jit
def doubled(x, BLOCK: tl.constexpr):
    """Sound: several threads load an element, one stores it."""
    at = tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at) * 2)


@triton.jit
def ticket(x, y, BLOCK: tl.constexpr):
    """All warps use what they load of x, which one of them changes."""
    number = tl.load(x)
    tl.store(x, number + 1)
    at = tl.arange(0, BLOCK)
    tl.store(y + at, at + number)


@triton.jit
def total_without_last(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + at, mask=at < n - 1, other=0), axis=0))
