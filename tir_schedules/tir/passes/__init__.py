"""Passes this project adds to TVM's lowering, for what schedule primitives and TVM's own passes do not
reach."""

RING = "tir_schedules.ring"
"""The annotation with which a schedule says how many places the ring of a pipelined loop has; see
unroll_ring."""
