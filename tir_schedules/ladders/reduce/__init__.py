"""Sum of an array, from divergent branches to the memory's bandwidth.

After article 002 ("Unrolling the Warp"): its sections 1 and 2 have the last three of the first six rungs, its
tables those before them; the others go beyond it.
"""

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
