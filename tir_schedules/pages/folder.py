"""Pages of one folder know each other: `index.html` there lists them, and each page links to it."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

from tir_schedules.files import write_output, write_text
from tir_schedules.pages import render

INDEX, TITLE = "index.html", "Pages of this folder"

MARK = '<meta name="generator" content="tir-schedules">'
"""What is in the head of every page."""

PLACE, LINK = "<!-- index -->", f'<p><a href="{INDEX}">All pages of this folder</a></p>'
"""What is in the foot of every page, and what replaces it if the folder has an index."""

HEAD = 8 << 10
"""Most bytes of a page that are read for its mark and title: the style comes after them."""


def write_page(path: Path, text: str, tell: bool = True) -> None:
    """Write a page or picture that the user named. A page links to the index of its folder, which is written
    anew. An `index.html` of anybody else stays as it is, and the page has no link.

    tell: say that the page was written. That an index is new is always said.
    """
    index = path.with_name(INDEX)
    listed = path.suffix == ".html" and path.name != INDEX and (not index.exists() or is_index(index))
    (write_output if tell else write_text)(path, text.replace(PLACE, LINK, 1) if listed else text)
    if listed and path.is_file():
        (write_text if index.exists() else write_output)(index, index_of(path.parent))


def index_of(folder: Path) -> str:
    """The index page of a folder: its other pages that this package wrote, by name."""
    paths = [path for path in sorted(folder.glob("*.html")) if path.name != INDEX]
    pages = [(path.name, title) for path in paths if (title := title_of(path)) is not None]
    return render("index.html.j2", title=TITLE, pages=pages, provenance=[])


def is_index(path: Path) -> bool:
    """Whether a file is an index that was written here: not a page of the user's, nor the contents of a
    book."""
    return title_of(path) == TITLE


def title_of(path: Path) -> str | None:
    """The title of a page; None for a file that this package did not write."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            head = file.read(HEAD).decode("utf-8", "replace")
    except OSError:
        return None
    title = re.search(r"<title>(.*?)</title>", head, re.S)
    return unescape(title[1]) if title and MARK in head else None
