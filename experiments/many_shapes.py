"""Thirty shapes of a GEMM, those that everyone times and those that nobody tunes for, as options of `bench`.

    tir-schedules bench sgemm/split_k --no-twins $(python experiments/many_shapes.py) -o shapes_sgemm.json
    python experiments/tables.py    # writes the tables of results/shapes_*.json

Ten are drawn by a seed: each extent is as likely to be between 32 and 64 as between 3000 and 6000.
"""

from __future__ import annotations

import random

SEED = 23
SQUARES = [(size, size, size) for size in (256, 512, 1024, 2048, 4096, 8192, 16384)]
ODD = [(511, 513, 515), (1023, 1023, 1023), (2047, 2047, 2047), (4093, 4093, 4093), (4097, 4095, 1023)]
SKINNY = [
    (3072, 1, 3072),
    (1, 4096, 4096),
    (17, 4096, 4096),
    (4096, 17, 4096),
    (12345, 77, 1001),
    (8192, 64, 8192),
]
LONG = [(96, 96, 65536), (64, 64, 16384)]


def drawn(count: int = 10, least: int = 32, most: int = 6000) -> list[tuple[int, int, int]]:
    """Shapes by SEED."""
    draw = random.Random(SEED)

    def extent() -> int:
        return round(least * (most / least) ** draw.random())

    return [(extent(), extent(), extent()) for _ in range(count)]


def shapes() -> list[tuple[int, int, int]]:
    """All thirty: M, N, K."""
    return [*SQUARES, *ODD, *SKINNY, *LONG, *drawn()]


if __name__ == "__main__":
    print(*(f"--mnk {m},{n},{k}" for m, n, k in shapes()))
