"""PTX text as words; and its declarations: variables with their initial values, and parameters."""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod
from typing import Mapping, NamedTuple, Union

from tir_schedules.machines.cpu.ptx import BITS, Parameter, Reference, UnsupportedInstruction, Variable
from tir_schedules.model.gpus import rounded_up

WORD = re.compile(
    r"""
    0[fF][0-9a-fA-F]{8}(?![0-9a-fA-F])|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?   # numbers
  | \d+\.\d+(?:[eE][-+]?\d+)?|\d+U?
  | [%$_.A-Za-z][\w$.]*(?:::[\w$.]+)*                                              # names
  | "[^"]*"
  | \S                                                     # signs, among them those that no instruction has
""",
    re.X,
)
COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?\*/', re.S)
"""Comments; and strings, which have no comments in them."""
LINE_COMMENT = re.compile(r'("[^"]*")|//.*')
WARP_SIZE = "WARP_SZ", "32"
"""The one constant that PTX predefines (PTX ISA 9.0, 4.5.7), and its value."""

END = ""
"""The word after the last."""

BEFORE_NAMES = tuple("%$_.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""What a name may begin with."""


def words_of(text: str) -> tuple[list[str], list[int]]:
    """The words, END after them, and the line of each."""
    if "/*" in text:
        text = COMMENT.sub(lambda it: it[0] if it[0][0] == '"' else "\n" * it[0].count("\n"), text)
    words: list[str] = []
    lines: list[int] = []
    for number, line in enumerate(text.split("\n"), 1):
        if "//" in line:
            line = LINE_COMMENT.sub(r"\1", line)
        found = WORD.findall(line)
        if WARP_SIZE[0] in found:
            found = [WARP_SIZE[1] if word == WARP_SIZE[0] else word for word in found]
        words += found
        lines += [number] * len(found)
    return [*words, END], [*lines, lines[-1] if lines else 1]


def is_number(word: str) -> bool:
    return word[:1].isdecimal()


def is_name(word: str) -> bool:
    return word.startswith(BEFORE_NAMES)


class WordReader:
    """Reads words; `position` is the next one."""

    def __init__(self, text: str):
        self.words, self.lines = words_of(text)
        self.position = 0

    @property
    def word(self) -> str:
        return self.words[self.position]

    def next(self) -> str:
        self.position += 1
        return self.words[self.position - 1]

    def accept(self, word: str) -> bool:
        found = self.words[self.position] == word
        self.position += found
        return found

    def expect(self, word: str) -> None:
        if not self.accept(word):
            raise self.refuse(f"{self.word!r} where {word!r} should be")

    def skip_past(self, word: str) -> None:
        while self.word != END and self.next() != word:
            pass

    def refuse(self, what: str) -> UnsupportedInstruction:
        line = self.lines[min(self.position, len(self.lines) - 1)]
        return UnsupportedInstruction(f"PTX line {line}: the CPU machine does not know {what}")

    def integer(self) -> int:
        sign = -1 if self.accept("-") else 1
        return sign * int(self.next().rstrip("U"), 0)


# ---- declarations ---
ALL_BITS = (1 << 64) - 1


class NamedAddress(NamedTuple):
    """The address of a variable or function, plus `addend`, as an initial value; `mask` takes bytes of it."""

    name: str
    addend: int
    mask: int = ALL_BITS


class DeclarationReader(WordReader):
    """Reads what is declared, from the word after the state space on."""

    def variable(self, space: str, extern: bool = False) -> Variable:
        align, length = 0, 1
        while self.word.startswith(".") and self.word[1:] not in BITS:
            word = self.next()
            if word == ".align":
                align = int(self.next())
            elif word in (".v2", ".v4"):
                length = int(word[2])
            elif word == ".attribute":
                self.skip_past(")")
            elif word in (".texref", ".surfref", ".samplerref"):
                raise self.refuse(f"{word}: read the data through a pointer")
        kind, name = self.next()[1:], self.next()
        element = BITS[kind] // 8
        sizes, unsized = [length] if length > 1 else [], False
        while self.accept("["):
            if self.word == "]":
                unsized = True
            else:
                sizes.insert(len(sizes) - (length > 1), int(self.next(), 0))
            self.expect("]")
        values = self.initial_values() if self.accept("=") else []
        self.expect(";")
        size = element * prod(sizes)
        if unsized and values:
            size, unsized = element * len(values), False
        dynamic = extern or unsized
        made = Variable(name, space, align or element * length, 0 if dynamic else size, b"", dynamic)
        return with_values(made, element, values)

    def initial_values(self) -> list[Union[int, NamedAddress]]:
        """One value, or those between braces, one after another: as ptxas takes them, a row of an array that
        has too few is not padded."""
        if not self.accept("{"):
            return [self.constant()]
        values: list[Union[int, NamedAddress]] = []
        while not self.accept("}"):
            if not self.accept(","):
                values += self.initial_values()
        return values

    def constant(self) -> Union[int, NamedAddress]:
        text = self.word
        if text[:2].lower() in ("0f", "0d") and len(text) in (10, 18):
            return int(self.next()[2:], 16)
        if is_name(text):
            return self.named_address()
        value = self.integer()
        if not self.accept("("):
            return value
        name, addend, _ = self.named_address()
        self.expect(")")
        return NamedAddress(name, addend, value)

    def named_address(self) -> NamedAddress:
        """`name`, `name+4` or `generic(name)+4`."""
        name = self.next()
        if name == "generic" and self.accept("("):
            name = self.next()
            self.expect(")")
        addend = 0
        while self.word in ("+", "-") and is_number(self.words[self.position + 1]):
            sign = -1 if self.next() == "-" else 1
            addend += sign * int(self.next().rstrip("U"), 0)
        return NamedAddress(name, addend)

    def parameters(self) -> list[Parameter]:
        """Those between parentheses; empty without parentheses."""
        found: list[Parameter] = []
        if not self.accept("("):
            return found
        while not self.accept(")"):
            if self.accept(","):
                continue
            if self.word == ".reg":
                raise self.refuse("parameters in registers: declare them as .param")
            self.expect(".param")
            parameter, align = self.parameter()
            end = found[-1].offset + found[-1].size if found else 0
            found.append(replace(parameter, offset=rounded_up(end, align)))
        return found

    def parameter(self) -> tuple[Parameter, int]:
        """One, after `.param`, and its alignment."""
        align, kind = 0, "b8"
        while self.word.startswith("."):
            word = self.next()
            if word == ".ptr":  # `.ptr .global .align 4` tells of what is pointed to
                while self.word.startswith("."):
                    if self.next() == ".align":
                        self.next()
            elif word == ".align":
                align = int(self.next())
            else:
                kind = word[1:]
        name, size = self.next(), BITS[kind] // 8
        align = align or size
        if self.accept("["):
            size *= int(self.next(), 0)
            self.expect("]")
        return Parameter(name, kind, size, 0), align


def with_values(variable: Variable, element: int, values: list[Union[int, NamedAddress]]) -> Variable:
    """The variable with initial values of `element` bytes each."""
    content, references = bytearray(), []
    for value in values:
        if isinstance(value, NamedAddress):
            references.append(Reference(len(content), element, *value))
            value = 0
        content += (value & ((1 << 8 * element) - 1)).to_bytes(element, "little")
    variable.initial, variable.references = bytes(content), tuple(references)
    return variable


def with_addresses(variable: Variable, addresses: Mapping[str, int]) -> Variable:
    """The variable with the addresses among its initial values filled in. KeyError for a name not known."""
    content = bytearray(variable.initial)
    for at in variable.references:
        address = (addresses[at.name] + at.addend) & at.mask
        shift = (at.mask & -at.mask).bit_length() - 1
        value = (address >> shift) & ((1 << 8 * at.bytes) - 1)
        content[at.offset : at.offset + at.bytes] = value.to_bytes(at.bytes, "little")
    return replace(variable, initial=bytes(content))
