"""Sum of an array, from divergent branches to the memory's bandwidth (article 002 and beyond)."""

LADDER = (
    "divergent",
    "interleaved",
    "sequential",
    "first_add",
    "unrolled_warp",
    "unrolled",
    "shuffle",
    "cross_thread",
    "vectorized",
)
