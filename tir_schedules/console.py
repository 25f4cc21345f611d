"""Printing: tables, prose, code, JSON and progress, for the width of a terminal; into a pipe or file a line
for each line, and tables as narrow as that allows."""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from typing import Callable, Iterable, Iterator, Mapping, Sequence, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.syntax import Syntax
from rich.text import Text

from tir_schedules.errors import fold_paragraph, printable

PIPE_WIDTH = 1_000_000  # a pipe has no edge to wrap at
PIPED = 180  # columns of a table in a pipe, where its names and numbers allow it
USUAL_WIDTH = 80  # of a terminal that does not tell
HEIGHT = 25  # no view asks for it, but without it rich takes a dumb terminal for 80 columns
GAP = 2  # blanks between columns
HTML: list[list[str]] = []  # where parts of HTML go instead, the last of them
HELD: list[list[str]] = []  # lines of `print_error` that wait, of the innermost `afterwards` the last
BLOCKS = 3  # most blocks that a table is cut into before its records are stood on end
ROOM = 24  # columns that are enough for the text of a record stood on end, however narrow the terminal


def console(stderr: bool = False) -> Console:
    """A console for standard output or error that never wraps or colours what goes into a pipe or file."""
    stream = sys.stderr if stderr else sys.stdout
    width = columns_of(stream) or PIPE_WIDTH
    return Console(
        file=stream, highlight=False, emoji=False, width=width, height=HEIGHT,
        force_jupyter=False,  # in a notebook it would show what `str` of a result should return
    )  # fmt: skip


def columns_of(stream: TextIO) -> int | None:
    """Columns of a terminal, by COLUMNS or as it tells itself; None for a pipe or file."""
    if not stream.isatty():
        return None
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told):
        return int(told)
    try:
        return os.get_terminal_size(stream.fileno()).columns or USUAL_WIDTH
    except (ValueError, OSError):
        return USUAL_WIDTH


def terminal_width() -> int | None:
    """Columns of standard output; None for a pipe or file."""
    return columns_of(sys.stdout)


@contextmanager
def as_html() -> Iterator[list[str]]:
    """What is printed inside becomes parts of HTML: a table, a paragraph of prose, code."""
    HTML.append([])
    try:
        yield HTML[-1]
    finally:
        HTML.pop()


def html_of(tag: str, text: str) -> bool:
    """Keep an element with this text, where HTML is wanted; whether it is."""
    if HTML and text:
        HTML[-1].append(f"<{tag}>{escape(text)}</{tag}>")
    return bool(HTML)


# ---- tables
# ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Column:
    """A column of a table. room: None where cells stand in one line; else they are wrapped between words, to
    no fewer columns than this."""

    heading: Text
    cells: Sequence[Text]
    room: int | None

    @property
    def natural(self) -> int:
        """Columns that it takes with nothing wrapped."""
        return max(text.cell_len for text in (self.heading, *self.cells))

    @property
    def least(self) -> int:
        """Columns that it takes at least: words are never broken, nor cells that are not prose."""
        whole = [
            longest_word(self.heading),
            *(map(longest_word, self.cells) if self.room else (cell.cell_len for cell in self.cells)),
        ]
        return max(*whole, min(self.natural, self.room or 0))


def longest_word(text: Text) -> int:
    return max(map(cell_len, text.plain.split()), default=0)


def wrap_text(text: Text, width: int) -> list[Text]:
    """Lines of at most so many columns, indented alike, but that no word is broken."""
    indent = " " * (len(text.plain) - len(text.plain.lstrip()))
    cuts, start = [], 0
    for word in re.finditer(r"\S+", text.plain):
        room = width - len(indent) * bool(cuts)
        if text.plain[start : word.start()].strip() and cell_len(text.plain[start : word.end()]) > room:
            start = word.start()
            cuts.append(start)
    lines = list(text.divide(cuts))
    for line in lines[:-1]:
        line.rstrip()
    return [*lines[:1], *(Text(indent).append_text(line) for line in lines[1:])]


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], title: str = "",
    prose: Mapping[str, int] = {},
    spare: Sequence[str] = (), keys: int = 1, wide: bool = False,
) -> tuple[str, ...]:  # fmt: skip
    """Rows of cells in rich's markup under headings. Numbers and names stay whole on a terminal of any width,
    which rich's own tables do not promise.

    prose: columns that may be wrapped between words -> the columns of a terminal that they need. If a table
    is still wider, columns of `spare` are left out, the first of them first; they are returned. If that is
    not enough, the table is cut into a few blocks, each with the first `keys` columns, or each record is
    printed with a line for each field. Without `keys` it is always the latter.

    A pipe has `PIPED` columns. Columns of `spare` are left out there before prose is wrapped, so that `grep`
    finds a record in one line. Prose is wrapped if that does not help. A table is never cut in a pipe: one
    whose names and numbers are wider keeps a line for each record.

    wide: every column, and a line for each record, whatever the width.
    """
    out, cells = console(), [[Text.from_markup(printable(cell, "\n")) for cell in row] for row in rows]
    if HTML:
        lines = [("th", columns), *(("td", [cell.plain for cell in row]) for row in cells)]
        inside = ("".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) for tag, row in lines)
        HTML[-1].append(f"<table>{''.join(f'<tr>{row}</tr>' for row in inside)}</table>")
        return ()
    every = [
        Column(Text.from_markup(name, style="bold"), [row[at] for row in cells], prose.get(name))
        for at, name in enumerate(columns)
    ]
    width = PIPE_WIDTH if wide else out.width
    if width == PIPE_WIDTH and not wide:
        blocks, left_out, width = arrange_piped(every, spare)
    else:
        blocks, left_out = arrange_columns(every, width, spare, keys)
    if title:
        write(out, Text(title, "italic"))
    if not blocks:
        stand_on_end(out, every)
    for number, block in enumerate(blocks):
        write(out, *[Text()] * (number > 0), *table_lines(block, width, keys if number else 0))
    return left_out


