"""Printing: rich tables and progress on a terminal, plain aligned text when piped."""
from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import Iterable, Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.syntax import Syntax
from rich.table import Table

PIPE_WIDTH = 10_000  # a pipe has no edge to wrap at


def console(stderr: bool = False) -> Console:
    """A console for standard output or error that never wraps or colours what goes into a pipe or file."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, highlight=False, emoji=False, width=None if stream.isatty() else PIPE_WIDTH)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> None:
    """Rows of cells in rich's markup under a heading."""
    out = console()
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    out.print(table)


def print_line(text: str = "") -> None:
    """One line of plain text, whatever brackets it holds."""
    console().print(escape(text), soft_wrap=True)


def print_paragraph(text: str) -> None:
    """Lines of plain text; on a terminal broken between words, with an indent after the first, where they do not fit."""
    from textwrap import wrap

    for line in text.split("\n"):
        broken = wrap(line, width(), subsequent_indent="  ", break_on_hyphens=False) if len(line) > width() else [line]
        print_line("\n".join(broken))


def width() -> int:
    """Columns of standard output; of a pipe more than any text has."""
    return console().width


def print_error(message: str) -> None:
    """One line on standard error."""
    print(f"tir-schedules: {message}", file=sys.stderr)


def print_source(text: str, language: str) -> None:
    """Source text: coloured on a terminal, byte for byte otherwise."""
    if sys.stdout.isatty():
        console().print(Syntax(text, language, theme="ansi_dark", background_color="default"))
    else:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")


@contextmanager
def progress(total: int | None, what: str) -> Iterator["callable"]:
    """A bar on a terminal's standard error, nothing elsewhere; call the yielded function with a name for each step done.

    total: how many steps, None where that is not known.
    """
    if not sys.stderr.isatty():
        yield lambda name: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda name: bar.update(task, advance=1, description=f"{what} {name}")
