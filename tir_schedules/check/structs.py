"""Structs that a kernel takes by value: their members, each given like a parameter of its own."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Iterator, Sequence

from tir_schedules.check.target import Parameter
from tir_schedules.check.types import CType, c_type, dtype_of
from tir_schedules.compiler.signature import blank_literals, split
from tir_schedules.compiler.source_text import closing_brace

MEMBER = re.compile(
    r"\s*((?:(?:const|volatile|unsigned|signed)\s+)*[A-Za-z_][\w:]*(?:\s+(?:const|int|long|short|char|unsigned))*)"
    r"(?:\s+|(?=\s*\*))(.+)",
    re.S,
)
DECLARATOR = re.compile(r"\s*((?:\*|\s|const\b|__restrict__\b|__restrict\b)*)(\w+)\s*(?:(?:=|\{).*)?", re.S)
EMPTY = re.compile(r"(?:std|cuda|thrust|cub)::")
"""Namespaces whose classes of one byte have no members, such as cuda::std::plus."""

ACCESSOR = re.compile(r"(?:at|torch)::GenericPackedTensorAccessor<(.+), (\d+)ul, .+, (int|long)>")
"""PyTorch's PackedTensorAccessor32 and 64: a pointer, then extents and strides of that many dimensions."""


def members_of(parameter: Parameter, source: str) -> tuple[Parameter, ...] | None:
    """The members of a struct, each with its offset. None where its definition is not found, or has what is
    not a number or pointer; source: what the user wrote, after the preprocessor."""
    body = body_of(parameter.type.text, source)
    if body is None:
        return () if parameter.bytes == 1 and EMPTY.match(parameter.type.text) else None
    found: list[Parameter] = []
    end = widest = 0
    for type_, name in declared_in(body):
        size = 8 if type_.pointer else dtype_of(type_.format).itemsize if type_.format else 0
        if not size:
            return None
        offset = -(-end // size) * size
        found.append(Parameter(name, type_, size, of=parameter.name, offset=offset, whole=parameter.bytes))
        end, widest = offset + size, max(widest, size)
    if not found:
        return () if parameter.bytes == 1 else None
    return tuple(found) if -(-end // widest) * widest == parameter.bytes else None


def body_of(type_: str, source: str) -> str | None:
    """What stands in the braces of a struct without bases; None where it is not in the text."""
    name = re.escape(type_.rpartition("::")[2].removeprefix("struct ").strip())
    text = blank_literals(source)
    for match in re.finditer(
        rf"\b(?:struct|class)\s+(?:\w+\s*\([^()]*\)\s*)?{name}\s*(?:final\s*)?\{{|\btypedef\s+struct\s*\w*\s*\{{",
        text,
    ):
        opening = match.end() - 1
        closing = closing_brace(text, opening)
        if not match[0].startswith("typedef") or re.match(rf"\s*{name}\s*;", text[closing + 1 :]):
            return text[opening + 1 : closing]
    return None


def declared_in(body: str) -> Iterator[tuple[CType, str]]:
    """Type and name of each member; a type without format and pointer for what cannot be told."""
    body = re.sub(r"\b(?:public|private|protected)\s*:(?!:)", "", body)
    for statement in statements_in(body):
        if "(" in statement or re.match(r"\s*(?:using|typedef|static|friend|template|enum)\b", statement):
            if not re.match(r"\s*(?:using|typedef|static|friend|template)\b|[^=]*\(", statement):
                yield CType(statement), ""
            continue
        match = MEMBER.fullmatch(statement)
        for declarator in split(match[2]) if match else [""]:
            named = DECLARATOR.fullmatch(declarator)
            if not match or not named:
                yield CType(statement), ""
            else:
                yield c_type(f"{match[1]} {'*' * named[1].count('*')}"), named[2]


def statements_in(body: str) -> Iterator[str]:
    """Declarations in a class, those of functions with nothing for what they do."""
    start = at = 0
    while at < len(body):
        if body[at] == "{":
            at = closing_brace(body, at)
            if "(" in body[start:at].partition("{")[0]:
                yield body[start:at].partition("{")[0]
                start = at + 1
        elif body[at] == ";":
            if body[start:at].strip():
                yield body[start:at]
            start = at + 1
        at += 1


def with_members(parameters: Sequence[Parameter], source: str) -> tuple[Parameter, ...]:
    """Parameters of a kernel, structs with their members. A member whose name another has is called
    `struct_member`."""
    found = [
        replace(one, members=members_of(one, source)) if one.by_value and not one.type.format else one
        for one in parameters
    ]
    names = [one.name for one in found] + [each.name for one in found for each in one.members or ()]
    return tuple(
        replace(one, members=tuple(
            replace(each, name=f"{one.name}_{each.name}") if names.count(each.name) > 1 else each
            for each in one.members
        )) if one.members else one
        for one in found
    )  # fmt: skip


def accessor_members(parameter: Parameter, shape: Sequence[int]) -> list[tuple[Parameter, int | None]] | None:
    """Of a packed accessor of PyTorch the members for a contiguous array of this shape, and their values,
    None for the pointer; None for another type, or another number of dimensions."""
    match = ACCESSOR.fullmatch(parameter.type.text)
    if not match or int(match[2]) != len(shape):
        return None
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    index, size = c_type(match[3]), 8 if match[3] == "long" else 4
    pointer = Parameter(parameter.name, c_type(f"{match[1]}*"), 8, of=parameter.name, whole=parameter.bytes)
    number = replace(pointer, type=index, bytes=size)
    found: list[tuple[Parameter, int | None]] = [(pointer, None)]
    for at, value in enumerate([*shape, *strides]):
        found.append((replace(number, name=f"{parameter.name}.{at}", offset=8 + size * at), value))
    return found
