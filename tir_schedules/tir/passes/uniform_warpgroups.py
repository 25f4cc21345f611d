"""Tells ptxas that all lanes of a warp have the same threadIdx.y.

The descriptors of wgmma stand in uniform registers, which a warp has once, not once for each lane. ptxas does
not know that threadIdx.y is the same in all lanes. So it computes what follows from the number of a warpgroup
in ordinary registers and copies it, four instructions for each wgmma. A value that lane 0 broadcasts by a
shuffle is uniform for ptxas. With the number from there, a K tile of 128x256 takes 48 instructions of a warp
in place of 66, most of them on the uniform datapath. An H200 is limited by its power while all tensor cores
multiply. Twins of tiles for 4096 and more had a clock up to 0.9 % higher with these fewer instructions.
"""

# TVM's nodes have their fields at run time alone.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

from tvm import IRModule, tirx, transform

from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.passes.rewriting import map_body, substitute


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.uniform_warpgroups")
def uniform_warpgroups(
    function: tirx.PrimFunc, module: IRModule, context: transform.PassContext
) -> tirx.PrimFunc:
    """Bind the number of a warpgroup, once, and use it in place of threadIdx.y."""

    def bind(scope: Any) -> tirx.Stmt:
        if scope.attr_key != "thread_extent" or scope.node.thread_tag != "threadIdx.y":
            return scope
        warpgroup: Any = tirx.Var("warpgroup", "int32")
        number = tirx.Bind(warpgroup, call("warpgroup_number", returns="int32"))
        body = tirx.SeqStmt([number, substitute(scope.body, scope.node.var, warpgroup)])
        return tirx.AttrStmt(scope.node, scope.attr_key, scope.value, body)

    return map_body(function, tirx.AttrStmt, bind)
