"""General matrix multiplication C = A @ B, the algorithm every GEMM ladder schedules."""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tir_schedules.errors import BadInput
from tir_schedules.model.launch import Dim3
from tir_schedules.model.workload import Arguments
from tir_schedules.workloads import (
    LAYOUTS,
    MOST,
    MOST_ELEMENTS,
    array_of,
    element_type,
    in_lines,
    padded,
    place_in_b,
)
from tir_schedules.workloads.drawing import EXACT, REALS, ZEROS, Draws
from tir_schedules.workloads.partial_sums import PartialSums
from tir_schedules.workloads.rounding import SPREAD, bias, growth, largest_exact

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

    from tir_schedules.model.workload import Workload

OCTAVES = 2
"""Reals of a row of A, or of a column of B, differ by up to this many powers of two in either direction."""

SCALES = 20
"""Rows of A and columns of B differ by up to so many more."""

TELLING = 4095
"""Integers up to this have more bits than float16 and TF32 hold: rounding an operand to those shows."""


def alternating(xp: Any, extent: int) -> np.ndarray:
    """1, -1, 1 and so on in float32: signs of rows and columns.

    So elements of C have either sign, though the terms of one agree in theirs.
    """
    return (1 - 2 * (xp.arange(extent) % 2)).astype("float32")


