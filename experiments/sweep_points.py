"""What is swept: rungs of which one field of the configuration takes one value after another, and which
values cannot be."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from tir_schedules.errors import BadInput, nearest
from tir_schedules.ladders.registry import find
from tir_schedules.model.gpus import find_sm
from tir_schedules.model.rung import Rung
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.reduction import Reduction

FORMS = ("schedule", "twin")
ELEMENT = {"sgemm": 4, "hgemm": 2, "reduce": 4}
"""Family -> bytes of an element of A and B, or of X."""


@dataclass(frozen=True)
class Point:
    """One kernel of a series. label: what its line is called. value: of the field that is varied, None for a
    kernel to compare with."""

    label: str
    rung: Rung = field(hash=False)
    value: int | None = None


@dataclass(frozen=True)
class Series:
    """One rung along one field of its configuration.

    rung: its id. field, values: of its Config. timed: the workloads a GPU times it on, of one kind. counted:
    the one that the CPU machine counts accesses of, small; None where they do not depend on the field.
    beside: a line to compare with: what it is, a rung's id.
    aligned: where the field lengthens rows, the bytes their length must be a multiple of, for schedule and
    twin.
    least: the least value of a schedule, and why.
    """

    rung: str
    field: str
    values: tuple[int, ...]
    timed: tuple[Any, ...]
    counted: Any = None
    beside: tuple[str, str] | None = None
    aligned: tuple[int, int] = (1, 1)
    least: tuple[int, str] | None = None

    @property
    def title(self) -> str:
        kind = str(self.timed[0]).partition(" ")[2]
        return f"{self.rung} {kind}".strip()

    def workloads(self, timed: bool) -> list[Any]:
        """What it is compiled for: what is counted, and what is timed, or else the first of it alone."""
        return [*([self.counted] if self.counted else []), *self.timed[: None if timed else 1]]

    def points(self) -> list[Point]:
        """A point per value, then the one to compare with."""
        rung = find(self.rung)[0]
        points = [Point(str(value), varied(rung, self.field, value), value) for value in self.values]
        return [*points, Point(self.beside[0], find(self.beside[1])[0])] if self.beside else points

    def cannot(self, point: Point, form: str, arch: str) -> str:
        """Why a point cannot be, in one line; nothing when it can."""
        try:
            point.rung.check_arch(arch)
        except BadInput:
            return f"it needs sm_{point.rung.min_arch} or later"
        if point.value is None:
            return ""
        multiple = self.aligned[FORMS.index(form)]
        if point.value * ELEMENT[point.rung.family] % multiple:
            return (
                f"rows that much longer do not all start on a multiple of {multiple} bytes, as accesses of"
                f" {multiple} bytes need"
            )
        if self.least and form == "schedule" and point.value < self.least[0]:
            return self.least[1]
        shared, limit = (
            point.rung.declared(self.timed[0]).dynamic_shared,
            find_sm(arch).shared_limit,
        )
        return (
            f"a block would take {kib(shared)} of shared memory; {arch} has {kib(limit)} for one"
            if shared > limit
            else ""
        )


def varied(rung: Rung, field: str, value: int) -> Rung:
    """A rung with another value of one field; its name says so."""
    changed = f"{field}={value}"
    variant = f"{rung.variant},{changed}" if rung.variant else changed
    return replace(rung, config=replace(rung.config, **{field: value}), variant=variant)


def kib(size: int) -> str:
    return f"{size / 1024:.4g} KiB"


@dataclass(frozen=True)
class Sweep:
    """name: of the sweep. about: what varies, one line. head: of the column that has it. series: what it is
    tried on."""

    name: str
    about: str
    head: str
    series: tuple[Series, ...]


PADS_HALF, PADS_FLOAT = (0, 2, 4, 8, 16, 24), (0, 2, 4, 8, 16)
STAGES, SWIZZLES = (2, 3, 4, 5, 6), (1, 2, 4, 8, 16, 32)
BLOCKS = (128, 256, 512, 1024)
THREE_STAGES = (
    "a turn of the schedule multiplies first and copies then, which takes 3 stages; of 2 TVM makes no sound"
    " pipeline"
)
SMALL, SMALL_FLOAT = (256, 256, 256), (256, 256, 128)
"""Extents that the CPU machine counts: several blocks, and more tiles along K than stages."""


def square(size: int, layout: str) -> HalfGemm:
    return HalfGemm(size, size, size, layout)


def half_padding(rung: str, layout: str, **others: Any) -> Series:
    """Rows of both tiles; wmma, ldmatrix and the copies take 16 bytes at a time."""
    return Series(
        rung,
        "padding",
        PADS_HALF,
        (square(4096, layout),),
        HalfGemm(*SMALL, layout),
        aligned=(16, 16),
        **others,
    )


XOR_SWIZZLE = ("XOR swizzle, no padding", "hgemm/mma_xor_swizzle")
PADDING = Sweep(
    "padding",
    "elements that lengthen each row of a tile in shared memory: of both tiles of an HGEMM, of the transposed"
    " tile of A of an SGEMM",
    "padding",
    (
        *(half_padding("hgemm/wmma_padded:article_004", layout) for layout in ("nt", "nn")),
        *(half_padding("hgemm/wmma_padded", layout) for layout in ("nt", "nn")),
        *(half_padding("hgemm/mma_ldmatrix", layout, beside=XOR_SWIZZLE) for layout in ("nt", "nn")),
        Series(
            "sgemm/pipelined",
            "padding",
            PADS_FLOAT,
            (Gemm(4096, 4096, 4096),),
            Gemm(*SMALL_FLOAT),
            aligned=(16, 16),
        ),
        Series(
            "sgemm/multistage:32x32",
            "padding",
            PADS_FLOAT,
            (Gemm(1024, 1024, 1024),),
            Gemm(*SMALL_FLOAT),
            aligned=(8, 16),
        ),
    ),
)
STAGE_COUNT = Sweep(
    "stages",
    "tiles of A and of B that are in shared memory at a time: the one that is multiplied and those on"
    " their way",
    "stages",
    (
        *(
            Series(rung, "stages", STAGES, (square(4096, "nt"),), HalfGemm(*SMALL), least=(3, THREE_STAGES))
            for rung in ("hgemm/wmma_pipelined", "hgemm/mma_xor_swizzle", "hgemm/mma_multistage")
        ),
        Series(
            "sgemm/multistage:128x256",
            "stages",
            STAGES,
            (Gemm(4096, 4096, 4096),),
            Gemm(*SMALL_FLOAT),
            least=(3, THREE_STAGES),
        ),
    ),
)
SWIZZLE = Sweep(
    "swizzle",
    "most block columns of a group of the threadblock swizzle; blocks start group by group, row by row within"
    " one, every second group upwards",
    "threadblock swizzle",
    (
        Series(
            "hgemm/wmma_swizzled_grid",
            "threadblock_swizzle",
            SWIZZLES,
            (square(4096, "nt"), square(8192, "nt")),
            beside=("none, a plain grid", "hgemm/wmma_staged_epilogue"),
        ),
    ),
)
BLOCK = Sweep(
    "block",
    "threads of a block. With twice as many a tree has one more level, at which all warps wait and most have"
    " no work, and leaves half as many sums to the next launch. sequential pays for that level in barriers"
    " and instructions, shuffle hardly does",
    "block",
    tuple(
        Series(f"reduce/{name}", "block", BLOCKS, (Reduction(1 << 25),), Reduction(1 << 16))
        for name in ("sequential:rfactor", "unrolled", "shuffle", "vectorized")
    ),
)


def tile_sizes(rung: str, field: str, values: tuple[int, ...], size: int) -> Series:
    """Of article 003's steps at 4096, of 000's at 2048."""
    return Series(rung, field, values, (Gemm(size, size, size),), Gemm(*SMALL_FLOAT))


TILE = Sweep(
    "tile",
    "rows of a block's tile of C, for naive, coalesced and shared_tile also its columns. With larger tiles"
    " fewer blocks read less of A and B. shared_tile reads each sector once, but a block of coalesced asks"
    " for it again and again. The L1 cache may serve these requests, as article 003 remarks about its small"
    " gain from shared memory",
    "tile",
    (
        tile_sizes("sgemm/naive", "ts", (8, 16, 32), 4096),
        tile_sizes("sgemm/coalesced", "ts", (8, 16, 32), 4096),
        tile_sizes("sgemm/shared_tile", "ts", (8, 16, 32), 4096),
        tile_sizes("sgemm/thread_tile_2d", "bm", (32, 64, 128), 4096),
        tile_sizes("sgemm/vectorized", "bm", (32, 64, 128), 4096),
        tile_sizes("sgemm/thread_tile_2d:article_000", "bm", (32, 64, 128), 2048),
        tile_sizes("sgemm/transposed:article", "bm", (32, 64, 128), 2048),
        tile_sizes("sgemm/warp_tiling:article", "bm", (32, 64), 2048),
    ),
)
SWEEPS = {sweep.name: sweep for sweep in (PADDING, STAGE_COUNT, SWIZZLE, BLOCK, TILE)}


def find_sweep(name: str) -> Sweep:
    """BadInput with the nearest name when there is none."""
    if name not in SWEEPS:
        raise BadInput(f"there is no sweep {name!r}{nearest(name, SWEEPS)}; there are {', '.join(SWEEPS)}")
    return SWEEPS[name]
