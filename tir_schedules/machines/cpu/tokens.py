"""PTX text as tokens, and the reading of one after another."""

from __future__ import annotations

import re
from typing import NamedTuple

from tir_schedules.machines.cpu.ptx import UnsupportedInstruction

TOKEN = re.compile(
    r"""
    (?P<number>0[fF][0-9a-fA-F]{8}(?![0-9a-fA-F])|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?|\d+\.\d+(?:[eE][-+]?\d+)?|\d+U?)
  | (?P<name>[%$_.A-Za-z][\w$.]*(?:::[\w$.]+)*)
  | (?P<string>"[^"]*")
  | (?P<mark>[{}\[\]();:,@!|+\-<>=])
""",
    re.X,
)
COMMENT = re.compile(r"/\*.*?\*/", re.S)


class Token(NamedTuple):
    kind: str
    text: str
    line: int


def tokens(text: str) -> list[Token]:
    text = COMMENT.sub(lambda match: "\n" * match.group().count("\n"), text)
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        for match in TOKEN.finditer(line.split("//", 1)[0]):
            found.append(Token(match.lastgroup or "", match.group(), number))
    return found


class TokenReader:
    """Reads tokens; `position` is the next one."""

    def __init__(self, text: str):
        self.tokens = tokens(text) + [Token("end", "", 0)]
        self.position = 0

    @property
    def text(self) -> str:
        return self.tokens[self.position].text

    @property
    def line(self) -> int:
        return self.tokens[self.position].line

    def next(self) -> str:
        self.position += 1
        return self.tokens[self.position - 1].text

    def accept(self, text: str) -> bool:
        found = self.text == text
        self.position += found
        return found

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.refuse(f"{self.text!r} where {text!r} should be")

    def skip_past(self, text: str) -> None:
        while self.tokens[self.position].kind != "end" and self.next() != text:
            pass

    def refuse(self, what: str) -> UnsupportedInstruction:
        return UnsupportedInstruction(f"PTX line {self.line}: the CPU machine does not know {what}")

    def integer(self) -> int:
        sign = -1 if self.accept("-") else 1
        return sign * int(self.next().rstrip("U"), 0)
