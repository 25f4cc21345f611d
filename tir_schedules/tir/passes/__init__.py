"""Passes this project adds to TVM's lowering, for what schedule primitives and TVM's own passes do not
reach."""

UNROLL_STAGES = "tir_schedules.unroll_stages"
"""The annotation with which a schedule says how many stages of a pipelined loop are unrolled; see
unroll_stages.py."""

COPIES_FIRST = "tir_schedules.copies_first"
"""The annotation with which a schedule says that copies of later tiles stay in front of the work; see
copies_after_compute.py and late_waits.py."""

PARTIAL_GROUP = "tir_schedules.partial_group"
"""The annotation with which a schedule says how many columns of blocks a group of a threadblock swizzle has;
see partial_group.py."""

TURNS = "tir_schedules.turns"
"""The annotation with which a schedule says that a loop turns round, and by the rounds of which loop around
it: 1 is the next, 2 the one around that; see turning_products.py."""
