"""C++ headers that are written from the Python side, so that there is one description of what both know.

abi.h has the constants, numberings and structures of abi.py; operands.h a struct for each micro-op, whose
functions are its operands; table.cpp the table of all functions by name. Each micro-op needs a function
`static void execute(Machine&, Warp&, const ops::Name&)`: where one side has what the other lacks, the core
does not compile. `python -m tir_schedules.machines.cpu.codegen` prints all three.
"""

from __future__ import annotations

import ctypes
from enum import Enum, IntFlag
from types import ModuleType
from typing import Iterable

from tir_schedules.machines.cpu import abi, instrumentation
from tir_schedules.machines.cpu.instructions import FAMILIES
from tir_schedules.machines.cpu.micro_ops import MICRO_OPS, TYPES, MicroOpType, Number, Several

TABLE = "table.cpp"
"""What names every function, and so is compiled behind all of them."""

SOURCES = (*FAMILIES, instrumentation)
"""What has micro-ops; to import it enters them in MICRO_OPS."""


def enumerations(module: ModuleType) -> list[type[Enum]]:
    """Those that a module makes."""
    known = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, Enum)]
    return [kind for kind in known if kind.__module__ == module.__name__]


ENUMERATIONS = [kind for module in SOURCES for kind in enumerations(module)]
FLAGS = {kind.__name__ for kind in (*enumerations(abi), *ENUMERATIONS) if issubclass(kind, IntFlag)}
"""Enumerations that C++ has as numbers."""


def generated() -> dict[str, str]:
    """The texts, by the names of their files."""
    return {"abi.h": abi_header(), "operands.h": operands_header(), TABLE: functions_table()}


def enumeration(kind: type[Enum], how: str = "enum") -> str:
    members = ", ".join(f"{one.name} = {one.value}" for one in kind)
    return f"{how} {kind.__name__} : u32 {{ {members} }};\n"


# ---- abi.h ---
def abi_header() -> str:
    text = '#pragma once\n#include "lanes/numeric.h"\n'
    for name, value in vars(abi).items():
        if name.isupper() and type(value) is int:
            text += f"const {'u32' if value < 1 << 32 else 'u64'} {name} = {value:#x};\n"
    text += "".join(map(enumeration, enumerations(abi)))
    for name, names in (("Kind", (*abi.FINDING_KINDS, "kinds")), ("Special", (*abi.SPECIAL, "specials"))):
        text += f"enum {name} : u32 {{ {', '.join(names).upper().replace('.', '_')} }};\n"
    text += "".join(f"struct {name};\n" for name in ("Machine", "Warp", *abi.STRUCTURES))
    text += "typedef void (*Function)(Machine&, Warp&, u8* registers, const MicroOp&);\n"
    return text + "".join(map(structure, abi.STRUCTURES))


def structure(name: str) -> str:
    size = abi.SIZES[name] if name in abi.SIZES else ctypes.sizeof(getattr(abi, name))
    lines = ""
    for kind, field, length in abi.declared(abi.STRUCTURES[name]):
        lines += f"  {kind} {field}{f'[{length}]' if length else ''};\n"
    return f"struct {name} {{\n{lines}}};\nstatic_assert(sizeof({name}) == {size});\n"


# ---- operands.h ---
def operands_header() -> str:
    return (
        '#pragma once\n#include "state/operand_kinds.h"\nnamespace ops {\n'
        + "".join(map(scoped, ENUMERATIONS))
        + "".join(map(struct_of, TYPES))
        + "}\n"
    )


def scoped(kind: type[Enum]) -> str:
    """An enumeration whose members need its name; those of flags are numbers."""
    if issubclass(kind, IntFlag):
        members = enumeration(kind).replace(f" {kind.__name__}", "", 1).strip()
        return f"struct {kind.__name__} {{ {members} }};\n"
    return enumeration(kind, "enum class")


def struct_of(made: MicroOpType) -> str:
    if made.extended:
        return f"struct {made.name} : {made.extended.name} {{}};\n"
    lines, at, before = "", 0, ""
    words = sum(kind.words for kind in made.fields.values())
    for name, kind in made.fields.items():
        operand = f"op->operands[{at}]"
        kind = Number("u32") if isinstance(kind, Number) and kind.cpp in FLAGS else kind
        cpp, value = kind.reader(operand, at, f"{words}{before}")
        lines += f"  {cpp} {name}() const {{ return {value}; }}\n"
        before += f" + {operand}" if isinstance(kind, Several) else ""
        at += kind.words
    return f"struct {made.name} : Operands {{\n{lines}}};\n"


# ---- table.cpp ---
def functions_table(names: Iterable[str] = MICRO_OPS) -> str:
    rows = ""
    for name in names:
        made = MICRO_OPS[name]
        rows += f'  {{"{name}", {f"run<ops::{made.name}, execute>" if made.executed else "nothing"}}},\n'
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
