"""What blocks leave that share a matrix product along K: a matrix each, to be added up."""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tir_schedules.model.workload import OneLaunch

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

    from tir_schedules.model.launch import Dim3


@dataclass(frozen=True)
class PartialSums(OneLaunch):
    """C (m x n) = S[0] + ... + S[parts - 1], float32, from the first on.

    The second launch of a Gemm, which has its arguments and its truth.
    """

    m: int
    n: int
    parts: int

    inputs = ("S",)
    outputs = ("C",)
    parameters = {"S": "const float*", "C": "float*", "M": "int", "N": "int", "PARTS": "int"}

    def __str__(self) -> str:
        return f"{self.parts} partial sums of {self.m}x{self.n}"

    @property
    def flops(self) -> int:
        """Additions."""
        return (self.parts - 1) * self.m * self.n

    @property
    def bytes(self) -> int:
        """Compulsory global traffic in bytes: every sum read once, C written once."""
        return 4 * (self.parts + 1) * self.m * self.n

    def array_shapes(self, grid: Dim3) -> dict[str, tuple[int, ...]]:
        """Of S and C."""
        return {"S": (self.parts, self.m, self.n), "C": (self.m, self.n)}

    def prim_func(self, name: str) -> PrimFunc:
        """The algorithm as a TensorIR PrimFunc with one block "C", entry point `name`. Rows do not matter to
        it: they lie one behind the other."""
        from tvm.script import tirx as T

        elements, parts = self.m * self.n, self.parts

        @T.prim_func(s_tir=True)
        def sums(S: T.Buffer((parts, elements), "float32"), C: T.Buffer((elements,), "float32")):
            T.func_attr({"global_symbol": name, "tirx.noalias": True})
            for i, part in T.grid(elements, parts):
                with T.sblock("C"):
                    vi, vpart = T.axis.remap("SR", [i, part])
                    with T.init():
                        C[vi] = T.float32(0)
                    C[vi] = C[vi] + S[vpart, vi]

        return sums
