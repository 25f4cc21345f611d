"""Copies of matrices to rows that start with a line of L2."""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tir_schedules.model.workload import Arguments, OneLaunch
from tir_schedules.workloads import array_of, in_lines
from tir_schedules.workloads.half_gemm import VECTOR

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

    from tir_schedules.model.workload import Workload


def pitch_of_copy(columns: int) -> int:
    """Elements of 16 bits from one row to the next."""
    return in_lines(columns, VECTOR)


@dataclass(frozen=True)
class Repacking(OneLaunch):
    """Y = X (rows x columns), elements of any format of 16 bits. Zeros fill up the rows of Y to whole lines
    of L2."""

    rows: int
    columns: int

    inputs, outputs = ("X",), ("Y",)
    parameters = {"X": "const uint16_t*", "Y": "uint16_t*", "ROWS": "int", "COLUMNS": "int"}
    flops = 0

    @property
    def pitch(self) -> int:
        """Elements of a row of Y."""
        return pitch_of_copy(self.columns)

    @property
    def bytes(self) -> int:
        """Compulsory global traffic in bytes: X read once, Y written once."""
        return 2 * self.rows * (self.columns + self.pitch)

    def arguments(self, seed: int = 0, xp: Any = np, kind: str = "") -> Arguments:
        """X at random, Y of ones, and the extents."""
        x = xp.random.default_rng(seed).integers(0, 2**16, (self.rows, self.columns)).astype("uint16")
        y = xp.full((self.rows, self.pitch), 2**16 - 1, "uint16")
        return {"X": x, "Y": y, "ROWS": self.rows, "COLUMNS": self.columns}

    def tolerance(self, arguments: Arguments, kind: str = "") -> dict[str, float]:
        return {"Y": 0.0}

    def truth(self, arguments: Arguments) -> dict[str, np.ndarray]:
        more = (0, 0), (0, self.pitch - self.columns)
        return {"Y": np.pad(array_of(arguments, "X"), more).astype("float64")}

    def prim_func(self, name: str) -> PrimFunc:
        """The algorithm as a TensorIR PrimFunc with one block "Y", entry point `name`."""
        from tvm.script import tirx as T

        rows, columns, pitch = self.rows, self.columns, self.pitch

        @T.prim_func(s_tir=True)
        def repack(X: T.Buffer((rows, columns), "uint16"), Y: T.Buffer((rows, pitch), "uint16")):
            T.func_attr({"global_symbol": name, "tirx.noalias": True})
            for i, j in T.grid(rows, pitch):
                with T.sblock("Y"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    Y[vi, vj] = T.if_then_else(vj < columns, X[vi, vj], T.uint16(0))

        return repack


@dataclass(frozen=True)
class RepackingBoth(OneLaunch):
    """Y (rows x columns) = X and Y_2 (rows_2 x columns_2) = X_2, both as in Repacking."""

    rows: int
    columns: int
    rows_2: int
    columns_2: int

    inputs, outputs = ("X", "X_2"), ("Y", "Y_2")
    parameters = {
        f"{name}{of}": kind
        for of in ("", "_2")
        for name, kind in {"X": "const uint16_t*", "Y": "uint16_t*", "ROWS": "int", "COLUMNS": "int"}.items()
    }
    flops = 0

    @property
    def first(self) -> Repacking:
        return Repacking(self.rows, self.columns)

    @property
    def each(self) -> tuple[Repacking, Repacking]:
        return self.first, Repacking(self.rows_2, self.columns_2)

    @property
    def bytes(self) -> int:
        """As Repacking."""
        return sum(one.bytes for one in self.each)

    def arguments(self, seed: int = 0, xp: Any = np, kind: str = "") -> Arguments:
        """As Repacking."""
        first, second = (one.arguments(seed + number, xp) for number, one in enumerate(self.each))
        return first | {f"{name}_2": value for name, value in second.items()}

    def truth(self, arguments: Arguments) -> dict[str, np.ndarray]:
        first, second = self.each
        copied = second.truth({"X": arguments["X_2"]})
        return {**first.truth(arguments), "Y_2": copied["Y"]}

    def tolerance(self, arguments: Arguments, kind: str = "") -> dict[str, float]:
        return {"Y": 0.0, "Y_2": 0.0}

    def prim_func(self, name: str) -> PrimFunc:
        """There is none: `hgemm/repack_both` says itself what each thread does."""
        raise NotImplementedError(name)


if TYPE_CHECKING:  # holds it to the protocol
    CHECKED: tuple[type[Workload], ...] = Repacking, RepackingBoth
