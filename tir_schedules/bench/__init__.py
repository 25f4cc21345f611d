"""Timing kernels on a GPU: what is timed, how, and what becomes of the results."""
