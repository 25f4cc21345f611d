"""A launch: grid and block, and what CUDA allows of a grid."""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.errors import TooLarge

Dim3 = tuple[int, int, int]

MOST_BLOCKS = (2**31 - 1, 65535, 65535)
"""Of a grid along x, y and z (CUDA programming guide, compute capabilities)."""


@dataclass(frozen=True)
class Launch:
    """Grid and block (x, y, z), and bytes of dynamic shared memory."""

    grid: Dim3
    block: Dim3
    dynamic_shared: int = 0


def ceil_div(extent: int, part: int) -> int:
    """How many parts cover an extent."""
    return -(-extent // part)


def check_grid(label: str, grid: Dim3) -> None:
    """TooLarge when CUDA has no such grid."""
    for axis, blocks, most in zip("xyz", grid, MOST_BLOCKS):
        if not 1 <= blocks <= most:
            raise TooLarge(
                f"{label}: the grid has {blocks} blocks along {axis}; CUDA allows 1 to {most}: take a smaller"
                " shape"
            )
