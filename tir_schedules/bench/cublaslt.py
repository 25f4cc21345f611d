"""cuBLASLt: `cublasLtMatmul` by any of the algorithms that its heuristic names for a product.

Descriptors, algorithms and workspace are made once for a workload, outside of all that is timed.
"""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_int, c_int32, c_int64, c_size_t, c_uint16, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any

from tir_schedules.bench.binding import BoundSubject
from tir_schedules.bench.cublas import Library, Matrix, Product, release
from tir_schedules.errors import CheckFailed
from tir_schedules.machines.gpu import GpuMachine
from tir_schedules.model.workload import Arguments, Workload
from tir_schedules.subjects.subject import Candidate

CANDIDATES = 32
"""The most algorithms that are asked for. For one product there are mostly fewer."""

WORKSPACE = 64 << 20  # bytes
LEFT_OPERATION = 3  # CUBLASLT_MATMUL_DESC_TRANSA
MOST_WORKSPACE = 1  # CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
FACTS = {
    "algorithm": (0, c_int32),
    "tile": (1, c_uint32),
    "stages": (6, c_uint32),
    "split_k": (2, c_uint32),
    "cluster": (8, c_uint16),
    "reduction": (3, c_uint32),
}
"""What is recorded of an algorithm -> the number of its attribute, CUBLASLT_ALGO_CONFIG_*, and its type."""

SIGNATURES = {
    "cublasLtCreate": [c_void_p],
    "cublasLtMatmulDescCreate": [c_void_p, c_int, c_int],
    "cublasLtMatmulDescSetAttribute": [c_void_p, c_int, c_void_p, c_size_t],
    "cublasLtMatrixLayoutCreate": [c_void_p, c_int, c_uint64, c_uint64, c_int64],
    "cublasLtMatmulPreferenceCreate": [c_void_p],
    "cublasLtMatmulPreferenceSetAttribute": [c_void_p, c_int, c_void_p, c_size_t],
    "cublasLtMatmulAlgoGetHeuristic": [*[c_void_p] * 7, c_int, c_void_p, c_void_p],
    "cublasLtMatmulAlgoConfigGetAttribute": [c_void_p, c_int, c_void_p, c_size_t, c_void_p],
    "cublasLtMatmul": [*[c_void_p] * 14, c_size_t, c_void_p],
}


class Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t. status: 0 where the algorithm can do it."""

    _fields_ = [
        ("algorithm", c_uint64 * 8),
        ("workspace", c_size_t),
        ("status", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    ]


@dataclass(frozen=True)
class Plan:
    """A product as the library has it. operation, left, right, result: its descriptors. found: algorithms
    that can do it, the one that the library thinks fastest first."""

    product: Product
    operation: c_void_p
    left: c_void_p
    right: c_void_p
    result: c_void_p
    found: tuple[Heuristic, ...]


class CublasLt:
    """cublasLtMatmul on the GPU. library: libcublasLt as ctypes has it."""

    def __init__(self, library: Any, machine: GpuMachine):
        self.library, self.machine = (
            Library("cuBLASLt", library, SIGNATURES, "cublasLtGetStatusName"),
            machine,
        )
        self.handle = self.library.created("cublasLtCreate")
        self.workspace = machine.xp.empty(WORKSPACE, "uint8")
        self.preference = self.library.created("cublasLtMatmulPreferenceCreate")
        self.set("cublasLtMatmulPreferenceSetAttribute", self.preference, MOST_WORKSPACE, c_uint64(WORKSPACE))
        self.plans: dict[Workload, Plan] = {}

    def candidates(self, workload: Workload) -> list[Candidate]:
        """The algorithms for a workload, in the library's order. CheckFailed where it has none."""
        found = self.plan(workload).found
        return [
            Candidate(index, len(found), **self.facts(one), workspace_bytes=one.workspace)
            for index, one in enumerate(found)
        ]

    def bind(self, workload: Workload, arguments: Arguments, index: int) -> BoundSubject:
        """index: of the candidate."""
        plan, address = self.plan(workload), self.machine.address
        alpha, beta = plan.product.scalars
        a, b, c = (address(arguments[name]) for name in "ABC")
        given = (
            *(self.handle, plan.operation),
            *(alpha, b, plan.left, a, plan.right),
            *(beta, c, plan.result, c, plan.result),
            *(ctypes.addressof(plan.found[index]), address(self.workspace), WORKSPACE),
        )
        return BoundSubject(
            lambda stream: self.library.call("cublasLtMatmul", *given, stream.ptr),
            {"C": arguments["C"]},
            (arguments, plan),
        )

    def version(self) -> str:
        """Such as "13.1.0"."""
        number = self.library.functions.cublasLtGetVersion
        number.restype = c_size_t
        return release(number())

    def plan(self, workload: Workload) -> Plan:
        """Of a workload, made when it is first asked for."""
        if workload not in self.plans:
            self.plans[workload] = self.planned(Product.of(workload))
        return self.plans[workload]

    def planned(self, product: Product) -> Plan:
        types = product.types
        operation = self.library.created("cublasLtMatmulDescCreate", types.compute, types.scalar)
        self.set("cublasLtMatmulDescSetAttribute", operation, LEFT_OPERATION, c_int32(product.operation))
        left, right = (self.layout(one, types.operands) for one in (product.left, product.right))
        result = self.layout(product.result, types.result)
        found, count = (Heuristic * CANDIDATES)(), c_int(0)
        self.library.call(
            "cublasLtMatmulAlgoGetHeuristic",
            *(self.handle, operation, left, right, result, result, self.preference),
            *(CANDIDATES, found, ctypes.byref(count)),
        )
        able = tuple(one for one in found[: count.value] if not one.status)
        if not able:
            raise CheckFailed("cuBLASLt: its heuristic names no algorithm for this product")
        return Plan(product, operation, left, right, result, able)

    def layout(self, matrix: Matrix, form: int) -> c_void_p:
        """Descriptor of a matrix. form: number of its elements' format."""
        return self.library.created(
            "cublasLtMatrixLayoutCreate", form, matrix.rows, matrix.columns, matrix.rows
        )

    def set(self, function: str, thing: c_void_p, attribute: int, value: Any) -> None:
        """Set an attribute. value: of one of ctypes' types."""
        self.library.call(function, thing, attribute, ctypes.byref(value), ctypes.sizeof(value))

    def facts(self, one: Heuristic) -> dict[str, int]:
        """FACTS of an algorithm, numbered as in cublasLt.h."""
        found = {}
        for name, (attribute, kind) in FACTS.items():
            value, written = kind(), c_size_t()
            self.library.call(
                "cublasLtMatmulAlgoConfigGetAttribute",
                *(ctypes.addressof(one), attribute),
                *(ctypes.byref(value), ctypes.sizeof(value), ctypes.byref(written)),
            )
            found[name] = value.value
        return found
