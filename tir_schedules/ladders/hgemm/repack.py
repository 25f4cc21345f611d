"""A matrix copied so that its rows start on multiples of 16 bytes: the launch before `repacked`.

Rows of an odd number of elements start anywhere, so elements are loaded one by one. A thread takes as many
neighbours as 16 bytes have, all loads at once, and stores them together. The first load of a warp brings the
sectors that the others need, too: L1 serves these.
A warp takes 512 bytes of a row, a block those of eight rows.
"""

from __future__ import annotations

from typing import Sequence

from tir_schedules.model.gpus import WARP
from tir_schedules.model.launch import Launch, ceil_div
from tir_schedules.model.rung import NoConfig, Preparation, Rung
from tir_schedules.tir.schedule import Schedule, bind
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.repacking import Repacking

ROWS = 8  # of a block, one for each warp


def launch(repacking: Repacking, config: NoConfig) -> Launch:
    blocks = ceil_div(repacking.rows, ROWS) * ceil_div(repacking.pitch, repacking.vector * WARP)
    return Launch((blocks, 1, 1), (WARP, ROWS, 1))


def schedule(sch: Schedule, repacking: Repacking, config: NoConfig) -> None:
    elements = sch.get_sblock("Y")
    stored = sch.cache_write(elements, 0, "local")
    row, column = sch.get_loops(stored)
    rows, row = sch.split(row, [None, ROWS])
    pieces, piece, element = sch.split(column, [None, WARP, repacking.vector])
    sch.reorder(rows, pieces, row, piece, element)
    bind(sch, (sch.fuse(rows, pieces), row, piece), ("blockIdx.x", "threadIdx.y", "threadIdx.x"))
    sch.vectorize(element)
    sch.compute_at(elements, piece)
    sch.unroll(sch.get_loops(elements)[-1])


RUNG = Rung(
    family="hgemm",
    name="repack",
    summary="a matrix copied to rows of a multiple of 16 bytes",
    schedule=schedule,
    launch=launch,
)


def repackings_of(gemm: Gemm, rung: Rung = RUNG, names: Sequence[str] = ("A", "B")) -> list[Preparation]:
    """The launches that copy A and B of a GEMM, where their rows are no multiple of 16 bytes. rung: that
    copies. names: of the matrices that may be copied."""
    sizes = {"A": ("M", "K"), "B": ("N", "K") if getattr(gemm, "transposed", False) else ("K", "N")}
    bits = 128 // gemm.vector
    return [
        Preparation(
            rung,
            Repacking(*shape, bits),
            {"X": name, "Y": f"{name}_rows", **dict(zip(("ROWS", "COLUMNS"), sizes[name]))},
        )
        for name, shape in gemm.misaligned.items()
        if name in names
    ]
