"""Machines that execute compiled kernels: `cpu` runs the PTX on this computer; a GPU machine runs the cubin."""
