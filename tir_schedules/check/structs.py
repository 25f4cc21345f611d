"""Structs that a kernel takes by value: their members, each given like a parameter of its own."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Iterable, Iterator, Sequence

from tir_schedules.check.target import Parameter
from tir_schedules.check.types import CType, c_type, dtype_of
from tir_schedules.compiler.signature import blank_literals, split
from tir_schedules.compiler.source_text import closing_brace

MEMBER = re.compile(
    r"\s*(?:struct\s+(?=\w))?((?:(?:const|volatile|unsigned|signed)\s+)*[A-Za-z_][\w:]*"
    r"(?:\s+(?:const|int|long|short|char|unsigned))*)(?:\s+|(?=\s*\*))(.+)",
    re.S,
)
DECLARATOR = re.compile(
    r"\s*((?:\*|\s|const\b|__restrict__\b|__restrict\b)*)(\w+)\s*((?:\[[^\]]*\]\s*)*)(?:(?:=|\{).*)?", re.S
)
DEFINITION = re.compile(r"\s*(?:struct|class|union|enum(?:\s+class)?)\s+[A-Za-z_]\w*[^{;()]*\{.*\}\s*", re.S)
"""The definition of a type, without a member of it."""

EMPTY = re.compile(r"(?:std|cuda|thrust|cub)::")
"""Namespaces whose classes of one byte have no members, such as cuda::std::plus."""

ACCESSOR = re.compile(r"(?:at|torch)::GenericPackedTensorAccessor<(.+), (\d+)ul, .+, (int|long)>")
"""PyTorch's PackedTensorAccessor32 and 64: a pointer, then extents and strides of that many dimensions."""


class NotSupported(Exception):
    """A struct whose members cannot be given; the text says why."""


def members_of(parameter: Parameter, source: str) -> tuple[Parameter, ...]:
    """The members of a struct and of structs in it, each with its offset; an empty struct has no members.
    NotSupported if its definition is not found, or has a member that is not a number, an array of numbers or
    a pointer. source: what the user wrote, after the preprocessor, with blanks for comments and literals."""
    type_ = parameter.type.text
    if body_of(type_, source) is None and parameter.bytes == 1 and EMPTY.match(type_):
        return ()
    found: list[Parameter] = []
    size, _ = lay_out(type_, parameter.name, source, found)
    if not found and parameter.bytes == 1:
        return ()
    if size != parameter.bytes:
        raise NotSupported(f"its {parameter.bytes} bytes are not the {size} of its members")
    return tuple(replace(one, of=parameter.name, whole=parameter.bytes) for one in found)


