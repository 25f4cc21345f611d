"""A file nearly as the compiler of the host sees it: comments, literals and directives are blank, branches of
`#if` that do not hold are left out, included files beside it are inserted, and macros that launch a kernel
are expanded."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Callable, Iterator, Mapping, Sequence

from tir_schedules.check.host.values import PAIRS, Unresolved, constant
from tir_schedules.compiler.signature import blank_literals
from tir_schedules.source import Source

TOKEN = re.compile(
    r"(?:::\s*)?[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*"
    r"|(?:0[xX][0-9a-fA-F']+|0[bB][01']+|(?:\d[\d']*\.?[\d']*|\.\d+)(?:[eE][+-]?\d+)?)[uUlLfFzZ]*"
    r"|<<<|>>>|<<=|>>=|<=|>=|==|!=|&&|\|\||<<|->|\+\+|--|[-+*/%&|^]=|##|\S"
)
DIRECTIVE = re.compile(r"\s*#\s*(\w+)\s*(.*)", re.S)
INCLUDED = re.compile(r'\s*"([^"]+)"')
MACRO = re.compile(r"([A-Za-z_]\w*)(\([^)]*\))?\s*(.*)", re.S)
DEFINED = re.compile(r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))")
PREDEFINED = {"__CUDACC__": "1", "__NVCC__": "1", "__cplusplus": "201703"}
LAUNCH = "<<<"
DEEPEST = 16
"""Includes within includes, and rounds in which macros are expanded."""

LARGEST = 1 << 22
"""Letters of a file with what it includes."""


@dataclass(frozen=True)
class Macro:
    """parameters: None of a macro that takes no arguments."""

    parameters: tuple[str, ...] | None
    body: str


@dataclass
class Code:
    """text: the code alone. places: file and line of each of its lines. macros: by name."""

    text: str = ""
    places: list[tuple[str, int]] = field(default_factory=list)
    macros: dict[str, Macro] = field(default_factory=dict)

    def place(self, position: int) -> str:
        """ "my.cu:42"."""
        file, line = self.places[min(self.text.count("\n", 0, position), len(self.places) - 1)]
        return f"{file}:{line}"

    @cached_property
    def pairs(self) -> dict[int, int]:
        """Where each bracket that opens is closed; the end of the text where that is missing."""
        found, opened = {}, []
        for match in re.finditer(r"[(){}\[\]]", self.text):
            if match[0] in PAIRS:
                opened.append((match.start(), PAIRS[match[0]]))
            elif any(closer == match[0] for _, closer in opened):
                while opened:
                    at, closer = opened.pop()
                    found[at] = match.start()
                    if closer == match[0]:
                        break
        return found | {at: len(self.text) for at, _ in opened}


def tokens_of(text: str) -> list[str]:
    return [re.sub(r"\s+", "", token) for token in TOKEN.findall(text)]


def read_code(source: Source, folders: Sequence[str] = (), defines: Sequence[str] = ()) -> Code:
    """folders, defines: what -I and -D name."""
    code = Code()
    for name, value in PREDEFINED.items():
        code.macros[name] = Macro(None, value)
    for text in defines:
        name, _, value = text.partition("=")
        add_macro(code, f"{name} {value or 1}")
    lines: list[str] = []
    Reading(code, lines, [Path(source.folder or "."), *map(Path, folders)]).read(source.text, source.file)
    code.text = expand_launches("\n".join(lines), code.macros)
    return code


def add_macro(code: Code, text: str) -> None:
    match = MACRO.match(text)
    if match:
        given = match[2] and tuple(one.strip() for one in match[2][1:-1].split(",") if one.strip())
        code.macros[match[1]] = Macro(None if match[2] is None else given or (), match[3].strip())


class Reading:
    """Lines of a file, and of what it includes, as they become code."""

    def __init__(self, code: Code, lines: list[str], folders: Sequence[Path]):
        self.code, self.lines, self.folders = code, lines, folders
        self.seen: set[Path] = set()

    def read(self, text: str, file: str, depth: int = 0) -> None:
        raw, blank = text.split("\n"), blank_literals(text).split("\n")
        branches: list[list[bool]] = []  # of each #if: whether this branch holds, and whether one has
        at = 0
        while at < len(blank):
            first, line = at, blank[at]
            while DIRECTIVE.match(line) and line.rstrip().endswith("\\") and at + 1 < len(blank):
                at += 1
                line = line.rstrip()[:-1] + "\n" + blank[at]
            at += 1
            holds = all(branch[0] for branch in branches)
            directive = DIRECTIVE.match(line)
            if directive:
                self.direct(directive[1], directive[2], raw[first], file, holds, branches, depth)
            for number in range(first, at):
                self.lines.append("" if directive or not holds else blank[number])
                self.code.places.append((file, number + 1))

    def direct(
        self, word: str, rest: str, raw: str, file: str, holds: bool, branches: list[list[bool]], depth: int
    ) -> None:
        if word in ("if", "ifdef", "ifndef"):
            told = self.condition(word, rest)
            branches.append([told, told])
        elif word in ("else", "elif") and branches:
            last = branches[-1]
            told = not last[1] and (word == "else" or self.condition("if", rest))
            branches[-1] = [told, told or last[1]]
        elif word == "endif" and branches:
            branches.pop()
        elif holds and word == "define":
            self.forget(rest)
            add_macro(self.code, rest)
        elif holds and word == "undef":
            self.forget(rest)
            self.code.macros.pop(rest.strip(), None)
        elif holds and word == "include" and depth < DEEPEST:
            self.include(raw, file, depth)

    def forget(self, text: str) -> None:
        """The lines so far have a macro's value, which ends or becomes another here."""
        match = MACRO.match(text)
        old = self.code.macros.get(match[1]) if match else None
        if match and old and old.parameters is None and old.body != match[3].strip():
            name, body = re.compile(rf"\b{match[1]}\b"), f"({old.body})" if old.body else ""
            self.lines[:] = [name.sub(lambda _: body, line) for line in self.lines]

    def include(self, raw: str, file: str, depth: int) -> None:
        name = INCLUDED.match(raw.partition("include")[2])
        beside = [self.folders[0] / Path(file).parent] if depth else []
        paths = ((folder / name[1]).resolve() for folder in (*beside, *self.folders)) if name else ()
        path = next((path for path in paths if path.is_file()), None)
        if not path or path in self.seen or sum(map(len, self.lines)) + path.stat().st_size > LARGEST:
            return
        self.seen.add(path)
        try:
            shown = str(path.relative_to(self.folders[0].resolve()))
        except ValueError:
            shown = str(path)
        self.read(path.read_text(encoding="utf-8", errors="replace"), shown, depth + 1)

    def condition(self, word: str, text: str) -> bool:
        macros = self.code.macros
        if word != "if":
            return (text.split()[0] in macros if text.split() else False) == (word == "ifdef")
        text = DEFINED.sub(lambda match: str(int((match[1] or match[2]) in macros)), text)
        try:
            return bool(constant(expand(tokens_of(text), macros)))
        except Unresolved:
            return True


