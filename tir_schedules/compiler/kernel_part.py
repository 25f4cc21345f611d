"""The kernel's own part of a CUDA source: TVM prints a prelude before it, twins have includes, helpers and
comments."""

from __future__ import annotations

import re

from tir_schedules.errors import CheckFailed

NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)


def kernel_part(source: str, entry: str) -> tuple[int, str]:
    """Number of its first line, from 1, and text of a kernel: from `extern "C"` or `__global__` to its
    closing brace.

    CheckFailed when the source does not define `entry`.
    """
    code = NOT_CODE.sub(
        lambda match: re.sub(r"[^\n]", " ", match[0]), source
    )  # as long as the source, character for character
    definition = re.search(rf"(?:\bextern\s+)?\b__global__\b[^;{{}}]*\b{entry}\s*\([^;{{}}]*\)\s*\{{", code)
    if not definition:
        raise CheckFailed(f'the source defines no extern "C" __global__ function {entry}')
    begin = source.rfind("\n", 0, definition.start()) + 1
    end = closing_brace(code, definition.end() - 1)
    return source.count("\n", 0, begin) + 1, source[begin : end + 1]


def closing_brace(code: str, opening: int) -> int:
    """Index of the brace that closes the one at `opening`; the end of the code where none does."""
    depth = 0
    for brace in re.compile(r"[{}]").finditer(code, opening):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    return len(code) - 1
