"""General matrix multiplication C = A @ B, the algorithm every GEMM ladder schedules."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tir_schedules.errors import BadInput
from tir_schedules.workloads.drawing import Draws
from tir_schedules.workloads.rounding import growth

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc


@dataclass(frozen=True)
class Gemm:
    """C (m x n) = A (m x k) @ B (k x n), row-major float32, accumulated in float32.

    Raises BadInput for an extent below 1, or matrices of 2**31 elements or more.
    """

    m: int
    n: int
    k: int

    inputs = ("A", "B")
    outputs = ("C",)
    macros = {}

    def __post_init__(self):
        for name, extent in (("M", self.m), ("N", self.n), ("K", self.k)):
            if extent < 1:
                raise BadInput(f"{name} is {extent}; M, N and K must each be at least 1")
        if max(self.m * self.k, self.k * self.n, self.m * self.n) >= 2**31:
            raise BadInput(f"{self} is too large: each matrix must have fewer than 2**31 elements (32-bit indices)")

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"

    @property
    def flops(self) -> int:
        """Floating-point operations: one multiplication and one addition per (m, n, k)."""
        return 2 * self.m * self.n * self.k

    @property
    def bytes(self) -> int:
        """Least global traffic in bytes: A and B read once, C written once."""
        return 4 * (self.m * self.k + self.k * self.n + self.m * self.n)

    def arguments(self, seed: int = 0, xp: Any = np) -> dict[str, np.ndarray | int]:
        """What a kernel may ask for, by name: A and B uniform in [-1, 1), C filled with NaN, and the sizes M, N, K.

        xp: the array module that draws, numpy or cupy.
        """
        draws = Draws(seed, xp)
        return {
            "A": draws.uniform((self.m, self.k), "float32"),
            "B": draws.uniform((self.k, self.n), "float32"),
            "C": xp.full((self.m, self.n), np.nan, np.float32),
            "M": self.m,
            "N": self.n,
            "K": self.k,
        }

    def prepared(self, arguments, grid) -> dict[str, np.ndarray | int]:
        """Arguments of a launch: those of the workload."""
        return arguments

    def rest(self, grid) -> None:
        """What is left to do after a launch: nothing."""

    def truth(self, arguments) -> dict[str, np.ndarray]:
        """The exact product as float64 sees it."""
        return {"C": arguments["A"].astype(np.float64) @ arguments["B"].astype(np.float64)}

    def tolerance(self, arguments) -> dict[str, np.ndarray]:
        """Largest |error| of each element that float32 arithmetic can explain, in any order of summation.

        The rounding bound of an inner product, growth(k) * (|A| @ |B|).
        """
        magnitude = np.abs(arguments["A"]).astype(np.float64) @ np.abs(arguments["B"]).astype(np.float64)
        return {"C": growth(self.k) * magnitude}

    def prim_func(self, name: str) -> "PrimFunc":
        """The algorithm as a TensorIR PrimFunc with one block "C", entry point `name`."""
        from tvm.script import tirx as T

        M, N, K = self.m, self.n, self.k

        @T.prim_func(s_tir=True)
        def gemm(A: T.Buffer((M, K), "float32"), B: T.Buffer((K, N), "float32"), C: T.Buffer((M, N), "float32")):
            T.func_attr({"global_symbol": name, "tirx.noalias": True})
            for i, j, k in T.grid(M, N, K):
                with T.sblock("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        C[vi, vj] = T.float32(0)
                    C[vi, vj] += A[vi, vk] * B[vk, vj]

        return gemm
