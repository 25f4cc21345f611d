"""Text of the book: Markdown as HTML, highlighted code, links to the glossary, and the rule that numbers in
prose are looked up.

Pages of the book are templates. A number in their prose has to come from `{{ ... }}`, so that it is that of a
recorded file or of the code. Digits may stand in code, in names such as H100, fp32 and sm_90, and in the
numbers of the articles.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Callable, Iterator, Mapping, Sequence

import jinja2
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from tir_schedules.errors import BadInput, one_line
from tir_schedules.pages.code import highlighted

CODE = re.compile(r"^```.*?^```$|`[^`]+`|^    .*$", re.M | re.S)
"""What is code in Markdown; an indented line is code where the book writes it."""

LOOKED_UP = re.compile(r"\{\{(.*?)\}\}", re.S)
TAG = re.compile(r"\{%.*?%\}|\{#.*?#\}", re.S)
TARGET = re.compile(r"\]\([^)]*\)")
NAMES = re.compile(r"\b(?:[A-Za-z]\w*\d\w*|00[0-4])\b")
"""Words with digits that are names: of GPUs, formats, architectures, articles."""

DIGIT = re.compile(r"\d[\d.,]*")
LITERAL = re.compile(r"\s*['\"]?[\d.,]+['\"]?\s*(?:\|.*)?")
TERM = re.compile(r"^\| ([^|]+?) \| (.+?) \|$", re.M)


def check_numbers(text: str, place: str) -> None:
    """BadInput for the first number that stands in the prose of a template. place: its file."""

    def blank(match: re.Match[str]) -> str:
        return "\n" * match[0].count("\n")

    for match in LOOKED_UP.finditer(text):
        if LITERAL.fullmatch(match[1]):
            raise refused(text, match.start(), match[0], place)
    prose = text
    for pattern in (CODE, LOOKED_UP, TAG, TARGET, NAMES):
        prose = pattern.sub(blank, prose)
    for number, (line, whole) in enumerate(zip(prose.split("\n"), text.split("\n")), 1):
        found = DIGIT.search(re.sub(r"^\s*\d+\. ", "", line))
        if found:
            raise BadInput(wrong_number(found[0], f"{place}:{number}", whole))


def refused(text: str, at: int, number: str, place: str) -> BadInput:
    line = text.count("\n", 0, at) + 1
    return BadInput(wrong_number(number, f"{place}:{line}", text.split("\n")[line - 1]))


def wrong_number(number: str, place: str, line: str) -> str:
    return (
        f"{place}: the number {number} is in the text ({line.strip()[:60]}): look it up in a recorded"
        " file or in the code with {{ ... }}"
    )


def filled(text: str, place: str, values: Mapping[str, object]) -> str:
    """A page's Markdown with what it looks up. BadInput for a number that is not looked up, and for one that
    is nowhere recorded."""
    check_numbers(text, place)
    try:
        return environment().from_string(text).render(**values)
    except (jinja2.TemplateError, KeyError, LookupError) as error:
        raise BadInput(f"{place}: {one_line(error)}") from error


@lru_cache
def environment() -> jinja2.Environment:
    return jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def slug(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower()).strip("-")


@dataclass
class Glossary:
    """entries: id, words and meaning of each, in the order of the file."""

    entries: list[tuple[str, list[str], str]]

    @property
    def ids(self) -> dict[str, str]:
        return {word.lower(): id for id, words, _ in self.entries for word in words}

    @property
    def pattern(self) -> re.Pattern[str]:
        words = sorted((re.escape(word) for word in self.ids), key=len, reverse=True)
        return re.compile(rf"(?<![\w`.])({'|'.join(words)})(s?)(?![\w`])", re.I)


def read_glossary(path: Path) -> Glossary:
    """From its table."""
    rows = [(one[1], one[2]) for one in TERM.finditer(path.read_text(encoding="utf-8"))][1:]
    entries = [(slug(words.split(", ")[0]), words.split(", "), meaning) for words, meaning in rows]
    return Glossary([one for one in entries if one[0] != ""])


@dataclass
class Page:
    """Text as HTML. headings: id and title of those of the second level. plain: what a search looks at."""

    html: Markup
    headings: list[tuple[str, str]] = field(default_factory=list)
    plain: str = ""


@dataclass
class Writer:
    """Writes Markdown as HTML. glossary: whose words are links, the first of each on a page, to its page at
    `address`. resolve(target): the address on the site of what a text links to, "" where it has none.
    names: what is a link where it stands as code, such as the name of a rung, and its address."""

    glossary: Glossary
    address: str
    resolve: Callable[[str], str]
    names: Mapping[str, str] = field(default_factory=dict)
    met: set[str] = field(default_factory=set)

    def page(self, text: str) -> Page:
        parser = MarkdownIt("commonmark", {"html": False}).enable("table")
        tokens = parser.parse(re.sub(r"<!--.*?-->", "", text, flags=re.S))
        headings: list[tuple[str, str]] = []
        plain: list[str] = []
        taken: set[str] = set()
        for at, token in enumerate(tokens):
            if token.type == "heading_open":
                title = plain_of(tokens[at + 1])
                own = slug(title) or "part"
                while own in taken:
                    own += "-more"
                taken.add(own)
                token.attrSet("id", own)
                if token.tag == "h2":
                    headings.append((own, title))
            if token.type == "inline":
                plain.append(plain_of(token))
                in_heading = tokens[at - 1].type == "heading_open"
                token.children = [*self.linked(self.resolved(token.children or []), in_heading)]
            elif token.type in ("fence", "code_block"):
                plain.append(token.content)
                lines = highlighted(token.content, language_of(token))
                token.type, token.content = "html_block", f'<pre tabindex="0"><code>{lines}</code></pre>\n'
            elif token.type == "table_open":
                token.meta["scroll"] = True
        html = parser.renderer.render(tokens, parser.options, {})
        html = html.replace("<table>", '<div class="scroll" tabindex="0"><table>').replace(
            "</table>", "</table></div>"
        )
        return Page(Markup(html), headings, " ".join(plain))

    def inline(self, text: str) -> Markup:
        """A sentence, without the element of a paragraph."""
        html = str(self.page(text).html).strip()
        return Markup(html.removeprefix("<p>").removesuffix("</p>"))

    def resolved(self, tokens: Sequence[Token]) -> Iterator[Token]:
        """Without links to what the site does not have."""
        kept: list[bool] = []
        for token in tokens:
            if token.type == "link_open":
                target = self.resolve(str(token.attrGet("href") or ""))
                kept.append(bool(target))
                token.attrSet("href", target)
            if token.type == "image":
                continue
            if token.type not in ("link_open", "link_close") or kept[-1]:
                yield token
            if token.type == "link_close":
                kept.pop()

    def linked(self, tokens: Iterator[Token], in_heading: bool) -> Iterator[Token]:
        """With links to the glossary."""
        inside = 0
        for token in tokens:
            inside += {"link_open": 1, "link_close": -1}.get(token.type, 0)
            if token.type == "code_inline" and token.content in self.names and not inside and not in_heading:
                yield Token("link_open", "a", 1, {"href": self.names[token.content]})
                yield token
                yield Token("link_close", "a", -1)
            elif token.type != "text" or inside or in_heading:
                yield token
            else:
                yield from self.words(token.content)

    def words(self, text: str) -> Iterator[Token]:
        at = 0
        for match in self.glossary.pattern.finditer(text):
            own = self.glossary.ids[match[1].lower()]
            if own in self.met:
                continue
            self.met.add(own)
            yield text_token(text[at : match.start()])
            yield Token("link_open", "a", 1, {"href": f"{self.address}#{own}", "class": "term"})
            yield text_token(match[0])
            yield Token("link_close", "a", -1)
            at = match.end()
        yield text_token(text[at:])


def text_token(content: str) -> Token:
    return Token("text", "", 0, content=content)


def plain_of(token: Token) -> str:
    return "".join(
        " " if one.type in ("softbreak", "hardbreak") else one.content for one in token.children or ()
    )


def language_of(token: Token) -> str:
    """The language of a block of code. Indented blocks are commands, Python or output."""
    named = token.info.strip().split(" ")[0]
    if named:
        return named if named in ("cu", "python", "diff") else ""
    if re.match(r"(?:pip|tir-schedules|pytest|python|git) ", token.content):
        return "bash"
    return "python" if re.match(r"(?:import|from|@|sch|ts\.)", token.content) else ""
