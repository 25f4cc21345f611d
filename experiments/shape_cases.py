"""Shapes to be tried: every combination of what M, N and K can each be to a rung's tiles, small enough for
the CPU machine.

An extent is whole, some tiles; ragged, more than a tile but none of whole tiles; smaller than a tile; 1; or
odd, which 16-byte accesses cannot take. Of each there are several sizes, among them those of the tiles within
a tile, of warps and threads; a case has one of them, by a hash of its name, and another in another turn.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Iterable

from tir_schedules.errors import BadInput
from tir_schedules.ladders.known import workload_class
from tir_schedules.ladders.problems import Problem, workloads_of
from tir_schedules.ladders.registry import find_each
from tir_schedules.model.rung import Rung
from tir_schedules.workloads import LAYOUTS
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm

KINDS = ("whole", "ragged", "smaller", "one", "odd")
ALL = tuple(product(KINDS, repeat=3))
PAIRWISE = tuple((KINDS[i], KINDS[j], KINDS[(i + j) % 5]) for i in range(5) for j in range(5))
"""Of all combinations so many that every two extents are of every two kinds once."""

INNER = {"m": ("wm", "tm"), "n": ("wn", "tn"), "k": ()}
"""Axis -> the fields of a Config that say how tiles within its block tile are."""


@dataclass(frozen=True)
class Case:
    """A rung, named, on a workload. combination: of which kinds its extents are."""

    rung: str
    combination: tuple[str, ...]
    workload: Any

    @property
    def row(self) -> tuple[str, str]:
        """The rung and the kind of workload, what all its cases have in common."""
        return self.rung, " ".join(str(self.workload).split(" ")[1:])

    def __str__(self) -> str:
        return f"{self.rung} {self.workload} ({', '.join(self.combination)})"


def cases(names: Iterable[str], combinations: Iterable[tuple[str, ...]], turn: int = 0) -> list[Case]:
    """Those of the rungs that are named, in every configuration but the flawed ones and for every kind of
    workload."""
    combinations = tuple(combinations)
    return [case for rung in find_each(names, configs=True) for case in cases_of(rung, combinations, turn)]


def cases_of(rung: Rung, combinations: Iterable[tuple[str, ...]], turn: int = 0) -> list[Case]:
    make, found = workload_class(rung.family), []
    if rung.family == "reduce":
        for dtype, (kind, lengths) in product(rung.dtypes, lengths_of(rung).items()):
            found += [Case(rung.id, (kind,), make(length, dtype)) for length in lengths]
        return found
    kinds = product(LAYOUTS, rung.config.accumulators) if rung.family == "hgemm" else [()]
    sizes = sizes_of(rung)
    for kind, combination in product(kinds, combinations):
        shape = shape_of(rung, combination, kind, turn, sizes)
        works = [make(*shape, *kind)] if kind else workloads_of(rung, Problem(rung.family, shape))
        found += [Case(rung.id, combination, work) for work in works]
    return found


def shape_of(
    rung: Rung,
    combination: tuple[str, ...],
    kind: tuple[str, ...] = (),
    turn: int = 0,
    sizes: dict[str, dict[str, list[int]]] | None = None,
) -> tuple[int, ...]:
    """M, N and K. sizes: `sizes_of` the rung, where they are known."""
    shape, sizes = [], sizes or sizes_of(rung)
    for axis, what in zip("mnk", combination):
        several = sizes[axis][what]
        name = f"{rung.id} {' '.join(kind)} {' '.join(combination)} {axis}"
        shape.append(several[(zlib.crc32(name.encode()) + turn) % len(several)])
    return tuple(shape)


def sizes_of(rung: Rung) -> dict[str, dict[str, list[int]]]:
    """Axis -> `sizes_along` it."""
    return {axis: sizes_along(axis, rung) for axis in "mnk"}


def smallest_config(rung: Rung) -> Any:
    """The configuration that a rung takes for the smallest matrices that all rungs of its ladder take."""
    return rung.fitted(HalfGemm(8, 8, 8) if rung.family == "hgemm" else Gemm(1, 1, 1)).config


def sizes_along(axis: str, rung: Rung) -> dict[str, list[int]]:
    """Kind -> sizes of an extent. Along K there are whole tiles for more than all stages of a pipeline."""
    config, unit = smallest_config(rung), 8 if rung.family == "hgemm" else 4
    tile = tile_along(axis, config)
    several = (getattr(config, "stages", 2) + 1 if axis == "k" else 2) * tile
    inner = {8, tile // 2, tile - unit, *(getattr(config, field, 0) for field in INNER[axis])}
    return {
        "whole": [tile, several],
        "ragged": [
            size for size in (tile + unit, tile + tile // 2, several - unit) if size > tile and size % tile
        ],
        "smaller": sorted(size for size in inner if 1 < size < tile and size % unit == 0) or [tile // 2],
        "one": [1],
        "odd": [size for size in (3, unit // 2, tile - 1, tile + 1, several - 3) if size > 1 and size % unit],
    }


def tile_along(axis: str, config: Any) -> int:
    """The block tile; rungs before thread_tile_1d have square ones of ts."""
    return getattr(config, f"b{axis}", getattr(config, "ts", 0))


def lengths_of(rung: Rung) -> dict[str, list[int]]:
    """Kind -> lengths of an array, for a rung of the Reduce ladder; of odd ones 16-byte accesses cannot take
    the last elements."""
    make, block = workload_class("reduce"), rung.config.block
    chunk = (1 << 20) // prod(rung.declared(make(1 << 20)).grid)
    return {
        "whole": [chunk, 3 * chunk, chunk * block],
        "ragged": [chunk + 4, 2 * chunk - 4, 9 * chunk + block],
        "smaller": [4, block - 4, block // 2],
        "one": [1],
        "odd": [2, 31, block + 1, chunk - 1, 5 * chunk + 3],
    }


def parse_combinations(text: str) -> tuple[tuple[str, ...], ...]:
    """ "all", "pairwise", or combinations such as "whole-whole-ragged,one-odd-one"."""
    if text in ("all", "pairwise"):
        return ALL if text == "all" else PAIRWISE
    found = tuple(dict.fromkeys(tuple(part.split("-")) for part in text.split(",")))
    if not set(found) <= set(ALL):
        raise BadInput(
            f"--combinations takes all, pairwise, or some of {', '.join(KINDS)} for M-N-K such as"
            f" whole-whole-odd, not {text!r}"
        )
    return found


def parse_shard(text: str) -> tuple[int, int]:
    """ "3/8" as which of how many."""
    try:
        number, total = map(int, text.split("/"))
    except ValueError:
        number, total = 0, 0
    if not 1 <= number <= total:
        raise BadInput(f"--shard takes I/N from 1/N to N/N such as 3/8, not {text!r}")
    return number, total
