"""Host code in a preprocessed file: what is left of it where it does not compile.

A declaration outside of functions that has an error and no `__device__`, `__global__` or the like is for the
host alone. Only what makes instances of templates stays of it: launches, calls of functions with template
arguments, and the constants that these are written with. If a line of that has an error, too, it is left out.
All other lines keep their numbers.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from itertools import accumulate
from typing import Iterator, NamedTuple
from zlib import crc32

from tir_schedules.compiler.front_end import (
    LAST_NAME,
    MARKER,
    WORD,
    Places,
    bare,
    class_in,
    declared_names,
    is_function,
    spans,
    without_arguments,
)
from tir_schedules.compiler.signature import blank_literals

DEVICE = re.compile(r"__attribute__\s*\(\(\s*(device|global|constant|shared|managed)\s*\)\)")
"""How the preprocessor leaves `__device__` and the like."""

MACRO_CALL = re.compile(r"^[ \t]*[A-Z_][A-Z0-9_]*[ \t]*\([^\n]*\)[ \t]*;?[ \t]*$", re.M)
CONSTANT = re.compile(
    r"\b(?:static\s+)?(?:const|constexpr)\s+(?:const\s+)?(?:std::)?(?:auto|bool|char|dim3|int|long|short|size_t"
    r"|u?int\d+_t|uint|unsigned)(?:\s+(?:const|int|long|char|short))*\s+\w+\s*(?:=|\{)[^;.]*;"
    r"|\busing\s+\w+\s*=[^;]*;|\btypedef\s[^;(]*;"
)
TEMPLATE_ID = re.compile(r"(?<![\w.>])((?:\w+\s*::\s*)*\w+)\s*<(?![<=])")
AFTER_ARGUMENTS = re.compile(r"\s*(<<<|\()")
TEMPLATE = re.compile(r"\s*template\s*<")
SCALAR = "using scalar_t = float;"
"""The name that PyTorch's AT_DISPATCH macros give to the type of elements."""

INSTANCES = "tir_schedules_instances_"
"""How the name begins that such lines have as their file; each line makes one instance, or one constant."""

LONGEST = 400
"""Letters of a template's arguments."""

MARKED = re.compile(
    r"\s*(?:template\s*<[^;{]*>\s*)?(?:(?:static|inline|extern)\s+)*[A-Z][A-Z0-9_]{2,}\s+[A-Za-z_]"
)
"""A function behind a macro that is not known, which may stand for `__device__`."""

