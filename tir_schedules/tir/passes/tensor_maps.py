"""Tensor maps for TMA copies: encoded by the host, passed to the kernel as parameters.

An intrinsic names the matrix that it copies boxes of, and the extents of a box. The hardware takes a tensor
map in place of that, which the host encodes before the launch: no schedule primitive adds a parameter.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import DataType, IRModule, ir, s_tir, tirx, transform
from tvm.script import tirx as T

from tir_schedules.model.annotations import EXTENTS, PITCHES
from tir_schedules.model.launch import TensorMap, described_array, pitch_of, promotion_of
from tir_schedules.tir.intrinsics.boxes import MAP, PREFETCH
from tir_schedules.tir.intrinsics.device import call as device_call
from tir_schedules.tir.intrinsics.ring import stands_for
from tir_schedules.tir.passes.rewriting import body_of

ENCODE = "runtime.cuTensorMapEncodeTiled"
SWIZZLES, PROMOTIONS = (0, 32, 64, 128), (0, 64, 128, 256)
"""Bytes, in the order of CUtensorMapSwizzle and CUtensorMapL2promotion."""


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.tensor_maps")
def tensor_maps(function: Any, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """Put a tensor map in the place of every matrix that boxes are copied from or to."""
    extents, pitches = (
        function.attrs[name] if function.attrs and name in function.attrs else {}
        for name in (EXTENTS, PITCHES)
    )
    inside: dict[Any, Any] = {}
    made: dict[str, tuple[list[int], Any, list[tirx.Stmt]]] = {}

    def look(block: s_tir.SBlock) -> None:
        for match in block.match_buffers:
            inside[match.buffer] = match.source.source

    def map_of(call: Any) -> Any:
        if not stands_for(call, MAP):
            return call
        (matrix,) = call.args[1].args  # its data
        while matrix in inside:
            matrix = inside[matrix]
        *box, along_k = (int(number) for number in call.args[2:])
        shape = [int(extent) for extent in extents.get(matrix.name, matrix.shape)]
        if matrix.name not in made:
            row = shape[1] * DataType(matrix.dtype).bits // 8
            pitch = int(pitches.get(matrix.name, pitch_of(row)))
            made[matrix.name] = box, *encode(matrix, shape, pitch, box, along_k > 0)
        assert made[matrix.name][0] == box, f"one map of {matrix.name} for boxes of {box}"
        return made[matrix.name][1]

    def prefetch_maps(statement: Any) -> tirx.Stmt:
        if not stands_for(statement.value, PREFETCH):
            return statement
        calls = [device_call("prefetch_map", variable) for _, variable, _ in made.values()]
        return tirx.SeqStmt([*map(tirx.Evaluate, calls)])

    tvm_ffi.structural_walk(body_of(function), (s_tir.SBlock, look))
    body = tvm_ffi.structural_map(body_of(function), (ir.Call, map_of))
    body = tvm_ffi.structural_map(body, (tirx.Evaluate, prefetch_maps))
    statements = [statement for _, _, made_by in made.values() for statement in made_by]
    return function.with_body(tirx.SeqStmt([*statements, body])) if made else function


def encode(
    matrix: Any, shape: list[int], pitch: int, box: list[int], along_k: bool
) -> tuple[Any, list[tirx.Stmt]]:
    """The variable of a map, and the statements of the host that make it. along_k: as in `promotion_of`."""
    rows, columns = shape
    element = DataType(matrix.dtype).bits // 8  # bytes
    dtype, height, width = str(matrix.dtype), *box
    row = element * width
    swizzle = row if row in SWIZZLES else 0  # else a row has more bytes than any swizzle

    @T.prim_func
    def host(A: T.Buffer((rows, columns), dtype)):
        unnamed: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
        # Innermost first: extents and pitch; box and its steps; no interleaving, swizzle, promotion, zeros.
        T.call_packed(
            ENCODE, unnamed, dtype, 2, A.data, columns, rows, pitch, width, height, 1, 1, 0,
            SWIZZLES.index(swizzle), PROMOTIONS.index(promotion_of(pitch, along_k)), 0,
        )  # fmt: skip

    statements: Any = body_of(host)
    allocated = statements.seq[0]
    name: Any = tirx.Var(f"{matrix.name}_map", allocated.var.ty)
    given = host.params[0]

    def rename(variable: Any) -> Any:
        return name if variable.same_as(allocated.var) else matrix if variable.same_as(given) else variable

    changed = tvm_ffi.structural_map(statements, (tirx.Var, rename))
    return name, list(changed.seq)


def is_encoding(call: Any) -> bool:
    """Whether a call of the host makes a map."""
    packed = getattr(call.op, "name", "").startswith("tirx.tvm_call_packed")
    return packed and getattr(call.args[0], "value", "") == ENCODE


def described(call: Any) -> TensorMap:
    """The map that a call of ENCODE makes."""
    name, element, rank, matrix, *numbers = call.args[1:]
    numbers = [int(number) for number in numbers]
    rank = int(rank)
    shape, numbers = numbers[:rank], numbers[rank:]
    pitches, numbers = numbers[: rank - 1], numbers[rank - 1 :]
    box, swizzle, promotion = numbers[:rank], numbers[2 * rank + 1], numbers[2 * rank + 2]
    element, array = str(getattr(element, "value", element)), name.name.removesuffix("_map")
    return TensorMap(
        name.name, described_array(array, shape[0] * DataType(element).bits // 8, pitches[0]), element,
        tuple(reversed(shape)), tuple(reversed(pitches)), tuple(reversed(box)),
        SWIZZLES[swizzle], PROMOTIONS[promotion],
    )  # fmt: skip
