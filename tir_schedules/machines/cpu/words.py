"""PTX text as words, and the reading of one after another."""

from __future__ import annotations

import re

from tir_schedules.machines.cpu.ptx import UnsupportedInstruction

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
"""Comments, and strings, in which there are none."""
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
