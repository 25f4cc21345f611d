"""Machines that execute compiled kernels: `cpu` runs the PTX on this computer; `gpu` runs the cubin; `choice`
picks one."""
