"""A CUDA file of the user's, run in place of what a schedule emits."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Sequence

from tir_schedules.embedded import TAKING, cuda_in_python, flags_in_python
from tir_schedules.errors import BadInput, printable
from tir_schedules.files import read_bytes

REMEDY = "name a CUDA source file"

IMPORTS = re.compile(r"^(?:import|from) +\w[\w., ]*$|^from +[\w.]+ +import ", re.M)
"""In a file of any name: it is Python. Collections of kernels also call these files `.cu`."""
TAKEN = re.compile(rf"\b(?:{'|'.join(TAKING)})\s*\(")

EXAMPLES = Path(__file__).parent / "check" / "examples"
"""Files with kernels that documentation names, as `examples/gemm.cu`."""


@dataclass(frozen=True)
class Source:
    """text: CUDA C++. file: what messages call it. folder: where it finds what it includes by name. embedded:
    whether the text stands in strings of a Python file. flags: that this file compiles it with."""

    text: str
    file: str = ""
    folder: str = ""
    embedded: bool = False
    flags: tuple[str, ...] = ()

    @property
    def is_python(self) -> bool:
        """Whether the kernels are Python functions, as those of Triton are."""
        return self.file.endswith(".py") and not self.embedded


def find_file(path: Path) -> Path:
    """The file that a path means: `examples/gemm.cu` is ours where there is no other of that name."""
    ours = EXAMPLES / path.name
    named = path == Path("examples", path.name)
    return ours if named and not path.exists() and ours.is_file() else path


def read_source(path: Path) -> Source:
    """A CUDA file, with lines that end in LF. BadInput when it cannot be read."""
    place = find_file(path)
    content = read_bytes(place, REMEDY)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        if b"\0" in content:
            raise BadInput(f"cannot read {path}: it is not text; {REMEDY}") from None
        text = content.decode("latin-1")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    imports = path.suffix != ".py" and IMPORTS.search(text)
    try:
        cuda = cuda_in_python(text) if path.suffix == ".py" or imports else ""
        if imports and not cuda and TAKEN.search(text):
            ast.parse(text)
            raise BadInput("it is Python, and no string of it has a __global__ function")
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    except SyntaxError as error:
        raise BadInput(f"{path}:{error.lineno or 1} is not Python: {error.msg}") from None
    flags = flags_in_python(text) if cuda else ()
    return Source(cuda or text, printable(path), str(place.absolute().parent), bool(cuda), flags)


INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[\"<]([^\">\n]+)[\">]", re.M)


def own_files(file: Path, folders: Sequence[str] = ()) -> list[Path]:
    """A file and those of the user's that it includes, by way of others, too. folders: of `-I`."""
    found = [find_file(file)]
    for path in found:
        try:
            names = INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue
        places = (Path(folder) / name for name in names for folder in (path.parent, *folders))
        found += dict.fromkeys(place for place in places if place.is_file() and place not in found)
    return found
