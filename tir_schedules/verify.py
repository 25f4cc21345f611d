"""Whether a kernel computed the right thing: every output element against the float64 truth, and against its twin."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Mismatch:
    """The worst element of an output that is not what it should be.

    index: its position. got, expected: the two values. error: |got - expected|, NaN when got is not a number.
    allowed: the tolerance there. count, size: wrong elements and all elements.
    """

    output: str
    index: tuple[int, ...]
    got: float
    expected: float
    error: float
    allowed: float
    count: int
    size: int
    against: str

    def __str__(self) -> str:
        where = f"{self.output}[{', '.join(map(str, self.index))}]"
        return (
            f"{where} is {self.got:.9g}, {self.against} {self.expected:.9g}: off by {self.error:.3g} where {self.allowed:.3g} is "
            f"allowed; {self.count} of {self.size} elements wrong"
        )

    def flat_index(self, shape: tuple[int, ...]) -> int:
        """Position of the element in row-major order."""
        return int(np.ravel_multi_index(self.index, shape)) if shape else 0


def compare(output: str, got: np.ndarray, expected: np.ndarray, allowed: np.ndarray, against: str) -> Mismatch | None:
    """None when |got - expected| <= allowed everywhere; else the worst element.

    NaN and infinity never pass, whatever is expected of them and allowed. allowed: array of got's shape, or a number.
    Arrays may also be CuPy's, all of them: then only the worst element leaves the GPU.
    """
    if got.shape != expected.shape:
        raise ValueError(f"{output} has shape {got.shape}, expected {expected.shape}")
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(got.astype(np.float64) - expected.astype(np.float64))
        wrong = ~(np.isfinite(got) & np.isfinite(expected) & (error <= allowed))
        if not wrong.any():
            return None
        excess = np.where(wrong, np.where(np.isfinite(error), error - allowed, np.inf), -np.inf)
    worst = np.unravel_index(int(excess.argmax()), got.shape)
    limit = allowed[worst] if np.ndim(allowed) else allowed
    numbers = (float(number) for number in (got[worst], expected[worst], error[worst], limit))
    return Mismatch(output, tuple(map(int, worst)), *numbers, int(wrong.sum()), got.size, against)


def compare_with_truth(workload, arguments, outputs) -> Mismatch | None:
    """The first output that is not within the workload's tolerance of its truth. arguments: what the kernel was given."""
    truth, allowed = workload.truth(arguments), workload.tolerance(arguments)
    mismatches = (compare(name, outputs[name], truth[name], allowed[name], "should be") for name in workload.outputs)
    return next((m for m in mismatches if m), None)


def compare_with_twin(workload, arguments, outputs, twin_outputs) -> Mismatch | None:
    """The first output further from the twin's than two kernels within the tolerance can be."""
    allowed = workload.tolerance(arguments)
    pairs = ((name, outputs[name], twin_outputs[name], 2 * allowed[name]) for name in workload.outputs)
    mismatches = (compare(name, got, twin, limit, "its twin has") for name, got, twin, limit in pairs)
    return next((m for m in mismatches if m), None)
