"""HTML pages: one self-contained file each, from a jinja2 template on `base.html.j2`, with `style.css` inside."""
from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any


def render(template: str, **values: Any) -> str:
    """A page of a template of this folder, such as "report.html.j2".

    values: what the template names; everything but `title` and `provenance` is the template's own. Text is escaped, SVG that is to
    stand as it is goes through `|safe`. jinja2.UndefinedError for a name that is not given.
    """
    return environment().get_template(template).render(**values)


@lru_cache
def environment() -> Any:
    import jinja2

    found = jinja2.Environment(
        loader=jinja2.PackageLoader("tir_schedules.pages", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.globals["css"] = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    return found
