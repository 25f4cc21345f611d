"""A kernel's source text: where the kernel itself stands in it, and how the compiler names its lines."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path, PurePath
from typing import Sequence

from tir_schedules.errors import CheckFailed
from tir_schedules.model.kernel import Kernel

PTX_BEGINS = re.compile(r"\s*(?://[^\n]*\n\s*|/\*.*?\*/\s*)*\.version\s+\d", re.S)
LINE_DIRECTIVE = re.compile(r'\s*#\s*(?:line\s+)?(\d+)(?:\s+"([^"]*)")?')
FILE_DIRECTIVE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.M)
LOC_DIRECTIVE = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)", re.M)
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def is_ptx(text: str) -> bool:
    return bool(PTX_BEGINS.match(text))


def file_name(kernel: Kernel) -> str:
    """What nvcc calls the kernel's file: "sub/my kernel.cu" is my_kernel.cu, and the label "sgemm/naive
    (tir)" sgemm_naive_tir.cu. PTX text and Python keep their endings: what PTX was compiled from has
    another; CUDA of a Python file has CUDA's."""
    name = PurePath(kernel.file).stem if kernel.file else kernel.label
    ending = PurePath(kernel.file).suffix
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")[:100] or "source"
    return plain + (ending if ending == ".ptx" or is_python(kernel) else ".cu")


def language_of(kernel: Kernel) -> str:
    """What a kernel is written in: "python", "cu", or "" for PTX."""
    return "python" if is_python(kernel) else "" if is_ptx(kernel.source) else "cu"


def is_python(kernel: Kernel) -> bool:
    """Whether it is a Python function, as Triton's kernels are, not CUDA that stands in a Python file."""
    return PurePath(kernel.file).suffix == ".py" and "__global__" not in kernel.source


def shown_name(kernel: Kernel) -> str:
    """What messages call the kernel's file."""
    return kernel.file or file_name(kernel)


def rename_file(line: str, kernel: Kernel) -> str:
    """A line of the compiler's, or of a listing of SASS, with the kernel's file and line as a reader finds
    them."""
    text = SourceText(kernel)

    def named(match: re.Match[str]) -> str:
        file, number = text.place(text.own, int(match[2] or 0))
        return f"{file}{match[1]}{number or match[2]}"

    own = re.escape(text.own)
    return re.sub(rf"(?<![\w./]){own}((?:[(:]|\", line )(?=\d)|(?=[(:\"]))(\d*)", named, line)


def place_in_ptx(ptx: str, ptx_line: int, kernel: Kernel) -> tuple[str, int] | None:
    """File, as the PTX names it, and line of the kernel's own source or a header of the user's that a PTX
    line comes from."""
    files, text = dict(FILE_DIRECTIVE.findall(ptx)), SourceText(kernel)
    for file, number in reversed(LOC_DIRECTIVE.findall("\n".join(ptx.splitlines()[:ptx_line]))):
        name = files.get(file, "")
        if name == file_name(kernel) or text.includes(text.shown(name)):
            return name, int(number)
    return None


def number_lines(source: str, own: str) -> list[tuple[str, int]]:
    """(file, line) of each line of the text as the compiler counts; `own` is the file until `#line` names
    another."""
    places, file, number = [], own, 1
    for text in source.split("\n"):
        places.append((file, number))
        directive = LINE_DIRECTIVE.match(text)
        if directive:
            number, file = int(directive[1]), directive[2] if directive[2] is not None else file
        else:
            number += 1
    return places


def places_of(kernel: Kernel) -> Sequence[tuple[str, int]]:
    """File and line where a reader finds each line of the source: those of `Kernel.places`, else in the
    kernel's own file or where `#line` says."""
    own = shown_name(kernel)
    return kernel.places or [
        (file if file == own else PurePath(file).name, number)
        for file, number in number_lines(kernel.source, own)
    ]


ASSEMBLY = 6
"""Lines that are looked at for the start of an `asm` statement."""


ENDED = re.compile(r";\s*(\\|//.*)?$")
"""The end of a statement."""


