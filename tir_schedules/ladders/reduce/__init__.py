"""Sum of an array, from divergent branches to the memory's bandwidth.

The first six rungs follow article 002 ("Unrolling the Warp"). Its tables have the first three of these, and
its sections 1 and 2 have the last three. The article does not have the other rungs.
"""

from tir_schedules.model.ladder import BANDWIDTH, Kind, Ladder

LADDER = Ladder(
    "reduce",
    (
        "divergent",
        "interleaved",
        "sequential",
        "first_add",
        "unrolled_warp",
        "unrolled",
        "shuffle",
        "cross_thread",
        "vectorized",
        "single_pass",
        "bulk",
    ),
    workload="tir_schedules.workloads.reduction:Reduction",
    extents=("N",),
    sizes="elements",
    shape=(1 << 16,),
    shapes={
        "emit": ((1 << 25,),),
        # Whole blocks in every launch; ragged, and divisible by 4 or not.
        "run": ((1 << 18,), (70004,), (4099,)),
        "bench": ((1 << 20,), (1 << 25,), (1 << 28,)),
        "time": ((1 << 25,),),
        "largest": ((1 << 25,),),
    },
    kinds={"dtype": Kind(("int32", "float32"), "int32 or float32", "what the rung is for")},
    offered=lambda rung: {"dtype": rung.dtypes},
    models="tir_schedules.ladders.reduce.models:MODELS",
    vendor="CUB",
    unit=BANDWIDTH,
    limit="copy bandwidth",
)
