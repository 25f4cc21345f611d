"""Matrix multiplication of matrices in 16-bit formats, the algorithm the HGEMM ladder schedules."""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import log2
from typing import TYPE_CHECKING, Any

import numpy as np

from tir_schedules.errors import BadInput
from tir_schedules.model.launch import Dim3
from tir_schedules.model.workload import Arguments
from tir_schedules.workloads import (
    ACCUMULATORS,
    C_TYPES,
    OPERANDS,
    RESULTS,
    array_of,
    element_type,
    place_in_b,
)
from tir_schedules.workloads.drawing import EXACT, REALS, Draws
from tir_schedules.workloads.gemm import OCTAVES, SCALES, Gemm
from tir_schedules.workloads.rounding import (
    LARGEST,
    MANTISSA,
    SPREAD,
    TRUNCATION,
    bias,
    half_spacing,
    largest_exact,
    worst_growth,
)

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

    from tir_schedules.model.workload import Workload

HALF_SCALES = {"float16": 2, "float32": 5}
"""Largest exponent of rows of A and columns of B in float16 by format of the accumulators: float16 ends at
65504."""
MOST_TERMS = 64
"""Terms that are not 0 in a float16 accumulator of reals: for each the tolerance is 2**-10 of its value."""
TELLING = 383
"""Integers up to this, odd ones above two thirds of it, have more bits than bfloat16 holds: rounding an
operand to that shows."""
VECTOR = 8  # halves in 16 bytes, the widest access


