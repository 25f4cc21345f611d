"""A kernel's instructions from its PTX or SASS, without what only assemblers and debuggers read."""

from __future__ import annotations

import re
from collections import Counter

from tir_schedules.compiler.sass import INSTRUCTION, LABEL, disassemble
from tir_schedules.compiler.source_text import closing_brace
from tir_schedules.model.kernel import Binary

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
