"""Counters, occupancy and roofline of kernels."""
