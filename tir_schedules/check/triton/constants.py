"""Constexprs as a command has them: `BM=64`, `CAUSAL=True`, `ACTIVATION='relu'`, `OUT=tl.float16`."""

from __future__ import annotations

import ast
import re
from typing import Any, Sequence

from tir_schedules.check.arguments import NAMED
from tir_schedules.check.triton.library import part
from tir_schedules.errors import BadInput, shown

TYPE = re.compile(r"(?:tl|triton\.language)\.(\w+)")
FORM = "a number, True, False, None, 'text', or a type such as tl.float16"


def constants_of(texts: Sequence[str]) -> dict[str, Any]:
    """`--constexpr` by name; of two with one name the last. BadInput for what is no constant."""
    found = {}
    for text in texts:
        match = NAMED.fullmatch(text)
        if not match:
            raise BadInput(f"--constexpr takes NAME=VALUE such as BM=64, not {shown(text)}")
        found[match[1]] = constant(match[2].strip(), f"--constexpr {match[1]}=")
    return found


def constant(text: str, what: str) -> Any:
    type_ = TYPE.fullmatch(text)
    if type_:
        language = part("triton.language")
        made = getattr(language, type_[1], None)
        if not isinstance(made, language.dtype):
            raise BadInput(f"{what} {shown(text)}: triton.language has no such type")
        return made
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise BadInput(f"{what} {shown(text)}: it takes {FORM}") from None
    if not isinstance(value, (bool, int, float, str, type(None))):
        raise BadInput(f"{what} {shown(text)}: it takes {FORM}")
    return value
