"""A CUDA file of the user's, run in place of what a schedule emits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tir_schedules.errors import BadInput, printable
from tir_schedules.files import read_bytes

REMEDY = "name a CUDA source file"


@dataclass(frozen=True)
class Source:
    """text: CUDA C++. file: what messages call it. folder: where it finds what it includes by name."""

    text: str
    file: str = ""
    folder: str = ""


def read_source(path: Path) -> Source:
    """A CUDA file, with lines that end in LF. BadInput when it cannot be read."""
    try:
        text = read_bytes(path, REMEDY).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise BadInput(f"cannot read {path}: it is not UTF-8 text; {REMEDY}") from None
    return Source(text, printable(path), str(path.absolute().parent))
