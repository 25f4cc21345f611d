"""Where a kernel stands in its source: CUDA, PTX text, or a Python file of Triton kernels."""

from __future__ import annotations

import ast
import re
from pathlib import PurePath

from tir_schedules.check.names import base
from tir_schedules.compiler.source_text import closing_brace, is_ptx, kernel_part
from tir_schedules.errors import CheckFailed
from tir_schedules.model.kernel import Kernel


def extent(kernel: Kernel) -> range:
    """The numbers of its lines, from 1. Of a user's file that does not show where it stands, as where macros
    make its name, there are none; CheckFailed for a kernel of this package that is not in its source."""
    if not kernel.file:
        return lines(*kernel_part(kernel.source, kernel.entry))
    if PurePath(kernel.file).suffix == ".py":
        return of_function(kernel)
    if is_ptx(kernel.source):
        return of_entry(kernel)
    try:
        return lines(*kernel_part(kernel.source, re.escape(base(kernel.label))))
    except CheckFailed:
        return range(0)


def lines(first: int, text: str) -> range:
    return range(first, first + text.count("\n") + 1)


def of_function(kernel: Kernel) -> range:
    """With its decorators."""
    try:
        tree = ast.parse(kernel.source)
    except (SyntaxError, ValueError):
        return range(0)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == kernel.label:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            return range(first, (node.end_lineno or node.lineno) + 1)
    return range(0)


def of_entry(kernel: Kernel) -> range:
    text = kernel.source
    found = re.search(rf"^[^\n]*\.entry\s+{re.escape(kernel.entry)}\b[^{{]*\{{", text, re.M)
    if not found:
        return range(0)
    end = closing_brace(text, found.end() - 1)
    return lines(text.count("\n", 0, found.start()) + 1, text[found.start() : end + 1])
