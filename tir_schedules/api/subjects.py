# pyright: strict
"""What a user may name or give: a rung, a file with kernels, or a function of TVM's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from tir_schedules.errors import BadInput, shown
from tir_schedules.ladders.known import is_ladder
from tir_schedules.model.rung import Rung
from tir_schedules.source import find_file

if TYPE_CHECKING:
    from tir_schedules.api.functions import Function

Subject: TypeAlias = "str | Path | Rung | Function"
"""A name such as "sgemm/naive" or "./my_rung.py", a Rung; where files are taken the path of a .cu or .ptx, or
CUDA text; or a Schedule, a PrimFunc or an IRModule of TVM's with loops on blocks and threads."""

FILE = re.compile(r"(.+?\.(?:cu|cuh|ptx|py))(?::(.+))?", re.S)
"""A file, and the kernel that may be named behind it."""

TRITON = re.compile(r"^\s*(?:import\s+triton\b|from\s+triton\b)", re.M)
EMBEDDING = re.compile(r"\b(?:load_inline|RawKernel|RawModule|SourceModule|cpp_extension)\b")
"""Functions of PyTorch, CuPy and PyCUDA that take CUDA as a string."""

HEAD = 1 << 16
"""Bytes of a Python file in which Triton is imported, if it is one of Triton's."""

RUNG, OWN, CODE = "a rung", "a function of TVM's", "a file or text with kernels"


def kind_of(subject: object, verb: str, *taken: str) -> str:
    """Which of RUNG, OWN and CODE it is. Raises BadInput if the verb does not take it."""
    found = known_kind(subject)
    if CODE in taken and isinstance(subject, str) and not subject:
        raise BadInput(f"{verb} takes {' or '.join(taken)}; the text is empty")
    if found == RUNG and CODE in taken and isinstance(subject, (str, Path)) and is_plain_folder(str(subject)):
        raise BadInput(f"{subject} is a folder: name a file in it, such as {subject}/mine.cu")
    if found in taken:
        return found
    what = f"{found}, {shown(str(subject))}" if found else f"{type(subject).__name__} {shown(str(subject))}"
    if found == OWN or isinstance(subject, (list, tuple)):  # whose texts are long
        what = found or f"a {type(cast(object, subject)).__name__}"
    raise BadInput(f"{verb} takes {' or '.join(taken)}, not {what}")


def is_plain_folder(path: str) -> bool:
    """Whether it is a folder, and neither a ladder of that name nor the path of one."""
    return Path(path).is_dir() and not is_ladder(path) and not (Path(path) / "__init__.py").is_file()


def as_rung(subject: object) -> str | Rung:
    """A rung as it is, or its name or path."""
    rung: Any = subject
    return rung if isinstance(subject, Rung) else str(subject)


def known_kind(subject: object) -> str:
    """The kind of any object; "" if it is of no kind."""
    from tir_schedules.api.functions import is_tvm

    if isinstance(subject, Rung):
        return RUNG
    if isinstance(subject, (str, Path)):
        return CODE if is_code(str(subject)) else RUNG
    return OWN if is_tvm(subject) else ""


def is_text(text: object) -> bool:
    """Whether it is CUDA or PTX itself, not the name of a file."""
    return isinstance(text, str) and any(part in text for part in ("\n", "{", "__global__"))


def is_code(text: str) -> bool:
    """Whether a text is CUDA or PTX itself, or names a file with kernels: by its ending, and of Python by
    what it imports. A file that does not exist is code, too, unless it is Python, which may be a rung."""
    match = FILE.fullmatch(text)
    if is_text(text) or not match:
        return is_text(text)
    path = find_file(Path(match[1]))
    if path.suffix != ".py":
        return True
    try:
        with path.open("rb") as file:
            head = file.read(HEAD).decode("utf-8", "replace")
            return bool(TRITON.search(head) or (EMBEDDING.search(head) and "__global__" in head))
    except OSError:
        return False


def split_file(text: str) -> tuple[str, str]:
    """A path, and the kernel behind it: "mine.cu:sgemm"."""
    match = FILE.fullmatch(text)
    return (match[1], match[2] or "") if match else (text, "")
