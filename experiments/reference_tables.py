"""tir_schedules/REFERENCE.md, from the docstrings of what `import tir_schedules as ts` offers.

python experiments/reference_tables.py [--check]
"""

from __future__ import annotations

import argparse
import inspect
import re
from pathlib import Path
from textwrap import wrap
from typing import Any, Iterable, Iterator, Sequence

import tir_schedules as ts
from tir_schedules.api.options import Shape
from tir_schedules.files import write_text

PAGE = Path(__file__).parents[1] / "tir_schedules" / "REFERENCE.md"
WIDTH = 100

HEAD = """\
# Reference

What `import tir_schedules as ts` offers, written by `experiments/reference_tables.py` from the docstrings.
Nothing is imported before it is used. An error is one of the classes at the end, in one line.
"""

OPTIONS = """\
## Options that several functions have
"""


def page() -> str:
    """The whole page."""
    functions, results, errors = kinds_of(dir(ts))
    parts = [HEAD, "## Functions\n", *map(text_of, functions), OPTIONS, said_of(Shape) + "\n"]
    parts += ["## Results and types\n", *map(text_of, results), "## Errors\n", *map(text_of, errors)]
    return "\n".join(parts)


def kinds_of(names: Iterable[str]) -> tuple[list[str], list[str], list[str]]:
    """Names of functions, of results and other types, and of errors."""
    functions = [name for name in names if not inspect.isclass(getattr(ts, name))]
    classes = [name for name in names if name not in functions]
    errors = [name for name in classes if issubclass(getattr(ts, name), Exception)]
    return functions, [name for name in classes if name not in errors], errors


def order_of(names: Iterable[str]) -> list[str]:
    """Names as the page has them."""
    return [name for kind in kinds_of(names) for name in kind]


def text_of(name: str) -> str:
    """A heading, how it is called, and what it says of itself."""
    one = getattr(ts, name)
    lines = [f"### {name}", ""]
    if not inspect.isclass(one):
        called = f"ts.{name}({', '.join(parameters(one))})"
        lines += [f"    {line}" for line in wrap(called, WIDTH, subsequent_indent="    ")] + [""]
    lines += [said_of(one), ""]
    if inspect.isclass(one) and not issubclass(one, Exception):
        told = [f"- `{member}`: {text}" for member, text in members(one)]
        lines += ["Methods and properties:", "", *told] if told else []
    return "\n".join(lines).rstrip() + "\n"


def said_of(one: Any) -> str:
    """Its docstring, where names of a list are code."""
    lists = re.compile(r"^- ([\w, ]+)(?=[:(])", re.M)
    return lists.sub(lambda found: f"- `{found[1].replace(', ', '`, `')}`", inspect.getdoc(one) or "")


def parameters(function: Any) -> Iterator[str]:
    """Names, with their defaults."""
    star = False
    for one in inspect.signature(function).parameters.values():
        if one.kind is one.VAR_POSITIONAL:
            star = True
        elif one.kind is one.KEYWORD_ONLY and not star:
            star = True
            yield "*"
        mark = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        yield f"{mark}{one.name}" + ("" if one.default is one.empty else f"={one.default!r}")


def members(kind: type) -> Iterator[tuple[str, str]]:
    """Methods and properties of its own that have a docstring; a method with its brackets."""
    for name, one in vars(kind).items():
        text = one.__doc__ if isinstance(one, property) or inspect.isfunction(one) else None
        if text and not name.startswith("_"):
            brackets = "" if isinstance(one, property) else f"({', '.join([*parameters(one)][1:])})"
            yield f"{name}{brackets}", " ".join(text.split())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit code 1 when the page would change")
    if parser.parse_args(arguments).check:
        return int(PAGE.read_text(encoding="utf-8") != page())
    write_text(PAGE, page())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
