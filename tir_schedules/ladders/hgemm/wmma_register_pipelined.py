"""Fragments double buffered in registers.

There are two sets of fragments: while the tensor cores multiply one, the other is loaded for the next 16 of
K, the first ones of a tile while the last ones of the tile before are multiplied. Two loops are pipelined,
the one over k steps within the one over tiles. The order of a turn is the article's: second fragments of the
tile, first products, copy of the tile two ahead, wait, barrier, first fragments of the next tile, last
products. Look for fragment arrays of 8, of which 0 to 3 and 4 to 7 take turns.

InjectSoftwarePipeline offers no order that is both right and this one: see passes/copies_after_products.py.
And it finds a tile's place in the ring by a division, for every address anew. Here as many turns of the loop
are written out as the ring has places, so that places are constants: look for `k_0_turn` in the loop over
rounds, and see passes/unroll_ring.py. With sums in float32, which leave few registers for addresses, that is
worth a tenth of the time.
"""

from __future__ import annotations

from tir_schedules.ladders.hgemm import steps, wmma_padded, wmma_pipelined
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.passes import RING
from tir_schedules.tir.pipelining import pipeline
from tir_schedules.workloads.half_gemm import HalfGemm

Config = wmma_pipelined.Config
launch = wmma_pipelined.launch


def schedule(sch, gemm: HalfGemm, config: Config, **how) -> steps.Parts:
    """how: see wmma_padded.schedule."""
    parts = wmma_padded.schedule(sch, gemm, config, **how)
    load_a, load_b, products = 0, 0, 1
    pipeline(sch, parts.k_step, stage=[load_a, load_b, products], order=[0, 1, 2])
    # In the loop over tiles this makes three statements of one: first loads, products of all k steps but the
    # last, those of the last.
    copy_a, copy_b, loads, products, last = 0, 0, config.stages - 2, config.stages - 1, config.stages - 1
    stage = [copy_a, copy_b, loads, products, last]
    pipeline(sch, parts.k_tile, stage, order=[0, 1, 3, 2, 4], asynchronous=[0])
    sch.annotate(parts.k_tile, RING, config.stages)
    return parts


RUNG = Rung(
    family="hgemm",
    name="wmma_register_pipelined",
    summary="two sets of fragments: one is loaded while the other is multiplied",
    article="001, three-level pipeline",
    config=Config(),
    shapes=wmma_pipelined.RUNG.shapes,
    schedule=schedule,
    launch=launch,
    min_arch=80,
    pass_config=wmma_pipelined.RUNG.pass_config,
    passes=("copies_after_products", "unroll_ring", *wmma_pipelined.RUNG.passes),
)

if __name__ == "__main__":
    run_as_script(RUNG)