DECLARED = re.compile(r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*(?:[=({;]|$)")

Fault = tuple[str, int]
"""File and line."""


class LeftOut(NamedTuple):
    """A declaration that is left out. names: that it declares. matters: whether device code may depend on it,
    as on types, constants and constexpr functions. file, line, last: where it stands."""

    names: set[str]
    matters: bool
    file: str
    line: int
    last: int


class HostCode:
    """A preprocessed text, from which host code is left out. scalars: see `instances_of`."""

    def __init__(self, text: str, scalars: bool = True):
        self.text, self.scalars = text, scalars
        self.left_out: list[LeftOut] = []
        declared = (text[start:end] for start, end in users_spans(text))
        heads = (each.partition("{")[0] for each in declared if TEMPLATE.match(each))
        self.templates = {*map(function_name, heads)}

    def leave_out(self, faults: set[Fault], unknown: set[str]) -> bool:
        """Leave out what has these faults, or uses these names that the compiler does not know, and is for
        the host alone; whether there is any."""
        places, changes = Places(self.text), []
        for start, end in users_spans(self.text):
            line, file = places(start)
            last, also = places(end - 1)
            inside = {at for of, at in faults if of == file and line <= at <= last}
            before = self.text[start:end]
            if not inside and not file.startswith(INSTANCES) and is_host_function(before):
                inside = {line} if unknown & set(WORD.findall(before)) else set()
            if file == also and inside:
                after = self._without(before, file, line, inside)
                if after != before:
                    changes.append((start, end, after))
        for start, end, after in reversed(changes):
            self.text = self.text[:start] + after + self.text[end:]
        return bool(changes)

    def _without(self, declared: str, file: str, first: int, lines: set[int]) -> str:
        """A declaration without what has faults in these lines. first: its own line."""
        device = DEVICE.search(declared)
        if device:
            return without_macros(declared, device.start(), first, lines)
        if not file.startswith(INSTANCES):
            last = first + declared.count("\n")
            self.left_out.append(LeftOut(names_of(declared), may_matter(declared), file, first, last))
            made = instances_of(declared, self.templates, self.scalars)
            name = f"{INSTANCES}{crc32(declared.encode(errors='replace')):x}"
            return f'\n# 1 "{name}"\n{made}\n# {last} "{file}"\n' if made else blank(declared)
        kept = declared.split("\n")
        if first in lines or first + len(kept) - 1 in lines:
            return blank(declared)
        return "\n".join("" if first + at in lines else line for at, line in enumerate(kept))

    def missed(self) -> LeftOut | None:
        """What is left out and has a name that device code has, too, so that the name may now mean something
        else."""
        kept = [self.text[start:end] for start, end in users_spans(self.text)]
        words = {word for each in kept if DEVICE.search(each) for word in WORD.findall(each)}
        others = [each for each in kept if not DEVICE.search(each) and not is_host_function(each)]
        pending = [(names_of(each), set(WORD.findall(each))) for each in others]
        while used := [each for names, each in pending if names & words]:
            words.update(*used)
            pending = [each for each in pending if not each[0] & words]
        return next((one for one in self.left_out if one.matters and one.names & words), None)


def names_of(declared: str) -> set[str]:
    """The names that a declaration declares."""
    plain = bare(MARKER.sub("", declared) + "\n")
    if is_function(declared) or is_type(plain):
        return declared_names(plain)
    variable = DECLARED.search(without_arguments(plain))
    return {variable[1]} if variable else set()


def is_type(plain: str) -> bool:
    """Whether a bare declaration is a class or another name of a type."""
    return bool(class_in(plain.partition("{")[0])) or plain.startswith(("using", "typedef"))


def may_matter(declared: str) -> bool:
    """Whether device code may depend on a declaration of host code."""
    plain = bare(MARKER.sub("", declared) + "\n")
    if is_function(declared):
        return "constexpr" in plain.partition("{")[0] or bool(MARKED.match(MARKER.sub("", declared)))
    return is_type(plain) or bool(re.search(r"\bconst(?:expr)?\b", plain))


def is_host_function(declared: str) -> bool:
    """Whether a declaration is a function that device code cannot call, and no type."""
    head = bare(declared.partition("{")[0])
    return is_function(declared) and not DEVICE.search(declared) and "constexpr" not in head


def without_macros(declared: str, end: int, first: int, lines: set[int]) -> str:
    """A declaration of device code without macros that are not known, in lines of their own before it."""

    def left_out(macro: re.Match[str]) -> str:
        return "" if first + declared.count("\n", 0, macro.start()) in lines else macro[0]

    return MACRO_CALL.sub(left_out, declared[:end]) + declared[end:]


def instances_of(declared: str, templates: set[str], scalars: bool) -> str:
    """For a declaration of host code, a function that has only its constants and what makes instances of
    these templates, a line for each; "" if there is no instance. scalars: whether `scalar_t` is a type
    there."""
    text = blank_literals(MARKER.sub("", declared))
    opening = text.find("{")
    made = [*template_ids(text, opening, templates)] if opening >= 0 else []
    if not made:
        return ""
    used = {word for _, statement in made for word in WORD.findall(statement)}
    for match in reversed([*CONSTANT.finditer(text, opening)]):
        words = set(WORD.findall(match[0]))
        if words & used:
            used |= words
            made.append((match.start(), match[0]))
    statements = dict.fromkeys(" ".join(statement.split()) for _, statement in sorted(made))
    return "\n".join([f"{head_of(text[:opening])} {{ {SCALAR * scalars}", *statements, "}"])


def template_ids(text: str, start: int, templates: set[str]) -> Iterator[tuple[int, str]]:
    """Where a launch or a call names an instance of a template, and a statement that makes the instance."""
    for match in TEMPLATE_ID.finditer(text, start):
        end = closing_angle(text, match.end() - 1)
        if end and match[1].rpartition(":")[2].strip() in templates and AFTER_ARGUMENTS.match(text, end):
            yield match.start(), f"(void)&{text[match.start() : end]};"


def closing_angle(text: str, opening: int) -> int | None:
    """Where the arguments of a template end that begin there; None for a comparison."""
    depth = 0
    for position in range(opening, min(len(text), opening + LONGEST)):
        letter = text[position]
        if letter in ";{}":
            return None
        depth += (letter in "<(") - (letter in ">)")
        if depth == 0:
            return position + 1
    return None


def head_of(text: str) -> str:
    """The head of a function, without what it returns and takes. What is not a template has another name, as
    several functions may have the same."""
    end = template_end(text)
    name = function_name(text) if end else ""
    return f"{' '.join(text[:end].split())} static void {name or f'tir_schedules_{crc32(text.encode()):x}'}()"


def template_end(text: str) -> int:
    """Where `template <...>` ends at the beginning of a declaration; 0 where it is none."""
    end = 0
    while opening := TEMPLATE.match(text, end):
        closing = closing_angle(text, opening.end() - 1)
        if closing is None:
            break
        end = closing
    return end


def function_name(text: str) -> str:
    """The name in a function's head; "" where there is none, or one with a class."""
    function = LAST_NAME.search(without_arguments(bare(text)).partition("(")[0])
    return function[1] if function and function[1].isidentifier() else ""


def blank(text: str) -> str:
    """A text whose lines are empty, except those of the preprocessor."""
    return re.sub(r"^(?!# \d).*$", "", text, flags=re.M)


def segments(text: str) -> Iterator[tuple[int, int, bool]]:
    """Parts of a preprocessed text, from one line of the preprocessor to the next, and whether a part is the
    user's."""
    markers = [*MARKER.finditer(text)]
    ends = [marker.start() for marker in markers[1:]] + [len(text)]
    for marker, end in zip(markers, ends):
        yield marker.end(), end, is_users(marker[2])


def is_users(file: str) -> bool:
    """Whether a file is the user's: others have absolute names, or stand in for others."""
    return not (os.path.isabs(file) or file.startswith(("<", "stand_ins/")))


def users_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each declaration of the user's begins and ends in a preprocessed text."""
    own = [(start, end) for start, end, users in segments(text) if users]
    begins = [0, *accumulate(end - start for start, end in own)]

    def place(offset: int) -> int:
        at = bisect_right(begins, offset) - 1
        return own[at][0] + offset - begins[at]

    joined = "".join(text[start:end] for start, end in own)
    for start, end, _ in spans(joined):
        start += len(joined[start:end]) - len(joined[start:end].lstrip())
        yield place(start), place(end - 1) + 1
