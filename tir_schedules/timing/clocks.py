"""The clock that turns cycles into time.

Cycles are predicted apart from it. The SM runs at its maximum, unless tensor cores are kept busy: power
then holds the clock down. A profile has what is left of it at full load, on random numbers. Between no load
and full load the clock is taken to fall in proportion to the share of the tensor cores' peak. That is an
assumption: no probe has loaded them in part.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Sequence

import numpy as np

from tir_schedules.errors import BadInput, shown
from tir_schedules.numerals import integer
from tir_schedules.timing.gpus import GpuTable
from tir_schedules.timing.listing import Instruction

MAXIMUM = "maximum"
LEAST, MOST = 100, 10_000
"""MHz that a clock may be asked to have."""

SHAPES = {"16816": 16 * 8 * 16, "1688": 16 * 8 * 8, "884": 8 * 8 * 4}
"""Modifier of HMMA -> multiply-adds of a warp."""

WARPGROUP = re.compile(r"^(\d+)x(\d+)x(\d+)$")
WARPS = 4
"""Of a warpgroup, whose product each of them issues."""


@dataclass(frozen=True)
class Clock:
    """mhz: of the SM. why: that one."""

    mhz: float
    why: str


def asked_clock(text: str | float | None) -> str | float | None:
    """What a user asks for: None for what the kernel lets it be, "maximum", or MHz. BadInput for another."""
    if text is None or text == MAXIMUM:
        return text
    try:
        mhz = float(integer(text) if isinstance(text, str) else text)
    except (TypeError, ValueError):
        mhz = 0.0
    if not LEAST <= mhz <= MOST:
        takes = f"it takes MHz from {LEAST} to {MOST} such as 1980, or {MAXIMUM!r}"
        raise BadInput(f"the clock is {shown(str(text))}; {takes}")
    return mhz


def clock_for(asked: str | float | None, table: GpuTable, share: float) -> Clock:
    """asked: see `asked_clock`. share: of the tensor cores' peak that a kernel takes at any clock, 0 to 1."""
    if isinstance(asked, (int, float)):
        return Clock(asked, "as asked for")
    if asked == MAXIMUM or not share:
        return Clock(table.mhz, "the maximum")
    if not table.loaded_mhz:
        return Clock(table.mhz, "the maximum; how far tensor cores lower it is not known of this GPU")
    mhz = table.mhz - share * (table.mhz - table.loaded_mhz)
    return Clock(
        mhz,
        f"tensor cores at {100 * share:.0f} % of their peak hold it down: {table.mhz:.0f} MHz idle,"
        f" {table.loaded_mhz:.0f} at full load on random numbers, both measured",
    )


def tensor_share(code: Sequence[Instruction], issued: np.ndarray, cycles: float, table: GpuTable) -> float:
    """The share of the tensor cores' peak that an SM takes. issued: how often warps issue each instruction in
    these cycles. 0 where the GPU's peak is not known."""
    if not table.tensor_products or not cycles:
        return 0.0
    done = sum(products_of(one) * int(times) for one, times in zip(code, issued) if times)
    return min(1.0, done / cycles / table.tensor_products)


def products_of(one: Instruction) -> float:
    """Multiply-adds of 16-bit factors that a warp has done by one instruction."""
    if one.name == "HMMA":
        return SHAPES.get(one.modifiers[0], 0)
    shape = WARPGROUP.match(one.modifiers[0]) if one.name == "HGMMA" and one.modifiers else None
    return int(shape[1]) * int(shape[2]) * int(shape[3]) / WARPS if shape else 0
