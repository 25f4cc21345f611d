"""Kernels from outside: verified, counted and explained without a GPU."""
