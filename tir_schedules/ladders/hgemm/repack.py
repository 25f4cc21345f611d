"""A matrix copied so that its rows start on multiples of 16 bytes: the launch before `repacked`.

Rows of an odd number of elements start anywhere, so elements are loaded one by one. A thread takes as many
neighbours as 16 bytes have, all loads at once, and stores them together. The first load of a warp brings the
sectors that the others need, too: L1 serves these.
A warp takes 512 bytes of a row, a block those of eight rows.
"""

from __future__ import annotations

from tir_schedules.model.gpus import WARP
from tir_schedules.model.launch import Launch, ceil_div
from tir_schedules.model.rung import NoConfig, Preparation, Rung
from tir_schedules.tir.schedule import Schedule, bind
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.repacking import Repacking

ROWS = 8  # of a block, one for each warp


def launch(repacking: Repacking, config: NoConfig) -> Launch:
    blocks = ceil_div(repacking.height, ROWS) * ceil_div(repacking.pitch, repacking.vector * WARP)
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


def repackings_of(gemm: HalfGemm) -> list[Preparation]:
    """The launches that copy A and B of a GEMM, where their rows are no multiple of 16 bytes."""
    sizes = {"A": ("M", "K"), "B": ("N", "K") if gemm.transposed else ("K", "N")}
    return [
        Preparation(RUNG, Repacking(*shape), copying(name, sizes[name]))
        for name, shape in gemm.misaligned.items()
    ]


def copying(name: str, sizes: tuple[str, str]) -> dict[str, str]:
    """The arguments of a launch that copies a matrix to a workspace, by parameter. sizes: of its rows and
    columns."""
    return {"X": name, "Y": f"{name}_rows", **dict(zip(("ROWS", "COLUMNS"), sizes))}
