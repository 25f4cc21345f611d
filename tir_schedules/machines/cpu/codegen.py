"""C++ headers that are written from the Python side, so that there is one description of what both know.

abi.h has the constants, numberings and structures of abi.py; operands.h a struct for each micro-op, whose
functions are its operands; table.cpp the table of all functions by name. Each micro-op needs a function
`static void execute(Machine&, Warp&, const ops::Name&)`: where one side has what the other lacks, the core
does not compile. `python -m tir_schedules.machines.cpu.codegen` prints all three.
"""

from __future__ import annotations

import ctypes
import textwrap
from enum import Enum, IntFlag
from typing import Iterable, Iterator

from tir_schedules.machines.cpu import abi, product_registers, undefined
from tir_schedules.machines.cpu.instructions import FAMILIES
from tir_schedules.machines.cpu.micro_ops import (
    MICRO_OPS,
    Counts,
    Kind,
    MicroOp,
    Number,
    Place,
    Reached,
    Several,
)

TABLE = "table.cpp"
"""What names every function, and so is compiled behind all of them."""

SOURCES = FAMILIES, product_registers, undefined
"""What has micro-ops; to import it enters them in MICRO_OPS."""


def generated() -> dict[str, str]:
    """The texts, by the names of their files."""
    return {"abi.h": abi_header(), "operands.h": operands_header(), TABLE: functions_table()}


def comment(text: str) -> str:
    """Lines of a comment."""
    return "".join(f"// {line}\n" for line in textwrap.wrap(" ".join(text.split()), 107))


def enumeration(kind: type[Enum], how: str = "enum") -> str:
    members = ", ".join(f"{one.name} = {one.value}" for one in kind)
    return f"{how} {kind.__name__} : u32 {{ {members} }};\n"


# ---- abi.h ---
def abi_header() -> str:
    known = vars(abi).items()
    numbers = [(name, value) for name, value in known if name.isupper() and type(value) is int]
    enums = [kind for _, kind in known if isinstance(kind, type) and kind.__module__ == abi.__name__]
    lists = {"Kind": (*abi.FINDING_KINDS, "kinds"), "Special": (*abi.SPECIAL, "specials")}
    return "".join(
        [
            '#pragma once\n#include "lanes/numeric.h"\n',
            *(f"const {integer(value)} {name} = {value:#x};\n" for name, value in numbers),
            *(enumeration(kind) for kind in enums if issubclass(kind, Enum)),
            *(
                f"enum {name} : u32 {{ {', '.join(map(constant, names))} }};\n"
                for name, names in lists.items()
            ),
            *(f"struct {name};\n" for name in ("Machine", "Warp", *abi.STRUCTURES)),
            "typedef void (*Function)(Machine&, Warp&, u8* registers, const MicroOp&);\n",
            *map(structure, abi.STRUCTURES),
        ]
    )


def constant(name: str) -> str:
    return name.upper().replace(".", "_")


def integer(value: int) -> str:
    """The C++ type of a constant."""
    return "u32" if value < 1 << 32 else "u64"


def structure(name: str) -> str:
    fields, about = abi.STRUCTURES[name]
    size = abi.SIZES[name] if name in abi.SIZES else ctypes.sizeof(getattr(abi, name))
    lines = "".join(
        f"  {kind} {field}{f'[{length}]' if length else ''};\n"
        for kind, field, length in abi.declared(fields)
    )
    return f"{comment(about)}struct {name} {{\n{lines}}};\nstatic_assert(sizeof({name}) == {size});\n"


# ---- operands.h ---
def operands_header() -> str:
    made = list(classes())
    enums = {kind.enum: None for each in made for kind in each.kinds.values() if isinstance(kind, Number)}
    own = [enum for enum in enums if enum and enum.__module__ != abi.__name__]
    return (
        '#pragma once\n#include "state/operand_kinds.h"\nnamespace ops {\n'
        + "".join(map(scoped, own))
        + "".join(map(struct_of, made))
        + "}\n"
    )


def scoped(kind: type[Enum]) -> str:
    """An enumeration whose members need its name; those of flags are numbers."""
    if issubclass(kind, IntFlag):
        return (
            f"struct {kind.__name__} {{ {enumeration(kind).replace(f' {kind.__name__}', '', 1).strip()} }};\n"
        )
    return enumeration(kind, "enum class")


def classes() -> Iterator[type[MicroOp]]:
    """Each class of micro-ops behind the one that it extends."""
    pending = [*MicroOp.__subclasses__()]
    while pending:
        yield (made := pending.pop(0))
        pending += made.__subclasses__()


def struct_of(made: type[MicroOp]) -> str:
    (base,) = made.__bases__
    assert issubclass(base, MicroOp)
    parent = "Operands" if base is MicroOp else base.__name__
    own = made.kinds.keys() - base.kinds.keys()
    assert not own or not any(isinstance(kind, Several) for kind in base.kinds.values()), "lists stand last"
    lines, at, before = "", 0, ""
    words = sum(kind.words for kind in made.kinds.values())
    for name, kind in made.kinds.items():
        if name in own:
            lines += f"  {accessor(name, kind, at, f'{words}{before}')}\n"
        if isinstance(kind, Several):
            before += f" + op->operands[{at}]"
        at += kind.words
    return f"{comment(made.__doc__ or '')}struct {made.__name__} : {parent} {{\n{lines}}};\n"


def accessor(name: str, kind: Kind, at: int, listed: str) -> str:
    """The function that reads a field. at: where it is; listed: where what a list has begins."""
    operand = f"op->operands[{at}]"
    if isinstance(kind, Several):
        item = kind.item
        if isinstance(item, Number):
            return f"Numbers {name}() const {{ return {{op->operands + {listed}, {operand}}}; }}"
        assert isinstance(item, Place)
        return f"Registers<{item.cpp}> {name}() const {{ return {{R, op->operands + {listed}, {operand}}}; }}"
    if isinstance(kind, Place):
        there = f"({kind.cpp}*)(R + {operand})"
        value = f"{operand} == NONE ? nullptr : {there}" if kind.optional else there
        return f"{kind.cpp}* {name}() const {{ return {value}; }}"
    if isinstance(kind, Reached):
        return f"Address {name}() const {{ return {{R, op->operands + {at}}}; }}"
    if isinstance(kind, Counts):
        return f"s32 {name}() const {{ return op->counter; }}"
    assert isinstance(kind, Number)
    return f"{kind.cpp} {name}() const {{ return ({kind.cpp}){operand}; }}"


# ---- table.cpp ---
def functions_table(names: Iterable[str] = MICRO_OPS) -> str:
    made = {name: MICRO_OPS[name] for name in names}
    rows = "".join(
        f'  {{"{name}", {f"run<ops::{one.__name__}, execute>" if one.executed else "nothing"}}},\n'
        for name, one in made.items()
    )
    return (
        f'#include "operands.h"\nstatic const NamedFunction FUNCTIONS[] = {{\n{rows}}};\n'
        'extern "C" void* function_named(const char* name) {\n'
        "  for (const NamedFunction& each : FUNCTIONS)\n"
        "    if (!strcmp(name, each.name)) return (void*)each.function;\n"
        "  return nullptr;\n}\n"
    )


if __name__ == "__main__":
    for file, text in generated().items():
        print(f"// ---- {file} ---\n{text}")
