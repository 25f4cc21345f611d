"""Random inputs: drawn by numpy, or by CuPy where they are large and needed on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

Shape = int | tuple[int, ...]

EXACT, REALS, ZEROS = "exact", "real", "zeros"
"""Kinds of inputs to verify with. Integers whose partial sums are all exact, in any order: the tolerance is
0, and a term lost, doubled or swapped shows. Reals over a wide range: lost precision and lost range
show. Zeros: where values do not matter."""


class Draws:
    """Arrays drawn one after another from a seed. xp: the array module, numpy or cupy, which draw different
    numbers.

    bias: how much likelier a number is to be positive than negative, from 0 (equally) to 1 (all are
    positive).
    """

    def __init__(self, seed: int, xp: Any = np) -> None:
        self.xp, self.rng = xp, xp.random.default_rng(seed)

    def uniform(self, shape: Shape, dtype: str | np.dtype) -> np.ndarray:
        """Reals in [-1, 1)."""
        return (2 * self.rng.random(shape, np.float32) - 1).astype(dtype)

    def integers(self, largest: int, shape: Shape, dtype: str, bias: float = 0.0) -> np.ndarray:
        """Integers from -largest to largest, without 0."""
        return (
            self.rng.integers(1, largest, shape, endpoint=True).astype(np.float32) * self.signs(shape, bias)
        ).astype(dtype)

    def telling(self, largest: int, shape: Shape) -> np.ndarray:
        """Odd integers in float32 from two thirds of `largest`, which is odd, up to it."""
        return largest - 2 * self.rng.integers(0, largest // 6, shape, endpoint=True).astype(np.float32)

    def reals(self, octaves: float, shape: Shape, bias: float = 0.0) -> np.ndarray:
        """Reals of float32 with magnitudes from 2**-octaves to 2**octaves, each power of two as likely as
        another."""
        return 2 ** (octaves * (2 * self.rng.random(shape, np.float32) - 1)) * self.signs(shape, bias)

    def powers(self, largest: int, shape: Shape) -> np.ndarray:
        """Powers of two in float32, exponents from -largest to largest."""
        return 2 ** self.rng.integers(-largest, largest, shape, endpoint=True).astype(np.float32)

    def int32(self, shape: Shape) -> np.ndarray:
        """Integers over their whole range."""
        return self.rng.integers(-(2**31), 2**31, shape, dtype=np.int32)

    def signs(self, shape: Shape, bias: float = 0.0) -> np.ndarray:
        """-1 and 1 in float32."""
        return self.kept((1 + bias) / 2, shape) * 2 - 1

    def kept(self, share: float, shape: Shape) -> np.ndarray:
        """0 and 1 in float32, where `share` of them are 1."""
        return (self.rng.random(shape, np.float32) < share).astype(np.float32)