def print_left_out(names: Iterable[str], shown_by: str = "--json") -> None:
    """Say which columns had no room, if any: on standard error for a pipe, whose lines are the table's.

    shown_by: the options with which they are printed."""
    if not (names := list(dict.fromkeys(names))):
        return
    what, them = ", ".join(names), "it" if len(names) == 1 else "them"
    if terminal_width():
        print_line(f"left out for want of room: {what}; a wider terminal or {shown_by} shows {them}")
    elif not HTML:
        print_error(f"left out to keep lines short: {what}; {shown_by} shows {them}")


def arrange_columns(
    every: list[Column], width: int, spare: Sequence[str], keys: int
) -> tuple[list[list[Column]], tuple[str, ...]]:
    """The columns of each block of a table, none where records are to stand on end; and the names of columns
    that are left out."""
    if widths(every, width):
        return [every], ()
    for count in range(1, len(spare) + 1):
        kept = [column for column in every if column.heading.plain not in spare[:count]]
        if widths(kept, width):
            return [kept], tuple(spare[:count])
    if not keys:
        return [], ()
    blocks = [every[:keys]]
    for column in every[keys:]:
        if not widths([*blocks[-1], column], width):
            blocks.append(every[:keys])
        blocks[-1] = [*blocks[-1], column]
    fit = len(blocks) <= BLOCKS and all(widths(block, width) for block in blocks)
    return (blocks if fit else []), ()


def arrange_piped(
    every: list[Column], spare: Sequence[str]
) -> tuple[list[list[Column]], tuple[str, ...], int]:
    """The same of a pipe: one block, what is left out of it, and the columns that it is to have."""
    for count in range(len(spare) + 1):
        kept = [column for column in every if column.heading.plain not in spare[:count]]
        if sum(column.natural for column in kept) + GAP * (len(kept) - 1) <= PIPED:
            return [kept], tuple(spare[:count]), PIPE_WIDTH
    wrapped = any(column.room for column in every) and widths(every, PIPED)
    return [every], (), PIPED if wrapped else PIPE_WIDTH


def widths(columns: Sequence[Column], width: int) -> list[int] | None:
    """Columns of a terminal for each column; None where they do not fit. What is left beyond the least goes
    to prose, then to headings."""
    if width == PIPE_WIDTH:
        return [one.natural for one in columns]
    given = [column.least for column in columns]
    left = width - sum(given) - GAP * (len(columns) - 1)
    if left < 0:
        return None
    for prose in (True, False):
        wanted = {at: one.natural - one.least for at, one in enumerate(columns) if bool(one.room) == prose}
        share = min(1.0, left / max(1, sum(wanted.values())))
        for at, more in wanted.items():
            given[at] += int(more * share)
        left -= sum(int(more * share) for more in wanted.values())
    return given


def table_lines(columns: Sequence[Column], width: int, keys: int) -> Iterator[Text]:
    """Headings, which end together, and rows, but those that have nothing besides their first `keys`
    cells."""
    room = widths(columns, width)
    assert room is not None, "see arranged, which chose these columns"
    filled = [
        row
        for row in zip(*(column.cells for column in columns))
        if not keys or any(cell.plain for cell in row[keys:])
    ]
    every = [[column.heading for column in columns], *filled]
    headings, *rows = ([wrap_text(one, wide) for one, wide in zip(row, room)] for row in every)
    deep = max(map(len, headings))
    for row in [[[*[Text()] * (deep - len(lines)), *lines] for lines in headings], *rows]:
        for cells in zip_longest(*row, fillvalue=Text()):
            line = Text()
            for cell, wide in zip(cells, room):
                line.append_text(cell).append(" " * (wide - cell.cell_len + GAP))
            line.rstrip()
            yield line


