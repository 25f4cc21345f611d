"""Writing files: parts of a text that a script generates, between `<!-- KIND: NAME -->` and `<!-- end -->`, and what can be written."""
from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Callable

from tir_schedules.emit import write_text
from tir_schedules.errors import BadInput

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


def check_folder(path: Path) -> None:
    """BadInput for a file that could not be written after everything slow."""
    if path.is_dir() or not path.parent.is_dir():
        raise BadInput(f"cannot write {path}: name a file in a folder that exists")
