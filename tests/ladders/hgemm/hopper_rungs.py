"""What half-precision GEMMs the tests of the rungs with Hopper's instructions are about."""

from tir_schedules.ladders.registry import every_rung, find, ladder
from tir_schedules.workloads.half_gemm import HalfGemm

ARCH = "sm_90a"
RUNGS = [rung for rung in every_rung("hgemm") if rung.arch]
LADDER = [rung for rung in ladder("hgemm") if rung.arch]
# test_hopper_stream_k.py has shapes, kinds and configurations of its own.
OTHERS = [rung for rung in RUNGS if rung.name != "stream_k"]

# Layout, sums, A and B, C: each of them at least once.
KINDS = (
    ("nt", "float16"),
    ("nn", "float32", "bfloat16", "bfloat16"),
    ("nt", "float32", "float16", "float16"),
    ("nn", "float32"),
    ("nn", "float16"),
)
# Nine K tiles along K: a ring of 3 or 4 stages goes round twice, and a second tile begins in another stage.
WHOLE = "384x256x576"
# Ragged along M, N and K, with rows that TMA takes.
RAGGED = "200x304x72"
# Tiles and programs: one tile for all, several tiles for each of one, two and five blocks.
FEW = ("persistent", "tma_store", "cluster", "repacked", "split_k")
PROGRAMS = (1, 2, 5)
# Whose rows TMA does not take; some of these rungs do not need it.
ODD = "129x127x65"
TAKES_ODD = ("wgmma", "wgmma_async", "repacked", "split_k")


def workload(shape, kind):
    """ "384x512x576" and ("nt", "float16")."""
    return HalfGemm(*map(int, shape.split("x")), *kind)


def limit_programs(rung, programs):
    """A rung whose grid has so many blocks at most, with small tiles."""
    (found,) = find(f"{rung.base_id}:128x128,programs={programs}")
    return found


def kind_of(rung):
    """One that the rung is tested in by default: every other rung has another one. The latest rung is counted
    last, so that what is recorded of the others stays."""
    names = [each.name for each in LADDER]
    names.append(names.pop(names.index("tile_shapes")))
    return KINDS[names.index(rung.name) % len(KINDS)]


def taken(rung, gemm):
    """Whether the rung has registers and shared memory for a workload."""
    return rung.refuses is None or not rung.refuses(gemm, rung.fitted(gemm).config)
