"""Multiplication of float32 matrices on tensor cores, each element as a sum of parts in a narrower format."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tir_schedules.errors import BadInput
from tir_schedules.workloads import C_TYPES, EMULATED, PRODUCTS
from tir_schedules.workloads.drawing import Draws
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.rounding import MANTISSA, UNIT, largest_exact

if TYPE_CHECKING:
    from tir_schedules.model.workload import Workload

ROW_STEP = 32
"""Bytes of a row along K that a tensor core multiplies at once."""

LONGEST = 256
"""Longest part of K after which a form that promotes adds its sums to others in float32."""

PADDED = 64
"""Rows of parts are filled up with zeros to a multiple of so many elements of each part."""

LARGEST = 2.0**15
"""Below this are elements of a scaled form: the largest of a row of A, or a column of B, is at least half of
it. Float16 ends at 65504, and has multiples of 2**-24 where numbers are small: what is left of an element by
its parts is below 2**-25, or 2**-39 of the largest of its row."""

LOST = 2.0**-25 / (LARGEST / 2)

CUT = 2.0**-21
"""Share of the largest term and sum that a tensor core loses when it adds 16 products to a sum. On Hopper
each of the 17 is cut off 25 bits below the largest, and the sum to 24 bits: less than 17 / 2**25 + 1 /
2**23."""


def filled_up(k: int) -> int:
    """K of rows of parts: the next multiple of PADDED."""
    return -(-k // PADDED) * PADDED


@dataclass(frozen=True)
class Form:
    """How elements are split, and which products of parts are added.

    dtype: format of the parts; float32 whose last 13 bits are 0 are tf32. parts: of an element, each what is
    left of it by those before, rounded.
    products: parts of A and of B that are multiplied, in this order, the small ones first. promoted: whether
    sums of tensor cores are added up in float32 registers. bits: integers up to 2**bits are exact. scaled:
    whether rows of A and columns of B are multiplied by powers of two before, see LARGEST.
    """

    dtype: str
    parts: int
    products: tuple[tuple[int, int], ...]
    promoted: bool
    bits: int
    scaled: bool = False

    @property
    def size(self) -> int:
        """Bytes of a part."""
        return 4 if self.dtype == "float32" else 2

    @property
    def step(self) -> int:
        """The part of K that a tensor core adds up at once."""
        return ROW_STEP // self.size

    @property
    def dropped(self) -> float:
        """Largest error of a product of two elements, in units of it, by what is not multiplied or not
        in the parts. A part is at most a unit roundoff of the one before."""
        unit = 2.0 ** -(self.bits // self.parts)
        pairs = [(i, j) for i in range(self.parts) for j in range(self.parts)]
        missing = sum(unit ** (i + j) for i, j in pairs if (i, j) not in self.products)
        rest = 0.0 if self.bits >= MANTISSA["float32"] else 2 * unit**self.parts
        return (missing + rest) * (1 + 4 * unit)


SIX = (1, 1), (2, 0), (0, 2), (1, 0), (0, 1), (0, 0)
THREE = (1, 0), (0, 1), (0, 0)

FORMS = {
    "tf32": Form("float32", 1, ((0, 0),), False, 11),
    "bf16x6": Form("bfloat16", 3, SIX, True, 24),
    "bf16x6_unpromoted": Form("bfloat16", 3, SIX, False, 24),
    "fp16x3": Form("float16", 2, THREE, True, 22, scaled=True),
}
"""Forms by name. The sum of products is cut off by tensor cores, where it is not promoted."""


@dataclass(frozen=True)
class SplitGemm(Gemm):
    """As Gemm, by products of parts: see FORMS. products: the name of the form.

    Workspaces: A_parts has a row for each row of A, B_parts one for each column of B, with all parts of an
    element of K tiles side by side, see `Splitting`.
    """

    products: str = "bf16x6"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.products not in FORMS:
            raise BadInput(f"products is {self.products!r}; it can be {' or '.join(FORMS)}")
        for name, rows in (("A", self.m), ("B", self.n)):
            if rows * self.row >= 2**31:
                raise BadInput(f"{self}: parts of {name} have 2**31 elements or more (32-bit indices)")

    def __str__(self) -> str:
        return f"{super().__str__()} {self.products}"

    @property
    def form(self) -> Form:
        return FORMS[self.products]

    @property
    def workspaces(self) -> tuple[str, ...]:
        return ("A_parts", "B_parts", *(("A_scales", "B_scales") if self.form.scaled else ()))

    @property
    def row(self) -> int:
        """Elements of a row of parts."""
        return filled_up(self.k) * self.form.parts

    @property
    def parameters(self) -> dict[str, str]:
        """What a kernel may take, and its C type."""
        kinds = {name: f"{C_TYPES[self.workspace_type(name)]}*" for name in self.workspaces}
        return super().parameters | kinds

    def workspace_shapes(self, rows: dict[str, tuple[int, int]]) -> dict[str, tuple[int, ...]]:
        """Shapes of the parts of A and B, and of the factors of rows. Those of columns of B are filled up
        like rows of parts of C."""
        parts = {"A_parts": (self.m, self.row), "B_parts": (self.n, self.row)}
        scales = {"A_scales": (self.m,), "B_scales": (self.part_pitch,)}
        return {name: (parts | scales)[name] for name in self.workspaces}

    def workspace_type(self, name: str) -> str:
        """The format of a workspace."""
        return self.form.dtype if name.endswith("_parts") else "float32"

    def integers(self, draws: Draws, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """A and B, integers without 0, so that products that the form leaves out are 0. Where there is room
        some have all bits that parts hold: those of a column of A, of a row of B, and half of them each of
        another column and row."""
        xp, bits = draws.xp, min(self.form.bits, 22)
        if self.k < 4:
            most = 2 ** (min(bits, 20) // 2)
            return draws.integers(most, (self.m, self.k), "float32"), draws.integers(
                most, (self.k, self.n), "float32"
            )
        beside = min(largest_exact(self.k, "float32", 3 * 2**bits), 2**bits)
        one = max(1, int(beside**0.5))
        a, b = self.taking_turns(draws, one, max(1, beside // one))
        first, second, both = (int(k) for k in xp.argsort(draws.rng.random(self.k, np.float32))[:3])
        for k, of_a, of_b in (
            (first, 2**bits - 1, 1),
            (second, 1, 2**bits - 1),
            (both, 2 ** (bits // 2), 2 ** (bits // 2)),
        ):
            a[:, k] = draws.integers(of_a, (self.m,), "float32")
            b[k] = draws.integers(of_b, (self.n,), "float32")
        return a, b

    def rounding(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The tolerance of C: the bound of the form times |A| |B|. A form that scales also allows for the
        bits that small elements lose beside the largest of their row or column."""
        a, b = np.abs(a), np.abs(b)
        found = self.bound * self.matmul(a, b)
        if self.form.scaled:
            b = b.T if self.transposed else b
            found += LOST * (a.max(1, keepdims=True) * b.sum(0) + a.sum(1, keepdims=True) * b.max(0))
        return found

    @property
    def bound(self) -> float:
        """Bound of the error of an element of C, in units of |A| |B|: products that are left out, bits that
        tensor cores cut off, and the additions in float32 of sums that are promoted."""
        form, length = self.form, min(self.k, LONGEST) if self.form.promoted else self.k
        cuts = -(-length // form.step) * len(form.products)
        promotions = -(-self.k // LONGEST) if form.promoted else 0
        return form.dropped + cuts * CUT + promotions * UNIT


AS_ACCURATE = {Gemm.products: 1, "bf16x6": 32}
"""Products whose errors are no larger than those of FMA in order, beside |A| |B|: neither the largest nor the
root mean square. And the least K for which that holds. FMA round once for each term, and tensor cores cut
sums off whatever the number of terms. So bf16x6 needs some. Not fp16x3: its error is small beside the largest
elements of a row and column, so small elements may lose all their bits. Where terms cancel, it is larger than
that of FMA, because two parts have 23 bits of 24."""


@dataclass(frozen=True)
class EmulatedGemm(Gemm):
    """As Gemm, while it is open which products it is made of. A rung takes one of `meant`."""

    products = EMULATED

    def __str__(self) -> str:
        return f"{super().__str__()} {EMULATED}"

    @property
    def meant(self) -> tuple[Gemm, ...]:
        """What it may become, without products whose parts would be too large, or that are less accurate."""
        found: list[Gemm] = []
        for products, least in AS_ACCURATE.items():
            if self.k >= least:
                with suppress(BadInput):
                    found.append(float_gemm(*self.shape, products, self.layout))
        return tuple(found)


def float_gemm(m: int, n: int, k: int, products: str = "float32", layout: str = "nn") -> Gemm:
    """A multiplication of float32 matrices: a Gemm, by products of parts a SplitGemm, and where these are to
    be chosen an EmulatedGemm."""
    if products in (Gemm.products, EMULATED):
        return (Gemm if products == Gemm.products else EmulatedGemm)(m, n, k, layout=layout)
    if products not in FORMS:
        raise BadInput(f"products is {products!r}; it can be {' or '.join((*PRODUCTS, EMULATED))}")
    return SplitGemm(m, n, k, products, layout=layout)


float_gemm.makes = Gemm, SplitGemm, EmulatedGemm  # pyright: ignore[reportFunctionMemberAccess]
float_gemm.__name__ = Gemm.__name__


if TYPE_CHECKING:  # holds it to the protocol
    CHECKED: type[Workload] = SplitGemm
