"""The table of instructions: what the machine knows of PTX ISA 9.0, and what it refuses by name.

Each line comes from a Form, and tests/machines/test_catalogue.py runs or refuses each opcode of each line.
"""

from __future__ import annotations

import re
from itertools import product
from typing import Iterator, NamedTuple

from tir_schedules.machines.cpu.forms import Form, Line, exact, modelled, refusal, refuse
from tir_schedules.machines.cpu.instructions import FAMILIES


class Entry(NamedTuple):
    """A line of the table: see Line in forms.py. family: of instructions, a file in `instructions`."""

    opcodes: str
    family: str
    since: str
    precision: str
    note: str


def entries() -> list[Entry]:
    return [
        Entry(opcodes, family.__name__.rpartition(".")[2], f"sm_{since or 75}", precision, note)
        for family in FAMILIES
        for name, form in family.FORMS.items()
        if not form.ours
        for opcodes, precision, note, since in form.lines or [line_of(name, form)]
    ]


def line_of(name: str, form: Form) -> Line:
    """Of a Form that has no lines."""
    if form.lower is refuse:
        return refusal(name, "known by name alone")
    if form.lower is None and form.ends is None:
        return modelled(name, "nothing is executed")
    return exact(name, "cases written by hand")


def expanded(opcodes: str) -> Iterator[str]:
    """Every opcode that a line stands for: "add.{u32,s32}" is two."""
    for pattern in opcodes.split():
        parts = [part.split(",") for part in re.split(r"[{}]", pattern)]
        literal, choices = parts[::2], parts[1::2]
        for chosen in product(*choices):
            yield "".join(a[0] + b for a, b in zip(literal, [*chosen, ""]))
