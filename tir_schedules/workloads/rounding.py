"""How far floating-point sums may be from the exact ones, and how large terms may be for sums to be exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

UNIT = 2.0**-24
"""Unit roundoff of float32."""

TRUNCATION = {"float32": 2.0**-23, "float16": 2.0**-10}
"""Largest relative error where sums are cut off, not rounded, to their format, as tensor cores may do."""

MANTISSA = {"float32": 24, "float16": 11, "bfloat16": 8}
"""Bits of a number's significand: integers up to 2**bits are exact."""

LARGEST = {"float16": 65504.0}
LEAST = {"float16": 2.0**-24, "bfloat16": 2.0**-133}
"""The largest number of a format, and the smallest above 0."""

MEAN = 6
"""Sums of n terms with signs drawn at random are expected this many times their 2-norm away from 0."""

SPREAD = MEAN + 10
"""No partial sum of such terms exceeds this many times their 2-norm, but with a probability below 2*exp(-50).

(Hoeffding, Probability Inequalities for Sums of Bounded Random Variables, 1963, theorem 2: a partial sum
strays from its mean, at most MEAN 2-norms, by more than 10 with that probability. The order of summation must
not depend on the data.)
"""


def bias(terms: int) -> float:
    """How much likelier terms are to be positive, so that their sum is MEAN 2-norms away from 0 where all are
    of one magnitude.

    Of few terms some are negative all the same.
    """
    return min(0.75, MEAN / terms**0.5)


def largest_exact(terms: int, dtype: str, others: int = 0) -> int:
    """Largest magnitude of integers whose partial sums are all exact in `dtype`; 0 when there are too many
    terms.

    others: the magnitude of further terms, all together.

    Whatever their signs while terms * magnitude has no more bits than the significand, and else by SPREAD.
    """
    largest = 2 ** MANTISSA[dtype] - others
    return max(largest // terms, int(largest / (SPREAD * terms**0.5)))


def growth(terms: int) -> float:
    """Largest error of a float32 sum of products that rounding explains in any order of summation, per
    largest partial sum.

    The worst case (see `worst_growth`) or, if that is smaller, 10*sqrt(terms)*u, which rounding exceeds with
    probability below 2*terms*exp(-50) (Higham and Mary, A New Approach to Probabilistic Rounding Error
    Analysis, 2019, theorem 3.1).
    """
    return min(worst_growth(terms, UNIT), 10 * terms**0.5 * UNIT)


def worst_growth(terms: int, unit: float) -> float:
    """The same when every operation errs by `unit` in the same direction: terms*unit / (1 - terms*unit),
    infinite from terms*unit = 1 on.

    (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1.)
    """
    return terms * unit / (1 - terms * unit) if terms * unit < 1 else float("inf")


def half_spacing(values: np.ndarray, dtype: str) -> np.ndarray:
    """Half the distance between the numbers of a format at values that are not negative: how far the nearest
    of them may be."""
    import numpy as np

    _, exponents = np.frexp(np.maximum(values, LEAST[dtype]))
    spacing = 2.0 ** (exponents.astype(np.float64) - MANTISSA[dtype])
    return np.maximum(spacing, LEAST[dtype]) / 2
