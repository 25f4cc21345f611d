"""Matrix multiplication of float16 matrices, the algorithm the HGEMM ladder schedules."""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tir_schedules.errors import BadInput
from tir_schedules.model.launch import Dim3
from tir_schedules.model.workload import Arguments
from tir_schedules.workloads import ACCUMULATORS, LAYOUTS, array_of
from tir_schedules.workloads.drawing import EXACT, REALS, Draws
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.rounding import MANTISSA, SPREAD, TRUNCATION, bias, largest_exact, worst_growth

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

    from tir_schedules.model.workload import Workload

C_TYPES = {"float16": "half", "float32": "float"}
SCALES = {"float16": 2, "float32": 5}
"""Largest exponent of rows of A and columns of B by format of the accumulators: float16 ends at 65504."""
MOST_TERMS = 64
"""Terms that are not 0 in a float16 accumulator of reals: for each the tolerance is 2**-10 of its value."""
TELLING = 383
"""Integers up to this, odd ones above two thirds of it, have more bits than bfloat16 holds: rounding an
operand to that shows."""
VECTOR = 8  # halves in 16 bytes, the widest access


@dataclass(frozen=True)
class HalfGemm(Gemm):
    """C (m x n) = A (m x k) @ B (k x n), row-major, A and B float16; accumulators and C in `accumulate`,
    float16 or float32.

    layout: "nt", B is stored transposed, as n x k, so that a dot product reads rows of both matrices; or
    "nn", B is stored as k x n. Raises BadInput for another layout or accumulate, and for the sizes that Gemm
    refuses.
    """

    layout: str = "nt"
    accumulate: str = "float16"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layout not in LAYOUTS:
            raise BadInput(f"layout is {self.layout!r}; it can be {' or '.join(LAYOUTS)}")
        if self.accumulate not in ACCUMULATORS:
            raise BadInput(f"accumulate is {self.accumulate!r}; it can be {' or '.join(ACCUMULATORS)}")

    def __str__(self) -> str:
        return f"{super().__str__()} {self.layout} {self.accumulate}"

    @property
    def parameters(self) -> dict[str, str]:
        """What a kernel may take, and its C type."""
        return super().parameters | {
            "A": "const half*",
            "B": "const half*",
            "C": f"{C_TYPES[self.accumulate]}*",
        }

    @property
    def transposed(self) -> bool:
        """Whether B is stored as n x k."""
        return self.layout == "nt"

    @property
    def aligned(self) -> bool:
        """Whether every row of A, B and C starts on a multiple of 16 bytes, so that 16-byte accesses can take
        it."""
        return self.k % VECTOR == 0 and self.n % VECTOR == 0

    @property
    def macros(self) -> dict[str, str | int]:
        """What a twin must know of the workload when it is compiled, where it is not the default."""
        macros = {"NT": int(self.transposed), "ACC": C_TYPES[self.accumulate], "ALIGNED": int(self.aligned)}
        defaults = {"NT": 1, "ACC": "half", "ALIGNED": 1}
        return {name: value for name, value in macros.items() if value != defaults[name]}

    @property
    def bytes(self) -> int:
        """Compulsory global traffic in bytes: A and B read once, C written once."""
        size = np.dtype(self.accumulate).itemsize
        return 2 * (self.m * self.k + self.k * self.n) + size * self.m * self.n

    @property
    def result(self) -> str:
        """The format of C."""
        return self.accumulate

    def array_shapes(self, grid: Dim3) -> dict[str, tuple[int, ...]]:
        """As Gemm, of B as it is stored."""
        return super().array_shapes(grid) | ({"B": (self.n, self.k)} if self.transposed else {})

    def draws(self, seed: int = 0) -> list[tuple[str, int]]:
        """As Gemm. Where only some terms can differ from 0, so many inputs that for each k one differs."""
        return [*((EXACT, seed + turn) for turn in range(-(-self.classes // self.m))), (REALS, seed)]

    @property
    def classes(self) -> int:
        """Of how many k one has a term that is not 0, in a row of A: 1 unless so many would add up to too
        much for float16."""
        return -(-self.k // int((2 ** MANTISSA[self.accumulate] / SPREAD) ** 2))

    def arguments(self, seed: int = 0, xp: Any = np, kind: str = REALS) -> Arguments:
        """As Gemm, A and B in float16."""
        found = super().arguments(seed, xp, kind)
        a, b = array_of(found, "A"), array_of(found, "B")
        b = xp.ascontiguousarray(b.T) if self.transposed else b
        return found | {"A": a.astype("float16"), "B": b.astype("float16")}

    def integers(self, draws: Draws, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """A and B, integers without 0 and TELLING where there is room, or in every row of A one of `classes`
        of them."""
        largest, beside = (largest_exact(self.k, self.accumulate, others) for others in (0, 2 * TELLING))
        tells = self.accumulate == "float16" and self.k > 1 and beside > 0
        largest = beside if tells else largest
        one = max(int(largest**0.5), TELLING if largest >= TELLING else 1)
        one, other = (min(most, 2 ** MANTISSA["float16"]) for most in (one, largest // one or 1))
        a, b = self.taking_turns(draws, one, other)
        if tells:  # by one k in A, by another in B: float16 has no room for more
            xp, k = draws.xp, draws.xp.arange(self.k) - self.k // 2
            a = xp.where(
                k == 0, xp.sign(a) * draws.telling(TELLING, (self.m, 1)), xp.where(k == -1, xp.sign(a), a)
            )
            k = k[:, None]
            b = xp.where(
                k == -1, xp.sign(b) * draws.telling(TELLING, (1, self.n)), xp.where(k == 0, xp.sign(b), b)
            )
        if self.classes > 1:
            row, k = draws.xp.arange(self.m)[:, None], draws.xp.arange(self.k)
            a = a * ((k + row + seed * self.m) % self.classes == 0)
        return a, b

    def reals(self, draws: Draws) -> tuple[np.ndarray, np.ndarray]:
        """As Gemm. For float16 accumulators, MOST_TERMS terms of each are not 0 in the mean, and none is
        larger than they can add up."""
        terms = self.k if self.accumulate == "float32" else min(self.k, MOST_TERMS)
        a, b = self.scaled(draws, SCALES[self.accumulate], bias(terms))
        share = (terms / self.k) ** 0.5
        return (a, b) if share == 1 else (a * draws.kept(share, a.shape), b * draws.kept(share, b.shape))

    def matmul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """A @ B in float64, whatever the layout of b."""
        return super().matmul(a, b.T if self.transposed else b)

    def rounding(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """What accumulators of reals may be off by, even if every addition cuts off; adding 0 loses nothing.

        Terms are exact in float32, and in float16 err no more than an addition.
        """
        unit = TRUNCATION[self.accumulate]
        if self.accumulate == "float32":
            return worst_growth(self.k + 1, unit) * self.largest_sum(a, b)
        terms = (self.matmul(a != 0, b != 0) + 1) * unit
        return terms / (1 - terms) * self.largest_sum(a, b)

    def prim_func(self, name: str) -> PrimFunc:
        """The algorithm as a TensorIR PrimFunc with one block "C", entry point `name`."""
        named: Any = self.parsed().with_attr("global_symbol", name)  # TVM says: of the class of all functions
        return named

    @cache
    def parsed(self) -> PrimFunc:
        """The same without a name; TVM takes its time to parse it."""
        from tvm.script import tirx as T
        from tvm.tirx import FloatImm

        M, N, K, wide = self.m, self.n, self.k, self.accumulate
        b_shape = (N, K) if self.transposed else (K, N)
        zero = FloatImm(wide, 0.0)

        def cast(value: Any) -> Any:
            return T.Cast(wide, value) if wide != "float16" else value

        def of_b(k: Any, j: Any) -> tuple[Any, Any]:
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


if TYPE_CHECKING:  # holds it to the protocol
    CHECKED: type[Workload] = HalfGemm
