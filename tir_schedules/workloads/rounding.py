"""How far floating-point sums may be from the exact ones."""
UNIT = 2.0**-24
"""Unit roundoff of float32."""

TRUNCATION = {"float32": 2.0**-23, "float16": 2.0**-10}
"""Largest relative error where sums are cut off, not rounded, to their format, as tensor cores may do."""


def growth(terms: int) -> float:
    """Largest relative error of a float32 sum of products, per sum of magnitudes, that rounding explains in any order of summation.

    The worst case (see `worst_growth`), or, where that is smaller, 10*sqrt(terms)*u, which rounding exceeds with probability
    below 2*terms*exp(-50) (Higham and Mary, A New Approach to Probabilistic Rounding Error Analysis, 2019, theorem 3.1).
    """
    return min(worst_growth(terms, UNIT), 10 * terms**0.5 * UNIT)


def worst_growth(terms: int, unit: float) -> float:
    """The same when every operation errs by `unit` in the same direction: terms*unit / (1 - terms*unit), infinite from terms*unit = 1 on.

    (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1.)
    """
    return terms * unit / (1 - terms * unit) if terms * unit < 1 else float("inf")
