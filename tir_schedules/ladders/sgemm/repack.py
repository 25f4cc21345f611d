"""A matrix in float32 copied so that its rows start on multiples of 16 bytes: the launch before `split_k`.

As that of the HGEMM ladder, of elements of 32 bits: a thread takes four neighbours.
"""

from __future__ import annotations

from dataclasses import replace

from tir_schedules.ladders.hgemm import repack

RUNG = replace(repack.RUNG, family="sgemm")
