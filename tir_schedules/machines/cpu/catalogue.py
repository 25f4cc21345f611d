"""The table of instructions: what the machine knows of PTX ISA 9.0, and what it refuses by name.

Each line is of a Row, and tests/machines/test_catalogue.py runs or refuses each opcode of each line.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import product
from typing import Iterator, NamedTuple

from tir_schedules.machines.cpu.instructions import FAMILIES, ROWS, name_of_opcode
from tir_schedules.machines.cpu.lines import BY_HAND, Line, exact, modelled, refusal
from tir_schedules.machines.cpu.ptx import read_opcode
from tir_schedules.machines.cpu.table import MIX_BY_TYPE, Row


class Entry(NamedTuple):
    """A line of the table: see Line in lines.py. operands: see Slot there. family: of instructions, a file in
    `instructions`. mix, pipe: of the first of its opcodes: class in the counters, and pipe of an SM."""

    opcodes: str
    family: str
    since: str
    precision: str
    note: str
    operands: str
    mix: str
    pipe: str


MIX = tuple(dict.fromkeys([row.mix for row in ROWS.values() if row.mix] + list(MIX_BY_TYPE)))
"""Classes of instructions in the counters' mix."""


def lines_of_rows() -> dict[str, list[Line]]:
    """The lines of each row that has some, by its name: that of their first opcode."""
    found: dict[str, list[Line]] = defaultdict(list)
    for line in (line for family in FAMILIES for line in getattr(family, "LINES", ())):
        found[name_of_opcode(next(expanded(line.opcodes)))].append(line)
    return found


def entries() -> list[Entry]:
    lines = lines_of_rows()
    return [
        entry(family.__name__.rpartition(".")[2], row, line)
        for family in FAMILIES
        for name, row in family.ROWS.items()
        if not row.ours
        for line in lines.get(name) or [line_of(name, row)]
    ]


def entry(family: str, row: Row, line: Line) -> Entry:
    opcode = read_opcode(next(expanded(line.opcodes)))
    told = (row.operands, row.mix_of(opcode), row.pipe_of(opcode)) if row.known else ("", "", "")
    return Entry(line.opcodes, family, f"sm_{line.since or 75}", line.precision, line.note, *told)


def line_of(name: str, row: Row) -> Line:
    """Of a Row that has no lines."""
    if not row.known:
        return refusal(name, row.remedy, row.since)
    if row.lower is None and row.ends is None:
        return modelled(name, "nothing is executed")
    return exact(name, BY_HAND)


def expanded(opcodes: str) -> Iterator[str]:
    """Every opcode that a line stands for: "add.{u32,s32}" is two."""
    for pattern in opcodes.split():
        parts = [part.split(",") for part in re.split(r"[{}]", pattern)]
        literal, choices = parts[::2], parts[1::2]
        for chosen in product(*choices):
            yield "".join(a[0] + b for a, b in zip(literal, [*chosen, ""]))
