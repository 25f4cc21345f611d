"""What a command is about: the algorithm of a ladder on one shape, of one kind."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """ladder: "sgemm", "reduce" or "hgemm". shape: (M, N, K), or (N,) of a reduction.

    dtype: of reduce, "int32" or "float32". layout: of hgemm, "nt" or "nn". accumulate: of hgemm, "float16" or
    "float32". None leaves it open: a command about one workload takes what the rung has first, one about
    several takes all that it has.
    """

    ladder: str
    shape: tuple[int, ...]
    dtype: str | None = None
    layout: str | None = None
    accumulate: str | None = None
