"""Random inputs: drawn by numpy, or by CuPy where they are large and needed on a GPU."""
from __future__ import annotations

from typing import Any

import numpy as np


class Draws:
    """Arrays drawn one after another from a seed. xp: the array module, numpy or cupy, which draw different numbers."""

    def __init__(self, seed: int, xp: Any = np):
        self.xp, self.rng = xp, xp.random.default_rng(seed)

    def uniform(self, shape, dtype: str):
        """Reals in [-1, 1)."""
        if self.xp is np:
            return self.rng.uniform(-1, 1, shape).astype(dtype)
        return (2 * self.rng.random(shape, np.float32) - 1).astype(dtype)

    def integers(self, largest: int, shape, dtype: str):
        """Integers from -largest to largest."""
        return self.rng.integers(-largest, largest, shape, endpoint=True).astype(dtype)

    def int32(self, shape):
        """Integers over their whole range."""
        return self.rng.integers(-(2**31), 2**31, shape, dtype=np.int32)

    def signs(self, share: float, shape, dtype: str):
        """-1, 0 and 1, where `share` of them are not 0."""
        if self.xp is np:
            return self.rng.choice(np.array([-1, 0, 1], dtype), shape, p=[share / 2, 1 - share, share / 2])
        drawn = self.rng.random(shape, np.float32)
        return (drawn >= 1 - share / 2).astype(dtype) - (drawn < share / 2).astype(dtype)
