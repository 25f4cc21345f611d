"""Which configuration of a Hopper rung a gemm takes: the one that is estimated to be the fastest.

SMs take tiles in rounds, one each, and in the last round some SMs have no tile. A large tile is multiplied at
a higher rate, because its K tiles are used more often, but a matrix has few large tiles. 1024 x 1024 has 32
tiles of 128x256, so 100 of 132 SMs would have nothing to do. It has 128 tiles of 64x128, so nearly all SMs
have one. If there are few K tiles, the time before the first product and after the last also counts. The
estimate of `tile_costs` takes all of this into account.

Rungs before `tile_shapes` choose from their configurations. `tile_shapes` and later rungs choose from FORMS:
each tile that was measured, with and without A and B swapped, with and without pairs, and with as many stages
as fit.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, Callable, Collection, Iterable, Iterator, Mapping, TypeVar

from tir_schedules.errors import BadInput
from tir_schedules.ladders.hgemm import hopper, specialization
from tir_schedules.ladders.hgemm.tile_costs import (
    K_TILE,
    Estimate,
    bytes_of_operands,
    clusters_of,
    copying,
    extent_at_once,
)
from tir_schedules.ladders.hgemm.tile_shape import Config
from tir_schedules.ladders.waves import L2, counts_of_parts
from tir_schedules.model.launch import Launch, ceil_div, check_grid
from tir_schedules.model.rung import Preparation
from tir_schedules.workloads.half_gemm import HalfGemm

FOR_ALL_SUMS = ("128x256", "128x128")
"""What rungs before `tma_store` choose from: their larger tiles are for sums in float16."""

EIGHTS = 1.02
"""Times as long as estimated that a tile of an odd multiple of 8 rows takes, beside others. At nine shapes on
an H200 it was 3 % in the mean: 1280 cubed took 8.66 us by 104x128 and 9.53 by 128x128, but 8192 cubed took
1454 us by 200x256 and 1349 by 256x256, both estimated to take as long."""

MANY_STAGES, FEW_BLOCKS = 8, 99
"""MANY_STAGES: most stages of a form. If at most FEW_BLOCKS SMs have a tile, a form may have a stage for each
K tile, up to MOST_STAGES. Each SM then needs more bytes under way, because few SMs share memory's bandwidth.
79x4096x11008 took 27.0 us on an H200 by 64 tiles of 80x64 in 8 stages, and 24.7 us in 12. 256x56x32648 took
9.6 us by 116 blocks in 8 stages, and 9.7 us in 12."""

HIGHEST, MORE_AT_ONCE = 24, 1.1
"""HIGHEST: most rows of tiles in a stripe. MORE_AT_ONCE: a height of stripes is accepted if its clusters
multiply at most so many times the fewest possible rows and columns of C at a time."""

C = TypeVar("C", bound=Config)
T = TypeVar("T")


def chooser(
    configs: Mapping[str, hopper.Tiling], launch: Callable[..., Launch], among: Collection[str] = ()
) -> Callable[[HalfGemm], str]:
    """The `choose` of a rung: the name of the configuration that is estimated to be the fastest. Where a gemm
    cannot have any of them, it is the first, and that is refused. launch: the rung's. among: names that it
    chooses from, where these are not all."""
    chosen = {name: configs[name] for name in among or configs}

    def choose(gemm: HalfGemm) -> str:
        able = {name: config for name, config in chosen.items() if can_launch(gemm, config)}
        names = able or dict([*chosen.items()][:1])
        return min(names, key=lambda name: time_of(gemm, chosen[name]))

    def can_launch(gemm: HalfGemm, config: hopper.Tiling) -> bool:
        try:
            check_grid("", launch(gemm, config).grid)
        except BadInput:
            return False
        return True

    return choose


def time_of(gemm: HalfGemm, config: hopper.Tiling, parts: int = 1, more: float = 0) -> tuple[float, float]:
    """The key by which configurations are compared. First: microseconds of the configuration's launch, and
    `more` for the launches around it. Second: its time if memory were fast enough, which decides between
    configurations that memory limits equally."""
    estimate = Estimate.of(gemm, config, parts)
    unsure = EIGHTS if config.swap and config.bm % hopper.STEP else 1
    return unsure * estimate.microseconds + more, estimate.alone


@lru_cache(maxsize=4096)
def parts_of(gemm: HalfGemm, config: hopper.Tiling) -> int:
    """The number of parts of K with the lowest estimated time. All parts have the same number of K tiles.
    They are so few that each tile of each part has an SM to itself."""
    k_tiles = ceil_div(gemm.k, hopper.DEPTH)
    tiles = specialization.tiles_of(gemm, config) * config.blocks
    sms = hopper.CLUSTERS[config.blocks] * config.blocks
    counts = counts_of_parts(gemm, k_tiles, sms // tiles)
    return min(counts, key=lambda parts: Estimate.of(gemm, config, parts).microseconds)


def forms() -> Iterator[dict[str, int]]:
    """The fields of every form, both ways round, with and without clusters."""
    for (tall, consumers, part_columns), ways in K_TILE.items():
        measured = ways["alone"]
        for swap, step in ((0, hopper.STEP), (1, hopper.SWAPPED_STEP)):
            for wide in range(min(measured), max(measured) + 1, step):
                bm, bn = (wide, tall) if swap else (tall, wide)
                for cluster_m, cluster_n in ((1, 1), (2, 1), (1, 2), (4, 1), (1, 4), (2, 2)):
                    yield {
                        "bm": bm, "bn": bn, "consumers": consumers, "swap": swap,
                        "part_columns": part_columns, "cluster_m": cluster_m, "cluster_n": cluster_n,
                    }  # fmt: skip


FORMS = tuple(forms())


def settle(gemm: HalfGemm, config: C) -> Iterator[C]:
    """The configuration with the stages and boxes that fit into shared memory: first two boxes for a
    warpgroup, if four stages fit beside them, or else one; then stages; then further boxes. If not
    all boxes fit then, it is also settled with all of them and fewer stages, if four stages remain. A
    configuration without boxes uses all shared memory for stages. Where three stages do not fit there is no
    configuration."""
    room = hopper.shared_room()
    few = config.boxes > 0 and specialization.tiles_of(gemm, config) * config.blocks <= FEW_BLOCKS
    enough = MANY_STAGES
    if few:
        enough = min(hopper.MOST_STAGES, max(enough, ceil_div(gemm.k, hopper.DEPTH)))
    one = replace(config, boxes=min(1, config.boxes))
    rows, columns, _ = specialization.boxes_of(gemm, one)
    box, most = specialization.bytes_of_boxes(gemm, one), rows * columns
    for least in sorted({min(2, most), 1}, reverse=True):
        stages = min(enough, (room - least * box) // config.stage_bytes)
        if stages >= (4 if least > 1 else 3):
            left = room - stages * config.stage_bytes
            found = replace(config, stages=stages, boxes=min(most, left // box) if box else 0)
            yield found
            stages = (room - most * box) // config.stage_bytes
            if box and found.boxes < most and stages >= 4:
                yield replace(config, stages=stages, boxes=most)
            return


def settled(gemm: HalfGemm, kind: type[C], **fields: Any) -> Iterator[C]:
    """The forms that a gemm can have, as configurations of a rung: with an odd multiple of 8 rows only where
    that saves tiles. fields: of each."""
    for form in FORMS:
        config = kind(**form, **fields)
        if config.bm % hopper.STEP and not is_lowest(gemm, config) or not fills_clusters(gemm, config):
            continue
        if hopper.reason_against_tile(gemm, config):
            continue
        for found in settle(gemm, config):
            yield with_stripes(gemm, found)


def fills_clusters(gemm: HalfGemm, config: hopper.Tiling) -> bool:
    """Whether C has a tile for each block of a cluster."""
    return config.bm * (config.cluster_m - 1) < gemm.m and config.bn * (config.cluster_n - 1) < gemm.n


def is_lowest(gemm: HalfGemm, config: hopper.Tiling) -> bool:
    """Whether lower tiles would be more."""
    lower = config.bm - hopper.SWAPPED_STEP
    return ceil_div(gemm.m, lower * config.cluster_m) > ceil_div(gemm.m, config.bm * config.cluster_m)


def with_stripes(gemm: HalfGemm, config: C) -> C:
    """The configuration with the height of its stripes for a gemm."""
    down, across, tall, wide = clusters_of(gemm, config)
    at_once = specialization.clusters_at_once(config.programs, config.blocks)
    sides = (0, 0) if bytes_of_operands(gemm) <= L2 else (tall, wide)
    return replace(config, group=height_of_stripes(down, across, at_once, *sides))


@lru_cache(maxsize=4096)
def height_of_stripes(down: int, across: int, at_once: int, tall: int, wide: int) -> int:
    """The height of stripes, in rows of clusters' tiles, for a C of `down` rows and `across` columns of
    these. It is chosen so that the last stripe is nearly as high as the others. at_once: clusters that are
    executed at a time. tall, wide: sides of a cluster's tiles; 0 if L2 holds all of A and B.

    L2 serves neighbouring blocks with one access, and these start one after the other. On an H100 112x128 at
    1193x1536x6144 took 67 thousand cycles in stripes of 12, 64 of 8, and 50 of 4. 64x128 at 537x1536x6144
    took 38 thousand in one stripe of 9, and 52 in stripes of 4, 4 and 1.

    If L2 does not hold A and B, the rows and columns that clusters multiply at a time should be few, too. An
    H200 lowers its clock for what it reads from memory. 128x256 at 1783x28672x8192 took 1623 thousand cycles
    in stripes of any height. Its time was 1257 us in stripes of 2 rows, 1157 of 4, 1103 of 8, and 1087 in one
    stripe of 14, because the clock differed.
    """
    heights = range(3, 1 + max(3, min(down, HIGHEST))) if tall else range(3, 7)
    extents = {height: extent_at_once(height, down, across, at_once, tall, wide) for height in heights}
    enough = MORE_AT_ONCE * min(extents.values())
    able = [height for height, extent in extents.items() if extent <= enough]
    return min(able, key=lambda height: (-down % height / height, extents[height], abs(height - 4)))


def ranked(
    gemm: HalfGemm,
    configs: Iterable[C],
    around: Callable[[HalfGemm, C], list[Preparation]] = lambda gemm, config: [],
    parts: Callable[[HalfGemm, C], int] = lambda gemm, config: 1,
) -> list[C]:
    """The configurations that are estimated to be the fastest of their kinds, with the launches around their
    own and their parts of K; the fastest first. Two are of one kind if they agree in `kind_of`, in whether C
    goes through boxes, and in whether K is divided."""

    def time(config: C) -> tuple[float, float]:
        return time_of(gemm, config, parts(gemm, config), copying(around(gemm, config)))

    def kind(config: C) -> tuple[int, ...]:
        return *kind_of(config), parts(gemm, config) > 1, config.boxes > 0

    return first_of_kinds(configs, time, kind)


def first_of_kinds(configs: Iterable[T], key: Callable[[T], Any], kind: Callable[[T], Any]) -> list[T]:
    """Of each kind the configuration with the least key, sorted by key; of equals the first."""
    found: dict[Any, T] = {}
    for config in sorted(configs, key=key):
        found.setdefault(kind(config), config)
    return [*found.values()]


def kind_of(config: Config) -> tuple[int, ...]:
    """The fields of a form besides the free side of its tile."""
    clusters = config.cluster_m, config.cluster_n
    return config.tall, config.consumers, config.part_columns, config.swap, *clusters
