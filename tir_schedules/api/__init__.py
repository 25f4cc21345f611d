# pyright: strict
"""The library: what `import tir_schedules as ts` offers, and what the verbs of the command call."""
