"""Check a CUDA or PTX file of anybody's: run its kernels on given arguments, find their faults, count their
accesses. `tir_schedules.check.api.check` does it from Python, `tir-schedules check` from a shell."""