@dataclass(frozen=True)
class Gemm:
    """C (m x n) = A (m x k) @ B (k x n), row-major float32, accumulated in float32.

    layout: "nn", B is stored as k x n; or "nt", transposed, as n x k. Raises BadInput for another, for an
    extent below 1 or from MOST on, and for matrices of 2**31 elements or more.
    """

    m: int
    n: int
    k: int
    layout: str = field(default="nn", kw_only=True)

    inputs = ("A", "B")
    outputs = ("C",)
    dtype = result = products = "float32"
    vector = 4  # elements in 16 bytes, the widest access

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            raise BadInput(f"layout is {self.layout!r}; it can be {' or '.join(LAYOUTS)}")
        for name, extent in (("M", self.m), ("N", self.n), ("K", self.k)):
            if extent < 1:
                raise BadInput(f"{name} is {extent}; M, N and K must each be at least 1")
            if extent >= MOST:
                raise BadInput(
                    f"{name} is {extent}; M, N and K must each be below 2**31 - 2**16 (32-bit indices)"
                )
        if max(self.m * self.k, self.k * self.n, self.m * self.n) >= MOST_ELEMENTS:
            raise BadInput(
                f"{self} is too large: each matrix must have fewer than 2**31 elements (32-bit indices)"
            )

    def __str__(self) -> str:
        """Such as "64x64x64", "64x64x64 nt": the layout where it is not nn."""
        return f"{self.sizes} {self.layout}" if self.transposed else self.sizes

    @property
    def sizes(self) -> str:
        """Such as "64x64x64"."""
        return f"{self.m}x{self.n}x{self.k}"

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.m, self.n, self.k

    @property
    def parameters(self) -> dict[str, str]:
        """What a kernel may take, and its C type."""
        return {"A": "const float*", "B": "const float*", "C": "float*", "M": "int", "N": "int", "K": "int"}

    @property
    def flops(self) -> int:
        """Floating-point operations: one multiplication and one addition per (m, n, k)."""
        return 2 * self.m * self.n * self.k

    @property
    def bytes(self) -> int:
        """Compulsory global traffic in bytes: A and B read once, C written once."""
        return 4 * (self.m * self.k + self.k * self.n + self.m * self.n)

    @property
    def transposed(self) -> bool:
        """Whether B is stored as n x k."""
        return self.layout == "nt"

    @property
    def macros(self) -> dict[str, str | int]:
        """What a twin must know of the workload when it is compiled, where it is not the default."""
        return {"NT": 1} if self.transposed else {}

    @property
    def stored(self) -> dict[str, tuple[int, int]]:
        """Rows and columns of A and B as they are stored."""
        return {"A": (self.m, self.k), "B": place_in_b(self.k, self.n, self.transposed)}

    @property
    def misaligned(self) -> dict[str, tuple[int, int]]:
        """Those whose rows are not a multiple of 16 bytes, which a rung may copy to rows that are."""
        return {name: shape for name, shape in self.stored.items() if shape[1] % self.vector}

    @property
    def workspaces(self) -> tuple[str, ...]:
        """None: where a rung copies A or B, its launch says to what."""
        return ()

    @property
    def part_pitch(self) -> int:
        """Elements of a row of a part of C, in float32: filled up to a multiple of 16 bytes."""
        return padded(self.n, Gemm.vector)

    def array_shapes(self, grid: Dim3) -> dict[str, tuple[int, ...]]:
        """Shapes of A, B and C, and of workspaces. C has a matrix for each part of K that blocks along z
        take, with padded rows. Rows of workspaces are whole lines of L2."""
        rows = self.stored | {"C": (self.m, self.n)}
        parts = {"C": (grid[2], self.m, self.part_pitch)} if grid[2] > 1 else {}
        return rows | parts | self.workspace_shapes(rows)

    def workspace_shapes(self, rows: dict[str, tuple[int, int]]) -> dict[str, tuple[int, ...]]:
        """Shapes of workspaces. rows: rows and columns of A, B and C."""
        copies = {name: rows[name.removesuffix("_rows")] for name in self.workspaces}
        return {name: (height, in_lines(width, self.vector)) for name, (height, width) in copies.items()}

    def workspace_type(self, name: str) -> str:
        """The format of a workspace: of a copy that of the matrix."""
        return self.result if name.startswith("C") else self.dtype

    def draws(self, seed: int = 0) -> list[tuple[str, int]]:
        """Kinds and seeds of the inputs that a kernel is verified with."""
        return [(EXACT, seed), (REALS, seed)]

    def arguments(self, seed: int = 0, xp: Any = np, kind: str = REALS) -> Arguments:
        """What a kernel may ask for, by name: A and B of a kind of inputs, C and workspaces filled with NaN,
        and the sizes M, N, K.

        xp: the array module that draws, numpy or cupy.
        """
        draws = Draws(seed, xp)
        if kind == ZEROS:
            a, b = xp.zeros((self.m, self.k), np.float32), xp.zeros((self.k, self.n), np.float32)
        else:
            a, b = self.integers(draws, seed) if kind == EXACT else self.reals(draws)
            a = a * (alternating(xp, self.m)[:, None] * (-1 if kind == EXACT else 1))
            b = b * alternating(xp, self.n)
        b = xp.ascontiguousarray(b.T) if self.transposed else b
        shapes = self.array_shapes((1, 1, 1))
        types = {"C": self.result} | {name: self.workspace_type(name) for name in self.workspaces}
        return {
            "A": a,
            "B": b,
            **{name: xp.full(shapes[name], np.nan, element_type(kind)) for name, kind in types.items()},
            "M": self.m,
            "N": self.n,
            "K": self.k,
        }

    def integers(self, draws: Draws, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """A and B, integers without 0, TELLING where there is room: for one k those of A, for the next those
        of B."""
        largest = largest_exact(self.k, "float32")
        one = min(largest, max(TELLING, int(largest**0.5)))
        return self.taking_turns(draws, one, largest // one)

    def taking_turns(self, draws: Draws, one: int, other: int) -> tuple[np.ndarray, np.ndarray]:
        """Integers without 0: for even k up to `one` in A and `other` in B, for odd k the other way round."""
        even, odds = draws.xp.arange(self.k) % 2 == 0, bias(self.k) ** 0.5
        a, others = (draws.integers(largest, (self.m, self.k), "float32", odds) for largest in (one, other))
        a = draws.xp.where(even, a, others)
        b, others = (draws.integers(largest, (self.k, self.n), "float32", odds) for largest in (other, one))
        return a, draws.xp.where(even[:, None], b, others)

    def reals(self, draws: Draws) -> tuple[np.ndarray, np.ndarray]:
        """A and B over a wide range, so that each element of C is a sum of terms of about one magnitude, far
        from 0."""
        return self.scaled(draws, SCALES, bias(self.k))

    def scaled(self, draws: Draws, scales: int, sign_bias: float) -> tuple[np.ndarray, np.ndarray]:
        """Reals in float32. scales: largest exponent of a row of A and of a column of B. sign_bias: of the
        signs of terms."""
        odds = sign_bias**0.5
        a = draws.reals(OCTAVES, (self.m, self.k), odds) * draws.powers(scales, (self.m, 1))
        b = draws.reals(OCTAVES, (self.k, self.n), odds) * draws.powers(scales, (1, self.n))
        return a, b

    def prepared(self, arguments: Arguments, grid: Dim3) -> Arguments:
        """Arguments of a launch: those of the workload. Where blocks along z take parts of K, C has a matrix
        for each; the launch after that takes them as S."""
        c, shape = array_of(arguments, "C"), self.array_shapes(grid)["C"]
        given = {"S": c, "PARTS": len(c)} if c.ndim > len(shape) else {}
        if c.shape == shape:
            return arguments
        return arguments | given | {"C": np.full_like(c, np.nan, shape=shape)}

    def rest(self, grid: Dim3) -> PartialSums | None:
        """What is left to do after a launch: to add up the sums of parts of K, where there are several blocks
        along z."""
        return PartialSums(self.m, self.n, grid[2], self.result) if grid[2] > 1 else None

    def matmul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """A @ B in float64, of B as it is stored."""
        b = b.T if self.transposed else b
        return a.astype(np.float64, copy=False) @ b.astype(np.float64, copy=False)

    def truth(self, arguments: Arguments) -> dict[str, np.ndarray]:
        """C in float64, exact as far as float64 is."""
        return {"C": self.matmul(array_of(arguments, "A"), array_of(arguments, "B"))}

    def tolerance(self, arguments: Arguments, kind: str = REALS) -> dict[str, np.ndarray | float]:
        """Largest |error| of each element that arithmetic can explain, in any order of summation; 0 for exact
        inputs.

        arguments: with signs at random, as `arguments` draws them.
        """
        if kind == EXACT:
            return {"C": 0.0}
        a, b = (array_of(arguments, name).astype(np.float64) for name in self.inputs)
        return {"C": self.rounding(a, b)}

    def rounding(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """What float32 accumulators of reals may be off by: the rounding bound of a dot product, with the
        largest partial sum in it."""
        return growth(self.k) * self.largest_sum(a, b)

    def largest_sum(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """What no partial sum exceeds: the sum of magnitudes, or SPREAD 2-norms of the terms where that is
        less."""
        return np.minimum(self.matmul(np.abs(a), np.abs(b)), SPREAD * np.sqrt(self.matmul(a * a, b * b)))

    def prim_func(self, name: str) -> PrimFunc:
        """The algorithm as a TensorIR PrimFunc with one block "C", entry point `name`."""
        from tvm.script import tirx as T

        M, N, K = self.m, self.n, self.k
        b_shape, transposed = self.stored["B"], self.transposed

        @T.prim_func(s_tir=True)
        def gemm(
            A: T.Buffer((M, K), "float32"), B: T.Buffer(b_shape, "float32"), C: T.Buffer((M, N), "float32")
        ):
            T.func_attr({"global_symbol": name, "tirx.noalias": True})
            for i, j, k in T.grid(M, N, K):
                with T.sblock("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    row, column = T.meta_var(place_in_b(vk, vj, transposed))
                    with T.init():
                        C[vi, vj] = T.float32(0)
                    C[vi, vj] += A[vi, vk] * B[row, column]

        return gemm


if TYPE_CHECKING:  # holds it to the protocol
    CHECKED: type[Workload] = Gemm
