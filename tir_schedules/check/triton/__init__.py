"""Triton kernels on the CPU machine: Triton compiles them without a GPU, and findings and counters name the
lines of the Python file. `check_triton` of `import tir_schedules` takes arrays of numpy.

Triton is an extra: `pip install 'tir_schedules[triton]'`.
"""
