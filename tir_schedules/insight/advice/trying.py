"""Changes of a source that leave what the kernel computes as it is: other numbers of threads, other launch
bounds."""

from __future__ import annotations

import re

from tir_schedules.model.launch import Dim3

SECOND_BOUND = re.compile(r"__launch_bounds__\s*\(([^(),]+(?:\([^()]*\))?[^(),]*),[^()]*\)")
AXES = {"x": "y", "y": "x"}
INDEX = re.compile(r"\b(threadIdx|blockDim)\s*\.\s*([xy])\b")


def transposed(source: str, block: Dim3, row: int) -> tuple[str, Dim3] | None:
    """The source whose neighbouring threads do what threads `row` apart did: x and y change places; in a
    block of one dimension, columns of its threads do. None where it does not ask for its threads."""
    if not INDEX.search(source):
        return None
    if block[1] > 1:
        return INDEX.sub(lambda match: f"{match[1]}.{AXES[match[2]]}", source), (block[1], block[0], block[2])
    columns = block[0] // row
    index = f"(threadIdx.x % {columns} * {row} + threadIdx.x / {columns})"
    return re.sub(r"\bthreadIdx\s*\.\s*x\b", index, source), block


def without_second_bound(source: str) -> str | None:
    """The source without the least number of blocks that `__launch_bounds__` asks for; None where there is
    none."""
    changed = SECOND_BOUND.sub(r"__launch_bounds__(\1)", source)
    return changed if changed != source else None