def lay_out(type_: str, path: str, source: str, found: list[Parameter]) -> tuple[int, int]:
    """Append the members of a struct, and those of structs in it; returns its size, and what it is aligned
    to."""
    body = body_of(type_, source)
    if body is None:
        raise NotSupported(f"the definition of {type_} is not found")
    end, widest = 0, 1
    for member, name, extents in declared_in(body):
        own, inner = f"{path}.{name}", list[Parameter]()
        plain = member.pointer or member.format or extents
        if name and not plain and body_of(member.text, source) is not None:
            size, align = lay_out(member.text, own, source, inner)
        else:
            size, align, count = extent_of(member, extents, source)
            if not name or not size:
                shown = " ".join(f"{member.text} {name}{extents}".split())
                raise NotSupported(f"its member `{shown}` is not supported")
            inner.append(Parameter(name, member, size, bool(count), path=own, count=count))
        offset = -(-end // align) * align
        found += [replace(one, offset=offset + one.offset) for one in inner]
        end, widest = offset + size, max(widest, align)
    return -(-end // widest) * widest, widest


def extent_of(member: CType, extents: str, source: str) -> tuple[int, int, int]:
    """Size of a member, what it is aligned to, and how many numbers an array or a vector has, 0 of another;
    size 0 for what is not supported."""
    if member.pointer:
        return 0 if extents else 8, 8, 0
    format = member.format or member.elements
    if not format:
        return 0, 1, 0
    size = dtype_of(format).itemsize
    lanes = 1 if member.format else int(re.findall(r"\w([1-4])\b", member.text)[-1])
    count = lanes * count_of(extents, source)
    return size * count, size if lanes == 3 else min(16, size * lanes), count if extents or lanes > 1 else 0


def count_of(extents: str, source: str) -> int:
    """How many elements `[2][N]` has, 1 without brackets; 0 where a number is not known."""
    count = 1
    for text in map(str.strip, re.findall(r"\[([^\]]*)\]", extents)):
        known = re.search(rf"\bconst(?:expr)?\b[\w\s]*\b{re.escape(text)}\s*=\s*(\d+)\s*;", source)
        count *= int(text) if text.isdigit() else int(known[1]) if text and known else 0
    return count


def has_pointers(type_: str, source: str) -> bool:
    """Whether a struct, or one in it, has pointers."""
    body = body_of(type_, source) or ""
    return any(one.pointer or has_pointers(one.text, source) for one, name, _ in declared_in(body) if name)


def body_of(type_: str, source: str) -> str | None:
    """What stands in the braces of a struct without bases; None where it is not in the text."""
    name = re.escape(type_.rpartition("::")[2].removeprefix("struct ").strip())
    for match in re.finditer(
        rf"\b(?:struct|class)\s+(?:\w+\s*\([^()]*\)\s*)?{name}\s*(?:final\s*)?\{{|\btypedef\s+struct\s*\w*\s*\{{",
        source,
    ):
        opening = match.end() - 1
        closing = closing_brace(source, opening)
        if not match[0].startswith("typedef") or re.match(rf"\s*{name}\s*;", source[closing + 1 :]):
            return source[opening + 1 : closing]
    return None


def declared_in(body: str) -> Iterator[tuple[CType, str, str]]:
    """Type, name and extents of each member, "[2]" of an array; no name for what cannot be told."""
    body = re.sub(r"\b(?:public|private|protected)\s*:(?!:)", "", body)
    for statement in statements_in(body):
        if DEFINITION.fullmatch(statement):
            continue
        if "(" in statement or re.match(r"\s*(?:using|typedef|static|friend|template|enum)\b", statement):
            if not re.match(r"\s*(?:using|typedef|static|friend|template)\b|[^=]*\(", statement):
                yield CType(statement), "", ""
            continue
        match = MEMBER.fullmatch(statement)
        for declarator in split(match[2]) if match else [""]:
            named = DECLARATOR.fullmatch(declarator)
            if not match or not named:
                yield CType(statement), "", ""
            else:
                yield c_type(f"{match[1]} {'*' * named[1].count('*')}"), named[2], named[3].strip()


def statements_in(body: str) -> Iterator[str]:
    """Declarations in a class; those of functions have no bodies."""
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
    code = blank_literals(source) if any(one.by_value for one in parameters) else ""
    found = [with_own_members(one, code) for one in parameters]
    names = [one.name for one in found] + [each.name for one in found for each in one.members or ()]
    return tuple(
        replace(one, members=tuple(
            replace(each, name=each.path.replace(".", "_")) if names.count(each.name) > 1 else each
            for each in one.members
        )) if one.members else one
        for one in found
    )  # fmt: skip


def with_own_members(one: Parameter, source: str) -> Parameter:
    """A parameter with its members, or why they cannot be given, if it is a struct."""
    if not one.by_value or one.type.format:
        return one
    try:
        return replace(one, members=members_of(one, source))
    except NotSupported as error:
        return replace(one, unknown=str(error), has_pointers=has_pointers(one.type.text, source))


def other_names(parameters: Iterable[Parameter]) -> dict[str, str]:
    """Names that a user may give members as well, `p.x` and `p_x` -> `x`."""
    members = [each for one in parameters for each in one.members or ()]
    known = {each.name for each in members}
    return {
        other: each.name
        for each in members
        for other in (each.path, each.path.replace(".", "_"))
        if other not in known
    }


def accessor_members(parameter: Parameter, shape: Sequence[int]) -> list[tuple[Parameter, int | None]] | None:
    """The members of a packed accessor of PyTorch for a contiguous array of this shape, and their values,
    None for the pointer. None for another type, or another number of dimensions."""
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
