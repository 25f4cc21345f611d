"""Accesses outside of their buffers, found while a function is executed by the host."""

# TVM's nodes have their fields at run time alone.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, TensorLoad

from tir_schedules.errors import CheckFailed
from tir_schedules.tir.passes.rewriting import guard_load, is_guarded, map_body

REPORT = "tir_schedules.access_outside"
"""TVM's name of the function that is called in place of an access outside of its buffer."""


@tvm_ffi.register_error
class AccessOutside(CheckFailed):
    """A function reads or writes outside of a buffer."""


def check_bounds(function: tirx.PrimFunc, name: str) -> tirx.PrimFunc:
    """The function with every access under a condition. An access outside of its buffer touches no memory: it
    raises AccessOutside, which names the buffer and the index. name: of the function, for the message."""
    tvm.register_global_func(REPORT, raise_outside, override=True)

    def report(does: str, buffer: Any, indices: Any) -> Any:
        return tirx.call_packed(REPORT, f"{name} {does} {buffer.name}", f"{buffer.shape}", *indices)

    def load(node: Any) -> Any:
        otherwise = tirx.Cast(node.ty, report("reads", node.source, node.indices))
        return guard_load(conditions(node.source, node.indices), node, otherwise)

    def store(node: Any) -> Any:
        inside, otherwise = conditions(node.buffer, node.indices), report("writes", node.buffer, node.indices)
        return tirx.IfThenElse(tirx.all(*inside), node, tirx.Evaluate(otherwise)) if inside else node

    def address(call: Any) -> Any:
        if getattr(call.op, "name", "") != "tirx.address_of" or not is_guarded(call.args[0]):
            return call
        return Call(call.op, [call.args[0].args[1]], ret_ty=call.ty)  # of the access itself

    for kind, change in ((TensorLoad, load), (Call, address), (tirx.BufferStore, store)):
        function = map_body(function, kind, change)
    return function


def conditions(buffer: Any, indices: Any) -> list[Any]:
    """What holds of an access inside of its buffer. Nothing for one of several elements, whose index is a
    vector."""
    if any("x" in str(index.ty) for index in indices):
        return []
    return [test for index, extent in zip(indices, buffer.shape) for test in (index >= 0, index < extent)]


def raise_outside(access: str, shape: str, *indices: int) -> None:
    raise AccessOutside(f"{access}[{', '.join(map(str, indices))}], which is outside of its shape {shape}")
