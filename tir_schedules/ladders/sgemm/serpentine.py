"""A thread's products in serpentine order.

An FMA takes three registers: two factors and a sum. The registers of a quarter of an SM are in two banks, and
each bank gives one operand per cycle. So an FMA takes one cycle only if one of its three operands is kept
from the FMA before. SASS marks that operand with `.reuse`. In `pipelined` a thread's FMA go down one column
of its part of C after the other. All FMA of a column share an element of B. But the next column begins at the
first row again, so both factors change there. Of 1024 FMA, 176 read three registers and take two cycles.

Here every second column goes up. So the last FMA of one column and the first of the next share an element of
A. Nothing else changes, and every sum adds its products in the same order. In the emitted CUDA look at the
index of the rows, for example `ax3 ^ ((ax7 & 1) * 3)`. In SASS 137 of 1024 FMA still read three registers.
Most of them follow a read of shared memory, because any other instruction ends the reuse. On an H200 this
rung is 2 % faster.

If all four loops reverse, the kernel is slower than `pipelined`: only 104 FMA read three registers, but nvcc
reads some fragments right before the FMA that need them. These FMA and these reads of fragments are counted
by `tir-schedules inspect sgemm/serpentine --arch sm_90`, with a model of the ports of the registers.

On an H200 four reversed loops are 1 % slower than `pipelined`.

On an H200 at 4096 and 8192 no other value of a field of Config was better. A tile of 64x128 is as fast. Rows
without padding cost 1 %. 16x8 elements per thread, or warp tiles of 32x128 or 128x32, cost 2 %. `bn=64` and
`bk=16` cost 7 %: there nvcc reads 11 of 48 fragments, or 18 of 96, right before FMA that need them, as
`inspect` shows. A threadblock swizzle of 2 to 16 columns cost 6 %; with it nvcc read 9 of 48 so late.

Measured on an H200 at 4096: 53.9 TFLOPS, 1.02 times the 52.8 of `pipelined`.
"""

from __future__ import annotations

from dataclasses import replace

from tir_schedules.ladders.sgemm import pipelined
from tir_schedules.ladders.sgemm.warp_tiles import Parts, WarpTiling
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.gemm import Gemm


def schedule(sch: Schedule, gemm: Gemm, config: pipelined.Config) -> None:
    reverse_rows(sch, config, pipelined.double_buffered(sch, gemm, config, config.padding))


def reverse_rows(sch: Schedule, config: WarpTiling, parts: Parts) -> None:
    """Rows of the thread tile go up in every second column."""
    rows = parts.fmas[-2:] if config.wmiter > 1 else parts.fmas[-1:]
    for place, loop in enumerate(rows, 1):
        sch.reverse_in_odd(loop, place)


RUNG = replace(
    pipelined.RUNG,
    name="serpentine",
    summary="a thread's FMA go down one column and up the next: each finds a factor still at hand",
    schedule=schedule,
)

if __name__ == "__main__":
    run_as_script(RUNG)