@dataclass(frozen=True)
class HalfGemm(Gemm):
    """C (m x n) = A (m x k) @ B (k x n), row-major.

    layout: "nt", B is stored transposed, as n x k, so that a dot product reads rows of both matrices; or
    "nn", B is stored as k x n. dtype: format of A and B, "float16" or "bfloat16". accumulate: that of the
    sums, "float16" or "float32". output: that of C; "" stands for that of the sums, and is replaced by it.

    Sums in float16 are of float16 and stay float16. Sums in float32 may be rounded once, at the end, to the
    format of A and B: what cuBLAS, CUTLASS and papers mean by HGEMM. Raises BadInput for anything else, and
    for the sizes that Gemm refuses.
    """

    layout: str = "nt"
    accumulate: str = "float16"
    dtype: str = "float16"
    output: str = ""

    vector = VECTOR

    def __post_init__(self) -> None:
        super().__post_init__()
        for what, value, values in (
            ("accumulate", self.accumulate, ACCUMULATORS),
            ("dtype", self.dtype, OPERANDS),
            ("the format of C", self.output or self.accumulate, RESULTS),
        ):
            if value not in values:
                raise BadInput(f"{what} is {value!r}; it can be {' or '.join(values)}")
        object.__setattr__(self, "output", self.output or self.accumulate)
        if self.dtype == "bfloat16" and self.accumulate != "float32":
            raise BadInput(
                f"accumulate is {self.accumulate!r}; of bfloat16 matrices it can be float32, which is what"
                " tensor cores add them up in"
            )
        possible = ("float16",) if self.accumulate == "float16" else ("float32", self.dtype)
        if self.output not in possible:
            raise BadInput(
                f"the format of C is {self.output!r}; of {self.dtype} matrices added up in {self.accumulate}"
                f" it can be {' or '.join(possible)}"
            )

    def __str__(self) -> str:
        """Such as "64x64x64 nt float16", "64x64x64 nn bfloat16 float32 to bfloat16": the format of A and B
        where it is not float16, that of the sums, that of C where it is another."""
        operands = "" if self.dtype == "float16" else f" {self.dtype}"
        rounded = f" to {self.output}" if self.rounds else ""
        return f"{self.sizes} {self.layout}{operands} {self.accumulate}{rounded}"

    @property
    def parameters(self) -> dict[str, str]:
        """What a kernel may take, and its C type."""
        return super().parameters | {
            "A": f"const {C_TYPES[self.dtype]}*",
            "B": f"const {C_TYPES[self.dtype]}*",
            "C": f"{C_TYPES[self.result]}*",
        }

    @property
    def aligned(self) -> bool:
        """Whether every row of A, B and C starts on a multiple of 16 bytes, so that 16-byte accesses can take
        it."""
        return self.k % VECTOR == 0 and self.n % VECTOR == 0

    @property
    def c_aligned(self) -> bool:
        """Whether every row of C starts on a multiple of 16 bytes, so that TMA can write it."""
        return self.n * element_type(self.result).itemsize % 16 == 0

    @property
    def workspaces(self) -> tuple[str, ...]:
        """For copies of misaligned matrices: "A_rows" and "B_rows"."""
        return tuple(f"{name}_rows" for name in self.misaligned)

    def prepared(self, arguments: Arguments, grid: Dim3) -> Arguments:
        """As Gemm; parts of C are in float32."""
        before, given = array_of(arguments, "C"), super().prepared(arguments, grid)
        if given is arguments:
            return arguments
        kind = element_type("float32" if grid[2] > 1 else self.result)
        return given | {"C": np.full_like(before, np.nan, kind, shape=array_of(given, "C").shape)}

    @property
    def macros(self) -> dict[str, str | int]:
        """What a twin must know of the workload when it is compiled, where it is not the default: IN is the
        type of A and B, ACC that of the sums, OUT that of C, by default ACC. C_ALIGNED: 1 if rows of C are
        multiples of 16 bytes."""
        sums = C_TYPES[self.accumulate]
        macros = {
            "NT": int(self.transposed),
            "ACC": sums,
            "ALIGNED": int(self.aligned),
            "C_ALIGNED": int(self.c_aligned),
            "IN": C_TYPES[self.dtype],
            "OUT": C_TYPES[self.result],
        }
        defaults = {"NT": 1, "ACC": "half", "ALIGNED": 1, "C_ALIGNED": 1, "IN": "half", "OUT": sums}
        return {name: value for name, value in macros.items() if value != defaults[name]}

    @property
    def bytes(self) -> int:
        """Compulsory global traffic in bytes: A and B read once, C written once."""
        size = element_type(self.result).itemsize
        return 2 * (self.m * self.k + self.k * self.n) + size * self.m * self.n

    @property
    def result(self) -> str:
        """The format of C."""
        return self.output

    @property
    def rounds(self) -> bool:
        """Whether C is in another format than the sums."""
        return self.output != self.accumulate

    def draws(self, seed: int = 0) -> list[tuple[str, int]]:
        """As Gemm. Where only some terms can differ from 0, so many inputs that for each k one differs."""
        return [*((EXACT, seed + turn) for turn in range(-(-self.classes // self.m))), (REALS, seed)]

    @property
    def classes(self) -> int:
        """In a row of A one of so many k has a term that is not 0. It is 1 unless all terms would add up to
        too much for float16."""
        return -(-self.k // int((2 ** MANTISSA[self.accumulate] / SPREAD) ** 2))

    def arguments(self, seed: int = 0, xp: Any = np, kind: str = REALS) -> Arguments:
        """As Gemm, A and B in their format."""
        found = super().arguments(seed, xp, kind)
        a, b = array_of(found, "A"), array_of(found, "B")
        operands = element_type(self.dtype)
        return found | {"A": a.astype(operands), "B": b.astype(operands)}

    def integers(self, draws: Draws, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """A and B, integers without 0 and TELLING where there is room, or in every row of A one of `classes`
        of them."""
        if self.rounds:
            return self.cancelling(draws)
        largest, beside = (largest_exact(self.k, self.accumulate, others) for others in (0, 2 * TELLING))
        tells = self.accumulate == "float16" and self.k > 1 and beside > 0
        largest = beside if tells else largest
        one = max(int(largest**0.5), TELLING if largest >= TELLING else 1)
        one, other = (min(most, 2 ** MANTISSA[self.dtype]) for most in (one, largest // one or 1))
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

    def cancelling(self, draws: Draws) -> tuple[np.ndarray, np.ndarray]:
        """A and B, integers without 0, whose product C is exact in its format, though partial sums are too
        large for any format below float32.

        The k are paired at random. Of a pair the rows of B agree, and the columns of A cancel each other;
        in each row of A one pair leaves 1 times the row of B. A k without a partner adds 1 or -1.
        """
        xp, k, pairs = draws.xp, self.k, self.k // 2
        largest = largest_exact(k, self.accumulate)
        one = max(int(largest**0.5), min(TELLING, largest))
        most = 2 ** min(MANTISSA[self.dtype], MANTISSA[self.result]) - 1
        one = max(1, min(one, most))
        a, b = self.taking_turns(draws, one, max(1, min(largest // (one + 1), most)))
        order = xp.argsort(draws.rng.random(k, np.float32))
        first, second, last = order[:pairs], order[pairs : 2 * pairs], order[2 * pairs :]
        a[:, second], b[second] = -a[:, first], b[first]
        a[:, last], b[last] = xp.sign(a[:, last]), xp.sign(b[last])
        if pairs:
            row = xp.arange(self.m)
            left = second[row % pairs]
            a[row, left] = a[row, left] + xp.sign(a[row, left])
        return a, b

    def reals(self, draws: Draws) -> tuple[np.ndarray, np.ndarray]:
        """As Gemm. For float16 accumulators, MOST_TERMS terms of each are not 0 in the mean, and none is
        larger than they can add up."""
        terms = self.k if self.accumulate == "float32" else min(self.k, MOST_TERMS)
        a, b = self.scaled(draws, self.scales, bias(terms))
        share = (terms / self.k) ** 0.5
        return (a, b) if share == 1 else (a * draws.kept(share, a.shape), b * draws.kept(share, b.shape))

    @property
    def scales(self) -> int:
        """Largest exponent of rows of A and columns of B. Where float32 sums become a C in float16, no sum
        exceeds what that holds."""
        if self.dtype == "bfloat16":
            return SCALES  # its range is that of float32
        if not self.rounds:
            return HALF_SCALES[self.accumulate]
        terms = min(4.0**OCTAVES * self.k, SPREAD * 2.0**OCTAVES * self.k**0.5)  # largest sum without scales
        return max(0, min(HALF_SCALES[self.accumulate], int(log2(LARGEST[self.result] / terms) / 2)))

    def rounding(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """What C of reals may be off by, even if every addition of the accumulators cuts off; adding 0 loses
        nothing. A C in another format is rounded to the nearest once.

        Terms are exact in float32, and in float16 err no more than an addition.
        """
        unit = TRUNCATION[self.accumulate]
        if self.accumulate == "float32":
            sums = worst_growth(self.k + 1, unit) * self.largest_sum(a, b)
            if not self.rounds:
                return sums
            return sums + half_spacing(np.abs(self.matmul(a, b)) + sums, self.result)
        terms = (self.matmul(a != 0, b != 0) + 1) * unit
        return terms / (1 - terms) * self.largest_sum(a, b)

    def magnitudes(self, arguments: Arguments) -> np.ndarray:
        """|A| |B|, float64: for each element of C the sum of its terms' magnitudes."""
        a, b = (np.abs(array_of(arguments, name).astype(np.float64)) for name in self.inputs)
        return self.matmul(a, b)

    def prim_func(self, name: str) -> PrimFunc:
        """The algorithm as a TensorIR PrimFunc, entry point `name`: a block "C" of the sums, and a block "D"
        that rounds them where C is in another format."""
        named: Any = self.parsed().with_attr("global_symbol", name)  # TVM says: of the class of all functions
        return named

    @cache
    def parsed(self) -> PrimFunc:
        """The same without a name; TVM takes its time to parse it."""
        from tvm.script import tirx as T
        from tvm.tirx import FloatImm

        M, N, K, narrow, wide = self.m, self.n, self.k, self.dtype, self.accumulate
        result, rounds = self.result, self.rounds
        b_shape, transposed = self.stored["B"], self.transposed
        zero = FloatImm(wide, 0.0)

        def cast(value: Any) -> Any:
            return T.Cast(wide, value) if wide != narrow else value

        @T.prim_func(s_tir=True)
        def gemm(A: T.Buffer((M, K), narrow), B: T.Buffer(b_shape, narrow), C: T.Buffer((M, N), result)):
            T.func_attr({"tirx.noalias": True})
            if rounds:
                sums = T.sblock_alloc_buffer((M, N), wide)
            else:
                sums = T.meta_var(C)
            for i, j, k in T.grid(M, N, K):
                with T.sblock("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    row, column = T.meta_var(place_in_b(vk, vj, transposed))
                    with T.init():
                        sums[vi, vj] = zero
                    sums[vi, vj] += cast(A[vi, vk]) * cast(B[row, column])
            if rounds:
                for i, j in T.grid(M, N):
                    with T.sblock("D"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        C[vi, vj] = T.Cast(result, sums[vi, vj])

        return gemm


if TYPE_CHECKING:  # holds it to the protocol
    CHECKED: type[Workload] = HalfGemm
