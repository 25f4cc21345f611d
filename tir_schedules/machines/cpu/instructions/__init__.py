"""The instructions the machine knows, by families.

To add a family: write its file here and the one of the same name in ../core, and name it in FAMILIES.
"""

from __future__ import annotations

import re
from functools import lru_cache

from tir_schedules.machines.cpu.instructions import (
    arithmetic,
    async_copy,
    bits,
    bulk,
    calls,
    cluster,
    control,
    conversion,
    integers,
    mbarrier,
    memory,
    refused,
    selection,
    tensor,
    warp,
    warpgroup,
)
from tir_schedules.machines.cpu.ptx import BITS, Instruction, read_opcode
from tir_schedules.machines.cpu.table import UNKNOWN, Row, fits

FAMILIES = (
    refused, arithmetic, integers, bits, selection, conversion, memory, async_copy, bulk, warp, tensor,
    warpgroup, control, mbarrier, cluster, calls,
)  # fmt: skip
ROWS = {name: row for family in FAMILIES for name, row in family.ROWS.items()}
"""Name, or name and its first modifiers, such as "bar.warp" -> Row."""

LONGEST = max(name.count(".") for name in ROWS) + 1

SHAPE = re.compile(r"m\d+n\d+(k\d+)?")


def name_of_opcode(opcode: str) -> str:
    """The longest name of a row that an opcode begins with; empty when there is none."""
    name = ".".join(opcode.split(".", LONGEST)[:LONGEST])
    while name and name not in ROWS:
        name = name.rpartition(".")[0]
    return name


@lru_cache(maxsize=None)
def row_of_opcode(opcode: str) -> Row:
    """The Row of an opcode with its modifiers; UNKNOWN when there is none."""
    return ROWS.get(name_of_opcode(opcode), UNKNOWN)


def row_of(i: Instruction) -> Row:
    return row_of_opcode(i.opcode)


@lru_cache(maxsize=None)
def mix_of(opcode: str) -> str:
    """Class of an opcode in the counters' mix."""
    return row_of_opcode(opcode).mix_of(read_opcode(opcode))


def check(i: Instruction) -> None:
    """UnsupportedInstruction for modifiers or operands that the row of an instruction does not have."""
    kinds = tuple(map(type, i.operands))
    if wrong := fault(i.opcode, kinds):
        raise i.unsupported(wrong)


@lru_cache(maxsize=None)
def fault(opcode: str, kinds: tuple[type, ...]) -> str:
    """What is wrong with an opcode and the classes of its operands; empty when nothing is."""
    row, known = row_of_opcode(opcode), len(name_of_opcode(opcode)) + 1
    if not row.known:
        return ""
    for part in opcode[known:].split("."):
        if part and part not in BITS and part not in row.allowed:
            return "shape" if SHAPE.fullmatch(part) else f"modifier .{part}"
    if fits(row.slots, kinds):
        return ""
    return f"operands, which are {re.sub('[=+]|:[a-z0-9]+', '', row.operands) or 'none'}"
