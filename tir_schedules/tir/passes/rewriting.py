"""Small rewrites of TIR that several passes share, and what they ask of it."""

# TVM's nodes have their fields at run time alone.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any, Callable, Sequence

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call


def map_body(function: tirx.PrimFunc, kind: type, change: Callable[[Any], tirx.Stmt]) -> tirx.PrimFunc:
    """The function with every statement of a kind in its body changed, inner ones first."""
    return function.with_body(tvm_ffi.structural_map(body_of(function), (kind, change), order="post"))


def body_of(function: tirx.PrimFunc) -> tirx.Stmt:
    """A function's body, a field that TVM does not declare."""
    return getattr(function, "body")


def substitute(statement: tirx.Stmt, variable: tirx.Var, value: Any) -> tirx.Stmt:
    """The statement with a value in place of a variable."""
    return tvm_ffi.structural_map(
        statement, (tirx.Var, lambda node: value if node.same_as(variable) else node)
    )


def sequence(statements: Sequence[tirx.Stmt]) -> tirx.Stmt:
    """Statements one after the other. TVM takes no sequence of a single one."""
    return tirx.SeqStmt([*statements]) if len(statements) > 1 else statements[0]


def replace_body(loop: tirx.For, body: tirx.Stmt) -> tirx.For:
    """A loop with another body."""
    return tirx.For(
        loop.loop_var, loop.min, loop.extent, loop.kind, body, loop.thread_binding, loop.annotations
    )


def replace_block_body(realize: s_tir.SBlockRealize, body: tirx.Stmt) -> s_tir.SBlockRealize:
    """A block, where it is realized, with another body."""
    block = realize.block
    parts = (block.iter_vars, block.reads, block.writes, block.name_hint, body, block.init)
    changed = s_tir.SBlock(*parts, block.alloc_buffers, block.match_buffers, block.annotations)
    return s_tir.SBlockRealize(realize.iter_values, realize.predicate, changed)


def at_values(realize: s_tir.SBlockRealize, condition: Any) -> Any:
    """A condition on variables of a block, with the values that they have where the block is realized."""
    for variable, value in zip(realize.block.iter_vars, realize.iter_values):
        condition = substitute(condition, variable.var, value)
    return condition


def is_guarded(value: Any) -> bool:
    return isinstance(value, Call) and getattr(value.op, "name", "") == "prim.if_then_else"


def guard_load(conditions: list[Any], load: Any, otherwise: Any) -> Any:
    """The load, predicated on all conditions, with another value where one fails; bare without conditions."""
    return tirx.if_then_else(tirx.all(*conditions), load, otherwise) if conditions else load


def conjuncts(guard: Any) -> list[Any]:
    """The comparisons that a guard is made of."""
    if isinstance(guard, tirx.And):
        return [*conjuncts(guard.a), *conjuncts(guard.b)]
    return [guard]


def thread_tag(loop: tirx.For) -> str:
    """The thread axis a loop is bound to, "" when to none."""
    return loop.thread_binding.thread_tag if loop.thread_binding is not None else ""
