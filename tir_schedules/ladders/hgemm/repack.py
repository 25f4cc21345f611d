"""A matrix is copied so that each row starts at a line of L2: the launch before `repacked`.

Rows of an odd number of elements may start at any address, so elements are loaded one by one. A thread loads
as many neighbours as 16 bytes have, all at once, and stores them together. The first load of a warp also
brings the sectors that its other loads need, so the other loads find these in L1. A warp takes 512 bytes of a
row, and a block takes eight rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from tir_schedules.model.annotations import PITCHES
from tir_schedules.model.gpus import WARP
from tir_schedules.model.launch import Launch, ceil_div, pitch_of, promotion_of
from tir_schedules.model.rung import NoConfig, Preparation, Rung
from tir_schedules.tir.schedule import PrimFunc, Schedule, bind
from tir_schedules.workloads.half_gemm import VECTOR, HalfGemm
from tir_schedules.workloads.repacking import Repacking

ROWS = 8  # of a block, one for each warp


def launch(repacking: Repacking, config: NoConfig) -> Launch:
    blocks = ceil_div(repacking.rows, ROWS) * ceil_div(repacking.pitch, VECTOR * WARP)
    return Launch((blocks, 1, 1), (WARP, ROWS, 1))


def schedule(sch: Schedule, repacking: Repacking, config: NoConfig) -> None:
    elements = sch.get_sblock("Y")
    stored = sch.cache_write(elements, 0, "local")
    row, column = sch.get_loops(stored)
    rows, row = sch.split(row, [None, ROWS])
    pieces, piece, element = sch.split(column, [None, WARP, VECTOR])
    sch.reorder(rows, pieces, row, piece, element)
    bind(sch, (sch.fuse(rows, pieces), row, piece), ("blockIdx.x", "threadIdx.y", "threadIdx.x"))
    sch.vectorize(element)
    sch.compute_at(elements, piece)
    sch.unroll(sch.get_loops(elements)[-1])
    sch.overlap_launches()


RUNG = Rung(
    family="hgemm",
    name="repack",
    summary="a matrix copied to rows of whole lines of L2",
    schedule=schedule,
    launch=launch,
)


def repackings_of(gemm: HalfGemm, line: int) -> list[Preparation]:
    """The launches that copy A and B of a GEMM, where their rows are not a multiple of so many bytes."""
    sizes = {"A": ("M", "K"), "B": ("N", "K") if gemm.transposed else ("K", "N")}
    return [
        Preparation(RUNG, Repacking(*shape), copying(name, sizes[name]))
        for name, shape in copied(gemm, line).items()
    ]


def copied(gemm: HalfGemm, line: int) -> dict[str, tuple[int, int]]:
    """Rows and columns of A and B where they are copied."""
    return {name: shape for name, shape in gemm.stored.items() if bytes_of_row(shape) % line}


def bytes_of_row(shape: tuple[int, int]) -> int:
    return 2 * shape[1]


def chosen_pitches(gemm: HalfGemm, line: int) -> dict[str, int]:
    """The bytes from row to row of the copy, for matrices that TMA would also take without a
    copy."""
    return {
        name: pitch_of(bytes_of_row(shape), line)
        for name, shape in copied(gemm, line).items()
        if name not in gemm.misaligned
    }


def maps_of_copies(alone: Launch, gemm: HalfGemm, line: int) -> Launch:
    """A launch whose tensor maps are of what is copied by choice, too."""
    pitches = chosen_pitches(gemm, line)
    maps = tuple(
        replace(
            each,
            of=f"{each.of}_rows",
            pitches=(pitches[each.of],),
            promotion=promotion_of(pitches[each.of], each.of == "A" or gemm.transposed),
        )
        if each.of in pitches
        else each
        for each in alone.maps
    )
    made = tuple((f"{name}_rows", (gemm.stored[name][0], pitch // 2)) for name, pitch in pitches.items())
    return replace(alone, maps=maps, workspaces=made)


def set_pitches(function: PrimFunc, gemm: HalfGemm, line: int) -> PrimFunc:
    """The same of a function."""
    pitches, made = chosen_pitches(gemm, line), cast(Any, function)
    return made.with_attr(PITCHES, pitches) if pitches else function


def copying(name: str, sizes: tuple[str, str]) -> dict[str, str]:
    """The arguments of a launch that copies a matrix to a workspace, by parameter. sizes: of its rows and
    columns."""
    return {"X": name, "Y": f"{name}_rows", **dict(zip(("ROWS", "COLUMNS"), sizes))}