def stand_on_end(out: Console, columns: Sequence[Column]) -> None:
    """Each record below the one before it, a line to a field that is not empty."""
    names = max(column.heading.cell_len for column in columns) + GAP
    for record in zip(*(column.cells for column in columns)):
        for column, cell in zip(columns, record):
            for at, line in enumerate(wrap_text(cell, max(ROOM, out.width - names)) if cell.plain else ()):
                heading = column.heading.copy() if at == 0 else Text()
                heading.append(" " * (names - heading.cell_len), "not bold")
                write(out, heading.append_text(line))
        write(out, Text())


def write(out: Console, *lines: Text) -> None:
    """Lines as they are: neither wrapped nor cut."""
    for line in lines:
        out.print(line, soft_wrap=True)


# ---- code beside cells ---
def fits(lines: Sequence[str]) -> bool:
    """Whether a terminal has room for them; a pipe has for all."""
    width = terminal_width()
    return not width or max(map(len, lines), default=0) <= width


def print_aligned(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows of cells, the last one code. On a narrow terminal the other cells stand below the code."""
    lines = list(side_by_side(list(zip(columns, *rows))))
    if fits(lines):
        return print_whole("\n".join(lines))
    at = columns.index("line")
    indent = max(len(row[at]) for row in rows) + GAP
    print_whole(" " * indent + columns[-1])
    for row in rows:
        print_whole(f"{row[at]:>{indent - GAP}}{' ' * GAP}{row[-1]}".rstrip())
        facts = [
            f"{name} {cell}"
            for place, (name, cell) in enumerate(zip(columns[:-1], row))
            if cell and place != at
        ]
        if facts:
            print_line(f"{' ' * indent}^ {', '.join(facts)}")


def side_by_side(columns: Sequence[Sequence[str]]) -> Iterator[str]:
    """Texts next to each other, line by line."""
    room = [max(map(len, column), default=0) for column in columns]
    for cells in zip_longest(*columns, fillvalue=""):
        yield (" " * GAP).join(cell.ljust(one) for cell, one in zip(cells, room)).rstrip()


# ---- text ---
def print_line(text: str = "") -> None:
    """A line of plain text, whatever brackets it holds; wrapped between words on a terminal."""
    if html_of("p", text):
        return
    out = console()
    for line in text.split("\n"):
        write(out, *wrap_text(Text(printable(line, "\t")), out.width))


def print_whole(text: str) -> None:
    """Code, a command or a path, line by line: what a terminal wraps is copied from it as it is."""
    if html_of("pre", text):
        return
    text = printable(text, "\n\t")
    if sys.stdout.isatty():
        write(console(), Text(text))
    else:
        sys.stdout.write(text + "\n")


def print_paragraph(text: str) -> None:
    """Lines of plain text; on a terminal broken between words, with an indent after the first, where they do
    not fit."""
    if html_of("p", text):
        return
    width = terminal_width() or PIPE_WIDTH
    for line in text.split("\n"):
        broken = fold_paragraph(line, width) if len(line) > width else [line]
        print_whole("\n".join(broken))


def print_error(message: str) -> None:
    """One line on standard error; at the end of `afterwards`, where that holds it."""
    line = printable(f"tir-schedules: {message}")
    if HELD:
        HELD[-1].append(line)
    else:
        print(line, file=sys.stderr)


@contextmanager
def afterwards() -> Iterator[None]:
    """Lines of `print_error` inside are printed when it ends, below what standard output got."""
    HELD.append([])
    try:
        yield
    finally:
        lines = HELD.pop()
        sys.stdout.flush()
        for line in lines:
            print(line, file=sys.stderr)


def print_source(text: str, language: str) -> None:
    """Source text, whole: coloured on a terminal, byte for byte otherwise."""
    if html_of("pre", text):
        return
    if sys.stdout.isatty():
        syntax = Syntax("", language, theme="ansi_dark", background_color="default", tab_size=8)
        coloured = syntax.highlight(text)
        coloured.rstrip()
        console().print(coloured, soft_wrap=True)
    else:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")


@contextmanager
def progress(total: int | None, what: str) -> Iterator[Callable[[str], None]]:
    """A bar on a terminal's standard error, nothing elsewhere; call the yielded function with a name for each
    step done.

    total: how many steps, None where that is not known.
    """
    if not sys.stderr.isatty():
        yield lambda name: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda name: bar.update(task, advance=1, description=f"{what} {name}")
