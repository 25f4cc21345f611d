"""What changed between two texts, line by line and within lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from itertools import groupby
from typing import Iterator

CONTEXT = 3  # unchanged lines shown around a change
LEAST_FOLD = 6  # fewer unchanged lines are not folded
ALIKE = 0.5  # lines less alike than this are shown as changed from end to end
SIGNS = {"same": " ", "del": "-", "add": "+"}

Part = tuple[str, bool]
"""A piece of a line, and whether it is what changed."""


@dataclass(frozen=True)
class Line:
    """kind: "same", "del" or "add". parts: the line's text in pieces."""

    kind: str
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.parts)


@dataclass(frozen=True)
class Hunk:
    """Neighbouring lines: shown, or unchanged and folded away."""

    folded: bool
    lines: tuple[Line, ...]

    @property
    def groups(self) -> list[tuple[str, list[Line]]]:
        """Neighbouring lines of one kind: the kind and the lines."""
        return [(kind, list(group)) for kind, group in groupby(self.lines, key=lambda line: line.kind)]


def unified(before: str, after: str) -> str:
    """The diff as `diff -u` prints it, without the names of files; empty where nothing changed."""
    lines = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=CONTEXT))
    return "\n".join(lines[2:])


def diff(before: str, after: str) -> list[Line]:
    """All lines of both texts, in order."""
    old, new = before.splitlines(), after.splitlines()
    lines: list[Line] = []
    for tag, i, i_end, j, j_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            lines += [whole("same", line) for line in old[i:i_end]]
        elif i_end - i == j_end - j:
            pairs = [inside(*pair) for pair in zip(old[i:i_end], new[j:j_end])]
            lines += [line for side in zip(*pairs) for line in side]
        else:
            lines += [whole("del", line) for line in old[i:i_end]]
            lines += [whole("add", line) for line in new[j:j_end]]
    return lines


def whole(kind: str, text: str) -> Line:
    return Line(kind, ((text, False),))


def inside(before: str, after: str) -> tuple[Line, Line]:
    """A line before and after, with what changed in it marked where the two are alike."""
    old, new = (re.findall(r"\w+|\s+|.", text) for text in (before, after))
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < ALIKE:
        return whole("del", before), whole("add", after)
    dropped, added = [], []
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        dropped.append(("".join(old[i:i_end]), tag != "equal"))
        added.append(("".join(new[j:j_end]), tag != "equal"))
    return changed("del", dropped), changed("add", added)


def changed(kind: str, parts: list[Part]) -> Line:
    return Line(kind, tuple(part for part in parts if part[0]))


def hunks(lines: list[Line]) -> Iterator[Hunk]:
    """The lines in order. At least LEAST_FOLD unchanged ones are folded where no change is within CONTEXT."""
    changes = [index for index, line in enumerate(lines) if line.kind != "same"]
    near = {index + offset for index in changes for offset in range(-CONTEXT, CONTEXT + 1)}
    for far, group in groupby(range(len(lines)), key=lambda index: index not in near):
        part = tuple(lines[index] for index in group)
        yield Hunk(far and len(part) >= LEAST_FOLD, part)
