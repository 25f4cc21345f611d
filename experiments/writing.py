"""Writing files: parts of a text that a script generates, between `<!-- KIND: NAME -->` and `<!-- end
-->`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Callable

from tir_schedules.files import write_text

Section = Callable[[str], str]
"""The name in a marker -> the text that belongs after it."""


def rewritten(text: str, kind: str, section: Section) -> str:
    """The text with every part of a kind replaced by its section."""
    marked = re.compile(rf"(<!-- {kind}: ([^>]*?) -->\n)(.*?)(<!-- end -->)", re.S)
    return marked.sub(lambda match: f"{match[1]}\n{section(match[2])}\n\n{match[4]}", text)


def update(path: Path, kind: str, section: Section, check: bool) -> int:
    """Rewrite a file; or, to check, change nothing and return 1 when that would change it."""
    before = path.read_text(encoding="utf-8")
    after = rewritten(before, kind, section)
    if check:
        if before != after:
            print(f"{path} is not what the recorded results say: rewrite it", file=sys.stderr)
        return int(before != after)
    if before != after:
        write_text(path, after)
    return 0
