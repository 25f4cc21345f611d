"""The code of a kernel line by line: its source with what each line cost on the CPU machine, and the
instructions of its PTX or SASS."""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePath
from typing import Iterator

from tir_schedules.check.target import base
from tir_schedules.compiler.sass import INSTRUCTION, LABEL, disassemble
from tir_schedules.compiler.source_text import (
    SourceText,
    closing_brace,
    is_ptx,
    is_python,
    kernel_part,
    places_of,
    shown_name,
)
from tir_schedules.errors import CheckFailed
from tir_schedules.insight.metrics.counting import SHARED, Metrics
from tir_schedules.model.counters import Access, LineCounters
from tir_schedules.model.kernel import Binary, Kernel


@dataclass(frozen=True)
class AnnotatedLine:
    """A line of source.

    file, number: where a reader finds it; no file for that of the kernel itself. text: empty for a line of
    CUDA's headers. counters: None where nothing was executed. share: of the launch's thread instructions, 0
    to 1. row: its number in the text that nvcc compiles, 0 for one of other files.
    """

    file: str
    number: int
    text: str
    counters: LineCounters | None
    share: float
    row: int = 0

    @property
    def place(self) -> str:
        """Its number, after the file where that is not the kernel's own."""
        return line_name(self.file, self.number)


def line_name(file: str, number: int) -> str:
    """How tables name a line: by its number, after the name of its file where that is not the kernel's."""
    if not number:
        return "unknown"
    return f"{PurePath(file).name}:{number}" if file else str(number)


@dataclass(frozen=True)
class Conflict:
    """Accesses of one class on one line that cost more wavefronts than without bank conflicts."""

    line: AnnotatedLine
    kind: str
    access: Access


def annotate_lines(launch: Metrics) -> list[AnnotatedLine]:
    """Every line of the kernel; then executed lines outside it, of functions it calls and of headers."""
    kernel, counters = launch.binary.kernel, launch.counters
    text, places = SourceText(kernel), places_of(kernel)
    own = home_of(kernel)
    executed = {(line.file, line.line): line for line in counters.lines}

    def annotate(place: tuple[str, int], row: int) -> AnnotatedLine:
        line, (file, number) = executed.get(place), place
        share = sum(line.mix.values()) / counters.thread_instructions if line else 0.0
        file = "" if file == own else file
        return AnnotatedLine(file, number, text.whole_line(*place), line, share, row)

    own_lines = {places[row - 1]: row for row in extent(kernel)}
    others = [place for place in sorted(executed) if place not in own_lines]
    return [annotate(*one) for one in own_lines.items()] + [
        annotate(place, text.rows.get(place, 0)) for place in others
    ]


def home_of(kernel: Kernel) -> str:
    """The file in which a reader finds the kernel itself."""
    inside = extent(kernel)
    return places_of(kernel)[inside[0] - 1][0] if inside else shown_name(kernel)


def conflicting_accesses(launch: Metrics) -> Iterator[Conflict]:
    """Accesses with bank conflicts, line by line."""
    for line in annotate_lines(launch):
        for kind, access in line.counters.accesses.items() if line.counters else ():
            if kind in SHARED and access.cost > access.ideal:
                yield Conflict(line, kind, access)


def extent(kernel: Kernel) -> range:
    """The numbers of its lines, from 1. Of a user's file that does not show where it stands, as where macros
    make its name, there are none; CheckFailed for a kernel of this package that is not in its source."""
    if not kernel.file:
        return lines(*kernel_part(kernel.source, kernel.entry))
    if is_python(kernel):
        return function_range(kernel)
    if is_ptx(kernel.source):
        return entry_range(kernel)
    try:
        return lines(*kernel_part(kernel.source, re.escape(base(kernel.label))))
    except CheckFailed:
        return range(0)


def lines(first: int, text: str) -> range:
    return range(first, first + text.count("\n") + 1)


def function_range(kernel: Kernel) -> range:
    """With its decorators."""
    try:
        tree = ast.parse(kernel.source)
    except (SyntaxError, ValueError):
        return range(0)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == kernel.label:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            return range(first, (node.end_lineno or node.lineno) + 1)
    return range(0)


def entry_range(kernel: Kernel) -> range:
    text = kernel.source
    found = re.search(rf"^[^\n]*\.entry\s+{re.escape(kernel.entry)}\b[^{{]*\{{", text, re.M)
    if not found:
        return range(0)
    end = closing_brace(text, found.end() - 1)
    return lines(text.count("\n", 0, found.start()) + 1, text[found.start() : end + 1])


PREDICATED = re.compile(r"\s+(@!?U?P\w+)\s+")
PREDICATE = re.compile(r"^[{\s]*(@!?%?\w+\s+)?")
COMMENT = re.compile(r"//.*")
WITH_SPACE = ("ld", "st", "cp", "atom", "red", "wmma", "bar", "cvt")
"""PTX instructions whose name says little without its second part: ld.shared, cp.async."""


def listing(binary: Binary, form: str) -> list[str]:
    """The lines of a kernel's code. form: "ptx" or "sass". Labels end in a colon and stand at the margin."""
    return sass_lines(disassemble(binary)) if form == "sass" else ptx_lines(binary.ptx, binary.kernel.entry)


def sass_lines(sass: str) -> list[str]:
    """Labels and instructions with predicates of what nvdisasm prints, without the padding at the end."""
    lines = []
    for line in sass.splitlines():
        if label := LABEL.match(line):
            lines.append(f"{label[1]}:")
        if instruction := INSTRUCTION.search(line):
            predicate = PREDICATED.search(line[: instruction.start(1)])
            lines.append(f"  {predicate[1] + ' ' if predicate else ''}{instruction[1]}")
    while lines and (lines[-1] == "  NOP" or lines[-1].endswith(":")):
        lines.pop()
    return lines


def ptx_lines(ptx: str, entry: str) -> list[str]:
    """Labels, declarations and instructions of the kernel's body, without line numbers and comments."""
    opening = ptx.index("{", ptx.index(")", ptx.index(f".entry {entry}(")))
    lines = []
    for line in ptx[opening + 1 : closing_brace(ptx, opening)].splitlines():
        text = " ".join(COMMENT.sub("", line).split())
        if text and not text.startswith((".loc", ".pragma")):
            lines.append(text if text.endswith(":") else f"  {text}")
    return lines


def opcodes(lines: list[str]) -> Counter[str]:
    """How often each instruction stands in a listing: "LDS", "FFMA" of SASS; "ld.shared", "fma" of PTX."""
    found: Counter[str] = Counter()
    for line in lines:
        if line.startswith("  ") and (words := PREDICATE.sub("", line).split()) and words[0][0].isalpha():
            name, *parts = words[0].rstrip(";").split(".")
            found[".".join([name, *parts[:1]]) if name in WITH_SPACE else name] += 1
    return found
