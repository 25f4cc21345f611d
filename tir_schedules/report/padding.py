"""The example of article 004: a tile without padding, with padding, and with an XOR swizzle; what each costs,
counted and measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tir_schedules.bench.views import Group, short
from tir_schedules.insight.banks.requests import Pattern, request_patterns
from tir_schedules.insight.banks.tiles import FRAGMENTS, HALF, SharedTile, bank_table
from tir_schedules.insight.banks.wavefronts import WORD, bank_of
from tir_schedules.insight.metrics.counting import COPIES, LOADS, STORES, conflicts
from tir_schedules.ladders.registry import find
from tir_schedules.model.counters import Access
from tir_schedules.report.counted import ByKernel, Counted
from tir_schedules.report.recorded import Recorded

FAMILY = "hgemm"
ARTICLE = ("hgemm/wmma_shared:article_004", "hgemm/wmma_padded:article_004")
"""The article's tile, 128x256x32, without padding and with it."""

LADDER = ("hgemm/wmma_shared", "hgemm/wmma_padded")
"""The same two rungs with the ladder's own tile."""

BETTER = ("hgemm/mma_ldmatrix", "hgemm/mma_xor_swizzle")
"""One kernel with padding, and with an XOR swizzle in its place."""

NAMES = (*ARTICLE, *LADDER, *BETTER)
BUFFER = "A"
SWEPT = {
    ARTICLE[0]: "hgemm/wmma_padded:article_004,padding=0",
    ARTICLE[1]: "hgemm/wmma_padded:article_004,padding=8",
}
"""How experiments/sweeps.py names the same kernels."""


@dataclass(frozen=True)
class Layout:
    """One kernel of the example. rate: TFLOPS measured at the example's size, None where it was not."""

    kernel: Counted
    rate: float | None

    @property
    def name(self) -> str:
        return short(self.kernel.subject.name)

    @property
    def config(self) -> Any:
        """The configuration of the rung as it runs: the rung's dataclass."""
        return find(self.kernel.subject.name)[0].fitted(self.kernel.subject.workload).config

    @property
    def padding(self) -> int:
        """Halves after each row of a tile; a configuration without the field does not pad."""
        return getattr(self.config, "padding", 0)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of the tile of A."""
        return HALF * (self.config.bk + self.padding)

    @property
    def starts(self) -> int:
        """How many different banks 8 rows of the tile start in."""
        return len({bank_of(row * self.row_bytes // WORD) for row in range(8)})

    @property
    def loads(self) -> Access:
        return self.kernel.access(*LOADS)

    @property
    def stores(self) -> Access:
        return self.kernel.access(*STORES)

    @property
    def copies(self) -> Access:
        return self.kernel.access(*COPIES)

    @property
    def wavefronts(self) -> int:
        return self.loads.cost + self.stores.cost + self.copies.cost

    @property
    def lost(self) -> int:
        """Wavefronts beyond the ideal."""
        return conflicts(self.loads + self.stores + self.copies)

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block."""
        return self.kernel.first.binary.shared_bytes

    @property
    def blocks(self) -> int:
        """Per SM."""
        return self.kernel.first.occupancy.blocks


@dataclass(frozen=True)
class Example:
    """Layouts by the names of their rungs, and the size of their rates."""

    layouts: dict[str, Layout]
    size: str

    def of(self, names: tuple[str, ...]) -> list[Layout]:
        return [self.layouts[name] for name in names]


def example_of(kernels: ByKernel, group: Group, recorded: Recorded) -> Example | None:
    """The schedules of the example, at the size where most of them were timed, the largest of several; None
    unless all were counted."""
    if not all((name, "schedule") in kernels for name in NAMES):
        return None
    shapes = {size: row["shape"] for (_, _, size), row in group.cells.items()}
    rates = {size: {name: measured(recorded, name, shapes[size]) for name in NAMES} for size in group.sizes}
    size = max(group.sizes, key=lambda size: (sum(map(bool, rates[size].values())), group.sizes.index(size)))
    return Example({name: Layout(kernels[name, "schedule"], rates[size][name]) for name in NAMES}, size)


def measured(recorded: Recorded, name: str, shape: str) -> float | None:
    rates = (recorded.rate(known, "schedule", shape) for known in (name, SWEPT.get(name)) if known)
    return next(filter(None, rates), None)


def bank_tables(example: Example | None) -> dict[str, list[tuple[tuple[int, ...], ...]]]:
    """Layout of the article's tile -> article 004's table of a load of a fragment of A: threads, words and
    banks by fours."""
    if not example:
        return {}
    bare, padded = example.of(ARTICLE)
    row, fragment = bare.config.bk, FRAGMENTS["m16n8k8 A"]
    tiles = {
        "no padding": SharedTile(row),
        f"padding of {padded.padding} halves": SharedTile(row, padded.padding),
        "XOR swizzle": SharedTile(row, swizzled=True),
    }
    return {name: bank_table(tile, fragment) for name, tile in tiles.items()}


def pictures(example: Example | None) -> dict[str, list[Pattern]]:
    """Rung -> how a warp loads from its tile of A and stores to it: without padding, with it, and with an XOR
    swizzle."""
    return {one.name: patterns_of(one.kernel) for one in example.of((*ARTICLE, *BETTER))} if example else {}


def patterns_of(kernel: Counted) -> list[Pattern]:
    """The first load and the first store or copy."""
    patterns = request_patterns(kernel.subject.binaries, kernel.subject.workload, BUFFER)
    wanted = [
        next((pattern for pattern in patterns if pattern.kind in kinds), None)
        for kinds in (LOADS, (*STORES, *COPIES))
    ]
    return list(filter(None, wanted))
