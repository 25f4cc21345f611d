"""Check a CUDA or PTX file of anybody's: run its kernels on given arguments, find their faults, count their
accesses. `check` of `import tir_schedules` does it from Python, `tir-schedules check` from a shell."""
