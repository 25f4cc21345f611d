"""How far float32 sums may be from the exact ones."""
UNIT = 2.0**-24
"""Unit roundoff of float32."""


def growth(terms: int) -> float:
    """Largest relative error of a sum of products, per sum of magnitudes, that rounding explains in any order of summation.

    The worst case terms*u / (1 - terms*u) (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1), or, where
    that is smaller, 10*sqrt(terms)*u, which rounding exceeds with probability below 2*terms*exp(-50) (Higham and Mary, A New
    Approach to Probabilistic Rounding Error Analysis, 2019, theorem 3.1).
    """
    return min(terms * UNIT / (1 - terms * UNIT), 10 * terms**0.5 * UNIT)
