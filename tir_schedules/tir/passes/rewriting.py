"""Small changes to TIR that several passes make."""

from __future__ import annotations

import tvm_ffi
from tvm import s_tir, tirx


def with_value(statement, variable, value):
    """The statement with a value in place of a variable."""
    return tvm_ffi.structural_map(
        statement, (tirx.Var, lambda node: value if node.same_as(variable) else node)
    )


def with_body(loop, body):
    """A loop with another body."""
    return tirx.For(
        loop.loop_var, loop.min, loop.extent, loop.kind, body, loop.thread_binding, loop.annotations
    )


def with_block_body(realize, body):
    """A block, where it is realized, with another body."""
    block = realize.block
    parts = (block.iter_vars, block.reads, block.writes, block.name_hint, body, block.init)
    changed = s_tir.SBlock(*parts, block.alloc_buffers, block.match_buffers, block.annotations)
    return s_tir.SBlockRealize(realize.iter_values, realize.predicate, changed)
