"""A CUDA file of the user's, run in place of what a schedule emits."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Sequence

from tir_schedules.errors import BadInput, printable
from tir_schedules.files import read_bytes

REMEDY = "name a CUDA source file"

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
    cuda = cuda_in_python(text) if path.suffix == ".py" else ""
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


TRITON = re.compile(r"^[ \t]*@(?:triton\.)?jit\b", re.M)
CHECK = re.compile(r"^[ \t]*#([ \t]*check:.*)$")
OF_TORCH = "#include <torch/types.h>"
"""What `torch.utils.cpp_extension.load_inline` puts before CUDA."""


def cuda_in_python(text: str) -> str:
    """The CUDA in strings of a Python file, as `load_inline` and CuPy's `RawKernel` take it, with the
    `# check:` comments, each line at its number. "" where there is none, or where there are Triton kernels.
    """
    if "__global__" not in text or TRITON.search(text):
        return ""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    strings = [
        node
        for node in ast.walk(module)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "__global__" in node.value
    ]
    lines = [f"//{match[1]}" if (match := CHECK.match(line)) else "" for line in text.split("\n")]
    for node in strings:
        for at, line in enumerate(str(node.value).split("\n"), node.lineno - 1):
            lines += [""] * (at + 1 - len(lines))
            lines[at] = line
    if strings and "load_inline" in text and not lines[0]:
        lines[0] = OF_TORCH
    return "\n".join(lines) if strings else ""


OPTIONS = ("extra_cuda_cflags", "options")
"""How `load_inline`, and CuPy's `RawKernel` and `RawModule`, call the flags of nvcc."""


def flags_in_python(text: str) -> tuple[str, ...]:
    """The flags that a Python file passes in literal lists with its CUDA."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.keyword)
            and node.arg in OPTIONS
            and isinstance(node.value, (ast.List, ast.Tuple))
        ):
            values = [one.value for one in node.value.elts if isinstance(one, ast.Constant)]
            found += [value for value in values if isinstance(value, str) and value.startswith("-")]
    return tuple(dict.fromkeys(found))
