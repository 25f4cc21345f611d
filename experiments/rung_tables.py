"""Every rung of a ladder on many shapes, and why a rung has less than half the rate of the rung before it."""

from __future__ import annotations

from typing import Sequence

from ratio_tables import Recording, gpu, with_notes

from tir_schedules.bench.tables import provenance_line
from tir_schedules.bench.views import figures, rung_in
from tir_schedules.errors import BadInput

FALL = 0.5
"""Of the rate of the rung before: below it a reason is due."""

ODD = "odd rows are copied element by element"

REASONS = {
    "wmma_shared": (
        "few blocks. Tiles of 256x128 leave most of 132 SMs without a block: 512 has 8 blocks, and 128 with"
        " `wmma_naive`, whose blocks have 32 rows and 64 columns"
    ),
    "wmma_register_pipelined": (
        f"{ODD}. Two sets of fragments leave registers for five such loads at a time; `wmma_pipelined` has 42"
        " under way"
    ),
    "mma_multistage": (
        f"{ODD}. The elements of a tile 64 deep are loaded in nine steps, and each step waits for its loads;"
        " `mma_xor_swizzle` takes one step for a tile 32 deep"
    ),
    "cluster": "one or a few tiles of C. Then `tma_store` has tiles of 64x64, `cluster` of at least 128x128",
    "stream_k": (
        "a long K and few tiles. One program adds up the parts of a tile, one after another, so few programs"
        " share it: 3 and 28 run. `split_k` has 52 and 120 blocks, whose parts another launch adds up"
    ),
}
"""Rung -> why it falls behind the one before it."""


Rates = dict[tuple[str, str], float]
"""By rung and size."""


def every_rung(recordings: list[Recording], shown: tuple[str, ...]) -> str:
    """A line for each shape, a column for each rung: its rate, in bold where it is below FALL of that of the
    rung before it that takes the shape. Below, for which of them why.

    A later recording's rows take the place of those of an earlier one; the one with the most rungs says their
    order and that of the shapes. BadInput where no reason is known.
    """
    rates = newest(recordings)
    whole = max((group for group, _ in recordings), key=lambda group: len(group.names))
    names = list(dict.fromkeys(map(rung_in, whole.names)))
    behind = fallen(rates, names, whole.sizes)
    lines = [[f"{whole.title}, {whole.unit}", *names], ["---", *["--:"] * len(names)]]
    for size in whole.sizes:
        cells = [cell(rates.get((name, size)), (name, size) in behind) for name in names]
        lines.append([size, *cells])
    notes = [f"{gpu(each)}, {provenance_line(each)}." for _, each in recordings]
    for name in names:
        own = {size: behind[name, size] for size in whole.sizes if (name, size) in behind}
        notes += [note(name, own)] if own else []
    return with_notes(lines, notes)


def newest(recordings: list[Recording]) -> Rates:
    """Of schedules; the latest recording is the first."""
    return {
        (rung_in(name), size): row["rate"]
        for group, _ in reversed(recordings)
        for (name, form, size), row in group.cells.items()
        if form == "schedule"
    }


def fallen(rates: Rates, names: Sequence[str], sizes: Sequence[str]) -> Rates:
    """What is below FALL, as a share of the rate of the rung before it that takes the size."""
    found = {}
    for size in sizes:
        taking = [name for name in names if (name, size) in rates]
        for before, name in zip(taking, taking[1:]):
            share = rates[name, size] / rates[before, size]
            if share < FALL:
                found[name, size] = share
    return found


def cell(rate: float | None, behind: bool) -> str:
    """A rate; nothing for a shape that the rung does not take."""
    if rate is None:
        return ""
    return f"**{figures(rate)}**" if behind else figures(rate)


def note(name: str, shares: dict[str, float]) -> str:
    """For which sizes a rung falls behind, how far, and why."""
    sizes = ", ".join(shares)
    if name not in REASONS:
        raise BadInput(f"{name} has less than half the rate of the rung before it at {sizes}: say why")
    share = " to ".join(dict.fromkeys(f"{extreme(shares.values()):.2f}" for extreme in (min, max)))
    return f"`{name}` has {share} of the rung before it at {sizes}: {REASONS[name]}."
