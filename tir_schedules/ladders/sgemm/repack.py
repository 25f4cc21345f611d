"""A matrix in float32 copied to whole tiles, the rest of which are zeros: the launch before `split_k`.

As that of the HGEMM ladder, of elements of 32 bits: a thread takes four neighbours.
"""

from __future__ import annotations

from dataclasses import replace

from tir_schedules.ladders.hgemm import repack
from tir_schedules.model.rung import Preparation
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.repacking import Repacking

RUNG = replace(repack.RUNG, family="sgemm", summary="a matrix copied to whole tiles, filled up with zeros")


def fillings_of(gemm: Gemm, whole: Gemm) -> list[Preparation]:
    """The launches that copy A and B of a GEMM to those of another that has whole tiles, where they are not
    whole already."""
    sizes = {"A": ("M", "K"), "B": ("K", "N")}
    return [
        Preparation(RUNG, Repacking(*shape, 32, *whole.stored[name]), repack.copying(name, sizes[name]))
        for name, shape in gemm.stored.items()
        if shape != whole.stored[name]
    ]
