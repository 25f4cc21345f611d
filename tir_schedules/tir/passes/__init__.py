"""Passes this project adds to TVM's lowering, for what schedule primitives and TVM's own passes do not
reach."""

UNROLL_STAGES = "tir_schedules.unroll_stages"
"""The annotation with which a schedule says how many stages of a pipelined loop are unrolled; see
unroll_stages.py."""

PARTIAL_GROUP = "tir_schedules.partial_group"
"""The annotation with which a schedule says how many columns of blocks a group of a threadblock swizzle has;
see partial_group.py."""
