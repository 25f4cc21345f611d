"""What a tile of `hgemm/tile_shapes` costs, and which tile a gemm takes.

A form is a tile as wgmma sees it: its rows and columns, the warpgroups that multiply and how they part it,
and what a pair of blocks shares. What is measured is the form, never the time of a gemm: the nanoseconds of a
K tile while all SMs multiply, and while few do. The time of a gemm is estimated from these, from the rounds
in which SMs take tiles, and from what comes once. A gemm takes the form with the least time of all that it
can have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Iterator

from tir_schedules.ladders.hgemm import hopper, specialization, tile_choice
from tir_schedules.ladders.hgemm.tile_shape import Config
from tir_schedules.model.launch import ceil_div
from tir_schedules.model.rung import Rung
from tir_schedules.workloads.half_gemm import HalfGemm

K_TILE = {
    (64, 1, 0): {
        16: (127, 116), 32: (132, 121), 64: (156, 148), 96: (193, 167), 128: (229, 176), 192: (297, 223),
        256: (398, 295),
    },
    (64, 2, 1): {128: (231, 173), 192: (308, 230), 256: (399, 290)},
    (128, 2, 0): {
        16: (182, 170), 32: (272, 185), 64: (302, 191), 96: (330, 231), 128: (364, 290), 160: (431, 358),
        192: (507, 430), 224: (595, 506), 256: (670, 571),
    },
    (192, 1, 0): {64: (426, 245), 96: (414, 329)},
    (192, 2, 1): {96: (441, 376), 128: (516, 434), 160: (638, 531), 192: (758, 644)},
    (256, 2, 0): {64: (594, 327), 96: (569, 442), 128: (683, 570), 160: (836, 700)},
}  # fmt: skip
"""(rows, warpgroups that multiply, 1 where these part columns) -> columns -> nanoseconds of a K tile while
all SMs multiply, and while 16 do. Measured on an H100 at two depths of K, with a tile for each SM and sums in
float32. Between measured columns the time is interpolated linearly."""

SHARED_ROWS = {(128, 32): 188, (128, 64): 214, (128, 96): 265, (256, 64): 374, (256, 96): 511}
"""(rows, columns) -> nanoseconds of a K tile while all SMs multiply, in pairs that share rows. A pair with
larger tiles takes as long as two blocks."""

ROW = {64: 0.0, 32: 1.92, 16: 2.75}
"""Bytes that rows of a matrix are multiples of -> nanoseconds in which an SM gets a row of a K tile, 128
bytes, while all SMs do. Only the rows that it copies itself count. A K tile takes as long as its rows where
that is more than its products take. Measured as K_TILE."""

NARROW_ROWS = {128: 0.0, 64: 0.003, 32: 0.1}
"""Bytes of a row of a box of C -> nanoseconds more for each element. Rows of 32 bytes are a quarter of a line
of L2: 8192x8192x8192 by tiles of 256x144 took 1539 us, and 1446 with A and B swapped, whose boxes have rows
of 128."""

LAUNCH, PAIR = 2600, 950
"""Nanoseconds that come once, and those that come with clusters, because blocks meet before their first
copies and at the end."""


@dataclass(frozen=True)
class Estimate:
    """What the time of a gemm is made of. rounds: in which SMs take tiles. k_tiles: of a tile. each:
    nanoseconds of a K tile. stored: those of the end of a tile. once: those of the launch. reading: those in
    which A and B are read from memory."""

    tiles: int
    rounds: int
    k_tiles: int
    each: float
    stored: float
    once: float
    reading: float

    @classmethod
    def of(cls, gemm: HalfGemm, config: Config) -> "Estimate":
        tiles = specialization.tiles_of(gemm, config)
        programs = specialization.programs_of(gemm, config)
        row = specialization.box_of(gemm, config)[1] * hopper.SIZES[gemm.result]
        return cls(
            tiles * config.blocks,
            ceil_div(tiles * config.blocks, programs),
            ceil_div(gemm.k, hopper.DEPTH),
            nanoseconds_per_k_tile(gemm, config, programs / hopper.WAVE),
            tile_choice.STORED + (tile_choice.ELEMENT + NARROW_ROWS[row]) * config.bm * config.bn,
            LAUNCH + (PAIR if config.blocks > 1 else 0),
            tile_choice.nanoseconds_of_reading(gemm, config, programs),
        )

    @property
    def multiplying(self) -> float:
        """Nanoseconds of an SM."""
        return self.rounds * self.k_tiles * self.each

    @property
    def microseconds(self) -> float:
        longest = max(self.multiplying, self.reading)
        return (self.once + longest + self.rounds * self.stored) / 1000

    def __str__(self) -> str:
        read = f", {self.reading:.0f} ns for A and B" if self.reading > self.multiplying else ""
        return (
            f"{self.tiles} tiles, {self.rounds} for an SM, of {self.k_tiles} K tiles"
            f" in {self.each:.0f} ns each{read}, {self.stored:.0f} ns for the end of a tile"
            f" and {self.once:.0f} ns once: {self.microseconds:.1f} us"
        )


def nanoseconds_per_k_tile(gemm: HalfGemm, config: Config, share: float) -> float:
    """Of a tile, while a share of the SMs multiply: the longer of its products, and of copies of its rows."""
    full, few = form_cost(config)
    products = few + (full - few) * share
    return max(products, share * nanoseconds_of_rows(gemm, config))


def nanoseconds_of_rows(gemm: HalfGemm, config: Config) -> float:
    """In which an SM gets the rows of a K tile that it copies, while all do."""
    found = 0.0
    b_row = gemm.k if gemm.transposed else gemm.n
    for rows, row in ((config.bm / config.cluster_n, gemm.k), (config.bn / config.cluster_m, b_row)):
        found += rows * ROW[tile_choice.alignment(2 * row, 16)]
    return found


@lru_cache(maxsize=4096)
def form_cost(config: Config) -> tuple[float, float]:
    """Nanoseconds of a K tile, while all SMs multiply and while few do."""
    measured = K_TILE[config.tall, config.consumers, config.part_columns]
    below = max((wide for wide in measured if wide <= config.wide), default=min(measured))
    above = min((wide for wide in measured if wide >= config.wide), default=max(measured))
    part = (config.wide - below) / (above - below) if above > below else 0
    full, few = (low + (high - low) * part for low, high in zip(measured[below], measured[above]))
    if config.beside > 1:
        full = SHARED_ROWS.get((config.tall, config.wide), full)
    return full, few


def forms() -> Iterator[Config]:
    """Every form, both ways round, with and without pairs. Stages and boxes are not settled."""
    for (tall, consumers, part_columns), measured in K_TILE.items():
        for wide in range(min(measured), max(measured) + 1, hopper.STEP):
            for swap in (0, 1):
                bm, bn = (wide, tall) if swap else (tall, wide)
                for cluster_m, cluster_n in ((1, 1), (2, 1), (1, 2)):
                    yield Config(
                        bm=bm, bn=bn, consumers=consumers, swap=swap, part_columns=part_columns,
                        cluster_m=cluster_m, cluster_n=cluster_n,
                    )  # fmt: skip


FORMS = tuple(forms())


def settle(gemm: HalfGemm, config: Config) -> Config | None:
    """The configuration with as many stages and boxes as fit into shared memory: first two boxes for a
    warpgroup, if four stages fit beside them, or else one; then stages; then further boxes. None where there
    is no room for three stages."""
    rows, columns, _ = specialization.boxes_of(gemm, replace(config, boxes=1))
    box = specialization.bytes_of_boxes(gemm, replace(config, boxes=1))
    room = hopper.find_sm(hopper.ARCH).shared_limit - hopper.BARRIERS
    turns = [count for count in range(1, rows * columns + 1) if rows * columns % count == 0]
    for least in sorted({turns[min(1, len(turns) - 1)], 1}, reverse=True):
        stages = min(hopper.MOST_STAGES, (room - least * box) // config.stage_bytes)
        if stages >= (4 if least > 1 else 3):
            most = max(count for count in turns if count * box <= room - stages * config.stage_bytes)
            return replace(config, stages=stages, boxes=most)
    return None


@lru_cache(maxsize=1024)
def fastest(gemm: HalfGemm) -> Config | None:
    """The form that is estimated to be the fastest. None where a gemm can have no form."""
    ranked = sorted(
        (config for config in FORMS if not hopper.reason_against_tile(gemm, config)),
        key=lambda config: Estimate.of(gemm, config).microseconds,
    )
    return next((settled for config in ranked if (settled := settle(gemm, config))), None)


def estimate(gemm: HalfGemm, rung: Rung) -> Estimate | None:
    """Of a rung in a configuration that has all of K at once and no launch besides its own. None for others,
    and where its form was not measured."""
    config = rung.config
    if rung.declared(gemm).parts > 1 or any(rung.others(gemm)):
        return None
    measured = K_TILE.get((config.tall, config.consumers, config.part_columns), {})
    return Estimate.of(gemm, config) if measured and min(measured) <= config.wide <= max(measured) else None
