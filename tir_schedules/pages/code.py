"""Code with colours: a <span> of class t-... for each token, whose colours are in `style.css`."""

from __future__ import annotations

import re
from functools import lru_cache

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

LANGUAGES = {"cu": "cuda", "": "text"}
"""Our names of languages -> those of Pygments, where they differ."""

PLAIN = re.compile(r'<span class="t-(?:n|p|o|w|nf|nn|nc|na|nl|ni|nv|pm)">([^<]*)</span>')
"""Tokens in the colour of text, which need no element."""


def highlighted(code: str, language: str) -> Markup:
    """Code as HTML. language: "cu", "python", "diff", "bash" or "" for text."""
    lexer = get_lexer_by_name(LANGUAGES.get(language, language), stripnl=False, ensurenl=False)
    html = PLAIN.sub(r"\1", highlight(code, lexer, HtmlFormatter(nowrap=True, classprefix="t-")))
    return Markup(html if code.endswith("\n") else html.removesuffix("\n"))


def highlighted_lines(code: str, language: str) -> list[Markup]:
    """The same, line by line."""
    return [Markup(line) for line in highlighted(code, language).split("\n")]


@lru_cache(1 << 14)
def highlighted_line(line: str, language: str) -> Markup:
    """One line by itself, as differences have them."""
    return highlighted(line, language)


class HighlightedSource:
    """A source that is highlighted as a whole, so that comments of several lines are seen. language: as of
    `highlighted`."""

    def __init__(self, source: str, language: str) -> None:
        self.language = language
        self.own = highlighted_lines(source, language)

    def line(self, row: int, text: str) -> Markup:
        """A line by its number in the source, from 1; by its text where another file has it, which is row
        0."""
        if 0 < row <= len(self.own):
            return self.own[row - 1]
        return highlighted_line(text, self.language)
