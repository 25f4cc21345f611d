"""The parts of A and B of a SplitGemm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tir_schedules.model.workload import Arguments, OneLaunch
from tir_schedules.workloads import C_TYPES, array_of, element_type
from tir_schedules.workloads.drawing import Draws
from tir_schedules.workloads.split_gemm import FORMS, PADDED, Form

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

    from tir_schedules.model.workload import Workload

LARGEST = {"bfloat16": 255 * 2.0**120, "float16": 65504.0}
"""The largest number of a format. A finite element is not split into an infinite part and the rest."""


@dataclass(frozen=True)
class Splitting(OneLaunch):
    """Y (m rows) has the parts of X (m x k), and Y_2 (n rows) those of the transpose of X_2 (k x n).

    A row of Y has for each K tile, `depth` of K, first the largest parts of its elements, then the second, and
    so on: element k of part p is at (k // depth * parts + p) * depth + k % depth. Rows are filled up with zeros
    to a multiple of PADDED of K. A part is what is left of an element by the parts before, rounded to the
    nearest number of their format.
    """

    m: int
    n: int
    k: int
    products: str = "bf16x6"
    depth: int = 32

    inputs, outputs = ("X", "X_2"), ("Y", "Y_2")
    flops = 0

    @property
    def form(self) -> Form:
        return FORMS[self.products]

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.m, self.n, self.k

    @property
    def parameters(self) -> dict[str, str]:
        """What the kernel may take, and its C type."""
        kind = f"{C_TYPES[self.form.dtype]}*"
        given = {"X": "const float*", "Y": kind, "X_2": "const float*", "Y_2": kind}
        return given | dict.fromkeys("MNK", "int")

    @property
    def macros(self) -> dict[str, str | int]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """DEPTH is that of a K tile, PARTS how many an element has, PART their type."""
        form = self.form
        return {"DEPTH": self.depth, "PARTS": form.parts, "PART": C_TYPES[form.dtype]}

    @property
    def padded(self) -> int:
        """K, filled up."""
        return -(-self.k // PADDED) * PADDED

    @property
    def row(self) -> int:
        """Elements of a row of parts."""
        return self.padded * self.form.parts

    @property
    def bytes(self) -> int:
        """Compulsory global traffic in bytes: each element read once, each part written once."""
        return 4 * self.k * (self.m + self.n) + 2 * self.row * (self.m + self.n)

    def arguments(self, seed: int = 0, xp: Any = np, kind: str = "") -> Arguments:
        """X and X_2 over a wide range, Y and Y_2 of NaN, and the extents."""
        draws, dtype = Draws(seed, xp), element_type(self.form.dtype)
        given = {"X": draws.reals(20, (self.m, self.k)), "X_2": draws.reals(20, (self.k, self.n))}
        made = {"Y": xp.full((self.m, self.row), np.nan, dtype), "Y_2": xp.full((self.n, self.row), np.nan, dtype)}
        return given | made | {"M": self.m, "N": self.n, "K": self.k}

    def truth(self, arguments: Arguments) -> dict[str, np.ndarray]:
        return {
            "Y": self.parts_of(array_of(arguments, "X")).astype("float64"),
            "Y_2": self.parts_of(array_of(arguments, "X_2").T).astype("float64"),
        }

    def parts_of(self, rows: np.ndarray) -> np.ndarray:
        """Rows of parts, of float32 rows."""
        form, dtype = self.form, element_type(self.form.dtype)
        left = np.pad(rows.astype("float32"), ((0, 0), (0, self.padded - self.k)))
        parts = []
        for _ in range(form.parts):
            most = np.float32(LARGEST[form.dtype])
            parts.append(np.clip(left, -most, most).astype(dtype))
            left = left - parts[-1].astype("float32")
        stacked = np.stack(parts, axis=1).reshape(len(rows), form.parts, -1, self.depth)
        return stacked.transpose(0, 2, 1, 3).reshape(len(rows), self.row)

    def tolerance(self, arguments: Arguments, kind: str = "") -> dict[str, float]:
        return {"Y": 0.0, "Y_2": 0.0}

    def prim_func(self, name: str) -> PrimFunc:
        """There is none: `sgemm/split_parts` says itself what each thread does."""
        raise NotImplementedError(name)


if TYPE_CHECKING:  # holds it to the protocol
    CHECKED: type[Workload] = Splitting
