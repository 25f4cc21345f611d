"""Copies of matrices to rows that start with a line of L2 or to whole tiles, and from such rows."""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tir_schedules.model.workload import Arguments, OneLaunch
from tir_schedules.workloads import array_of, in_lines

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

    from tir_schedules.model.workload import Workload


@dataclass(frozen=True)
class Repacking(OneLaunch):
    """Y (rows x columns) = X, elements of so many bits of whatever format; Y is filled with zeros up to
    `height` rows of `pitch` elements. Where these are 0: as many rows, of whole lines of L2."""

    rows: int
    columns: int
    bits: int = 16
    height: int = 0
    pitch: int = 0

    inputs, outputs = ("X",), ("Y",)
    flops = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "height", self.height or self.rows)
        object.__setattr__(self, "pitch", self.pitch or in_lines(self.columns, self.vector))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.rows, self.columns

    @property
    def dtype(self) -> str:
        return f"uint{self.bits}"

    @property
    def parameters(self) -> dict[str, str]:
        """What a kernel may take, and its C type."""
        kind = f"{self.dtype}_t*"
        return {"X": f"const {kind}", "Y": kind, "ROWS": "int", "COLUMNS": "int"}

    @property
    def macros(self) -> dict[str, int]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Extents of Y, where it is filled up to other than rows of whole lines."""
        usual = self.height == self.rows and self.pitch == in_lines(self.columns, self.vector)
        return {} if usual else {"Y_ROWS": self.height, "Y_COLUMNS": self.pitch}

    @property
    def vector(self) -> int:
        """Elements in 16 bytes."""
        return 128 // self.bits

    @property
    def bytes(self) -> int:
        """Compulsory global traffic in bytes: X read once, Y written once."""
        return self.bits // 8 * (self.rows * self.columns + self.height * self.pitch)

    def arguments(self, seed: int = 0, xp: Any = np, kind: str = "") -> Arguments:
        """X at random, Y of ones, and the extents."""
        most = 2**self.bits - 1
        x = xp.random.default_rng(seed).integers(0, most + 1, (self.rows, self.columns)).astype(self.dtype)
        y = xp.full((self.height, self.pitch), most, self.dtype)
        return {"X": x, "Y": y, "ROWS": self.rows, "COLUMNS": self.columns}

    def truth(self, arguments: Arguments) -> dict[str, np.ndarray]:
        more = (0, self.height - self.rows), (0, self.pitch - self.columns)
        return {"Y": np.pad(array_of(arguments, "X"), more).astype("float64")}

    def tolerance(self, arguments: Arguments, kind: str = "") -> dict[str, float]:
        return {"Y": 0.0}

    def prim_func(self, name: str) -> PrimFunc:
        """The algorithm as a TensorIR PrimFunc with one block "Y", entry point `name`."""
        from tvm.script import tirx as T
        from tvm.tirx import IntImm

        rows, columns, height, pitch = self.rows, self.columns, self.height, self.pitch
        dtype, zero = self.dtype, IntImm(self.dtype, 0)

        @T.prim_func(s_tir=True)
        def repack(X: T.Buffer((rows, columns), dtype), Y: T.Buffer((height, pitch), dtype)):
            T.func_attr({"global_symbol": name, "tirx.noalias": True})
            for i, j in T.grid(height, pitch):
                with T.sblock("Y"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    Y[vi, vj] = T.if_then_else(vi < rows and vj < columns, X[vi, vj], zero)

        return repack


@dataclass(frozen=True)
class RepackingBoth(OneLaunch):
    """Y (rows x columns) = X and Y_2 (rows_2 x columns_2) = X_2, both as in Repacking, of 16 bits."""

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


@dataclass(frozen=True)
class Unpacking(OneLaunch):
    """Y (rows x columns) = X, whose rows are filled up to whole lines of L2: the other way round."""

    rows: int
    columns: int

    inputs, outputs = ("X",), ("Y",)
    parameters = {"X": "const uint16_t*", "Y": "uint16_t*", "ROWS": "int", "COLUMNS": "int"}
    flops = 0

    @property
    def pitch(self) -> int:
        """Elements of a row of X."""
        return in_lines(self.columns, 8)

    @property
    def bytes(self) -> int:
        """Compulsory global traffic in bytes: X read once, but for what fills rows up, Y written once."""
        return 4 * self.rows * self.columns

    def arguments(self, seed: int = 0, xp: Any = np, kind: str = "") -> Arguments:
        """X at random, Y of ones, and the extents."""
        x = xp.random.default_rng(seed).integers(0, 2**16, (self.rows, self.pitch)).astype("uint16")
        y = xp.full((self.rows, self.columns), 2**16 - 1, "uint16")
        return {"X": x, "Y": y, "ROWS": self.rows, "COLUMNS": self.columns}

    def truth(self, arguments: Arguments) -> dict[str, np.ndarray]:
        return {"Y": array_of(arguments, "X")[:, : self.columns].astype("float64")}

    def tolerance(self, arguments: Arguments, kind: str = "") -> dict[str, float]:
        return {"Y": 0.0}

    def prim_func(self, name: str) -> PrimFunc:
        """The algorithm as a TensorIR PrimFunc with one block "Y", entry point `name`. Rows of Y do not
        matter to it: they lie one behind the other."""
        from tvm.script import tirx as T

        rows, columns, pitch = self.rows, self.columns, self.pitch

        @T.prim_func(s_tir=True)
        def unpack(X: T.Buffer((rows, pitch), "uint16"), Y: T.Buffer((rows * columns,), "uint16")):
            T.func_attr({"global_symbol": name, "tirx.noalias": True})
            for i in T.serial(rows * columns):
                with T.sblock("Y"):
                    vi = T.axis.spatial(rows * columns, i)
                    Y[vi] = X[vi // columns, vi % columns]

        return unpack


if TYPE_CHECKING:  # holds it to the protocol
    CHECKED: tuple[type[Workload], ...] = Repacking, RepackingBoth, Unpacking
