"""Matrix multiplication of float16 matrices, the algorithm the HGEMM ladder schedules."""
from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tir_schedules.errors import BadInput
from tir_schedules.workloads import ACCUMULATORS, LAYOUTS
from tir_schedules.workloads.drawing import Draws
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.rounding import TRUNCATION, worst_growth

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

C_TYPES = {"float16": "half", "float32": "float"}
EXACT = 2048
"""Integers up to this are exact in float16, and so is every sum of some whose magnitudes add up to no more."""
VECTOR = 8  # halves in 16 bytes, the widest access


@dataclass(frozen=True)
class HalfGemm(Gemm):
    """C (m x n) = A (m x k) @ B (k x n), row-major, A and B float16; sums and C in `accumulate`, float16 or float32.

    layout: "nt", B is stored transposed, as n x k, so that a dot product reads rows of both matrices; or "nn", B is stored as k x n.
    Raises BadInput for another layout or accumulate, and for the sizes that Gemm refuses.
    """

    layout: str = "nt"
    accumulate: str = "float16"

    def __post_init__(self):
        super().__post_init__()
        if self.layout not in LAYOUTS:
            raise BadInput(f"layout is {self.layout!r}; it can be {' or '.join(LAYOUTS)}")
        if self.accumulate not in ACCUMULATORS:
            raise BadInput(f"accumulate is {self.accumulate!r}; it can be {' or '.join(ACCUMULATORS)}")

    def __str__(self) -> str:
        return f"{super().__str__()} {self.layout} {self.accumulate}"

    @property
    def transposed(self) -> bool:
        """Whether B is stored as n x k."""
        return self.layout == "nt"

    @property
    def aligned(self) -> bool:
        """Whether every row of A, B and C starts on a multiple of 16 bytes, so that 16-byte accesses can take it."""
        return self.k % VECTOR == 0 and self.n % VECTOR == 0

    @property
    def macros(self) -> dict[str, str | int]:
        """What a twin must know of the workload when it is compiled, where it is not the default."""
        macros = {"NT": int(self.transposed), "ACC": C_TYPES[self.accumulate], "ALIGNED": int(self.aligned)}
        defaults = {"NT": 1, "ACC": "half", "ALIGNED": 1}
        return {name: value for name, value in macros.items() if value != defaults[name]}

    @property
    def bytes(self) -> int:
        """Least global traffic in bytes: A and B read once, C written once."""
        size = np.dtype(self.accumulate).itemsize
        return 2 * (self.m * self.k + self.k * self.n) + size * self.m * self.n

    def arguments(self, seed: int = 0, xp: Any = np) -> dict[str, np.ndarray | int]:
        """What a kernel may ask for, by name: A and B, C filled with NaN, and the sizes M, N, K.

        For float32 accumulation A and B are uniform in [-1, 1): what float16 accumulation would lose is far above the
        tolerance. For float16 accumulation they are integers so small that every partial sum is exact in any order.
        xp: the array module that draws, numpy or cupy.
        """
        draws = Draws(seed, xp)
        draw = self.real if self.accumulate == "float32" else self.integer
        return {
            "A": draw(draws, (self.m, self.k)),
            "B": draw(draws, (self.n, self.k) if self.transposed else (self.k, self.n)),
            "C": xp.full((self.m, self.n), np.nan, self.accumulate),
            "M": self.m,
            "N": self.n,
            "K": self.k,
        }

    def real(self, draws: Draws, shape: tuple[int, int]) -> np.ndarray:
        return draws.uniform(shape, "float16")

    def integer(self, draws: Draws, shape: tuple[int, int]) -> np.ndarray:
        """Integers up to r with k * r * r <= EXACT; for a longer k -1, 0 and 1, so few ones that about EXACT / 2 products are not 0."""
        largest = int((EXACT / self.k) ** 0.5)
        if largest:
            return draws.integers(largest, shape, "float16")
        return draws.signs((EXACT / 2 / self.k) ** 0.5, shape, "float16")

    def product(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The product in float64, whatever the layout of b."""
        a, b = a.astype(np.float64), b.astype(np.float64)
        return a @ (b.T if self.transposed else b)

    def truth(self, arguments) -> dict[str, np.ndarray]:
        """The exact product as float64 sees it."""
        return {"C": self.product(arguments["A"], arguments["B"])}

    def tolerance(self, arguments) -> dict[str, np.ndarray]:
        """Largest |error| of each element that arithmetic in `accumulate` can explain, in any order and if sums are cut off.

        0 where nothing is lost: A and B are integers and no sum can exceed EXACT. Else worst_growth(k) * (|A| @ |B|), for
        products are exact in float32, and in float16 err no more than a sum.
        """
        a, b = (np.abs(arguments[name]) for name in self.inputs)
        magnitude = self.product(a, b)
        allowed = worst_growth(self.k + 1, TRUNCATION[self.accumulate]) * magnitude
        if all(np.array_equal(array, np.rint(array)) for array in (a, b)):
            allowed = np.where(magnitude <= EXACT, 0.0, allowed)
        return {"C": allowed}

    def prim_func(self, name: str) -> "PrimFunc":
        """The algorithm as a TensorIR PrimFunc with one block "C", entry point `name`."""
        return self.parsed().with_attr("global_symbol", name)

    @cache
    def parsed(self) -> "PrimFunc":
        """The same without a name; TVM takes its time to parse it."""
        from tvm.script import tirx as T
        from tvm.tirx import FloatImm

        M, N, K, wide = self.m, self.n, self.k, self.accumulate
        b_shape = (N, K) if self.transposed else (K, N)
        zero = FloatImm(wide, 0.0)

        def cast(value):
            return T.Cast(wide, value) if wide != "float16" else value

        def of_b(k, j):
            return (j, k) if self.transposed else (k, j)

        @T.prim_func(s_tir=True)
        def gemm(A: T.Buffer((M, K), "float16"), B: T.Buffer(b_shape, "float16"), C: T.Buffer((M, N), wide)):
            T.func_attr({"tirx.noalias": True})
            for i, j, k in T.grid(M, N, K):
                with T.sblock("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    row, column = T.meta_var(of_b(vk, vj))
                    with T.init():
                        C[vi, vj] = zero
                    C[vi, vj] += cast(A[vi, vk]) * cast(B[row, column])

        return gemm