class SourceText:
    """What stands in the lines of a kernel that `.file` and `.loc` of its PTX name."""

    def __init__(self, kernel: Kernel):
        self.kernel, self.own = kernel, file_name(kernel)
        self.folder = Path(kernel.file).parent if kernel.file else None
        self.included = (
            {PurePath(path).name: path for path in INCLUDE.findall(kernel.source)} if kernel.file else {}
        )

    @cached_property
    def rows(self) -> dict[tuple[str, int], int]:
        """The number in the source, from 1, of each line by where a reader finds it; the first of several."""
        found: dict[tuple[str, int], int] = {}
        for row, place in enumerate(places_of(self.kernel), 1):
            found.setdefault(place, row)
        return found

    @cached_property
    def texts(self) -> list[str]:
        """The lines of the source."""
        return self.kernel.source.split("\n")

    def place(self, file: str, number: int) -> tuple[str, int]:
        """Where a reader finds a line that the PTX names: file, by its shown name, and number."""
        places = self.kernel.places
        if places and file == self.own and 0 < number <= len(places):
            return places[number - 1]
        return self.shown(file), number

    def shown(self, file: str) -> str:
        """A file of the PTX as messages name it."""
        return shown_name(self.kernel) if file == self.own else file

    def includes(self, file: str) -> bool:
        """Whether a file, by its shown name, is a header of the user's, not one of CUDA's."""
        return (
            bool(self.folder) and file not in ("", shown_name(self.kernel)) and self._header(file) is not None
        )

    def line(self, file: str, number: int) -> str:
        """The text of a line, by where a reader finds it, without its indent; empty when it is not known. Of
        inline assembly it is the first line, which has the instruction, because nvcc names the last one."""
        if (file, number) in self.rows:
            own = self._own_line(file, number)
            for back in range(ASSEMBLY):
                text = self._own_line(file, number - back)
                if back and ENDED.search(text):
                    break
                if text.startswith("asm"):
                    return text
            return own
        header = self._header(file)
        if header not in self._headers:
            self._headers[header] = read_lines(header) if header else []
        lines = self._headers[header]
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""

    def whole_line(self, file: str, number: int) -> str:
        """The same with its indent where it is in the source itself; as it is, if it has assembly."""
        row = self.rows.get((file, number), 0)
        return self.texts[row - 1] if row else self.line(file, number)

    def _own_line(self, file: str, number: int) -> str:
        row = self.rows.get((file, number), 0)
        return self.texts[row - 1].strip() if row else ""

    def _header(self, file: str) -> Path | None:
        """Where a header lies, from its name or the end of its path."""
        if self.folder is None or not file:
            return None
        folders = (self.folder, *map(Path, self.kernel.includes))
        names = dict.fromkeys((self.included.get(PurePath(file).name, file), file))
        paths = (folder / name for folder in folders for name in names)
        return next((path for path in paths if path.is_file()), None)

    @cached_property
    def _headers(self) -> dict[Path | None, list[str]]:
        return {}


def read_lines(path: Path) -> list[str]:
    """Lines of a text file; none when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return []


def kernel_part(source: str, entry: str) -> tuple[int, str]:
    """A kernel in a CUDA source, from `extern "C"` or `__global__` to its closing brace: the number of its
    first line, from 1, and its text.

    TVM prints a prelude before it; twins have includes, helpers and comments. CheckFailed when the source
    does not define `entry`.
    """
    blanked = NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)  # as long as the source
    definition = re.search(
        rf"(?:\bextern\s+)?\b__global__\b[^;{{}}]*\b{entry}\s*\([^;{{}}]*\)\s*\{{", blanked
    )
    if not definition:
        raise CheckFailed(f'the source defines no extern "C" __global__ function {entry}')
    begin = source.rfind("\n", 0, definition.start()) + 1
    end = closing_brace(blanked, definition.end() - 1)
    return source.count("\n", 0, begin) + 1, source[begin : end + 1]


def closing_brace(code: str, opening: int) -> int:
    """Index of the brace that closes the one at `opening`; the end of the code where none does."""
    depth = 0
    for brace in re.compile(r"[{}]").finditer(code, opening):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    return len(code) - 1