# ---- macros ---
def expand(
    tokens: Sequence[str], macros: Mapping[str, Macro], hidden: frozenset[str] = frozenset()
) -> list[str]:
    """Tokens in which macros are replaced. hidden: those that are being replaced."""
    found: list[str] = []
    at = 0
    while at < len(tokens):
        name, at = tokens[at], at + 1
        macro = None if name in hidden else macros.get(name)
        if macro is None:
            found.append(name)
            continue
        given: dict[str, list[str]] = {}
        if macro.parameters is not None:
            if at >= len(tokens) or tokens[at] != "(":
                found.append(name)
                continue
            parts, at = arguments_at(tokens, at)
            given = bind(macro.parameters, parts)
        body = replaced(tokens_of(macro.body), given, lambda part: expand(part, macros, hidden))
        found += expand(body, macros, hidden | {name})
    return found


def arguments_at(tokens: Sequence[str], opening: int) -> tuple[list[list[str]], int]:
    """What stands between the commas of a bracket, and the place behind it."""
    depth, parts = 0, [list[str]()]
    for at in range(opening, len(tokens)):
        token = tokens[at]
        depth += (token in PAIRS) - (token in PAIRS.values())
        if not depth:
            return parts, at + 1
        if token == "," and depth == 1:
            parts.append([])
        elif at > opening:
            parts[-1].append(token)
    return parts, len(tokens)


