"""The parts of A and B of a SplitGemm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tir_schedules.model.workload import Arguments, OneLaunch
from tir_schedules.workloads import C_TYPES, array_of, element_type, place_in_b
from tir_schedules.workloads.drawing import Draws
from tir_schedules.workloads.split_gemm import FORMS, LARGEST, Form, filled_up

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

    from tir_schedules.model.workload import Workload

MOST = 255 * 2.0**120
"""The largest bfloat16. A finite element is not split into an infinite part and the rest."""

LOW_BITS = 13
"""The low bits of a float32 that tf32 does not have."""

LEAST_SCALE = 2.0**-126


@dataclass(frozen=True)
class Splitting(OneLaunch):
    """Y (m rows) has the parts of X (m x k), and Y_2 (n rows) those of the columns of X_2 (k x n), or, where
    layout is "nt", those of its rows (n x k).

    A row of Y has for each K tile, `depth` of K, first the largest parts of its elements, then the second,
    and so on: see `place`. Rows are filled up
    with zeros to a multiple of PADDED of K. A part is what is left of an element by the parts before,
    rounded to the nearest number of their format. Of a form that scales, elements are multiplied by a power
    of two before: A_scales and B_scales have its inverse, for each row.
    """

    m: int
    n: int
    k: int
    products: str = "bf16x6"
    depth: int = 32
    layout: str = "nn"

    inputs = ("X", "X_2")
    flops = 0

    @property
    def outputs(self) -> tuple[str, ...]:
        return ("Y", "Y_2", *(("SCALES", "SCALES_2") if self.form.scaled else ()))

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
        given |= dict.fromkeys(self.outputs[2:], "float*")
        return given | dict.fromkeys("MNK", "int")

    @property
    def macros(self) -> dict[str, str | int]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """SPLIT_DEPTH is that of a K tile, SPLIT_PARTS how many an element has, SPLIT_TYPE their type. NT: 1
        if X_2 is n x k."""
        form = self.form
        found = {"SPLIT_DEPTH": self.depth, "SPLIT_PARTS": form.parts, "SPLIT_TYPE": C_TYPES[form.dtype]}
        return found | ({"NT": 1} if self.transposed else {})

    @property
    def transposed(self) -> bool:
        """Whether X_2 is n x k."""
        return self.layout == "nt"

    @property
    def shape_2(self) -> tuple[int, int]:
        """Rows and columns of X_2."""
        return place_in_b(self.k, self.n, self.transposed)

    @property
    def padded(self) -> int:
        """K, filled up."""
        return filled_up(self.k)

    @property
    def row(self) -> int:
        """Elements of a row of parts."""
        return self.padded * self.form.parts

    def place(self, part: Any, k: Any) -> Any:
        """Where element k of a part stands in a row of parts. Numbers, or expressions of TIR."""
        return (k // self.depth * self.form.parts + part) * self.depth + k % self.depth

    @property
    def bytes(self) -> int:
        """Compulsory global traffic in bytes: each element read once, each part written once."""
        return 4 * self.k * (self.m + self.n) + self.form.size * self.row * (self.m + self.n)

    def arguments(self, seed: int = 0, xp: Any = np, kind: str = "") -> Arguments:
        """X and X_2 over a wide range, Y and Y_2 of NaN, and the extents."""
        draws, dtype = Draws(seed, xp), element_type(self.form.dtype)
        given = {"X": draws.reals(20, (self.m, self.k)), "X_2": draws.reals(20, (self.k, self.n))}
        if self.transposed:
            given["X_2"] = xp.ascontiguousarray(given["X_2"].T)
        made = {
            name: xp.full((rows, self.row), np.nan, dtype) for name, rows in (("Y", self.m), ("Y_2", self.n))
        }
        scales = {
            "SCALES": xp.full(self.m, np.nan, "float32"),
            "SCALES_2": xp.full(self.n, np.nan, "float32"),
        }
        made |= {name: scales[name] for name in self.outputs[2:]}
        return given | made | {"M": self.m, "N": self.n, "K": self.k}

    def truth(self, arguments: Arguments) -> dict[str, np.ndarray]:
        found = {}
        x, x_2 = (array_of(arguments, name) for name in self.inputs)
        for name, rows in (("", x), ("_2", x_2 if self.transposed else x_2.T)):
            scales = self.scales_of(rows)
            found[f"Y{name}"] = self.parts_of(rows / scales[:, None]).astype("float64")
            if self.form.scaled:
                found[f"SCALES{name}"] = scales.astype("float64")
        return found

    def scales_of(self, rows: np.ndarray) -> np.ndarray:
        """What elements are divided by: a power of two, so that the largest of a row is just below LARGEST.
        1 of forms that do not scale."""
        if not self.form.scaled:
            return np.ones(len(rows), "float32")
        largest = np.abs(rows).max(1)
        scales = np.ldexp(np.float32(1 / LARGEST), np.frexp(largest)[1])
        return np.where(largest > 0, np.maximum(scales, np.float32(LEAST_SCALE)), np.float32(LEAST_SCALE))

    def parts_of(self, rows: np.ndarray) -> np.ndarray:
        """Rows of parts, of float32 rows."""
        form, most = self.form, np.float32(MOST)
        left = np.pad(rows.astype("float32"), ((0, 0), (0, self.padded - self.k)))
        parts = []
        for part in range(form.parts):
            is_whole = part > 0 or form.parts == 1
            parts.append(self.rounded(left if is_whole else np.clip(left, -most, most)))
            left = left - parts[-1].astype("float32")
        stacked = np.stack(parts, axis=1).reshape(len(rows), form.parts, -1, self.depth)
        return stacked.transpose(0, 2, 1, 3).reshape(len(rows), self.row)

    def rounded(self, values: np.ndarray) -> np.ndarray:
        """Float32 in the format of parts: the nearest, of two the even one, or of tf32 the larger one."""
        if self.form.dtype != "float32":
            return values.astype(element_type(self.form.dtype))
        half, kept = np.uint32(1 << LOW_BITS - 1), np.uint32(2**32 - 2**LOW_BITS)
        return ((values.view("uint32") + half) & kept).view("float32")

    def tolerance(self, arguments: Arguments, kind: str = "") -> dict[str, float]:
        return dict.fromkeys(self.outputs, 0.0)

    def prim_func(self, name: str) -> PrimFunc:
        """There is none: `sgemm/split_parts` says itself what each thread does."""
        raise NotImplementedError(name)


if TYPE_CHECKING:  # holds it to the protocol
    CHECKED: type[Workload] = Splitting
