# pyright: strict
"""What all results are: their text is what the command prints, their HTML the same as tables, for
notebooks."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from html import escape

from tir_schedules.console import as_html
from tir_schedules.files import Json

STYLE = "overflow-x: auto; max-width: 100%"


class Result:
    """A result. `str` of it is the text that the command prints, a notebook shows it as HTML, and `to_json`
    returns what the command's `--json` prints."""

    ok = True
    """Whether all is right."""

    def show(self) -> None:
        """Print it as the command does."""
        raise NotImplementedError

    def to_json(self) -> Json | list[Json]:
        """What `--json` of the verb prints, as dictionaries and lists."""
        raise NotImplementedError

    def __str__(self) -> str:
        text = io.StringIO()
        with redirect_stdout(text), redirect_stderr(text):
            self.show()
        return text.getvalue().rstrip("\n")

    def _repr_html_(self) -> str:
        lines = io.StringIO()
        with as_html() as parts, redirect_stdout(lines), redirect_stderr(lines):
            self.show()
        rest = f"<pre>{escape(lines.getvalue())}</pre>" if lines.getvalue() else ""
        return f'<div style="{STYLE}">{"".join(parts)}{rest}</div>'


def framed(page: str) -> str:
    """A whole page as part of another."""
    return f'<iframe srcdoc="{escape(page)}" style="width: 100%; height: 40em; border: 0"></iframe>'


def finish(result: Result, as_json: bool, indent: int) -> int:
    """Print a result as a verb of the command does; returns the exit code."""
    if as_json:
        print(json.dumps(result.to_json(), indent=indent))
    else:
        result.show()
    return 0 if result.ok else 1
