"""The instructions the machine knows, by families.

To add a family: write its file here and the one of the same name in ../core, and name it in FAMILIES.
"""

from __future__ import annotations

from functools import lru_cache

from tir_schedules.machines.cpu.forms import UNKNOWN, Form
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
from tir_schedules.machines.cpu.ptx import Instruction

FAMILIES = (
    refused,
    arithmetic,
    integers,
    bits,
    selection,
    conversion,
    memory,
    async_copy,
    bulk,
    warp,
    tensor,
    warpgroup,
    control,
    mbarrier,
    cluster,
    calls,
)
FORMS = {name: form for family in FAMILIES for name, form in family.FORMS.items()}
"""Name, or name and its first modifiers, such as "bar.warp" -> Form."""

LONGEST = max(name.count(".") for name in FORMS) + 1


@lru_cache(maxsize=None)
def form_of_opcode(opcode: str) -> Form:
    """The Form of an opcode with its modifiers; UNKNOWN when there is none."""
    parts = opcode.split(".")
    for count in range(min(LONGEST, len(parts)), 0, -1):
        form = FORMS.get(".".join(parts[:count]))
        if form:
            return form
    return UNKNOWN


def form_of(instruction: Instruction) -> Form:
    return form_of_opcode(instruction.opcode)