def bind(parameters: Sequence[str], parts: Sequence[list[str]]) -> dict[str, list[str]]:
    """Arguments of a macro by name; the last of `...` has commas again."""
    found = dict(zip(parameters, parts))
    if parameters and parameters[-1].endswith("..."):
        rest: list[str] = []
        for part in parts[len(parameters) - 1 :]:
            rest += [*([","] if rest else []), *part]
        found[parameters[-1].removesuffix("...") or "__VA_ARGS__"] = rest
    return found


def replaced(
    body: Sequence[str], given: Mapping[str, list[str]], expanded: Callable[[list[str]], list[str]]
) -> list[str]:
    """A macro's body with its arguments, and with what `##` joins joined."""
    found: list[str] = []
    joins = False
    for at, token in enumerate(body):
        if token == "##":
            joins = True
            continue
        raw = joins or body[at + 1 : at + 2] == ["##"]
        part = given.get(token)
        part = [token] if part is None else list(part) if raw else expanded(part)
        if joins and found and part:
            part[0] = found.pop() + part[0]
        joins = False
        found += part
    return found


def expand_launches(text: str, macros: Mapping[str, Macro]) -> str:
    """Text in which macros whose bodies launch something are replaced; lines keep their numbers."""
    launching = {name for name, macro in macros.items() if LAUNCH in macro.body}
    for _ in range(DEEPEST):
        more = {name for name, macro in macros.items() if launching.intersection(tokens_of(macro.body))}
        if more <= launching:
            break
        launching |= more
    if not launching:
        return text
    parts, last = [], 0
    for match in re.finditer(rf"\b(?:{'|'.join(map(re.escape, sorted(launching)))})\b", text):
        if match.start() < last:
            continue
        end = match.end()
        if macros[match[0]].parameters is not None:
            opening = re.compile(r"\s*\(").match(text, end)
            if not opening:
                continue
            end = closing_of(text, opening.end() - 1) + 1
        used = text[match.start() : end]
        parts += [
            text[last : match.start()],
            " ".join(expand(tokens_of(used), macros)),
            "\n" * used.count("\n"),
        ]
        last = end
    return "".join([*parts, text[last:]])


def closing_of(text: str, opening: int) -> int:
    """Where a round bracket is closed; the end of the text where it is not."""
    depth = 0
    for match in re.compile(r"[()]").finditer(text, opening):
        depth += 1 if match[0] == "(" else -1
        if not depth:
            return match.start()
    return len(text) - 1


def split_commas(text: str) -> Iterator[str]:
    """Parts between the commas that stand in no bracket, nor between the angles of a template."""
    depth, start, at = 0, 0, 0
    while at < len(text):
        letter = text[at]
        depth += (letter in PAIRS) - (letter in PAIRS.values())
        if letter == "<" and (end := angle_end(text, at)):
            at = end
        elif letter == "," and not depth:
            yield text[start:at].strip()
            start = at + 1
        at += 1
    if text[start:].strip():
        yield text[start:].strip()


WITHIN_ANGLES = re.compile(r"[\w\s:,*&+/()\-.?=!%]")


def angle_end(text: str, opening: int) -> int:
    """Where the angle of a template's arguments is closed; 0 for a `<` that compares."""
    if not re.search(r"[A-Za-z_]\w*\s*$", text[max(0, opening - 80) : opening]):
        return 0
    depth = round_ = 0
    for at in range(opening, len(text)):
        letter = text[at]
        round_ += (letter == "(") - (letter == ")")
        if round_ < 0:
            return 0
        if letter == "<" and not round_:
            depth += 1
        elif letter == ">" and not round_:
            depth -= 1
            if not depth:
                rest = text[at + 1 :].lstrip()
                return at if not rest or rest.startswith(("(", "{", "::", LAUNCH, ")", ",", ";", ">")) else 0
        elif letter not in "<>" and not WITHIN_ANGLES.match(letter):
            return 0
    return 0
