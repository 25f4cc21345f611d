"""What of the headers a kernel needs: of a preprocessed text, the declarations that it leads to by name.

CUDA's headers bring two megabytes of declarations into every source; reading them is most of what it costs to
compile a small kernel. A kernel names a few dozen. What those name in turn is kept with them, in their order
and at the lines where they stood; the rest is left out. Names are all that counts: of overloads, of a
template and its specialisations, and of operators on a type that is kept, all stay. So the compiler makes the
same of the kernel, to the byte.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import Iterable, Iterator

MARKER = re.compile(r'^# (\d+) "((?:[^"\\]|\\.)*)"[ \d]*\n', re.M)
"""A line of the preprocessor: what follows stands at this line of this file."""

TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\b\d[\w\']*|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#[^\n]*\n|[{}();]', re.M)
SCOPE = re.compile(
    r'\s*(?:(?:inline\s+)?namespace\b[^;=(]*(?:\(\(.*\)\)\s*)?|extern\s*"C(?:\+\+)?"\s*)', re.S
)
WORD = re.compile(r"[A-Za-z_]\w*")
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
ATTRIBUTES = re.compile(
    r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)|\b(?:alignas|__asm__)\s*\([^()]*\)"
    r"|\bnoexcept\s*\((?:[^()]|\([^()]*\))*\)|\b__extension__\b"
)
CLASS = re.compile(
    r"(?:(?:extern|static|const|constexpr|inline|__inline__|typedef)\s+)*(struct|class|union|enum)\b(.*)",
    re.S,
)
AFTER_NAME = re.compile(r"<|(?<!:):(?!:)")
ARGUMENTS = re.compile(r"<[^<>]*>")
FUNCTION = re.compile(r"((?:[A-Za-z_~]\w*\s*::\s*)*[A-Za-z_~]\w*)\s*$")

NAMESPACES = {"std", "cuda", "nvcuda", "wmma", "__gnu_cxx", "__debug", "__detail"}
"""Names that stand before others and mean nothing by themselves."""

NO_NAMES = NAMESPACES | set(
    "alignas alignof asm auto bool break case catch char class const constexpr continue decltype default"
    " delete do double else enum explicit extern false float for friend goto if inline int long mutable"
    " namespace new noexcept nullptr operator private protected public return short signed sizeof static"
    " static_assert struct switch template this throw true try typedef typename union unsigned using virtual"
    " void volatile while __attribute__ __inline__ __restrict__ __extension__ device host device_builtin"
    " cudart_builtin always_inline nothrow".split()
)


@dataclass(frozen=True)
class Declaration:
    """One declaration outside of functions and classes, or one directive.

    scopes: the namespaces and linkages around it, as they are opened. declares: the names by which others ask
    for it. mentions: all names in it. Both are separated by blanks: most are never asked for. always: whether
    it stays unasked.
    """

    scopes: tuple[str, ...]
    line: int
    file: str
    text: str
    declares: str
    mentions: str
    always: bool = False


class Declarations:
    """The declarations of a preprocessed text, in their order."""

    def __init__(self, all_of_them: Iterable[Declaration]):
        self.all = list(all_of_them)
        self.by_name: dict[str, list[int]] = defaultdict(list)
        for number, declaration in enumerate(self.all):
            for name in declaration.declares.split():
                self.by_name[name].append(number)

    def needed(self, text: str) -> str:
        """The declarations that a text leads to, ready to stand before it."""
        names, kept = [*names_in(text)], set[int]()
        met = set(names)

        def keep(number: int) -> None:
            if number not in kept:
                kept.add(number)
                new = {*self.all[number].mentions.split()} - met
                met.update(new)
                names.extend(new)

        for number, declaration in enumerate(self.all):
            if declaration.always:
                keep(number)
        while names:
            for number in self.by_name.get(names.pop(), ()):
                keep(number)
        return "".join(written(self.all[number] for number in sorted(kept)))


def written(declarations: Iterable[Declaration]) -> Iterator[str]:
    """Declarations as text, each at its place, in its scopes."""
    opened: tuple[str, ...] = ()
    for declaration in declarations:
        if declaration.scopes != opened:
            yield "}\n" * len(opened) + "".join(f"{scope} {{\n" for scope in declaration.scopes)
            opened = declaration.scopes
        yield f'# {declaration.line} "{declaration.file}"\n{declaration.text}\n'
    yield "}\n" * len(opened)


def split(text: str) -> Iterator[Declaration]:
    """The declarations of a preprocessed text."""
    places = Places(text)
    scopes: list[str] = []
    start = depth = 0
    for token in TOKEN.finditer(text):
        first = token[0].lstrip()[0]
        end = token.end()
        if first == "#":
            if depth == 0 and not text[start : token.start()].strip():
                if "pragma" in token[0]:
                    yield declaration(text[token.start() : end], tuple(scopes), *places(token.start()))
                start = end
        elif first in "({":
            if first == "{" and depth == 0 and SCOPE.fullmatch(MARKER.sub("", text[start : token.start()])):
                scopes.append(MARKER.sub("", text[start : token.start()]).strip())
                start = end
            else:
                depth += 1
        elif first == "}" and depth == 0:
            scopes.pop()
            start = end
        elif first in ")}":
            depth -= 1
            if first == "}" and depth == 0 and is_function(text[start:end]):
                yield declaration(text[start:end], tuple(scopes), *places(start))
                start = end
        elif first == ";" and depth == 0:
            yield declaration(text[start:end], tuple(scopes), *places(start))
            start = end


class Places:
    """File and line of each offset of a preprocessed text."""

    def __init__(self, text: str):
        self.text = text
        self.markers = [(m.end(), int(m[1]), m[2]) for m in MARKER.finditer(text)]
        self.ends = [end for end, _, _ in self.markers]

    def __call__(self, offset: int) -> tuple[int, str]:
        """Of the first letter at or after the offset."""
        while self.text[offset : offset + 1].isspace():
            offset += 1
        end, line, file = self.markers[bisect_right(self.ends, offset) - 1]
        return line + self.text.count("\n", end, offset), file


def declaration(text: str, scopes: tuple[str, ...], line: int, file: str) -> Declaration:
    text = text.strip()
    return Declaration(scopes, line, file, text, *names_of(text))


@lru_cache(maxsize=None)  # sources share most of their headers
def names_of(text: str) -> tuple[str, str, bool]:
    """What a declaration declares, what it mentions, and whether it stays unasked."""
    plain = bare(text + "\n")
    if plain.startswith("#"):
        return "", "", True
    return " ".join(declared(plain)), " ".join(names_in(text)), False


def declared(text: str) -> set[str]:
    """The names by which a declaration is asked for; too many rather than too few."""
    head, brace, body = text.partition("{")
    if text.startswith(("static_assert", ";")):
        return set()
    if text.startswith("using"):
        return names_in(text.partition("=")[0])
    a_class = class_in(head)
    if a_class and (brace or "(" not in head):
        own = names_in(AFTER_NAME.split(a_class[2])[0])
        after = names_in(body.rpartition("}")[2])
        return (own | after | (names_in(body) if a_class[1] == "enum" else set())) or names_in(text)
    if text.startswith("typedef") or "operator" in head:
        return names_in(head) | (names_in(body.rpartition("}")[2]) if text.startswith("typedef") else set())
    head = without_arguments(head)
    before, parenthesis, _ = head.partition("(")
    if "=" in before or not parenthesis:
        return names_in(text)  # variables, of which there may be several
    function = FUNCTION.search(before)
    return names_in(function[1]) if function else names_in(head)


@lru_cache(maxsize=None)
def is_function(text: str) -> bool:
    """Whether what ends in a brace is done: a function's body, not a class or the value of a variable."""
    head = bare(text.partition("{")[0])
    if "(" not in head or class_in(head):
        return False
    return "operator" in head or "=" not in without_arguments(head).partition("(")[0]


def class_in(head: str) -> re.Match | None:
    """The keyword of a class, and what follows it; a function that returns one ends in a parenthesis."""
    return None if head.rstrip().endswith(")") else CLASS.match(head)


def bare(text: str) -> str:
    """A declaration without places, strings, attributes and the parameters of its templates."""
    return without_template(ATTRIBUTES.sub(" ", STRING.sub('""', MARKER.sub("", text)))).strip()


def without_template(text: str) -> str:
    """A declaration without what comes before it in angle brackets: `template <...>`."""
    while True:
        opening = re.match(r"\s*template\s*<", text)
        if not opening:
            return text
        depth, end = 1, opening.end()
        while depth and end < len(text):
            depth += {"<": 1, ">": -1}.get(text[end], 0)
            end += 1
        text = text[end:]


def without_arguments(text: str) -> str:
    """The text without what stands in angle brackets."""
    while True:
        less = ARGUMENTS.sub(" ", text)
        if less == text:
            return text
        text = less


def names_in(text: str) -> set[str]:
    return set(WORD.findall(text)) - NO_NAMES
