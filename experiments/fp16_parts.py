"""What bounds the accuracy of `fp16x3`: errors of products of float16 parts whose sums are exact.

    python experiments/fp16_parts.py            (seconds, without a GPU)
    python experiments/fp16_parts.py --write    put the tables into the README

A tensor core cannot be better than exact sums. So what is left is what parts do not hold, and products of
parts that are left out. Inputs and errors are those of split_precision.py; errors are multiples of those of
FMA in order.
"""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from pathlib import Path
from typing import Sequence

import ml_dtypes
import numpy as np
from scripts import README, add_write_or_check, exit_code
from split_precision import EXTENT, KINDS, errors, in_order
from writing import update

from tir_schedules.workloads.split_gemm import SIX, THREE
from tir_schedules.workloads.splitting import Splitting

LENGTHS = (64, 4096)
OTHERS = tuple(pair for pair in SIX if pair not in THREE)  # seconds, and thirds with firsts
WAYS = {
    "three products": (THREE, ()),
    "and that of second parts": (((1, 1), *THREE), ()),
    "and those of third parts": (((2, 0), (0, 2), *THREE), ()),
    "all six": (SIX, ()),
    "three, the others in e4m3": (THREE, OTHERS),
}
"""Name -> products of parts of float16, and those of parts rounded to e4m3."""

SHIFTS = (2.0**-7, 1.0, 2.0**7)
"""What parts are multiplied by before they are rounded to e4m3, so that they fit: 1 for each product."""


def parts_of(rows: np.ndarray) -> list[np.ndarray]:
    """Three parts of float16 of scaled rows: what the ones before leave, rounded. They hold all bits of
    elements that are large enough."""
    parts = []
    for _ in range(3):
        parts.append(rows.astype("float16").astype("float64"))
        rows = rows - parts[-1]
    return parts


def narrowed(parts: list[np.ndarray]) -> list[np.ndarray]:
    """Parts, rounded to e4m3."""
    scaled = (part * shift for part, shift in zip(parts, SHIFTS))
    rounded = (part.astype(ml_dtypes.float8_e4m3fn).astype("float64") for part in scaled)
    return [part / shift for part, shift in zip(rounded, SHIFTS)]


def products_of(a: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    """C for each of WAYS, its sums in float64."""
    splitting = Splitting(EXTENT, EXTENT, a.shape[1], "fp16x3")
    sides = []
    for rows in (a, b.T):
        scales = splitting.scales_of(rows).astype("float64")[:, None]
        parts = parts_of(rows.astype("float64") / scales)
        sides.append((scales, parts, narrowed(parts)))
    (of_a, *a_parts), (of_b, *b_parts) = sides
    found = {}
    for name, pairs_of_formats in WAYS.items():
        c = np.zeros((EXTENT, EXTENT))
        for left, right, pairs in zip(a_parts, b_parts, pairs_of_formats):
            c += sum(left[i] @ right[j].T for i, j in pairs)
        found[name] = c * of_a * of_b.T
    return found


def ratios(k: int) -> dict[str, dict[str, tuple[float, float]]]:
    """Way -> kind of inputs -> the largest error and the root mean square, as multiples of those of FMA."""
    found: dict[str, dict[str, tuple[float, float]]] = {name: {} for name in WAYS}
    for kind, draw in KINDS.items():
        a, b = (matrix.astype(np.float32) for matrix in draw(np.random.default_rng(k), k))
        largest, rms = errors(in_order(a, b), a, b)
        for name, c in products_of(a, b).items():
            own = errors(c, a, b)
            found[name][kind] = own[0] / largest, own[1] / rms
    return found


def table(k: int) -> str:
    """Errors at one extent along K."""
    lines = [
        f"| K = {k}: max, rms, by those of FMA in order | {' | '.join(KINDS)} |",
        f"| --- |{' --: |' * len(KINDS)}",
    ]
    for name, of_kinds in ratios(k).items():
        cells = (f"{largest:.2f}, {rms:.2f}" for largest, rms in of_kinds.values())
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def perform(options: Namespace) -> int:
    if options.write or options.check:
        return update(options.readme, "fp16 parts", lambda k: table(int(k)), options.check)
    print("\n\n".join(map(table, LENGTHS)))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_write_or_check(parser, "rewrite the README")
    parser.add_argument(
        "--readme", metavar="FILE", type=Path, default=README, help="the README of --write and --check"
    )
    return exit_code(perform, parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
